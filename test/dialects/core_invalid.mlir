// RUN: opt-tool %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: op 'core.exp': result 0 has type tensor<3x2xf32>, but its operands give tensor<2x3xf32> (T1)
func.func @exp_t1_result_type(%x : tensor<2x3xf32>) {
  %r = core.exp %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
  func.return
}

// -----

// CHECK: op 'core.add': tensor<?x3xf32> has a dimension without identity: write its dimensions as #core.tensor<dims = [...]> (T2)
func.func @add_t2_dimension_without_identity(%x : tensor<?x3xf32>, %y : tensor<?x3xf32>) {
  %r = core.add %x, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
  func.return
}

// -----

// CHECK: op 'core.constant': the blob has 3 bytes, but 4 are expected (C2)
func.func @constant_c2_size() {
  %c = core.constant #core.blob<"0x000080"> : tensor<1xf32>
  func.return
}

// -----

// CHECK: op 'core.constant': a constant has the dynamic type tensor<?xf32, #core.tensor<dims = [n]>> (C1)
func.func @constant_c1_shape() {
  %c = core.constant #core.blob<"0x0000803F"> : tensor<?xf32, #core.tensor<dims = [n]>>
  func.return
}

// -----

// CHECK: op 'core.from_dims': 2 values do not fill the shape [3] (C1)
func.func @from_dims_c1() {
  %c = core.from_dims [n, 2] shape [3] : tensor<3xi64>
  func.return
}

// -----

// CHECK: op 'core.bind_symbols': 1 symbols for tensor<2xi64> (C2)
func.func @bind_symbols_c2_count(%x : tensor<2xi64>) {
  core.bind_symbols %x ["n"] : tensor<2xi64>
  func.return
}

// -----

// CHECK: op 'core.bind_symbols': expected integers, got f32 (C1)
func.func @bind_symbols_c1_type(%x : tensor<1xf32>) {
  core.bind_symbols %x ["n"] : tensor<1xf32>
  func.return
}

// -----

// CHECK: op 'core.iota': axis 2 is out of range for rank 2 (C1)
func.func @iota_c1() {
  %c = core.iota [n, 2] axis 2 : tensor<?x2xi64, #core.tensor<dims = [n, 2]>>
  func.return
}

// -----

