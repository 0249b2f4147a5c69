// RUN: opt-tool %s --pass-pipeline='convert-to-caffe{dialect=ssd}' | filecheck %s

// CHECK:         caffe.Permute %x {order = [0, 3, 1, 2]}
func.func @main(%x : tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32> {
  %t = core.transpose %x [0, 3, 1, 2] : (tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32>
  func.return %t : tensor<1x2x2x3xf32>
}
