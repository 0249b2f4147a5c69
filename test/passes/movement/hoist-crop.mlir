// RUN: opt-tool %s --pass-pipeline=hoist-crop,cse --split-input-file | filecheck %s

// One row of a block with a residual: all of it is of that row. Both slices of x are one.
// CHECK-LABEL: @row
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [0, 4, 0] [2, 1, 3] [1, 1, 1]
// CHECK-NEXT:    %[[N:.*]] = core.layer_norm %[[X]], %s {{.*}} -> tensor<2x1x3xf32>
// CHECK-NEXT:    %[[M:.*]] = core.matmul %[[N]], %w {{.*}} -> tensor<2x1x3xf32>
// CHECK-NEXT:    %[[B:.*]] = core.add %[[M]], %b {{.*}} -> tensor<2x1x3xf32>
// CHECK-NEXT:    %[[Y:.*]] = core.add %[[X]], %[[B]] {{.*}} -> tensor<2x1x3xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @row(%x : tensor<2x5x3xf32>, %s : tensor<3xf32>, %w : tensor<3x3xf32>, %b : tensor<3xf32>) -> tensor<2x1x3xf32> {
  %0 = core.layer_norm %x, %s axis 2 {epsilon = 0.1 : f64} : (tensor<2x5x3xf32>, tensor<3xf32>) -> tensor<2x5x3xf32>
  %1 = core.matmul %0, %w : (tensor<2x5x3xf32>, tensor<3x3xf32>) -> tensor<2x5x3xf32>
  %2 = core.add %1, %b : (tensor<2x5x3xf32>, tensor<3xf32>) -> tensor<2x5x3xf32>
  %3 = core.add %x, %2 : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x3xf32>
  %4 = core.slice %3 [0, 4, 0] [2, 1, 3] [1, 1, 1] : (tensor<2x5x3xf32>) -> tensor<2x1x3xf32>
  func.return %4 : tensor<2x1x3xf32>
}

// -----

// What slices of the same rows use is sliced once, where the first of them can be.
// CHECK-LABEL: @residual
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [2, 0]
// CHECK-NEXT:    %[[M:.*]] = core.matmul %[[X]], %w : (tensor<1x3xf32>, tensor<3x3xf32>) -> tensor<1x3xf32>
// CHECK-NEXT:    %[[E:.*]] = core.exp %[[M]]
// CHECK-NEXT:    %[[Y:.*]] = core.add %[[M]], %[[E]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @residual(%x : tensor<5x3xf32>, %w : tensor<3x3xf32>) -> tensor<1x3xf32> {
  %0 = core.matmul %x, %w : (tensor<5x3xf32>, tensor<3x3xf32>) -> tensor<5x3xf32>
  %1 = core.exp %0 : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = core.add %0, %1 : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  %3 = core.slice %2 [2, 0] [1, 3] [1, 1] : (tensor<5x3xf32>) -> tensor<1x3xf32>
  func.return %3 : tensor<1x3xf32>
}

// -----

// Queries, and the mask with them; keys and values are all needed. Every second query, backwards.
// CHECK-LABEL: @queries
// CHECK-DAG:     %[[Q:.*]] = core.slice %q [4, 0, 0] [2, 2, 3] [-2, 1, 1]
// CHECK-DAG:     %[[M:.*]] = core.slice %m [4, 0] [2, 4] [-2, 1]
// CHECK:         %[[A:.*]] = core.attention %[[Q]], %k, %k, %[[M]]
// CHECK-NEXT:    %[[R:.*]] = core.reshape %[[A]] [2, 6]
// CHECK-NEXT:    func.return %[[R]]
func.func @queries(%q : tensor<5x2x3xf32>, %k : tensor<4x2x3xf32>, %m : tensor<5x4xf32>) -> tensor<2x6xf32> {
  %0 = core.attention %q, %k, %k, %m {scale = 1.0 : f64} : (tensor<5x2x3xf32>, tensor<4x2x3xf32>, tensor<4x2x3xf32>, tensor<5x4xf32>) -> tensor<5x2x3xf32>
  %1 = core.reshape %0 [5, 6] : (tensor<5x2x3xf32>) -> tensor<5x6xf32>
  %2 = core.slice %1 [4, 0] [2, 6] [-2, 1] : (tensor<5x6xf32>) -> tensor<2x6xf32>
  func.return %2 : tensor<2x6xf32>
}

// -----