// CHECK: op 'core.exp': expected a floating-point tensor, got i32 (C1)
func.func @exp_c1_float_unary(%x : tensor<2xi32>) {
  %r = core.exp %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.add': operands have different element types: f32, i32 (C1)
func.func @add_c1_element_types(%x : tensor<2xf32>, %y : tensor<2xi32>) {
  %r = core.add %x, %y : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.add': cannot broadcast [2] with [3] (C2)
func.func @add_c2_broadcast_shapes(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.add %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return
}

// -----

// CHECK: op 'core.and': expected integers or i1, got f32 (C3)
func.func @and_c3_bitwise(%x : tensor<2xf32>, %y : tensor<2xf32>) {
  %r = core.and %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.select': the condition is not i1 (C1)
func.func @select_c1(%x : tensor<2xi32>, %y : tensor<2xf32>, %z : tensor<2xf32>) {
  %r = core.select %x, %y, %z : (tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.split': 3 sizes for 2 parts (C1)
func.func @split_c1(%x : tensor<2x3xf32>) {
  %a, %b = core.split %x axis 1 sizes [1, 1, 1] : (tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>)
  func.return
}

// -----

// CHECK: op 'core.split': a size is negative (C2)
func.func @split_c2_size(%x : tensor<2x3xf32>) {
  %a, %b = core.split %x axis 1 sizes [4, -1] : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x?xf32>)
  func.return
}

// -----

// CHECK: op 'core.split': parts of 3 elements together in a dimension of 2 (C2)
func.func @split_c2_total(%x : tensor<2x3xf32>) {
  %a, %b = core.split %x axis 0 sizes [2, 1] : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<1x3xf32>)
  func.return
}

// -----

// CHECK: op 'core.reshape': cannot reshape 6 elements to [7] (C1)
func.func @reshape_c1(%x : tensor<2x3xf32>) {
  %r = core.reshape %x [7] : (tensor<2x3xf32>) -> tensor<7xf32>
  func.return
}

// -----

// CHECK: op 'core.transpose': permutation [0, 0] is not a permutation of the 2 dimensions (C1)
func.func @transpose_c1_0(%x : tensor<2x3xf32>) {
  %r = core.transpose %x [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.transpose': permutation [0] is not a permutation of the 2 dimensions (C1)
func.func @transpose_c1_1(%x : tensor<2x3xf32>) {
  %r = core.transpose %x [0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.transpose': permutation [0, 2] is not a permutation of the 2 dimensions (C1)
func.func @transpose_c1_2(%x : tensor<2x3xf32>) {
  %r = core.transpose %x [0, 2] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.transpose': permutation [1, 0, 2] is not a permutation of the 2 dimensions (C1)
func.func @transpose_c1_3(%x : tensor<2x3xf32>) {
  %r = core.transpose %x [1, 0, 2] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.broadcast': the result has fewer dimensions than the input (C1)
func.func @broadcast_c1_rank(%x : tensor<2x3xf32>) {
  %r = core.broadcast %x [3] : (tensor<2x3xf32>) -> tensor<3xf32>
  func.return
}

// -----

// CHECK: op 'core.broadcast': cannot broadcast [2, 3] with [2, 4] (C2)
func.func @broadcast_c2_dims(%x : tensor<2x3xf32>) {
  %r = core.broadcast %x [2, 4] : (tensor<2x3xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: op 'core.slice': starts, sizes and steps need 2 entries each (C1)
func.func @slice_c1_lists(%x : tensor<2x3xf32>) {
  %r = core.slice %x [0] [2, 3] [1, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.slice': a step is zero (C2)
func.func @slice_c2_step(%x : tensor<2x3xf32>) {
  %r = core.slice %x [0, 0] [2, 3] [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.slice': size -1 is negative (C2)
func.func @slice_c2_size(%x : tensor<2x3xf32>) {
  %r = core.slice %x [0, 0] [2, -1] [1, 1] : (tensor<2x3xf32>) -> tensor<2x0xf32>
  func.return
}

// -----

// CHECK: op 'core.slice': element 3 is outside of a dimension of 3 (C3)
func.func @slice_c3_last(%x : tensor<2x3xf32>) {
  %r = core.slice %x [0, 1] [2, 3] [1, 1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.slice': element -1 is outside of a dimension of 3 (C3)
func.func @slice_c3_negative_step(%x : tensor<2x3xf32>) {
  %r = core.slice %x [0, 1] [2, 3] [1, -1] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.pad': begin and end need 2 entries (C1)
func.func @pad_c1_lists(%x : tensor<2x3xf32>) {
  %r = core.pad edge %x [0] [0, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.pad': a negative amount: slice instead (C2)
func.func @pad_c2_negative(%x : tensor<2x3xf32>) {
  %r = core.pad edge %x [0, 0] [-1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.pad': the value is not a scalar (C3)
func.func @pad_c3_value(%x : tensor<2x3xf32>, %y : tensor<1xf32>) {
  %r = core.pad constant %x, %y [0, 0] [0, 0] : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.pad': operands have different element types: f32, f64 (C3)
func.func @pad_c3_value_type(%x : tensor<2x3xf32>, %y : tensor<f64>) {
  %r = core.pad constant %x, %y [0, 0] [0, 0] : (tensor<2x3xf32>, tensor<f64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.concat': dimension 0 is 2 and 4 (C4)
func.func @concat_c4(%x : tensor<2x3xf32>, %y : tensor<4x3xf32>) {
  %r = core.concat %x, %y axis 1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x6xf32>
  func.return
}

// -----

// CHECK: op 'core.concat': operands have different ranks (C2)
func.func @concat_c2_ranks(%x : tensor<2x3xf32>, %y : tensor<2xf32>) {
  %r = core.concat %x, %y axis 1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x6xf32>
  func.return
}

// -----

// CHECK: op 'core.concat': axis 2 is out of range for rank 2 (C3)
func.func @concat_c3_axis(%x : tensor<2x3xf32>) {
  %r = core.concat %x axis 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.concat': no operands (C1)
func.func @concat_c1_none() {
  %r = core.concat axis 0 : () -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather': expected integer indices, got f32 (C1)
func.func @gather_c1_indices(%x : tensor<2x3xf32>, %y : tensor<2xf32>) {
  %r = core.gather %x, %y axis 0 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather': axis -1 is out of range for rank 2 (C2)
func.func @gather_c2_axis(%x : tensor<2x3xf32>, %y : tensor<2xi64>) {
  %r = core.gather %x, %y axis -1 : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_elements': ranks differ (C3)
func.func @gather_elements_c3(%x : tensor<2x3xf32>, %y : tensor<2xi64>) {
  %r = core.gather_elements %x, %y axis 0 : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_nd': the last dimension of the indices must be a number (C2)
func.func @gather_nd_c2_depth(%x : tensor<2x3xf32>, %y : tensor<?xi64, #core.tensor<dims = [n]>>) {
  %r = core.gather_nd %x, %y batch_dims 0 : (tensor<2x3xf32>, tensor<?xi64, #core.tensor<dims = [n]>>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_nd': the indices are longer than the input's rank (C3)
func.func @gather_nd_c3_rank(%x : tensor<2x3xf32>, %y : tensor<2x2xi64>) {
  %r = core.gather_nd %x, %y batch_dims 1 : (tensor<2x3xf32>, tensor<2x2xi64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_nd': the indices are longer than the input's rank (C3)
func.func @gather_nd_c3_batch(%x : tensor<2x3xf32>, %y : tensor<1xi64>) {
  %r = core.gather_nd %x, %y batch_dims 1 : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_nd': 4 lists of indices for 2 parts (C4)
func.func @gather_nd_c4(%x : tensor<2x3xf32>, %y : tensor<4x1xi64>) {
  %r = core.gather_nd %x, %y batch_dims 1 : (tensor<2x3xf32>, tensor<4x1xi64>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_elements': indices and updates differ (C4)
func.func @scatter_elements_c4_updates(%x : tensor<2x3xf32>, %y : tensor<1x3xi64>, %z : tensor<2x3xf32>) {
  %r = core.scatter_elements add %x, %y, %z axis 0 : (tensor<2x3xf32>, tensor<1x3xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_nd': the last dimension of the indices must be a number (C3)
func.func @scatter_nd_c3_depth(%x : tensor<2x3xf32>, %y : tensor<?xi64, #core.tensor<dims = [n]>>, %z : tensor<f32>) {
  %r = core.scatter_nd none %x, %y, %z : (tensor<2x3xf32>, tensor<?xi64, #core.tensor<dims = [n]>>, tensor<f32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_nd': the updates have the wrong rank (C4)
func.func @scatter_nd_c4_updates(%x : tensor<2x3xf32>, %y : tensor<2x1xi64>, %z : tensor<2xf32>) {
  %r = core.scatter_nd none %x, %y, %z : (tensor<2x3xf32>, tensor<2x1xi64>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.top_k': k is one number (C2)
func.func @top_k_c2(%x : tensor<2x3xf32>) {
  %r, %s = core.top_k %x [1, 2] axis 1 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return
}

// -----

// CHECK: op 'core.nonzero': count is one number (C1)
func.func @nonzero_c1(%x : tensor<2x3xf32>) {
  %r = core.nonzero %x [1, 2] : (tensor<2x3xf32>) -> tensor<2x1xi64>
  func.return
}

// -----

// CHECK: op 'core.conv': input has 6 channels, but the weight expects 4 (C3)
func.func @conv_c3_input(%x : tensor<1x6x9x9xf32>, %y : tensor<6x2x3x3xf32>) {
  %r = core.conv %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x6x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': 5 channels in 2 groups (C3)
func.func @conv_c3_output(%x : tensor<1x4x9x9xf32>, %y : tensor<5x2x3x3xf32>) {
  %r = core.conv %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<5x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': the bias does not have 6 elements (C4)
func.func @conv_c4(%x : tensor<1x4x9x9xf32>, %y : tensor<6x2x3x3xf32>, %z : tensor<4xf32>) {
  %r = core.conv %x, %y, %z strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>, tensor<4xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': groups is not positive (C3)
func.func @conv_c3_groups(%x : tensor<1x4x9x9xf32>, %y : tensor<6x2x3x3xf32>) {
  %r = core.conv %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 0 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': input of rank 4 with a weight of rank 3 (C2)
func.func @conv_c2_rank(%x : tensor<1x4x9x9xf32>, %y : tensor<6x2x3xf32>) {
  %r = core.conv %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': kernel, strides, dilations and pads need 2 entries each (C5)
func.func @conv_c5_lists(%x : tensor<1x4x9x9xf32>, %y : tensor<6x2x3x3xf32>) {
  %r = core.conv %x, %y strides [1, 1] dilations [1, 1] pads [0] [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': a stride is not positive (C5)
func.func @conv_c5_stride(%x : tensor<1x4x9x9xf32>, %y : tensor<6x2x3x3xf32>) {
  %r = core.conv %x, %y strides [1, 0] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': a dilation is not positive (C5)
func.func @conv_c5_dilation(%x : tensor<1x4x9x9xf32>, %y : tensor<6x2x3x3xf32>) {
  %r = core.conv %x, %y strides [1, 1] dilations [0, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': a window of 3 exceeds 1 (C5)
func.func @conv_c5_window(%x : tensor<1x4x1x9xf32>, %y : tensor<6x2x3x3xf32>) {
  %r = core.conv %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x4x1x9xf32>, tensor<6x2x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv_transpose': input has 4 channels, but the weight expects 2 (C3)
func.func @conv_transpose_c3_channels(%x : tensor<1x4x9x9xf32>, %y : tensor<2x3x3x3xf32>) {
  %r = core.conv_transpose %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<2x3x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv_transpose': 4 channels in 3 groups (C3)
func.func @conv_transpose_c3_groups(%x : tensor<1x4x9x9xf32>, %y : tensor<4x3x3x3xf32>) {
  %r = core.conv_transpose %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 3 : (tensor<1x4x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv_transpose': the bias does not have 6 elements (C4)
func.func @conv_transpose_c4_bias(%x : tensor<1x4x9x9xf32>, %y : tensor<4x3x3x3xf32>, %z : tensor<3xf32>) {
  %r = core.conv_transpose %x, %y, %z strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 2 : (tensor<1x4x9x9xf32>, tensor<4x3x3x3xf32>, tensor<3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv_transpose': window lists of different lengths (C5)
func.func @conv_transpose_c5_lists(%x : tensor<1x4x9x9xf32>, %y : tensor<4x3x3x3xf32>) {
  %r = core.conv_transpose %x, %y strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0] groups 2 : (tensor<1x4x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.matmul': a matrix has at least two dimensions (C2)
func.func @matmul_c2_rank(%x : tensor<3xf32>, %y : tensor<3x4xf32>) {
  %r = core.matmul %x, %y : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  func.return
}

// -----

// CHECK: op 'core.sparse_product': expected f32, and indices of i32 (C1)
func.func @sparse_product_c1(%x : tensor<1x6x5xf32>, %w : tensor<3x8xf32>, %r : tensor<3xi64>, %s : tensor<2x2xi32>) {
  %y = core.sparse_product %x, %w, %r, %s axis 1 : (tensor<1x6x5xf32>, tensor<3x8xf32>, tensor<3xi64>, tensor<2x2xi32>) -> tensor<1x16x5xf32>
  func.return
}

// -----

// CHECK: op 'core.sparse_product': a vector alone (C2)
func.func @sparse_product_c2(%x : tensor<6xf32>, %w : tensor<3x8xf32>, %r : tensor<3xi32>, %s : tensor<2x2xi32>) {
  %y = core.sparse_product %x, %w, %r, %s axis 0 : (tensor<6xf32>, tensor<3x8xf32>, tensor<3xi32>, tensor<2x2xi32>) -> tensor<16xf32>
  func.return
}

// -----

// CHECK: op 'core.sparse_product': blocks, rows and starts of {{.*}} (C3)
func.func @sparse_product_c3(%x : tensor<1x6x5xf32>, %w : tensor<3x8xf32>, %r : tensor<4xi32>, %s : tensor<2x2xi32>) {
  %y = core.sparse_product %x, %w, %r, %s axis 1 : (tensor<1x6x5xf32>, tensor<3x8xf32>, tensor<4xi32>, tensor<2x2xi32>) -> tensor<1x16x5xf32>
  func.return
}

// -----

// CHECK: op 'core.sparse_product': a bias that has not 16 elements (C3)
func.func @sparse_product_c3_bias(%x : tensor<1x6x5xf32>, %w : tensor<3x8xf32>, %r : tensor<3xi32>, %s : tensor<2x2xi32>, %b : tensor<8xf32>) {
  %y = core.sparse_product %x, %w, %r, %s, %b axis 1 : (tensor<1x6x5xf32>, tensor<3x8xf32>, tensor<3xi32>, tensor<2x2xi32>, tensor<8xf32>) -> tensor<1x16x5xf32>
  func.return
}

// -----

// CHECK: op 'core.windows': a window of 7 exceeds 4 (C1)
func.func @windows_c1(%x : tensor<1x4x4x6xi32>) {
  %r = core.windows %x taps [4, 1] strides [1, 1] dilations [2, 1] : (tensor<1x4x4x6xi32>) -> tensor<1x16x6xi32>
  func.return
}

// -----

// CHECK: op 'core.windows': windows over 2 of 2 dimensions (C2)
func.func @windows_c2_rank(%x : tensor<4x6xi32>) {
  %r = core.windows %x taps [1, 1] strides [1, 1] dilations [1, 1] : (tensor<4x6xi32>) -> tensor<1x24xi32>
  func.return
}

// -----

// CHECK: op 'core.matmul': cannot multiply rows of 5 with columns of 3 (C3)
func.func @matmul_split_c3(%x : tensor<2x5xi32>, %y : tensor<3x4xi32>) -> tensor<2x4xi32> {
  %r = core.matmul %x, %y packed split_left : (tensor<2x5xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  func.return %r : tensor<2x4xi32>
}

// -----

// CHECK: op 'core.matmul': cannot multiply rows of 3 with columns of 4 (C3)
func.func @matmul_c3_inner(%x : tensor<2x3xf32>, %y : tensor<4x5xf32>) {
  %r = core.matmul %x, %y : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  func.return
}

// -----

// CHECK: op 'core.matmul': cannot broadcast [2] with [3] (C4)
func.func @matmul_c4_batch(%x : tensor<2x1x3xf32>, %y : tensor<3x3x4xf32>) {
  %r = core.matmul %x, %y : (tensor<2x1x3xf32>, tensor<3x3x4xf32>) -> tensor<2x1x4xf32>
  func.return
}

// -----

// CHECK: op 'core.batch_norm': a parameter is not a vector (C4)
func.func @batch_norm_c4_vector(%x : tensor<2x3xf32>, %y : tensor<3xf32>, %z : tensor<3xf32>, %u : tensor<f32>, %v : tensor<3xf32>) {
  %r = core.batch_norm %x, %y, %z, %u, %v axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.batch_norm': a parameter has 2 elements for 3 channels (C4)
func.func @batch_norm_c4_channels(%x : tensor<2x3xf32>, %y : tensor<3xf32>, %z : tensor<3xf32>, %u : tensor<2xf32>, %v : tensor<3xf32>) {
  %r = core.batch_norm %x, %y, %z, %u, %v axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.layer_norm': a parameter exceeds the input (C4)
func.func @layer_norm_c4(%x : tensor<2x3xf32>, %y : tensor<2x2x3xf32>) {
  %r = core.layer_norm %x, %y axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<2x2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.layer_norm': expected a floating-point tensor (C1)
func.func @layer_norm_c1_type(%x : tensor<2x3xi32>, %y : tensor<3xi32>) {
  %r = core.layer_norm %x, %y axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return
}

// -----

// CHECK: op 'core.channel_shuffle': 3 channels in 2 groups (C1)
func.func @channel_shuffle_c1(%x : tensor<2x3xf32>) {
  %r = core.channel_shuffle %x groups 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.channel_shuffle': 3 channels in 0 groups (C1)
func.func @channel_shuffle_c1_groups(%x : tensor<2x3xf32>) {
  %r = core.channel_shuffle %x groups 0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': halves of f64 (C1)
func.func @attention_c1_halves(%q : tensor<2x3x4xf64>) {
  %r = core.attention %q, %q, %q {scale = 1.0 : f64, in_halves} : (tensor<2x3x4xf64>, tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  func.return
}

// -----

// CHECK: op 'core.attention': expected f32 or f64, got f16 (C1)
func.func @attention_c1_type(%q : tensor<2x3x4xf16>) {
  %r = core.attention %q, %q, %q {scale = 1.0 : f64} : (tensor<2x3x4xf16>, tensor<2x3x4xf16>, tensor<2x3x4xf16>) -> tensor<2x3x4xf16>
  func.return
}

// -----

// CHECK: op 'core.attention': query, key and value need the same rank, at least 3 (C2)
func.func @attention_c2_rank(%q : tensor<3x4xf32>) {
  %r = core.attention %q, %q, %q {scale = 1.0 : f64} : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': [1, 4] instead of [3, 4] (C2)
func.func @attention_c2_heads(%q : tensor<2x3x4xf32>, %k : tensor<2x1x4xf32>) {
  %r = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': [2, 3] instead of [5, 3] (C2)
func.func @attention_c2_keys(%q : tensor<2x3x4xf32>, %k : tensor<5x3x4xf32>) {
  %r = core.attention %q, %k, %q {scale = 1.0 : f64} : (tensor<2x3x4xf32>, tensor<5x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': a mask [7, 3, 2, 2] of [3, 2, 2] (C3)
func.func @attention_c3_mask(%q : tensor<2x3x4xf32>, %m : tensor<7x3x2x2xf32>) {
  %r = core.attention %q, %q, %q, %m {scale = 1.0 : f64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<7x3x2x2xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': expected a mask, then what is kept (C4)
func.func @attention_c4_masks(%q : tensor<2x3x4xf32>, %m : tensor<2xf32>) {
  %r = core.attention %q, %q, %q, %m, %m {scale = 1.0 : f64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': nothing is hidden, and that is to be zero (C4)
func.func @attention_c4_hidden(%q : tensor<2x3x4xf32>) {
  %r = core.attention %q, %q, %q {scale = 1.0 : f64, zero_hidden} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': expected a factor (C4)
func.func @attention_c4_factor(%q : tensor<2x3x4xf32>, %b : tensor<2xi1>) {
  %r = core.attention %q, %q, %q, %b {scale = 1.0 : f64, fill = 0.0 : f64, has_factor} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2xi1>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': what is kept and fill go together (C4)
func.func @attention_c4_no_fill(%q : tensor<2x3x4xf32>, %b : tensor<2xi1>) {
  %r = core.attention %q, %q, %q, %b {scale = 1.0 : f64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2xi1>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.attention': what is kept and fill go together (C4)
func.func @attention_c4_fill(%q : tensor<2x3x4xf32>) {
  %r = core.attention %q, %q, %q {scale = 1.0 : f64, fill = 0.0 : f64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return
}

// -----

// CHECK: op 'core.reduce': axes [1, 0] are not sorted and distinct (C1)
func.func @reduce_c1_order(%x : tensor<2x3xf32>) {
  %r = core.reduce sum %x [1, 0] : (tensor<2x3xf32>) -> tensor<f32>
  func.return
}

// -----

// CHECK: op 'core.reduce': axes [0, 0] are not sorted and distinct (C1)
func.func @reduce_c1_twice(%x : tensor<2x3xf32>) {
  %r = core.reduce sum %x [0, 0] : (tensor<2x3xf32>) -> tensor<f32>
  func.return
}

// -----

// CHECK: op 'core.reduce': axis 2 is out of range for rank 2 (C1)
func.func @reduce_c1_axis(%x : tensor<2x3xf32>) {
  %r = core.reduce sum %x [0, 2] : (tensor<2x3xf32>) -> tensor<f32>
  func.return
}

// -----

// CHECK: op 'core.softmax': axis 2 is out of range for rank 2 (C2)
func.func @softmax_c2(%x : tensor<2x3xf32>) {
  %r = core.softmax %x axis 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.pool': expected [N, C, spatial...], got rank 2 (C1)
func.func @pool_c1_rank(%x : tensor<2x3xf32>) {
  %r = core.pool max %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<2x3xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.pool': overhang needs one entry a dimension (C2)
func.func @pool_c2_overhang(%x : tensor<1x4x9x9xf32>) {
  %r = core.pool max %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0] : (tensor<1x4x9x9xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.pool': kernel, strides, dilations and pads need 2 entries each (C3)
func.func @pool_c3_kernel(%x : tensor<1x4x9x9xf32>) {
  %r = core.pool max %x kernel [3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<1x4x9x9xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.pool': only a maximum of floats has a first (C4)
func.func @pool_c4_first(%x : tensor<1x4x9x9xi32>) {
  %r = core.pool max %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] {keeps_first = true} : (tensor<1x4x9x9xi32>) -> tensor<1x4x7x7xi32>
  func.return
}

// -----

// CHECK: op 'core.pool': only a maximum of f32 has a lowest (C5)
func.func @pool_c5_lowest(%x : tensor<1x4x9x9xf64>) {
  %r = core.pool max %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] {from_lowest = true} : (tensor<1x4x9x9xf64>) -> tensor<1x4x7x7xf64>
  func.return
}

// -----

// CHECK: op 'core.pool': only a plain maximum keeps all NaN (C6)
func.func @pool_c6_nan(%x : tensor<1x4x9x9xf32>) {
  %r = core.pool sum %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] {keeps_nan = true} : (tensor<1x4x9x9xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.pool': only a plain maximum keeps all NaN (C6)
func.func @pool_c6_first(%x : tensor<1x4x9x9xf32>) {
  %r = core.pool max %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] {keeps_first = true, keeps_nan = true} : (tensor<1x4x9x9xf32>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.if': the condition is not i1 (C3)
func.func @if_c3_condition(%c : tensor<i64>, %x : tensor<2xf32>) {
  %y = core.if %c : tensor<i64> -> tensor<2xf32> {
    core.yield %x : tensor<2xf32>
  } else {
    core.yield %x : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.if': a region yields (tensor<3xf32>), not (tensor<2xf32>) (C1)
func.func @if_c1(%c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %y = core.if %c : tensor<i1> -> tensor<2xf32> {
    core.yield %x : tensor<2xf32>
  } else {
    core.yield %z : tensor<3xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.if': a region yields (tensor<2xf32>, tensor<2xf32>), not (tensor<2xf32>) (C1)
func.func @if_c1_count(%c : tensor<i1>, %x : tensor<2xf32>) {
  %y = core.if %c : tensor<i1> -> tensor<2xf32> {
    core.yield %x, %x : tensor<2xf32>, tensor<2xf32>
  } else {
    core.yield %x : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.if': the region does not end with core.yield (C4)
func.func @if_c4_yield(%c : tensor<i1>) {
  core.if %c : tensor<i1> {
    core.yield
  } else {
  ^bb0:
    %z = core.not %c : (tensor<i1>) -> tensor<i1>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': the trip count is not i64 (C1)
func.func @loop_c1_trip_count(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %c : tensor<i1> carry %x : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    core.yield %v : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': the condition is not i1 (C1)
func.func @loop_c1_condition(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop cond %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    core.yield %n, %v : tensor<i64>, tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': the region's first argument is not tensor<i64> (C5)
func.func @loop_c5_iteration(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%v : tensor<2xf32>):
    core.yield %v : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': arguments (tensor<3xf32>) differ from (tensor<2xf32>) (C2)
func.func @loop_c2_arguments(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>):
    core.yield %x : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': yielded values (tensor<3xf32>) differ from (tensor<2xf32>) (C2)
func.func @loop_c2_yielded(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    core.yield %z : tensor<3xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': results (tensor<3xf32>) differ from (tensor<2xf32>) (C2)
func.func @loop_c2_results(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<3xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    core.yield %v : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': 1 values for 0 scan outputs (C6)
func.func @loop_c6_scans(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    core.yield %v, %v : tensor<2xf32>, tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': scan output tensor<?x2xf32, #core.tensor<dims = [t, 2]>>, not tensor<?x3xf32, #core.tensor<dims = [t, 3]>> (C3)
func.func @loop_c3(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %n : tensor<i64> -> tensor<?x2xf32, #core.tensor<dims = [t, 2]>> {
  ^bb0(%i : tensor<i64>):
    core.yield %z : tensor<3xf32>
  } {count = "t"}
  func.return
}

// -----

// CHECK: op 'core.loop': a loop with scan outputs needs a symbol for its count (C3)
func.func @loop_c3_count(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>, %z : tensor<3xf32>) {
  %r = core.loop trip %n : tensor<i64> -> tensor<?x2xf32, #core.tensor<dims = [t, 2]>> {
  ^bb0(%i : tensor<i64>):
    core.yield %x : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.kernel': arguments (tensor<3xf32>) differ from (tensor<2xf32>) (C1)
func.func @kernel_c1_arguments(%x : tensor<2xf32>) {
  %y = core.kernel @k (%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%v : tensor<3xf32>):
    core.yield %v : tensor<3xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.kernel': yields (tensor<2xf32>), not (tensor<3xf32>) (C2)
func.func @kernel_c2_results(%x : tensor<2xf32>) {
  %y = core.kernel @k (%x) : (tensor<2xf32>) -> tensor<3xf32> {
  ^bb0(%v : tensor<2xf32>):
    core.yield %v : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.kernel': core.kernel has a region; a kernel is straight-line (C4)
func.func @kernel_c4_regions(%x : tensor<2xf32>) {
  %y = core.kernel @k (%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%v : tensor<2xf32>):
    %w = core.kernel @inner (%v) : (tensor<2xf32>) -> tensor<2xf32> {
    ^bb1(%u : tensor<2xf32>):
      core.yield %u : tensor<2xf32>
    }
    core.yield %w : tensor<2xf32>
  }
  func.return
}

// -----

// CHECK: op 'core.loop': yielded values (tensor<?x3xf32, #core.tensor<dims = [s + 1, 3]>>) differ from (tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>) (C2)
func.func @loop_c2_other_dimension(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s, 2]>>):
    %w = "test.op"() : () -> tensor<?x3xf32, #core.tensor<dims = [s + 1, 3]>>
    core.yield %w : tensor<?x3xf32, #core.tensor<dims = [s + 1, 3]>>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.loop': yielded values (tensor<2xf32>) differ from (tensor<2x2xf32>) (C2)
func.func @loop_c2_rank(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s, 2]>>):
    %w = "test.op"() : () -> tensor<2xf32>
    core.yield %w : tensor<2xf32>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.loop': yielded values (tensor<4x2xi64>) differ from (tensor<4x2xf32>) (C2)
func.func @loop_c2_element(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s, 2]>>):
    %w = "test.op"() : () -> tensor<4x2xi64>
    core.yield %w : tensor<4x2xi64>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.loop': the results' dimensions are not ['r'], where the arguments' are ['s'] (C4)
func.func @loop_c4_result_expression(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [r + 1, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s, 2]>>):
    %w = "test.op"() : () -> tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
    core.yield %w : tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.loop': arguments (tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>) differ from (tensor<1x2xf32>) (C2)
func.func @loop_c2_expression(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>):
    %w = "test.op"() : () -> tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
    core.yield %w : tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.loop': symbols ['s', 'q'] are not one dimension of one carried argument each (C4)
func.func @loop_c4_unused(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s, 2]>>):
    %w = "test.op"() : () -> tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
    core.yield %w : tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
  } {carried_symbols = ["s", "q"], result_symbols = ["r", "p"]}
  func.return
}

// -----

// CHECK: op 'core.loop': symbols ['s'] are not one dimension of one carried argument each (C4)
func.func @loop_c4_twice(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x?xf32, #core.tensor<dims = [r, r]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x?xf32, #core.tensor<dims = [s, s]>>):
    %w = "test.op"() : () -> tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
    core.yield %w : tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.loop': carried symbols ['s'] and result symbols [] are not pairs (C4)
func.func @loop_c4_pairs(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s, 2]>>):
    %w = "test.op"() : () -> tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
    core.yield %w : tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
  } {carried_symbols = ["s"]}
  func.return
}

// -----

// CHECK: op 'core.loop': carried symbols ['s'] and result symbols ['s'] are not pairs (C4)
func.func @loop_c4_same_name(%n : tensor<i64>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [s, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x2xf32, #core.tensor<dims = [s, 2]>>):
    %w = "test.op"() : () -> tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
    core.yield %w : tensor<?x2xf32, #core.tensor<dims = [s + 1, 2]>>
  } {carried_symbols = ["s"], result_symbols = ["s"]}
  func.return
}

// -----

// CHECK: op 'core.if': a region yields (tensor<1x3xf32>), not (tensor<1x2xf32>) (C1)
func.func @if_c1_other_dimension(%c : tensor<i1>, %x : tensor<1x3xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.if %c : tensor<i1> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
    core.yield %x : tensor<1x3xf32>
  } else {
    core.yield %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  } {result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.if': a region yields (tensor<2xf32>), not (tensor<2x2xf32>) (C1)
func.func @if_c1_rank(%c : tensor<i1>, %x : tensor<2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.if %c : tensor<i1> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
    core.yield %x : tensor<2xf32>
  } else {
    core.yield %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  } {result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.if': symbols ['r'] are not one dimension of one result each (C2)
func.func @if_c2_twice(%c : tensor<i1>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.if %c : tensor<i1> -> tensor<?x?xf32, #core.tensor<dims = [r, r]>> {
    core.yield %x : tensor<1x2xf32>
  } else {
    core.yield %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  } {result_symbols = ["r"]}
  func.return
}

// -----

// CHECK: op 'core.if': symbols ['r', 'q'] are not one dimension of one result each (C2)
func.func @if_c2_unused(%c : tensor<i1>, %x : tensor<1x2xf32>, %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) {
  %r = core.if %c : tensor<i1> -> tensor<?x2xf32, #core.tensor<dims = [r, 2]>> {
    core.yield %x : tensor<1x2xf32>
  } else {
    core.yield %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  } {result_symbols = ["r", "q"]}
  func.return
}

// -----

// CHECK: op 'core.gather': a tensor of 79 dimensions, expected up to 64 (T3)
func.func @gather_t3(%x : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>, %i : tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xi64>) {
  %r = core.gather %x, %i axis 0 : (tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>, tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xi64>) -> tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>
  func.return
}

// -----

// CHECK: op 'core.compare': operands have different element types: f32, i32 (C1)
func.func @compare_c1(%x : tensor<2xf32>, %y : tensor<2xi32>) {
  %r = core.compare lt %x, %y : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xi1>
  func.return
}

// -----

// CHECK: op 'core.compare': cannot broadcast [2] with [3] (C2)
func.func @compare_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.compare lt %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xi1>
  func.return
}

// -----

// CHECK: op 'core.select': operands have different element types: f32, i32 (C2)
func.func @select_c2(%c : tensor<2xi1>, %x : tensor<2xf32>, %y : tensor<2xi32>) {
  %r = core.select %c, %x, %y : (tensor<2xi1>, tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.select': cannot broadcast [3] with [2] with [2] (C3)
func.func @select_c3(%c : tensor<3xi1>, %x : tensor<2xf32>, %y : tensor<2xf32>) {
  %r = core.select %c, %x, %y : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.split': axis 2 is out of range for rank 2 (C3)
func.func @split_c3(%x : tensor<2x3xf32>) {
  %r = core.split %x axis 2 sizes [2] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_elements': expected integer indices, got f32 (C1)
func.func @gather_elements_c1(%x : tensor<2x3xf32>) {
  %r = core.gather_elements %x, %x axis 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_elements': axis 2 is out of range for rank 2 (C2)
func.func @gather_elements_c2(%x : tensor<2x3xf32>, %i : tensor<2x3xi64>) {
  %r = core.gather_elements %x, %i axis 2 : (tensor<2x3xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.gather_nd': expected integer indices, got f32 (C1)
func.func @gather_nd_c1(%x : tensor<2x3xf32>, %i : tensor<2xf32>) {
  %r = core.gather_nd %x, %i batch_dims 0 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<f32>
  func.return
}

// -----

// CHECK: op 'core.scatter_elements': expected integer indices, got f32 (C1)
func.func @scatter_elements_c1(%x : tensor<2x3xf32>, %i : tensor<2x3xf32>, %u : tensor<2x3xf32>) {
  %r = core.scatter_elements none %x, %i, %u axis 0 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_elements': operands have different element types: f32, f64 (C2)
func.func @scatter_elements_c2(%x : tensor<2x3xf32>, %i : tensor<2x3xi64>, %u : tensor<2x3xf64>) {
  %r = core.scatter_elements none %x, %i, %u axis 0 : (tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xf64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_elements': axis -1 is out of range for rank 2 (C3)
func.func @scatter_elements_c3(%x : tensor<2x3xf32>, %i : tensor<2x3xi64>, %u : tensor<2x3xf32>) {
  %r = core.scatter_elements none %x, %i, %u axis -1 : (tensor<2x3xf32>, tensor<2x3xi64>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_nd': expected integer indices, got f32 (C1)
func.func @scatter_nd_c1(%x : tensor<2x3xf32>, %i : tensor<1xf32>, %u : tensor<3xf32>) {
  %r = core.scatter_nd none %x, %i, %u : (tensor<2x3xf32>, tensor<1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_nd': operands have different element types: f32, f64 (C2)
func.func @scatter_nd_c2(%x : tensor<2x3xf32>, %i : tensor<1xi64>, %u : tensor<3xf64>) {
  %r = core.scatter_nd none %x, %i, %u : (tensor<2x3xf32>, tensor<1xi64>, tensor<3xf64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.top_k': axis 2 is out of range for rank 2 (C1)
func.func @top_k_c1(%x : tensor<2x3xf32>) {
  %v, %i = core.top_k %x [1] axis 2 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return
}

// -----

// CHECK: op 'core.conv': operands have different element types: f32, f64 (C1)
func.func @conv_c1(%x : tensor<1x4x9x9xf32>, %w : tensor<4x4x3x3xf64>) {
  %r = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x9x9xf32>, tensor<4x4x3x3xf64>) -> tensor<1x4x7x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv_transpose': operands have different element types: f32, f64 (C1)
func.func @conv_transpose_c1(%x : tensor<1x4x9x9xf32>, %w : tensor<4x4x3x3xf64>) {
  %r = core.conv_transpose %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 1 : (tensor<1x4x9x9xf32>, tensor<4x4x3x3xf64>) -> tensor<1x4x11x11xf32>
  func.return
}

// -----

// CHECK: op 'core.conv_transpose': input of rank 4 with a weight of rank 3 (C2)
func.func @conv_transpose_c2(%x : tensor<1x4x9x9xf32>, %w : tensor<4x4x3xf32>) {
  %r = core.conv_transpose %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 1 : (tensor<1x4x9x9xf32>, tensor<4x4x3xf32>) -> tensor<1x4x11x11xf32>
  func.return
}

// -----

// CHECK: op 'core.matmul': operands have different element types: f32, f64 (C1)
func.func @matmul_c1(%x : tensor<2x3xf32>, %y : tensor<3x4xf64>) {
  %r = core.matmul %x, %y : (tensor<2x3xf32>, tensor<3x4xf64>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: op 'core.batch_norm': expected a floating-point tensor (C1)
func.func @batch_norm_c1(%x : tensor<2x3xi32>, %p : tensor<3xi32>, %q : tensor<3xi32>) {
  %r = core.batch_norm %x, %p, %p, %p, %q axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return
}

// -----

// CHECK: op 'core.batch_norm': operands have different element types: f32, f64 (C2)
func.func @batch_norm_c2(%x : tensor<2x3xf32>, %p : tensor<3xf32>, %q : tensor<3xf64>) {
  %r = core.batch_norm %x, %p, %p, %p, %q axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.batch_norm': axis 2 is out of range for rank 2 (C3)
func.func @batch_norm_c3(%x : tensor<2x3xf32>, %p : tensor<3xf32>, %q : tensor<3xf32>) {
  %r = core.batch_norm %x, %p, %p, %p, %q axis 2 {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.layer_norm': operands have different element types: f32, f64 (C2)
func.func @layer_norm_c2(%x : tensor<2x3xf32>, %p : tensor<3xf64>) {
  %r = core.layer_norm %x, %p axis 1 {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf64>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.layer_norm': axis 2 is out of range for rank 2 (C3)
func.func @layer_norm_c3(%x : tensor<2x3xf32>, %p : tensor<3xf32>) {
  %r = core.layer_norm %x, %p axis 2 {epsilon = 1.0e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.arg_reduce': axis 2 is out of range for rank 2 (C1)
func.func @arg_reduce_c1(%x : tensor<2x3xf32>) {
  %r = core.arg_reduce max %x axis 2 : (tensor<2x3xf32>) -> tensor<2xi64>
  func.return
}

// -----

// CHECK: op 'core.softmax': expected a floating-point tensor (C1)
func.func @softmax_c1(%x : tensor<2x3xi32>) {
  %r = core.softmax %x axis 1 : (tensor<2x3xi32>) -> tensor<2x3xi32>
  func.return
}

// -----

// CHECK: op 'core.cumulative': axis 2 is out of range for rank 2 (C1)
func.func @cumulative_c1(%x : tensor<2x3xf32>) {
  %r = core.cumulative sum %x axis 2 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.kernel': input 1 of 1 is to be asked for ahead (C5)
func.func @kernel_c5(%x : tensor<2xf32>) {
  %y = core.kernel @k (%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%v : tensor<2xf32>):
    core.yield %v : tensor<2xf32>
  } {schedule = #core.schedule<row_maps, prefetch 1>}
  func.return
}

// -----

// CHECK: op 'core.kernel': layouts of ranks [2, 1] for values of ranks [2, 2] (C3)
func.func @kernel_c3(%x : tensor<2x3xf32>) {
  %y = core.kernel @k (%x) : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%v : tensor<2x3xf32>):
    core.yield %v : tensor<2x3xf32>
  } {layouts = [#core.layout<0, 1>, #core.layout<0>]}
  func.return
}

// -----

// CHECK: op 'core.scatter_elements': ranks differ (C5)
func.func @scatter_elements_c5(%x : tensor<2x3xf32>, %i : tensor<2xi64>, %u : tensor<2xf32>) {
  %r = core.scatter_elements none %x, %i, %u axis 0 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.scatter_nd': the indices are longer than the input's rank (C5)
func.func @scatter_nd_c5(%x : tensor<2x3xf32>, %i : tensor<3xi64>, %u : tensor<f32>) {
  %r = core.scatter_nd none %x, %i, %u : (tensor<2x3xf32>, tensor<3xi64>, tensor<f32>) -> tensor<2x3xf32>
  func.return
}

// -----

// CHECK: op 'core.kernel': a view is a slice or a concatenation of its inputs alone (C6)
func.func @kernel_c6(%x : tensor<2xf32>) {
  %y = core.kernel @k (%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%v : tensor<2xf32>):
    %w = core.exp %v : (tensor<2xf32>) -> tensor<2xf32>
    core.yield %w : tensor<2xf32>
  } {view}
  func.return
}

// -----

// CHECK: op 'core.kernel': input 1 has not the type of the only result (C7)
func.func @kernel_c7(%x : tensor<2xf32>, %i : tensor<2xi64>) {
  %y = core.kernel @k (%x, %i) : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32> {
  ^bb0(%v : tensor<2xf32>, %j : tensor<2xi64>):
    core.yield %v : tensor<2xf32>
  } {in_place = #builtin.int<1>}
  func.return
}

// -----

// CHECK: op 'core.conv': products of i16 and i8 cannot be added up in i8 (C1)
func.func @conv_c1_narrow(%x : tensor<1x4x9xi16>, %w : tensor<4x4x3xi8>) {
  %r = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 in i8 : (tensor<1x4x9xi16>, tensor<4x4x3xi8>) -> tensor<1x4x7xi8>
  func.return
}

// -----

// CHECK: op 'core.conv': products of i8 and i8 cannot be added up in f32 (C1)
func.func @conv_c1_kinds(%x : tensor<1x4x9xi8>, %w : tensor<4x4x3xi8>) {
  %r = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 in f32 : (tensor<1x4x9xi8>, tensor<4x4x3xi8>) -> tensor<1x4x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv': a bias of type i8 for a result of type i32 (C4)
func.func @conv_c4_type(%x : tensor<1x4x9xi8>, %w : tensor<4x4x3xi8>, %b : tensor<4xi8>) {
  %r = core.conv %x, %w, %b strides [1] dilations [1] pads [0] [0] groups 1 in i32 : (tensor<1x4x9xi8>, tensor<4x4x3xi8>, tensor<4xi8>) -> tensor<1x4x7xi32>
  func.return
}

// -----

// CHECK: op 'core.conv': 4 zero points for 2 factors (C6)
func.func @conv_c6_number(%x : tensor<1x4x9xi8>, %w : tensor<4x4x3xi8>, %b : tensor<4xi32>, %z : tensor<i8>) {
  %r = core.conv %x, %w, %b, %z, %z, %z strides [1] dilations [1] pads [0] [0] groups 1 in i32 : (tensor<1x4x9xi8>, tensor<4x4x3xi8>, tensor<4xi32>, tensor<i8>, tensor<i8>, tensor<i8>) -> tensor<1x4x7xi32>
  func.return
}

// -----

// CHECK: op 'core.conv': a zero point of shape [4] does not broadcast to [1, 4, 9] (C6)
func.func @conv_c6_shape(%x : tensor<1x4x9xi8>, %w : tensor<4x4x3xi8>, %z : tensor<4xi8>) {
  %r = core.conv %x, %w, %z, %z strides [1] dilations [1] pads [0] [0] groups 1 in i32 : (tensor<1x4x9xi8>, tensor<4x4x3xi8>, tensor<4xi8>, tensor<4xi8>) -> tensor<1x4x7xi32>
  func.return
}

// -----

// CHECK: op 'core.conv': a zero point of type f32 for f32 (C6)
func.func @conv_c6_float(%x : tensor<1x4x9xf32>, %w : tensor<4x4x3xf32>, %z : tensor<f32>) {
  %r = core.conv %x, %w, %z, %z strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x9xf32>, tensor<4x4x3xf32>, tensor<f32>, tensor<f32>) -> tensor<1x4x7xf32>
  func.return
}

// -----

// CHECK: op 'core.conv_transpose': products of f32 and f32 cannot be added up in bf16 (C1)
func.func @conv_transpose_c1_narrow(%x : tensor<1x4x9xf32>, %w : tensor<4x4x3xf32>) {
  %r = core.conv_transpose %x, %w strides [1] dilations [1] pads [0] [0] output_padding [0] groups 1 in bf16 : (tensor<1x4x9xf32>, tensor<4x4x3xf32>) -> tensor<1x4x11xbf16>
  func.return
}

// -----

// CHECK: op 'core.matmul': products of f16 and bf16 cannot be added up in f32 (C1)
func.func @matmul_c1_floats(%x : tensor<2x3xf16>, %y : tensor<3x4xbf16>) {
  %r = core.matmul %x, %y in f32 : (tensor<2x3xf16>, tensor<3x4xbf16>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: op 'core.matmul': a zero point of type ui8 for i8 (C5)
func.func @matmul_c5_type(%x : tensor<2x3xi8>, %y : tensor<3x4xi8>, %z : tensor<ui8>) {
  %r = core.matmul %x, %y, %z, %z in i32 : (tensor<2x3xi8>, tensor<3x4xi8>, tensor<ui8>, tensor<ui8>) -> tensor<2x4xi32>
  func.return
}

// -----

// CHECK: op 'core.matmul': 1 zero points for 2 factors (C5)
func.func @matmul_c5_number(%x : tensor<2x3xi8>, %y : tensor<3x4xi8>, %z : tensor<i8>) {
  %r = core.matmul %x, %y, %z in i32 : (tensor<2x3xi8>, tensor<3x4xi8>, tensor<i8>) -> tensor<2x4xi32>
  func.return
}

// -----

// CHECK: op 'core.matmul': packed elements of f32 and f32 (C6)
func.func @matmul_c6(%x : tensor<2x3xf32>, %y : tensor<3x4xf32>) {
  %r = core.matmul %x, %y packed pairs : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  func.return
}

// -----

// CHECK: op 'core.matmul': packed elements of i32 and i16 (C6)
func.func @matmul_c6_bytes(%x : tensor<2x3xi32>, %y : tensor<3x4xi16>) {
  %r = core.matmul %x, %y packed unsigned_left in i32 : (tensor<2x3xi32>, tensor<3x4xi16>) -> tensor<2x4xi32>
  func.return
}

// -----

// CHECK: op 'core.suppress': operands do not fit boxes [2, 3] (C1)
func.func @suppress_c1(%a : tensor<2x3xi1>, %b : tensor<2x3x5xf32>, %m : tensor<f32>) {
  %k = core.suppress %a, %b, %m : (tensor<2x3xi1>, tensor<2x3x5xf32>, tensor<f32>) -> tensor<2x3xi1>
  func.return
}

// -----

// CHECK: op 'core.suppress': operands do not fit boxes [2, 3] (C1)
func.func @suppress_labels_c1(%a : tensor<2x3xi1>, %b : tensor<2x3x4xf32>, %m : tensor<f32>, %s : tensor<2x1xi8>) {
  %k = core.suppress %a, %b, %m, %s : (tensor<2x3xi1>, tensor<2x3x4xf32>, tensor<f32>, tensor<2x1xi8>) -> tensor<2x3xi1>
  func.return
}

// -----

// CHECK: op 'core.suppress': expected a matrix of i1, got tensor<6xi1> (C1)
func.func @suppress_alive_c1(%a : tensor<6xi1>, %b : tensor<6x4xf32>, %m : tensor<f32>) {
  %k = core.suppress %a, %b, %m : (tensor<6xi1>, tensor<6x4xf32>, tensor<f32>) -> tensor<6xi1>
  func.return
}

// -----

// CHECK: op 'core.suppress': operands have different element types: f32, f64 (C2)
func.func @suppress_c2(%a : tensor<2x3xi1>, %b : tensor<2x3x4xf32>, %m : tensor<f64>) {
  %k = core.suppress %a, %b, %m : (tensor<2x3xi1>, tensor<2x3x4xf32>, tensor<f64>) -> tensor<2x3xi1>
  func.return
}

// -----

// CHECK: op 'core.suppress': boxes of i32 (C2)
func.func @suppress_integers_c2(%a : tensor<2x3xi1>, %b : tensor<2x3x4xi32>, %m : tensor<i32>) {
  %k = core.suppress %a, %b, %m : (tensor<2x3xi1>, tensor<2x3x4xi32>, tensor<i32>) -> tensor<2x3xi1>
  func.return
}

// -----

// CHECK: op 'core.suppress': the limit is no scalar (C2)
func.func @suppress_limit_c2(%a : tensor<2x3xi1>, %b : tensor<2x3x4xf32>, %m : tensor<1xf32>) {
  %k = core.suppress %a, %b, %m : (tensor<2x3xi1>, tensor<2x3x4xf32>, tensor<1xf32>) -> tensor<2x3xi1>
  func.return
}

// -----

// CHECK: op 'core.suppress': 'most' is one number (C3)
func.func @suppress_c3(%a : tensor<2x3xi1>, %b : tensor<2x3x4xf32>, %m : tensor<f32>) {
  %k = core.suppress %a, %b, %m {most = #core.dims<[1, 2]>} : (tensor<2x3xi1>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3xi1>
  func.return
}
