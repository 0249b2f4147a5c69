// RUN: opt-tool %s --pass-pipeline=legalize-caffe --split-input-file | filecheck %s

// Parts begin at the slice points; without them they are equal, whatever the batch size.
// CHECK-LABEL: @slice
// CHECK:         core.split %x axis 1 sizes [1, 4, 1]
// CHECK:         core.split %x axis 1 sizes [3, 3]
func.func @slice(%x : tensor<?x6xf32, #core.tensor<dims = [n, 6]>>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a, %b, %c = caffe.Slice %x {slice_point = [1, 5]} : (tensor<?x6xf32, #core.tensor<dims = [n, 6]>>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  %d, %e = caffe.Slice %x {axis = -1} : (tensor<?x6xf32, #core.tensor<dims = [n, 6]>>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %b, %d : tensor<*xf32>, tensor<*xf32>
}

// -----

// One top is the bottom; copies for several readers, layers of training and silence leave nothing.
// CHECK-LABEL: @nothing_to_do
// CHECK-NEXT:    func.return %x, %x, %x
func.func @nothing_to_do(%x : tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %a = caffe.Slice %x {} : (tensor<2x4xf32>) -> tensor<*xf32>
  %b, %c = caffe.Split %x {} : (tensor<2x4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  caffe.Silence %c {} : (tensor<*xf32>) -> ()
  %d = caffe.Dropout %b {dropout_ratio = 0.9} : (tensor<*xf32>) -> tensor<*xf32>
  func.return %a, %c, %d : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// Dimensions before the axis are one for the convolution, and come back behind it.
// CHECK-LABEL: @convolution_of_an_axis
// CHECK:         %[[X:.*]] = core.reshape %x [6, 4, 5]
// CHECK:         %[[Y:.*]] = core.conv %[[X]], %w strides [2] dilations [1] pads [1] [1] groups 2
// CHECK:         core.reshape %[[Y]] [2, 3, 6, 3]
func.func @convolution_of_an_axis(%x : tensor<2x3x4x5xf32>, %w : tensor<6x2x3xf32>) -> tensor<*xf32> {
  %y = caffe.Convolution %x blobs(%w) {num_output = 6, kernel_size = [3], stride = [2], pad = [1], group = 2, axis = 2, bias_term = false} : (tensor<2x3x4x5xf32>, tensor<6x2x3xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Each bottom meets the same weights.
// CHECK-LABEL: @two_bottoms
// CHECK:         core.conv_transpose %x, %w, %b
// CHECK:         core.conv_transpose %y, %w, %b
func.func @two_bottoms(%x : tensor<1x2x3x3xf32>, %y : tensor<1x2x3x3xf32>, %w : tensor<2x1x2x2xf32>, %b : tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %p, %q = caffe.Deconvolution %x, %y blobs(%w, %b) {num_output = 2, kernel_size = [2], group = 2} : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>, tensor<2x1x2x2xf32>, tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %p, %q : tensor<*xf32>, tensor<*xf32>
}

// -----

// Weights are [outputs, inputs], and are transposed unless they are so already.
// CHECK-LABEL: @inner_product
// CHECK-DAG:     %[[W:.*]] = core.transpose %w
// CHECK-DAG:     %[[X:.*]] = core.reshape %x [2, 12]
// CHECK:         core.matmul %[[X]], %[[W]]
// CHECK:         core.matmul %{{.*}}, %v
func.func @inner_product(%x : tensor<2x3x4xf32>, %w : tensor<5x12xf32>, %v : tensor<12x5xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %y = caffe.InnerProduct %x blobs(%w) {num_output = 5, bias_term = false} : (tensor<2x3x4xf32>, tensor<5x12xf32>) -> tensor<*xf32>
  %z = caffe.InnerProduct %x blobs(%v) {num_output = 5, bias_term = false, transpose = true} : (tensor<2x3x4xf32>, tensor<12x5xf32>) -> tensor<*xf32>
  func.return %y, %z : tensor<*xf32>, tensor<*xf32>
}

// -----

// Of equal elements the last one is the best; several are looked for from the end.
// CHECK-LABEL: @argmax
// CHECK:         core.arg_reduce max %x axis 1 {keep_dims = true, last_index = true}
// CHECK:         %[[B:.*]] = core.slice %x [0, 6] [2, 7] [1, -1]
// CHECK:         %{{.*}}, %[[I:.*]] = core.top_k %[[B]] [3]
// CHECK:         %[[LAST:.*]] = core.constant dense<6> : tensor<i64>
// CHECK:         core.sub %[[LAST]], %[[I]]
// CHECK:         core.reshape %{{.*}} [2, 1, 3]
func.func @argmax(%x : tensor<2x7xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a = caffe.ArgMax %x {axis = -1} : (tensor<2x7xf32>) -> tensor<*xf32>
  %b = caffe.ArgMax %x {top_k = 3} : (tensor<2x7xf32>) -> tensor<*xf32>
  func.return %a, %b : tensor<*xf32>, tensor<*xf32>
}

// -----

// What a Power layer does not read does not matter: shift^power, and 1 for the power 0.
// CHECK-LABEL: @power
// CHECK-DAG:     %[[A:.*]] = core.constant dense<[9.0, 9.0]> : tensor<2xf32>
// CHECK-DAG:     %[[B:.*]] = core.constant dense<[1.0, 1.0]> : tensor<2xf32>
// CHECK:         func.return %[[A]], %[[B]]
func.func @power(%x : tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a = caffe.Power %x {power = 2.0, scale = 0.0, shift = 3.0} : (tensor<2xf32>) -> tensor<*xf32>
  %b = caffe.Power %x {power = 0.0} : (tensor<2xf32>) -> tensor<*xf32>
  func.return %a, %b : tensor<*xf32>, tensor<*xf32>
}

// -----

// The loop carries h and c; gates are cut into i, f, o, g; cont holds back the old states.
// CHECK-LABEL: @lstm
// CHECK:         core.matmul
// CHECK:         %{{.*}}, %{{.*}}, %[[Y:.*]] = core.loop
// CHECK:         ^{{.*}}(%{{.*}}: tensor<i64>, %[[H:.*]]: tensor<2x3xf32>, %[[C:.*]]: tensor<2x3xf32>):
// CHECK:           %[[K:.*]] = core.mul %[[H]], %[[CONT:.*]] : (tensor<2x3xf32>, tensor<2x1xf32>)
// CHECK:           core.matmul %[[K]]
// CHECK:           %[[I:.*]], %[[F:.*]], %[[O:.*]], %[[G:.*]] = core.split {{.*}} axis 1 sizes [3, 3, 3, 3]
// CHECK:           core.sigmoid %[[F]]
// CHECK:           core.tanh %[[G]]
// CHECK:         func.return %[[Y]] : tensor<4x2x3xf32>
func.func @lstm(%x : tensor<4x2x5xf32>, %cont : tensor<4x2xf32>, %w : tensor<12x5xf32>, %b : tensor<12xf32>, %h : tensor<12x3xf32>) -> tensor<*xf32> {
  %y = caffe.LSTM %x, %cont blobs(%w, %b, %h) {num_output = 3} : (tensor<4x2x5xf32>, tensor<4x2xf32>, tensor<12x5xf32>, tensor<12xf32>, tensor<12x3xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}