// Columns of a product are columns of its right matrix; an operand that broadcasts stays.
// CHECK-LABEL: @columns
// CHECK-NEXT:    %[[W:.*]] = core.slice %w [0, 1] [3, 2]
// CHECK-NEXT:    %[[M:.*]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    %[[T:.*]] = core.transpose %[[M]]
// CHECK-NEXT:    %[[C:.*]] = core.slice %c [1, 0] [2, 1]
// CHECK-NEXT:    %[[Y:.*]] = core.mul %[[T]], %[[C]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @columns(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, %w : tensor<3x4xf32>, %c : tensor<4x1xf32>) -> tensor<2x?xf32, #core.tensor<dims = [2, n]>> {
  %0 = core.matmul %x, %w : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<3x4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %1 = core.transpose %0 [1, 0] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<4x?xf32, #core.tensor<dims = [4, n]>>
  %2 = core.mul %1, %c : (tensor<4x?xf32, #core.tensor<dims = [4, n]>>, tensor<4x1xf32>) -> tensor<4x?xf32, #core.tensor<dims = [4, n]>>
  %3 = core.slice %2 [1, 0] [2, n] [1, 1] : (tensor<4x?xf32, #core.tensor<dims = [4, n]>>) -> tensor<2x?xf32, #core.tensor<dims = [2, n]>>
  func.return %3 : tensor<2x?xf32, #core.tensor<dims = [2, n]>>
}

// -----

// Elements of a normalized line depend on all of it; so do those of a softmax.
// CHECK-LABEL: @line
// CHECK-NEXT:    core.layer_norm %x
// CHECK-NEXT:    core.slice
// CHECK-LABEL: @weights
// CHECK-NEXT:    core.softmax %x
// CHECK-NEXT:    core.slice
func.func @line(%x : tensor<5x4xf32>, %s : tensor<4xf32>) -> tensor<5x2xf32> {
  %0 = core.layer_norm %x, %s axis 1 {epsilon = 0.1 : f64} : (tensor<5x4xf32>, tensor<4xf32>) -> tensor<5x4xf32>
  %1 = core.slice %0 [0, 1] [5, 2] [1, 1] : (tensor<5x4xf32>) -> tensor<5x2xf32>
  func.return %1 : tensor<5x2xf32>
}
func.func @weights(%x : tensor<5x4xf32>) -> tensor<5x2xf32> {
  %0 = core.softmax %x axis 1 : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %1 = core.slice %0 [0, 1] [5, 2] [1, 1] : (tensor<5x4xf32>) -> tensor<5x2xf32>
  func.return %1 : tensor<5x2xf32>
}

// -----

// The rest is needed too; or other rows.
// CHECK-LABEL: @whole_too
// CHECK-NEXT:    core.exp %x
// CHECK-LABEL: @other_rows
// CHECK-NEXT:    core.exp %x
func.func @whole_too(%x : tensor<5x4xf32>) -> (tensor<5x4xf32>, tensor<1x4xf32>) {
  %0 = core.exp %x : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %1 = core.slice %0 [0, 0] [1, 4] [1, 1] : (tensor<5x4xf32>) -> tensor<1x4xf32>
  func.return %0, %1 : tensor<5x4xf32>, tensor<1x4xf32>
}
func.func @other_rows(%x : tensor<5x4xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>) {
  %0 = core.exp %x : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %1 = core.slice %0 [0, 0] [1, 4] [1, 1] : (tensor<5x4xf32>) -> tensor<1x4xf32>
  %2 = core.slice %0 [1, 0] [1, 4] [1, 1] : (tensor<5x4xf32>) -> tensor<1x4xf32>
  func.return %1, %2 : tensor<1x4xf32>, tensor<1x4xf32>
}

// -----

// The maximum is taken where the convolution stores its results; backwards, windows are no windows.
// A view alone saves nothing.
// CHECK-LABEL: @epilogue
// CHECK:         core.conv
// CHECK-NEXT:    core.max
// CHECK-NEXT:    core.slice
// CHECK-LABEL: @view
// CHECK-NEXT:    core.reshape %x
// CHECK-NEXT:    core.slice
func.func @epilogue(%x : tensor<1x1x5xf32>, %w : tensor<2x1x2xf32>) -> tensor<1x2x4xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
  %1 = core.max %0, %zero : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
  %2 = core.slice %1 [0, 0, 3] [1, 2, 4] [1, 1, -1] : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  func.return %2 : tensor<1x2x4xf32>
}
func.func @view(%x : tensor<5x4xf32>) -> tensor<5x1x2xf32> {
  %0 = core.reshape %x [5, 2, 2] : (tensor<5x4xf32>) -> tensor<5x2x2xf32>
  %1 = core.slice %0 [0, 1, 0] [5, 1, 2] [1, 1, 1] : (tensor<5x2x2xf32>) -> tensor<5x1x2xf32>
  func.return %1 : tensor<5x1x2xf32>
}

// -----

