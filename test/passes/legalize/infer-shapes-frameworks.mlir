// RUN: opt-tool %s --split-input-file --pass-pipeline=infer-shapes | filecheck %s

// Ops of onnx have the types of what they are legalized to; open dimensions keep their names.
// CHECK-LABEL: func.func @nodes
// CHECK-SAME:  -> tensor<?x3x1x1xf32, #core.tensor<dims = [n, 3, 1, 1]>>
// CHECK:       onnx.Relu_14 {{.*}} -> tensor<?x3x4x4xf32, #core.tensor<dims = [n, 3, 4, 4]>>
func.func @nodes(%x : tensor<?x3x4x4xf32, #core.tensor<dims = [n, 3, 4, 4]>>) -> tensor<*xf32> {
  %r = onnx.Relu_14 %x : (tensor<?x3x4x4xf32, #core.tensor<dims = [n, 3, 4, 4]>>) -> tensor<*xf32>
  %y = onnx.GlobalAveragePool_1 %r : (tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A size that only data decide has no name, and what is refused has no type; others have.
// CHECK-LABEL: func.func @unknown
// CHECK:       onnx.NonZero_13 {{.*}} -> tensor<*xi64>
// CHECK:       onnx.RandomNormalLike_1 {{.*}} -> tensor<*xf32>
// CHECK:       onnx.Neg_13 {{.*}} -> tensor<2x3xf32>
func.func @unknown(%x : tensor<2x3xf32>) -> (tensor<*xi64>, tensor<*xf32>, tensor<*xf32>) {
  %n = onnx.NonZero_13 %x : (tensor<2x3xf32>) -> tensor<*xi64>
  %r = onnx.RandomNormalLike_1 %x : (tensor<2x3xf32>) -> tensor<*xf32>
  %m = onnx.Neg_13 %x : (tensor<2x3xf32>) -> tensor<*xf32>
  func.return %n, %r, %m : tensor<*xi64>, tensor<*xf32>, tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @layers
// CHECK-SAME:  -> tensor<1x3x2x2xf32>
func.func @layers(%x : tensor<1x3x4x4xf32>) -> tensor<*xf32> {
  %y = caffe.Pooling %x {kernel_size = 2, pool = "MAX", stride = 2} : (tensor<1x3x4x4xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}
