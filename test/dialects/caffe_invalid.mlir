// RUN: opt-tool %s --verify-diagnostics --split-input-file --parsing-diagnostics | filecheck %s

// CHECK: the layer has no field 'colour'
func.func @c1_text(%x: tensor<2xf32>) {
  %y = caffe.ReLU %x {colour = 3} : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: ReLU has no field 'colour'
func.func @c1_generic(%x: tensor<2xf32>) {
  %y = "caffe.ReLU"(%x) <{operandSegmentSizes = array<i32: 1, 0>, colour = 3 : i64}> : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: field 'negative_slope' cannot hold 3 : i64
func.func @c1_type(%x: tensor<2xf32>) {
  %y = "caffe.ReLU"(%x) <{operandSegmentSizes = array<i32: 1, 0>, negative_slope = 3 : i64}> : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: field 'pool' cannot hold "MEDIAN"
func.func @c1_enum(%x: tensor<2xf32>) {
  %y = caffe.Pooling %x {pool = "MEDIAN"} : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: field 'kernel_size' cannot hold -1 : i64
func.func @c1_range(%x: tensor<2xf32>) {
  %y = caffe.Pooling %x {kernel_size = -1} : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: found 1 bottoms, expected 2
func.func @c2_bottoms(%x: tensor<2xf32>) {
  %y = caffe.Crop %x : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: found 2 tops, expected 1
func.func @c2_tops(%x: tensor<2xf32>) {
  %y, %z = caffe.ReLU %x : (tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return
}

// -----

// Only maxima have positions.
// CHECK: found 2 tops, expected 1
func.func @c2_mask(%x: tensor<1x1x2x2xf32>) {
  %y, %z = caffe.Pooling %x {kernel_size = 2, pool = "AVE"} : (tensor<1x1x2x2xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return
}

// -----

// CHECK: found 1 bottoms and 2 tops, expected as many of each
func.func @c2_equal(%x: tensor<1x1x2x2xf32>, %w: tensor<1x1x1x1xf32>) {
  %y, %z = caffe.Convolution %x blobs(%w) {bias_term = false, kernel_size = [1], num_output = 1} : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return
}

// -----

// CHECK: found 3 bottoms, expected 4 to 5
func.func @c2_states(%x: tensor<1x1x2xf32>, %c: tensor<1x1xf32>, %w: tensor<8x2xf32>, %b: tensor<8xf32>) {
  %y, %h, %d = caffe.LSTM %x, %c, %x blobs(%w, %b, %w) {expose_hidden = true, num_output = 2} : (tensor<1x1x2xf32>, tensor<1x1xf32>, tensor<1x1x2xf32>, tensor<8x2xf32>, tensor<8xf32>, tensor<8x2xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  func.return
}

// -----

// CHECK: found 1 blobs, expected 2
func.func @c3(%x: tensor<1x3xf32>, %w: tensor<2x3xf32>) {
  %y = caffe.InnerProduct %x blobs(%w) {num_output = 2} : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: expected f32 tensors, found tensor<2xf64>
func.func @c4(%x: tensor<2xf64>) {
  %y = caffe.ReLU %x : (tensor<2xf64>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: 'operandSegmentSizes' does not fit the 1 operands
func.func @segments(%x: tensor<2xf32>) {
  %y = "caffe.ReLU"(%x) <{operandSegmentSizes = array<i32: 2, 0>}> : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: 'operandSegmentSizes' is missing
func.func @no_segments(%x: tensor<2xf32>) {
  %y = "caffe.ReLU"(%x) : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}