// Inside of a loop a product of all rows would become one of each.
// CHECK-LABEL: @loop
// CHECK:         core.matmul %x, %w
// CHECK:         core.loop
// CHECK:           core.slice
func.func @loop(%x : tensor<5x3xf32>, %w : tensor<3x3xf32>, %s : tensor<1x3xf32>) -> tensor<1x3xf32> {
  %0 = core.matmul %x, %w : (tensor<5x3xf32>, tensor<3x3xf32>) -> tensor<5x3xf32>
  %n = core.constant dense<5> : tensor<i64>
  %1 = core.loop trip %n : tensor<i64> carry %s : tensor<1x3xf32> -> tensor<1x3xf32> {
  ^bb0(%i : tensor<i64>, %a : tensor<1x3xf32>):
    %2 = core.slice %0 [u0, 0] [1, 3] [1, 1] : (tensor<5x3xf32>) -> tensor<1x3xf32>
    %3 = core.add %a, %2 : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    core.yield %3 : tensor<1x3xf32>
  } {iteration = "u0", count = "u1"}
  func.return %1 : tensor<1x3xf32>
}

// -----

// A scalar has no parts that could be left out.
// CHECK-LABEL: @scalar
// CHECK:         core.slice %{{.*}} [0, 0] [n, 1]
func.func @scalar(%x : tensor<f32>) -> tensor<?x1xf32, #core.tensor<dims = [n, 1]>> {
  %0 = core.exp %x : (tensor<f32>) -> tensor<f32>
  %1 = core.reshape %0 [1, 1] : (tensor<f32>) -> tensor<1x1xf32>
  %2 = core.slice %1 [0, 0] [n, 1] [1, 1] : (tensor<1x1xf32>) -> tensor<?x1xf32, #core.tensor<dims = [n, 1]>>
  func.return %2 : tensor<?x1xf32, #core.tensor<dims = [n, 1]>>
}

// -----

// Zero points would have to be cut as well.
// CHECK-LABEL: @zero_points
// CHECK:         core.matmul %x, %w, %z, %z in i32
// CHECK-NEXT:    core.slice
func.func @zero_points(%x : tensor<5x3xi8>, %w : tensor<3x3xi8>, %z : tensor<i8>) -> tensor<1x3xi32> {
  %0 = core.matmul %x, %w, %z, %z in i32 : (tensor<5x3xi8>, tensor<3x3xi8>, tensor<i8>, tensor<i8>) -> tensor<5x3xi32>
  %1 = core.slice %0 [0, 0] [1, 3] [1, 1] : (tensor<5x3xi32>) -> tensor<1x3xi32>
  func.return %1 : tensor<1x3xi32>
}

// -----

// CHECK-LABEL: @integers
// CHECK:         %[[PART:.*]] = core.slice %x
// CHECK-NEXT:    core.matmul %[[PART]], %w in i32
func.func @integers(%x : tensor<5x3xi8>, %w : tensor<3x3xi8>) -> tensor<1x3xi32> {
  %0 = core.matmul %x, %w in i32 : (tensor<5x3xi8>, tensor<3x3xi8>) -> tensor<5x3xi32>
  %1 = core.slice %0 [0, 0] [1, 3] [1, 1] : (tensor<5x3xi32>) -> tensor<1x3xi32>
  func.return %1 : tensor<1x3xi32>
}

// -----

// Output channel 1 of a convolution is made with row 1 of the weights and of the bias.
// CHECK-LABEL: @output_channels
// CHECK-NEXT:    %[[W:.*]] = core.slice %w [1, 0, 0] [1, 1, 2]
// CHECK-NEXT:    %[[B:.*]] = core.slice %b [1] [1]
// CHECK-NEXT:    core.conv %x, %[[W]], %[[B]]
func.func @output_channels(%x : tensor<1x1x5xf32>, %w : tensor<2x1x2xf32>, %b : tensor<2xf32>) -> tensor<1x1x4xf32> {
  %0 = core.conv %x, %w, %b strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  %1 = core.slice %0 [0, 1, 0] [1, 1, 4] [1, 1, 1] : (tensor<1x2x4xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}

// -----

// Group 1 of two reads channels 2 and 3. Half of a group would read all of it, and is left.
// CHECK-LABEL: @group
// CHECK-DAG:     %[[X:.*]] = core.slice %x [0, 2, 0] [1, 2, 5]
// CHECK-DAG:     %[[W:.*]] = core.slice %w [2, 0, 0] [2, 2, 2]
// CHECK:         core.conv %[[X]], %[[W]] {{.*}} groups 1
// CHECK-LABEL: @half_a_group
// CHECK-NEXT:    core.conv
// CHECK-NEXT:    core.slice
func.func @group(%x : tensor<1x4x5xf32>, %w : tensor<4x2x2xf32>) -> tensor<1x2x4xf32> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x4x5xf32>, tensor<4x2x2xf32>) -> tensor<1x4x4xf32>
  %1 = core.slice %0 [0, 2, 0] [1, 2, 4] [1, 1, 1] : (tensor<1x4x4xf32>) -> tensor<1x2x4xf32>
  func.return %1 : tensor<1x2x4xf32>
}
func.func @half_a_group(%x : tensor<1x4x5xf32>, %w : tensor<4x2x2xf32>) -> tensor<1x1x4xf32> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x4x5xf32>, tensor<4x2x2xf32>) -> tensor<1x4x4xf32>
  %1 = core.slice %0 [0, 2, 0] [1, 1, 4] [1, 1, 1] : (tensor<1x4x4xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}

