// RUN: opt-tool %s --pass-pipeline=legalize-tflite | filecheck %s

// An empty tensor is small, but numpy has no array of such sizes beside the 0.
// CHECK: core.reshape
// CHECK-SAME: tensor<1x0x1099511627776x1099511627776xi32>
func.func @empty(%x : tensor<0x1099511627776x1099511627776xi32>) -> tensor<*xi32> {
  %axis = core.constant dense<0> : tensor<i32>
  %y = "tflite.EXPAND_DIMS"(%x, %axis) : (tensor<0x1099511627776x1099511627776xi32>, tensor<i32>) -> tensor<*xi32>
  func.return %y : tensor<*xi32>
}
