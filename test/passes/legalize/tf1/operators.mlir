// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tf1,dce | filecheck %s

// Channels go to dimension 1 and back, weights to [out, in, kernel]; an even image needs nothing
// before and one element after.
// CHECK-LABEL: func.func @conv
// CHECK-DAG:   [[W:%.+]] = core.transpose %w [3, 2, 0, 1]
// CHECK-DAG:   [[X:%.+]] = core.transpose %x [0, 3, 1, 2]
// CHECK:       [[Y:%.+]] = core.conv [[X]], [[W]]
// CHECK-SAME:  pads [0, 1] [1, 1] groups 2
// CHECK-NEXT:  core.transpose [[Y]] [0, 2, 3, 1]
func.func @conv(%x : tensor<?x8x9x4xf32, #core.tensor<dims = [n, 8, 9, 4]>>, %w : tensor<3x3x2x6xf32>) -> tensor<*xf32> {
  %y = tf1.Conv2D %x, %w {T = #tf1.dtype<float>, strides = [1, 2, 2, 1], padding = "SAME"} : (tensor<?x8x9x4xf32, #core.tensor<dims = [n, 8, 9, 4]>>, tensor<3x3x2x6xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// No transpose where the channels are in dimension 1 already.
// CHECK-LABEL: func.func @first
// CHECK-NEXT:  [[Y:%.+]] = core.pool max %x
// CHECK-NEXT:  func.return [[Y]]
func.func @first(%x : tensor<2x3x8x8xf32>) -> tensor<*xf32> {
  %y = tf1.MaxPool %x {T = #tf1.dtype<float>, ksize = [1, 1, 2, 2], strides = [1, 1, 2, 2], padding = "VALID", data_format = "NCHW"} : (tensor<2x3x8x8xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The size of a transposed convolution is what is computed from the shape: padding has no symbols
// of its own.
// CHECK-LABEL: func.func @doubled
// CHECK-NOT:   bind_symbols
// CHECK:       core.conv_transpose
// CHECK-SAME:  pads [0, 0] [1, 1]
// CHECK-SAME:  -> tensor<?x2x?x?xf32, #core.tensor<dims = [n, 2, h * 2, w * 2]>>
func.func @doubled(%x : tensor<?x?x?x4xf32, #core.tensor<dims = [n, h, w, 4]>>, %w : tensor<3x3x2x4xf32>) -> tensor<*xf32> {
  %s = tf1.Shape %x {T = #tf1.dtype<float>} : (tensor<?x?x?x4xf32, #core.tensor<dims = [n, h, w, 4]>>) -> tensor<*xi32>
  %f = core.constant dense<[1, 2, 2, 1]> : tensor<4xi32>
  %d = tf1.Mul %s, %f {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<4xi32>) -> tensor<*xi32>
  %g = core.constant dense<[1, 1, 1, 2]> : tensor<4xi32>
  %e = tf1.FloorDiv %d, %g {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<4xi32>) -> tensor<*xi32>
  %y = tf1.Conv2DBackpropInput %e, %w, %x {T = #tf1.dtype<float>, strides = [1, 2, 2, 1], padding = "SAME"} : (tensor<*xi32>, tensor<3x3x2x4xf32>, tensor<?x?x?x4xf32, #core.tensor<dims = [n, h, w, 4]>>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The own statistics of one image by rows are those of a layer.
// CHECK-LABEL: func.func @rows
// CHECK:       core.layer_norm %x
// CHECK-SAME:  axis 2
func.func @rows(%x : tensor<1x?x6x1xf32, #core.tensor<dims = [1, r, 6, 1]>>, %p : tensor<?xf32, #core.tensor<dims = [r]>>, %e : tensor<0xf32>) -> tensor<*xf32> {
  %y, %m, %v, %0, %1, %2 = tf1.FusedBatchNormV3 %x, %p, %p, %e, %e {T = #tf1.dtype<float>, U = #tf1.dtype<float>, data_format = "NCHW"} : (tensor<1x?x6x1xf32, #core.tensor<dims = [1, r, 6, 1]>>, tensor<?xf32, #core.tensor<dims = [r]>>, tensor<?xf32, #core.tensor<dims = [r]>>, tensor<0xf32>, tensor<0xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  func.return %y : tensor<*xf32>
}

// -----

// Two images share their statistics.
// CHECK-LABEL: func.func @images
// CHECK-NOT:   core.layer_norm
// CHECK:       core.reduce sum %x [0, 2, 3]
// CHECK:       core.batch_norm %x
func.func @images(%x : tensor<2x5x6x1xf32>, %p : tensor<5xf32>, %e : tensor<0xf32>) -> tensor<*xf32> {
  %y, %m, %v, %0, %1, %2 = tf1.FusedBatchNormV3 %x, %p, %p, %e, %e {T = #tf1.dtype<float>, U = #tf1.dtype<float>, data_format = "NCHW"} : (tensor<2x5x6x1xf32>, tensor<5xf32>, tensor<5xf32>, tensor<0xf32>, tensor<0xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  func.return %y : tensor<*xf32>
}

// -----

// The operands come as t, m, v, beta, gamma; without the scale there are ones.
// CHECK-LABEL: func.func @global
// CHECK:       core.batch_norm %x, %gamma, %beta, %m, %v axis 3 {epsilon = 1.000000e-02 : f64}
// CHECK:       [[ONES:%.+]] = core.constant dense<[1.0, 1.0, 1.0, 1.0, 1.0]>
// CHECK:       core.batch_norm %x, [[ONES]], %beta, %m, %v
func.func @global(%x : tensor<2x3x4x5xf32>, %m : tensor<5xf32>, %v : tensor<5xf32>, %beta : tensor<5xf32>, %gamma : tensor<5xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %y = tf1.BatchNormWithGlobalNormalization %x, %m, %v, %beta, %gamma {T = #tf1.dtype<float>, variance_epsilon = 0.01 : f64, scale_after_normalization = true} : (tensor<2x3x4x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<*xf32>
  %z = tf1.BatchNormWithGlobalNormalization %x, %m, %v, %beta, %gamma {T = #tf1.dtype<float>, variance_epsilon = 0.01 : f64, scale_after_normalization = false} : (tensor<2x3x4x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<*xf32>
  func.return %y, %z : tensor<*xf32>, tensor<*xf32>
}

// -----

// A fused convolution of channels is the convolution, then what follows in order.
// CHECK-LABEL: func.func @fused
// CHECK:       core.reshape {{.*}}[8, 1, 3, 3]
// CHECK:       core.conv {{.*}}groups 4
// CHECK:       core.add
// CHECK:       core.max
// CHECK:       core.min
func.func @fused(%x : tensor<1x8x8x4xf32>, %w : tensor<3x3x4x2xf32>, %b : tensor<8xf32>) -> tensor<*xf32> {
  %y = tf1._FusedDepthwiseConv2dNative %x, %w, %b {T = #tf1.dtype<float>, num_args = 1, strides = [1, 1, 1, 1], padding = "SAME", fused_ops = ["BiasAdd", "Relu6"]} : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>, tensor<8xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A vector chooses rows, unless the operands are vectors, too.
// CHECK-LABEL: func.func @select
// CHECK:       [[C:%.+]] = core.reshape %c [3, 1]
// CHECK-NEXT:  core.select [[C]], %x, %x
// CHECK-NEXT:  core.select %c, %v, %v
func.func @select(%c : tensor<3xi1>, %x : tensor<3x3xf32>, %v : tensor<3xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %y = tf1.Select %c, %x, %x {T = #tf1.dtype<float>} : (tensor<3xi1>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<*xf32>
  %z = tf1.Select %c, %v, %v {T = #tf1.dtype<float>} : (tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<*xf32>
  func.return %y, %z : tensor<*xf32>, tensor<*xf32>
}

// -----

// The three have the same sizes, by whatever names: the result's is that of the first choice. Two that differ may not
// be told apart by the number of elements, and two numbers have to be equal.
// CHECK-LABEL: func.func @select_open
// CHECK:       [[C:%.+]] = core.reshape %c [c, 1]
// CHECK-NEXT:  [[ROWS:%.+]] = core.reshape [[C]] [n, 1]
// CHECK-NEXT:  [[M:%.+]] = core.reshape %y [n, 3]
// CHECK-NEXT:  core.select [[ROWS]], %x, [[M]] : {{.*}} -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
// CHECK-NEXT:  core.select %d, %v, %w : {{.*}}dims = [max(n, p), max(m, q)]
func.func @select_open(%c : tensor<?xi1, #core.tensor<dims = [c]>>, %x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, %y : tensor<?x3xf32, #core.tensor<dims = [m, 3]>>, %d : tensor<i1>, %v : tensor<?x?xf32, #core.tensor<dims = [n, m]>>, %w : tensor<?x?xf32, #core.tensor<dims = [p, q]>>) -> (tensor<*xf32>, tensor<*xf32>) {
  %r = tf1.Select %c, %x, %y {T = #tf1.dtype<float>} : (tensor<?xi1, #core.tensor<dims = [c]>>, tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<?x3xf32, #core.tensor<dims = [m, 3]>>) -> tensor<*xf32>
  %s = tf1.Select %d, %v, %w {T = #tf1.dtype<float>} : (tensor<i1>, tensor<?x?xf32, #core.tensor<dims = [n, m]>>, tensor<?x?xf32, #core.tensor<dims = [p, q]>>) -> tensor<*xf32>
  func.return %r, %s : tensor<*xf32>, tensor<*xf32>
}

// -----

// A window of one element reaches nothing beyond an image, of whatever size.
// CHECK-LABEL: func.func @one_tap
// CHECK:       core.conv %{{.*}} strides [2, 3] dilations [1, 1] pads [0, 0] [0, 0]
// CHECK-SAME:  #core.tensor<dims = [n, 6, (h + 1) floordiv 2, (w + 2) floordiv 3]>
func.func @one_tap(%x : tensor<?x?x?x4xf32, #core.tensor<dims = [n, h, w, 4]>>, %w : tensor<1x1x4x6xf32>) -> tensor<*xf32> {
  %y = tf1.Conv2D %x, %w {T = #tf1.dtype<float>, strides = [1, 2, 3, 1], padding = "SAME"} : (tensor<?x?x?x4xf32, #core.tensor<dims = [n, h, w, 4]>>, tensor<1x1x4x6xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}