// -----

// The border that a convolution pads is cut off: less padding in front, none behind. Where
// windows no longer reach the input, that is cut, too: windows 3, 5 and 7 read elements 2 to 8.
// CHECK-LABEL: @border
// CHECK-NEXT:    core.conv %x, %w strides [1] dilations [1] pads [1] [0] {{.*}} -> tensor<1x1x4xf32>
// CHECK-LABEL: @inner
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [0, 0, 2] [1, 16, 7] [1, 1, 1]
// CHECK-NEXT:    core.conv %[[X]], %w strides [2] {{.*}} pads [0] [0] {{.*}} -> tensor<1x16x3xf32>
func.func @border(%x : tensor<1x1x5xf32>, %w : tensor<1x1x3xf32>) -> tensor<1x1x4xf32> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [2] [2] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x3xf32>) -> tensor<1x1x7xf32>
  %1 = core.slice %0 [0, 0, 1] [1, 1, 4] [1, 1, 1] : (tensor<1x1x7xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}
func.func @inner(%x : tensor<1x16x12xf32>, %w : tensor<16x16x3xf32>) -> tensor<1x16x3xf32> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x16x12xf32>, tensor<16x16x3xf32>) -> tensor<1x16x12xf32>
  %1 = core.slice %0 [0, 0, 3] [1, 16, 3] [1, 1, 2] : (tensor<1x16x12xf32>) -> tensor<1x16x3xf32>
  func.return %1 : tensor<1x16x3xf32>
}

// -----

// One window of 64 is not worth a copy of the others' input; that of an exponential, which then has
// fewer elements, is none.
// CHECK-LABEL: @copy
// CHECK-NEXT:    core.conv %x
// CHECK-NEXT:    core.slice
// CHECK-LABEL: @no_copy
// CHECK-NEXT:    core.slice %x
// CHECK-NEXT:    core.exp
// CHECK-NEXT:    core.conv
// CHECK-NEXT:    func.return
func.func @copy(%x : tensor<1x8x64xf32>, %w : tensor<1x8x1xf32>) -> tensor<1x1x63xf32> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x8x64xf32>, tensor<1x8x1xf32>) -> tensor<1x1x64xf32>
  %1 = core.slice %0 [0, 0, 1] [1, 1, 63] [1, 1, 1] : (tensor<1x1x64xf32>) -> tensor<1x1x63xf32>
  func.return %1 : tensor<1x1x63xf32>
}
func.func @no_copy(%x : tensor<1x8x64xf32>, %w : tensor<1x8x1xf32>) -> tensor<1x1x63xf32> {
  %0 = core.exp %x : (tensor<1x8x64xf32>) -> tensor<1x8x64xf32>
  %1 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x8x64xf32>, tensor<1x8x1xf32>) -> tensor<1x1x64xf32>
  %2 = core.slice %1 [0, 0, 1] [1, 1, 63] [1, 1, 1] : (tensor<1x1x64xf32>) -> tensor<1x1x63xf32>
  func.return %2 : tensor<1x1x63xf32>
}

// -----

// An average that counts padding still divides by it; the overhang at the end is gone with its
// window. A transposed convolution gets what is cut off as padding.
// CHECK-LABEL: @average
// CHECK-NEXT:    core.pool average %x kernel [4] strides [2] dilations [1] pads [1] [0] overhang [0]
// CHECK-LABEL: @transposed
// CHECK-NEXT:    core.conv_transpose %x, %w strides [2] dilations [1] pads [3] [2]
func.func @average(%x : tensor<1x1x6xf32>) -> tensor<1x1x2xf32> {
  %0 = core.pool average %x kernel [4] strides [2] dilations [1] pads [1] [3] overhang [1] {count_pads = true} : (tensor<1x1x6xf32>) -> tensor<1x1x4xf32>
  %1 = core.slice %0 [0, 0, 0] [1, 1, 2] [1, 1, 1] : (tensor<1x1x4xf32>) -> tensor<1x1x2xf32>
  func.return %1 : tensor<1x1x2xf32>
}
func.func @transposed(%x : tensor<1x2x5xf32>, %w : tensor<2x1x4xf32>) -> tensor<1x1x7xf32> {
  %0 = core.conv_transpose %x, %w strides [2] dilations [1] pads [1] [1] output_padding [0] groups 1 : (tensor<1x2x5xf32>, tensor<2x1x4xf32>) -> tensor<1x1x10xf32>
  %1 = core.slice %0 [0, 0, 2] [1, 1, 7] [1, 1, 1] : (tensor<1x1x10xf32>) -> tensor<1x1x7xf32>
  func.return %1 : tensor<1x1x7xf32>
}

