// RUN: not opt-tool %s --pass-pipeline=legalize-onnx 2>&1 | filecheck %s

// All nodes are listed at once; one whose operands were refused is not listed again.
// CHECK:      node 'normalize' (LpNormalization): found p = 3, expected 1 or 2
// CHECK-NEXT: node 'softmax' (Softmax): found axis 3, expected -3 to 2
// CHECK-NOT:  (Add)
func.func @refused(%x : tensor<2x3x4xf32>) -> tensor<*xf32> {
  %z = onnx.LpNormalization_1 %x {p = 3} : (tensor<2x3x4xf32>) -> tensor<*xf32> loc("normalize")
  %y = onnx.Softmax_13 %x {axis = 3} : (tensor<2x3x4xf32>) -> tensor<*xf32> loc("softmax")
  %w = onnx.Add_14 %y, %z : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %w : tensor<*xf32>
}
