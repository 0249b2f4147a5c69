// RUN: opt-tool %s --pass-pipeline=hoist-slice,cse --split-input-file | filecheck %s

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

// The maximum is taken where the convolution stores its results; a view alone saves nothing.
// CHECK-LABEL: @epilogue
// CHECK:         core.conv
// CHECK-NEXT:    core.max
// CHECK-NEXT:    core.slice
// CHECK-LABEL: @view
// CHECK-NEXT:    core.reshape %x
// CHECK-NEXT:    core.slice
func.func @epilogue(%x : tensor<1x1x5xf32>, %w : tensor<2x1x2xf32>) -> tensor<1x1x4xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
  %1 = core.max %0, %zero : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
  %2 = core.slice %1 [0, 1, 0] [1, 1, 4] [1, 1, 1] : (tensor<1x2x4xf32>) -> tensor<1x1x4xf32>
  func.return %2 : tensor<1x1x4xf32>
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