// -----

// Of every third element of 4 + 5 + 4, the first operand has 0 and 3, the second 6 (its third).
// CHECK-LABEL: @concat
// CHECK:         %[[A:.*]] = core.slice %x [0] [2] [3]
// CHECK:         %[[B:.*]] = core.slice %y [2] [1]
// CHECK:         core.concat %{{.*}}, %{{.*}} axis 0 : (tensor<2xf32>, tensor<1xf32>) -> tensor<3xf32>
func.func @concat(%x : tensor<4xf32>, %y : tensor<5xf32>) -> tensor<3xf32> {
  %0 = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = core.exp %y : (tensor<5xf32>) -> tensor<5xf32>
  %2 = core.concat %0, %1, %0 axis 0 : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>) -> tensor<13xf32>
  %3 = core.slice %2 [0] [3] [3] : (tensor<13xf32>) -> tensor<3xf32>
  func.return %3 : tensor<3xf32>
}

// -----

// Parts that exist anyway would be copied twice.
// CHECK-LABEL: @concat_of_arguments
// CHECK-NEXT:    core.concat %x, %y
// CHECK-NEXT:    core.slice
func.func @concat_of_arguments(%x : tensor<4xf32>, %y : tensor<5xf32>) -> tensor<5xf32> {
  %0 = core.concat %x, %y axis 0 : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %1 = core.slice %0 [0] [5] [2] : (tensor<9xf32>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}

// -----

// Of a mirrored border, two elements are left, for which elements 1 and 2 have to be there; with
// fewer, or with elements of a period missing, the pad stays.
// CHECK-LABEL: @mirrored
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [0] [3]
// CHECK-NEXT:    core.pad reflect %[[X]] [2] [0]
// CHECK-LABEL: @mirrored_more
// CHECK-NEXT:    core.pad
// CHECK-LABEL: @periodic
// CHECK-NEXT:    core.pad
// CHECK-LABEL: @value
// CHECK-NEXT:    %[[Y:.*]] = core.slice %x [1] [2] [3]
// CHECK-NEXT:    core.pad constant %[[Y]], %v [1] [1]
func.func @mirrored(%x : tensor<6xf32>) -> tensor<5xf32> {
  %0 = core.pad reflect %x [3] [3] : (tensor<6xf32>) -> tensor<12xf32>
  %1 = core.slice %0 [1] [5] [1] : (tensor<12xf32>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}
func.func @mirrored_more(%x : tensor<6xf32>) -> tensor<4xf32> {
  %0 = core.pad reflect %x [3] [3] : (tensor<6xf32>) -> tensor<12xf32>
  %1 = core.slice %0 [1] [4] [1] : (tensor<12xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}
func.func @periodic(%x : tensor<6xf32>) -> tensor<5xf32> {
  %0 = core.pad wrap %x [3] [3] : (tensor<6xf32>) -> tensor<12xf32>
  %1 = core.slice %0 [1] [5] [1] : (tensor<12xf32>) -> tensor<5xf32>
  func.return %1 : tensor<5xf32>
}
func.func @value(%x : tensor<6xf32>, %v : tensor<f32>) -> tensor<4xf32> {
  %0 = core.pad constant %x, %v [3] [3] : (tensor<6xf32>, tensor<f32>) -> tensor<12xf32>
  %1 = core.slice %0 [1] [4] [3] : (tensor<12xf32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}

// -----

// A reduction is of what is left of the other dimensions; along its own ones it is of all.
// CHECK-LABEL: @reduced
// CHECK:         %[[X:.*]] = core.slice %x [0, 1, 0] [2, 1, 4]
// CHECK:         core.reduce sum %{{.*}} [2] {{.*}} -> tensor<2x1xf32>
// CHECK-LABEL: @running
// CHECK:         core.cumulative
// CHECK-NEXT:    core.slice
func.func @reduced(%x : tensor<2x3x4xf32>) -> tensor<2x1xf32> {
  %0 = core.exp %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = core.reduce sum %0 [2] : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  %2 = core.slice %1 [0, 1] [2, 1] [1, 1] : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return %2 : tensor<2x1xf32>
}
func.func @running(%x : tensor<2x3xf32>) -> tensor<2x1xf32> {
  %0 = core.cumulative sum %x axis 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = core.slice %0 [0, 2] [2, 1] [1, 1] : (tensor<2x3xf32>) -> tensor<2x1xf32>
  func.return %1 : tensor<2x1xf32>
}

// -----

// Rows 2 and 3 of 4 are elements 6 to 11 of a line; a half of a line of 3 is none of its rows.
// CHECK-LABEL: @lines
// CHECK:         core.slice %x [6] [6] [1]
// CHECK:         core.reshape %{{.*}} [2, 3]
// CHECK-LABEL: @columns_of_lines
// CHECK:         core.reshape %{{.*}} [4, 3]
// CHECK-NEXT:    core.slice
// CHECK-LABEL: @joined
// CHECK:         core.slice %x [1, 0] [2, 3]
// CHECK:         core.reshape %{{.*}} [6]
// CHECK-LABEL: @joined_unevenly
// CHECK:         core.reshape %{{.*}} [12]
// CHECK-NEXT:    core.slice
func.func @lines(%x : tensor<12xf32>) -> tensor<2x3xf32> {
  %0 = core.exp %x : (tensor<12xf32>) -> tensor<12xf32>
  %1 = core.reshape %0 [4, 3] : (tensor<12xf32>) -> tensor<4x3xf32>
  %2 = core.slice %1 [2, 0] [2, 3] [1, 1] : (tensor<4x3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
func.func @columns_of_lines(%x : tensor<12xf32>) -> tensor<4x2xf32> {
  %0 = core.exp %x : (tensor<12xf32>) -> tensor<12xf32>
  %1 = core.reshape %0 [4, 3] : (tensor<12xf32>) -> tensor<4x3xf32>
  %2 = core.slice %1 [0, 0] [4, 2] [1, 1] : (tensor<4x3xf32>) -> tensor<4x2xf32>
  func.return %2 : tensor<4x2xf32>
}
func.func @joined(%x : tensor<4x3xf32>) -> tensor<6xf32> {
  %0 = core.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = core.reshape %0 [12] : (tensor<4x3xf32>) -> tensor<12xf32>
  %2 = core.slice %1 [3] [6] [1] : (tensor<12xf32>) -> tensor<6xf32>
  func.return %2 : tensor<6xf32>
}
func.func @joined_unevenly(%x : tensor<4x3xf32>) -> tensor<6xf32> {
  %0 = core.exp %x : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = core.reshape %0 [12] : (tensor<4x3xf32>) -> tensor<12xf32>
  %2 = core.slice %1 [2] [6] [1] : (tensor<12xf32>) -> tensor<6xf32>
  func.return %2 : tensor<6xf32>
}

// -----

// One element of a scalar that was made a vector: nothing is left out of it.
// CHECK-LABEL: @gathered_scalar
// CHECK:         core.exp
func.func @gathered_scalar(%x : tensor<f32>) -> tensor<1xf32> {
  %i = core.constant dense<[0]> : tensor<1xi64>
  %0 = core.exp %x : (tensor<f32>) -> tensor<f32>
  %1 = core.reshape %0 [1] : (tensor<f32>) -> tensor<1xf32>
  %2 = core.gather %1, %i axis 0 : (tensor<1xf32>, tensor<1xi64>) -> tensor<1xf32>
  %3 = core.slice %2 [0] [1] [1] : (tensor<1xf32>) -> tensor<1xf32>
  %4 = core.slice %1 [0] [1] [1] : (tensor<1xf32>) -> tensor<1xf32>
  %5 = core.add %3, %4 : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  func.return %5 : tensor<1xf32>
}

// -----

// What @inner, @copy and @border show of numbers, of open sizes: many images, of which a crop is made
// before a convolution of many channels; rows and columns of an unknown number, of which a border is
// cut off. A border of padding is left out of the padding. What is at the end goes with its windows.
// CHECK-LABEL: @open_batch
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [0, 0, 5] [n, 16, 6] [1, 1, 1]
// CHECK-NEXT:    core.conv %[[X]], %w strides [1] {{.*}} pads [0] [0]
// CHECK-LABEL: @open_batch_copy
// CHECK-NEXT:    core.conv %x
// CHECK-LABEL: @open_size
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [0, 0, 2, 0] [1, 16, h - 5, w] [1, 1, 1, 1]
// CHECK:         core.conv %{{.*}}, %w strides [1, 1] {{.*}} pads [0, 0] [0, 1]
// CHECK-LABEL: @open_stride
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [0, 0, 3] [1, 16, ((h + 1) floordiv 2) * 2 - 7] [1, 1, 1]
// CHECK:         core.conv %{{.*}}, %w strides [2] {{.*}} pads [0] [0]
// CHECK-LABEL: @open_step
// CHECK-NEXT:    %[[X:.*]] = core.slice %x [0, 0, 1] [1, 16, h - 1] [1, 1, 1]
// CHECK-NEXT:    core.conv %[[X]], %w strides [2] {{.*}} pads [0] [0]
func.func @open_batch(%x : tensor<?x16x16xf32, #core.tensor<dims = [n, 16, 16]>>, %w : tensor<16x16x3xf32>) -> tensor<?x16x4xf32, #core.tensor<dims = [n, 16, 4]>> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<?x16x16xf32, #core.tensor<dims = [n, 16, 16]>>, tensor<16x16x3xf32>) -> tensor<?x16x16xf32, #core.tensor<dims = [n, 16, 16]>>
  %1 = core.slice %0 [0, 0, 6] [n, 16, 4] [1, 1, 1] : (tensor<?x16x16xf32, #core.tensor<dims = [n, 16, 16]>>) -> tensor<?x16x4xf32, #core.tensor<dims = [n, 16, 4]>>
  func.return %1 : tensor<?x16x4xf32, #core.tensor<dims = [n, 16, 4]>>
}
func.func @open_batch_copy(%x : tensor<?x8x64xf32, #core.tensor<dims = [n, 8, 64]>>, %w : tensor<1x8x1xf32>) -> tensor<?x1x63xf32, #core.tensor<dims = [n, 1, 63]>> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x8x64xf32, #core.tensor<dims = [n, 8, 64]>>, tensor<1x8x1xf32>) -> tensor<?x1x64xf32, #core.tensor<dims = [n, 1, 64]>>
  %1 = core.slice %0 [0, 0, 1] [n, 1, 63] [1, 1, 1] : (tensor<?x1x64xf32, #core.tensor<dims = [n, 1, 64]>>) -> tensor<?x1x63xf32, #core.tensor<dims = [n, 1, 63]>>
  func.return %1 : tensor<?x1x63xf32, #core.tensor<dims = [n, 1, 63]>>
}
func.func @open_size(%x : tensor<1x16x?x?xf32, #core.tensor<dims = [1, 16, h, w]>>, %w : tensor<64x16x3x3xf32>) -> tensor<1x64x?x?xf32, #core.tensor<dims = [1, 64, h - 7, w - 1]>> {
  %0 = core.exp %x : (tensor<1x16x?x?xf32, #core.tensor<dims = [1, 16, h, w]>>) -> tensor<1x16x?x?xf32, #core.tensor<dims = [1, 16, h, w]>>
  %1 = core.conv %0, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x?x?xf32, #core.tensor<dims = [1, 16, h, w]>>, tensor<64x16x3x3xf32>) -> tensor<1x64x?x?xf32, #core.tensor<dims = [1, 64, h, w]>>
  %2 = core.slice %1 [0, 0, 3, 1] [1, 64, h - 7, w - 1] [1, 1, 1, 1] : (tensor<1x64x?x?xf32, #core.tensor<dims = [1, 64, h, w]>>) -> tensor<1x64x?x?xf32, #core.tensor<dims = [1, 64, h - 7, w - 1]>>
  func.return %2 : tensor<1x64x?x?xf32, #core.tensor<dims = [1, 64, h - 7, w - 1]>>
}
func.func @open_stride(%x : tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h]>>, %w : tensor<16x16x3xf32>) -> tensor<1x16x?xf32, #core.tensor<dims = [1, 16, (h + 1) floordiv 2 - 4]>> {
  %0 = core.exp %x : (tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h]>>) -> tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h]>>
  %1 = core.conv %0, %w strides [2] dilations [1] pads [1] [1] groups 1 : (tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h]>>, tensor<16x16x3xf32>) -> tensor<1x16x?xf32, #core.tensor<dims = [1, 16, (h + 1) floordiv 2]>>
  %2 = core.slice %1 [0, 0, 2] [1, 16, (h + 1) floordiv 2 - 4] [1, 1, 1] : (tensor<1x16x?xf32, #core.tensor<dims = [1, 16, (h + 1) floordiv 2]>>) -> tensor<1x16x?xf32, #core.tensor<dims = [1, 16, (h + 1) floordiv 2 - 4]>>
  func.return %2 : tensor<1x16x?xf32, #core.tensor<dims = [1, 16, (h + 1) floordiv 2 - 4]>>
}
func.func @open_step(%x : tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h]>>, %w : tensor<16x16x3xf32>) -> tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h floordiv 2 - 1]>> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h]>>, tensor<16x16x3xf32>) -> tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h - 2]>>
  %1 = core.slice %0 [0, 0, 1] [1, 16, h floordiv 2 - 1] [1, 1, 2] : (tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h - 2]>>) -> tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h floordiv 2 - 1]>>
  func.return %1 : tensor<1x16x?xf32, #core.tensor<dims = [1, 16, h floordiv 2 - 1]>>
}

