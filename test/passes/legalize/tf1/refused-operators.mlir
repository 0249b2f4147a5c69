// RUN: not opt-tool %s --pass-pipeline=legalize-tf1 2>&1 | filecheck %s

// CHECK:      node 'complex' (Cast): found an output of complex numbers, expected real ones; make Real and Imag of it outputs
// CHECK-NEXT: node 'truncated' (Cast): found a conversion that truncates, expected one that rounds; set Truncate to false
// CHECK-NEXT: node 'strings' (Add): found an operand of !core.string, expected real numbers or truth values
// CHECK-NEXT: node 'norm' (EuclideanNorm): found a norm of i32, expected floating-point numbers
// CHECK-NEXT: node 'axis' (ArgMax): found the axis that depends on data, expected a constant
// CHECK-NEXT: node 'batch' (MaxPool): found [2, 1, 1, 1] with [2, 1] for batch and channels, expected 1 for both
// CHECK-NEXT: node 'uneven' (MaxPool): found a window [1, 1, 1, 2] with strides [1, 1, 1, 2] over 3 channels, expected one over channels or over the image, and channels in whole groups
// CHECK-NEXT: node 'padding' (Conv2D): found attribute 'padding' is 'FULL', expected one of SAME, VALID, EXPLICIT
// CHECK-NEXT: node 'pads' (Conv2D): found explicit_paddings with padding VALID, expected padding EXPLICIT
// CHECK-NEXT: node 'rank' (Conv2D): found 'input' of type tensor<3x3xf32>, expected 4 or more dimensions
// CHECK-NEXT: node 'channels' (Conv2D): input has 3 channels, but the weight expects 2
// CHECK-NEXT: node 'vectors' (Conv2D): found attribute 'data_format' is 'NCHW_VECT_C', expected one of
// CHECK-NEXT: node 'fused' (_FusedMatMul): found the fused operator Sine, expected one of
// CHECK-NEXT: node 'few' (_FusedMatMul): found too few operands for the fused operators, expected as many as they need
// CHECK-NEXT: node 'sizes' (ResizeBilinear): found 1 sizes, expected height and width
// CHECK-NEXT: node 'modes' (ResizeNearestNeighbor): found align_corners with half_pixel_centers, expected at most one of them
// CHECK-NEXT: node 'axes' (Dequantize): found 3 bounds without an axis, expected one
func.func @refused(%x : tensor<1x4x4x3xf32>, %m : tensor<3x3xf32>, %i : tensor<3xi32>, %s : tensor<2x!core.string>, %k : tensor<i32>, %q : tensor<3xi8>, %r : tensor<3xf32>) -> (tensor<*xbf16>, tensor<*xcomplex<f32>>, tensor<*x!core.string>, tensor<*xi32>, tensor<*xi64>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %zero = core.constant dense<0> : tensor<i32>
  %w = core.constant dense<1.0> : tensor<1x1x2x4xf32>
  %0 = tf1.Cast %m {SrcT = #tf1.dtype<float>, DstT = #tf1.dtype<bfloat16>, Truncate = true} : (tensor<3x3xf32>) -> tensor<*xbf16> loc("truncated")
  %1 = tf1.Cast %m {SrcT = #tf1.dtype<float>, DstT = #tf1.dtype<complex64>} : (tensor<3x3xf32>) -> tensor<*xcomplex<f32>> loc("complex")
  %2 = tf1.Add %s, %s {T = #tf1.dtype<string>} : (tensor<2x!core.string>, tensor<2x!core.string>) -> tensor<*x!core.string> loc("strings")
  %3 = tf1.EuclideanNorm %i, %zero {T = #tf1.dtype<int32>} : (tensor<3xi32>, tensor<i32>) -> tensor<*xi32> loc("norm")
  %4 = tf1.ArgMax %m, %k {T = #tf1.dtype<float>} : (tensor<3x3xf32>, tensor<i32>) -> tensor<*xi64> loc("axis")
  %5 = tf1.MaxPool %x {T = #tf1.dtype<float>, ksize = [2, 1, 1, 1], strides = [1, 1, 1, 1], padding = "VALID"} : (tensor<1x4x4x3xf32>) -> tensor<*xf32> loc("batch")
  %6 = tf1.MaxPool %x {T = #tf1.dtype<float>, ksize = [1, 1, 1, 2], strides = [1, 1, 1, 2], padding = "VALID"} : (tensor<1x4x4x3xf32>) -> tensor<*xf32> loc("uneven")
  %7 = tf1.Conv2D %x, %w {T = #tf1.dtype<float>, strides = [1, 1, 1, 1], padding = "FULL"} : (tensor<1x4x4x3xf32>, tensor<1x1x2x4xf32>) -> tensor<*xf32> loc("padding")
  %8 = tf1.Conv2D %x, %w {T = #tf1.dtype<float>, strides = [1, 1, 1, 1], padding = "VALID", explicit_paddings = [0, 0, 1, 1, 0, 0, 0, 0]} : (tensor<1x4x4x3xf32>, tensor<1x1x2x4xf32>) -> tensor<*xf32> loc("pads")
  %9 = tf1.Conv2D %m, %w {T = #tf1.dtype<float>, strides = [1, 1, 1, 1], padding = "VALID"} : (tensor<3x3xf32>, tensor<1x1x2x4xf32>) -> tensor<*xf32> loc("rank")
  %10 = tf1.Conv2D %x, %w {T = #tf1.dtype<float>, strides = [1, 1, 1, 1], padding = "VALID"} : (tensor<1x4x4x3xf32>, tensor<1x1x2x4xf32>) -> tensor<*xf32> loc("channels")
  %11 = tf1.Conv2D %x, %w {T = #tf1.dtype<float>, strides = [1, 1, 1, 1], padding = "VALID", data_format = "NCHW_VECT_C"} : (tensor<1x4x4x3xf32>, tensor<1x1x2x4xf32>) -> tensor<*xf32> loc("vectors")
  %12 = tf1._FusedMatMul %m, %m {T = #tf1.dtype<float>, num_args = 0, fused_ops = ["Sine"]} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<*xf32> loc("fused")
  %13 = tf1._FusedMatMul %m, %m {T = #tf1.dtype<float>, num_args = 0, fused_ops = ["BiasAdd"]} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<*xf32> loc("few")
  %one = core.constant dense<[2]> : tensor<1xi32>
  %two = core.constant dense<[2, 2]> : tensor<2xi32>
  %14 = tf1.ResizeBilinear %x, %one {T = #tf1.dtype<float>} : (tensor<1x4x4x3xf32>, tensor<1xi32>) -> tensor<*xf32> loc("sizes")
  %15 = tf1.ResizeNearestNeighbor %x, %two {T = #tf1.dtype<float>, align_corners = true, half_pixel_centers = true} : (tensor<1x4x4x3xf32>, tensor<2xi32>) -> tensor<*xf32> loc("modes")
  %16 = tf1.Dequantize %q, %r, %r {T = #tf1.dtype<qint8>} : (tensor<3xi8>, tensor<3xf32>, tensor<3xf32>) -> tensor<*xf32> loc("axes")
  func.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16 : tensor<*xbf16>, tensor<*xcomplex<f32>>, tensor<*x!core.string>, tensor<*xi32>, tensor<*xi64>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