// -----

// One of two windows that reach the padding at the end is cut off.
// CHECK-LABEL: @open_end
// CHECK-NEXT:    core.conv %x, %w strides [1] {{.*}} pads [0] [1]
func.func @open_end(%x : tensor<1x1x?xf32, #core.tensor<dims = [1, 1, h]>>, %w : tensor<1x1x3xf32>) -> tensor<1x1x?xf32, #core.tensor<dims = [1, 1, h - 1]>> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [2] groups 1 : (tensor<1x1x?xf32, #core.tensor<dims = [1, 1, h]>>, tensor<1x1x3xf32>) -> tensor<1x1x?xf32, #core.tensor<dims = [1, 1, h]>>
  %1 = core.slice %0 [0, 0, 0] [1, 1, h - 1] [1, 1, 1] : (tensor<1x1x?xf32, #core.tensor<dims = [1, 1, h]>>) -> tensor<1x1x?xf32, #core.tensor<dims = [1, 1, h - 1]>>
  func.return %1 : tensor<1x1x?xf32, #core.tensor<dims = [1, 1, h - 1]>>
}

// -----

// The first channels are not used: those of the others are computed. All of an argument is there.
// CHECK-LABEL: @unread_parts
// CHECK:         %[[W:.*]] = core.slice %w [2, 0, 0] [3, 2, 1]
// CHECK:         %[[Y:.*]] = core.conv %x, %[[W]] {{.*}} -> tensor<1x3x4xf32>
// CHECK-NEXT:    core.split %[[Y]] axis 1 sizes [1, 2]
// CHECK-LABEL: @unread_parts_of_argument
// CHECK-NEXT:    core.split %x axis 1 sizes [2, 1, 2]
func.func @unread_parts(%x : tensor<1x2x4xf32>, %w : tensor<5x2x1xf32>) -> (tensor<1x1x4xf32>, tensor<1x2x4xf32>) {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<5x2x1xf32>) -> tensor<1x5x4xf32>
  %1, %2, %3 = core.split %0 axis 1 sizes [2, 1, 2] : (tensor<1x5x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x4xf32>, tensor<1x2x4xf32>)
  func.return %2, %3 : tensor<1x1x4xf32>, tensor<1x2x4xf32>
}
func.func @unread_parts_of_argument(%x : tensor<1x5x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x2x4xf32>) {
  %1, %2, %3 = core.split %x axis 1 sizes [2, 1, 2] : (tensor<1x5x4xf32>) -> (tensor<1x2x4xf32>, tensor<1x1x4xf32>, tensor<1x2x4xf32>)
  func.return %2, %3 : tensor<1x1x4xf32>, tensor<1x2x4xf32>
}

// -----

// Just one operand of a concatenation, behind a map: the others are not computed, whatever their
// sizes; one more element is not that operand, and a part of each would be copied twice.
// CHECK-LABEL: @one_operand
// CHECK-NEXT:    %[[Y:.*]] = core.concat %y axis 0 : (tensor<?xf32, #core.tensor<dims = [n]>>)
// CHECK-NEXT:    core.tanh %[[Y]]
// CHECK-LABEL: @one_operand_static
// CHECK-NEXT:    %[[Y:.*]] = core.concat %y axis 0 : (tensor<5xf32>)
// CHECK-NEXT:    core.tanh %[[Y]]
// CHECK-LABEL: @one_element_more
// CHECK-NEXT:    core.concat %x, %y axis 0
func.func @one_operand(%x : tensor<4xf32>, %y : tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>> {
  %0 = core.concat %x, %y axis 0 : (tensor<4xf32>, tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n + 4]>>
  %1 = core.tanh %0 : (tensor<?xf32, #core.tensor<dims = [n + 4]>>) -> tensor<?xf32, #core.tensor<dims = [n + 4]>>
  %2 = core.slice %1 [4] [n] [1] : (tensor<?xf32, #core.tensor<dims = [n + 4]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
  func.return %2 : tensor<?xf32, #core.tensor<dims = [n]>>
}
func.func @one_operand_static(%x : tensor<4xf32>, %y : tensor<5xf32>) -> tensor<5xf32> {
  %0 = core.concat %x, %y axis 0 : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %1 = core.tanh %0 : (tensor<9xf32>) -> tensor<9xf32>
  %2 = core.slice %1 [4] [5] [1] : (tensor<9xf32>) -> tensor<5xf32>
  func.return %2 : tensor<5xf32>
}
func.func @one_element_more(%x : tensor<4xf32>, %y : tensor<5xf32>) -> tensor<6xf32> {
  %0 = core.concat %x, %y axis 0 : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %2 = core.slice %0 [3] [6] [1] : (tensor<9xf32>) -> tensor<6xf32>
  func.return %2 : tensor<6xf32>
}
