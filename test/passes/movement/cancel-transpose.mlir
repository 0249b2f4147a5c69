// RUN: opt-tool %s --pass-pipeline=cancel-transpose --split-input-file | filecheck %s

// There and back around maps. The bias of the last dimension becomes one of the second, the table
// is permuted, and a value of one dimension is a view.
// CHECK-LABEL: @maps
// CHECK-NOT:     core.transpose
// CHECK:         %[[B:.*]] = core.constant dense<{{.*}}> : tensor<1x2x1x1xf32>
// CHECK:         core.constant dense<{{\[\[\[\[}}1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], {{\[\[}}7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]]]> : tensor<1x2x2x3xf32>
// CHECK:         core.reshape %b [1, 2, 1, 1]
// CHECK-NOT:     core.transpose
// CHECK:         func.return
func.func @maps(%x : tensor<1x2x2x3xf32>, %b : tensor<2xf32>) -> tensor<1x2x2x3xf32> {
  %c = core.constant dense<[0.5, 1.5]> : tensor<2xf32>
  %one = core.constant dense<1.0> : tensor<f32>
  %table = core.constant dense<[[[1.0, 7.0], [2.0, 8.0], [3.0, 9.0]], [[4.0, 10.0], [5.0, 11.0], [6.0, 12.0]]]> : tensor<2x3x2xf32>
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<1x2x2x3xf32>) -> tensor<1x2x3x2xf32>
  %1 = core.add %0, %c : (tensor<1x2x3x2xf32>, tensor<2xf32>) -> tensor<1x2x3x2xf32>
  %2 = core.mul %1, %table : (tensor<1x2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<1x2x3x2xf32>
  %3 = core.sub %b, %2 : (tensor<2xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  %4 = core.max %3, %one : (tensor<1x2x3x2xf32>, tensor<f32>) -> tensor<1x2x3x2xf32>
  %5 = core.transpose %4 [0, 3, 1, 2] : (tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32>
  func.return %5 : tensor<1x2x2x3xf32>
}

// -----

// Nothing undoes it: it stays beside the map that follows.
// CHECK-LABEL: @alone
// CHECK-NEXT:    core.transpose
// CHECK-NEXT:    core.exp
func.func @alone(%x : tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = core.transpose %x [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = core.exp %0 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  func.return %1 : tensor<3x2xf32>
}

// -----

// Permutations that do not commute: what is left is p[q], not nothing.
// CHECK-LABEL: @not_inverse
// CHECK:         core.exp
// CHECK-NEXT:    core.transpose
func.func @not_inverse(%x : tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %0 = core.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = core.exp %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %2 = core.transpose %1 [1, 2, 0] : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  func.return %2 : tensor<4x2x3xf32>
}

// -----

// Two paths: the sum takes both transposes, the other user cancels one.
// CHECK-LABEL: @residual
// CHECK-NOT:     core.transpose
// CHECK:         %[[A:.*]] = core.exp %x
// CHECK-NEXT:    %[[B:.*]] = core.neg %[[A]]
// CHECK-NEXT:    %[[C:.*]] = core.add %[[A]], %[[B]]
// CHECK-NEXT:    func.return %[[C]]
func.func @residual(%x : tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = core.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = core.exp %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %2 = core.transpose %1 [2, 0, 1] : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  %3 = core.neg %2 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %4 = core.transpose %3 [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %5 = core.add %1, %4 : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %6 = core.transpose %5 [2, 0, 1] : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %6 : tensor<2x3x4xf32>
}

// -----

// Axes and lists are those of the input: axis 0 of the concat was axis 1, the slice of dimension 2
// was one of dimension 0, the softmax along 1 is one along 2.
// CHECK-LABEL: @axes
// CHECK-NOT:     core.transpose
// CHECK:         core.concat %x, %y axis 1
// CHECK-NEXT:    core.slice {{.*}} [1, 2, 3] [1, 4, 1] [1, 1, 1]
// CHECK-NEXT:    core.pad constant {{.*}} [3, 1, 2] [0, 0, 1]
// CHECK-NEXT:    core.softmax {{.*}} axis 2
// CHECK-NEXT:    func.return
func.func @axes(%x : tensor<2x3x4xf32>, %y : tensor<2x3x4xf32>, %v : tensor<f32>) -> tensor<4x5x4xf32> {
  %0 = core.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = core.transpose %y [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %2 = core.concat %0, %1 axis 0 : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<6x4x2xf32>
  %3 = core.slice %2 [2, 3, 1] [4, 1, 1] [1, 1, 1] : (tensor<6x4x2xf32>) -> tensor<4x1x1xf32>
  %4 = core.pad constant %3, %v [1, 2, 3] [0, 1, 0] : (tensor<4x1x1xf32>, tensor<f32>) -> tensor<5x4x4xf32>
  %5 = core.softmax %4 axis 1 : (tensor<5x4x4xf32>) -> tensor<5x4x4xf32>
  %6 = core.transpose %5 [2, 0, 1] : (tensor<5x4x4xf32>) -> tensor<4x5x4xf32>
  func.return %6 : tensor<4x5x4xf32>
}

// -----

// Another operand is not transposed, and would need a copy.
// CHECK-LABEL: @other_operand
// CHECK:         core.transpose
// CHECK:         core.add
// CHECK:         core.transpose
func.func @other_operand(%x : tensor<2x3xf32>, %y : tensor<3x2xf32>) -> tensor<2x3xf32> {
  %0 = core.transpose %x [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = core.add %0, %y : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = core.transpose %1 [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}

// -----

// A mean over rows and columns: the channels are in order either way. Sums of channels are not.
// CHECK-LABEL: @reduced
// CHECK-NEXT:    core.exp %x
// CHECK-NEXT:    core.reduce sum {{.*}} [2, 3] :
// CHECK-NEXT:    func.return
// CHECK-LABEL: @reduced_kept
// CHECK-NEXT:    core.reduce sum {{.*}} [2, 3] {keep_dims = true}
// CHECK-NEXT:    core.reshape {{.*}} [2, 1, 1, 3]
// CHECK-LABEL: @channels_reduced
// CHECK:         core.transpose
func.func @reduced(%x : tensor<2x3x4x5xf32>) -> tensor<2x3xf32> {
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  %1 = core.exp %0 : (tensor<2x4x5x3xf32>) -> tensor<2x4x5x3xf32>
  %2 = core.reduce sum %1 [1, 2] : (tensor<2x4x5x3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
func.func @reduced_kept(%x : tensor<2x3x4x5xf32>) -> tensor<2x1x1x3xf32> {
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  %1 = core.reduce sum %0 [1, 2] {keep_dims = true} : (tensor<2x4x5x3xf32>) -> tensor<2x1x1x3xf32>
  func.return %1 : tensor<2x1x1x3xf32>
}
func.func @channels_reduced(%x : tensor<2x3x4x5xf32>) -> tensor<4x3xf32> {
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<2x3x4x5xf32>) -> tensor<2x4x5x3xf32>
  %1 = core.reduce sum %0 [0, 2] : (tensor<2x4x5x3xf32>) -> tensor<4x3xf32>
  func.return %1 : tensor<4x3xf32>
}

// -----

// The normalized dimension is the second before the transpose.
// CHECK-LABEL: @batch_norm
// CHECK-NEXT:    core.batch_norm %x, %p, %p, %p, %p axis 1 {epsilon = 1.000000e-01 : f64}
// CHECK-NEXT:    func.return
func.func @batch_norm(%x : tensor<2x3x4x5xf64>, %p : tensor<3xf64>) -> tensor<2x3x4x5xf64> {
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<2x3x4x5xf64>) -> tensor<2x4x5x3xf64>
  %1 = core.batch_norm %0, %p, %p, %p, %p axis 3 {epsilon = 0.1 : f64} : (tensor<2x4x5x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<2x4x5x3xf64>
  %2 = core.transpose %1 [0, 3, 1, 2] : (tensor<2x4x5x3xf64>) -> tensor<2x3x4x5xf64>
  func.return %2 : tensor<2x3x4x5xf64>
}

// -----

// A transpose with several users, which compute one value together (x, or half of it below zero), and
// its inverse; nearly the same, where a part of it is needed elsewhere, or another permutation meets.
// CHECK-LABEL: @shared
// CHECK-DAG:     %[[C:.*]] = core.constant dense<{{\[\[\[}}0.0], [1.0], [2.0], [3.0]]]>
// CHECK-DAG:     %[[M:.*]] = core.mul %x, %{{.*}}
// CHECK-DAG:     %[[L:.*]] = core.compare lt %x, %[[C]]
// CHECK:         %[[S:.*]] = core.select %[[L]], %[[M]], %x
// CHECK-NEXT:    func.return %[[S]]
// CHECK-LABEL: @shared_part
// CHECK-COUNT-2: core.transpose
// CHECK-LABEL: @shared_differently
// CHECK-COUNT-3: core.transpose
func.func @shared(%x : tensor<1x4x3xf32>) -> tensor<1x4x3xf32> {
  %h = core.constant dense<0.5> : tensor<f32>
  %c = core.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>
  %t = core.transpose %x [0, 2, 1] : (tensor<1x4x3xf32>) -> tensor<1x3x4xf32>
  %m = core.mul %t, %h : (tensor<1x3x4xf32>, tensor<f32>) -> tensor<1x3x4xf32>
  %l = core.compare lt %t, %c : (tensor<1x3x4xf32>, tensor<4xf32>) -> tensor<1x3x4xi1>
  %s = core.select %l, %m, %t : (tensor<1x3x4xi1>, tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %r = core.transpose %s [0, 2, 1] : (tensor<1x3x4xf32>) -> tensor<1x4x3xf32>
  func.return %r : tensor<1x4x3xf32>
}
func.func @shared_part(%x : tensor<1x4x3xf32>) -> (tensor<1x4x3xf32>, tensor<1x3x4xf32>) {
  %h = core.constant dense<0.5> : tensor<f32>
  %t = core.transpose %x [0, 2, 1] : (tensor<1x4x3xf32>) -> tensor<1x3x4xf32>
  %m = core.mul %t, %h : (tensor<1x3x4xf32>, tensor<f32>) -> tensor<1x3x4xf32>
  %s = core.max %m, %t : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x3x4xf32>
  %r = core.transpose %s [0, 2, 1] : (tensor<1x3x4xf32>) -> tensor<1x4x3xf32>
  func.return %r, %m : tensor<1x4x3xf32>, tensor<1x3x4xf32>
}
func.func @shared_differently(%x : tensor<3x3x4xf32>, %y : tensor<3x3x4xf32>) -> tensor<3x3x4xf32> {
  %t = core.transpose %x [0, 2, 1] : (tensor<3x3x4xf32>) -> tensor<3x4x3xf32>
  %u = core.transpose %y [1, 2, 0] : (tensor<3x3x4xf32>) -> tensor<3x4x3xf32>
  %m = core.mul %t, %u : (tensor<3x4x3xf32>, tensor<3x4x3xf32>) -> tensor<3x4x3xf32>
  %s = core.max %m, %t : (tensor<3x4x3xf32>, tensor<3x4x3xf32>) -> tensor<3x4x3xf32>
  %r = core.transpose %s [0, 2, 1] : (tensor<3x4x3xf32>) -> tensor<3x3x4xf32>
  func.return %r : tensor<3x3x4xf32>
}

// -----

// A line of an image with channels last: the dimension of one goes where it went. Rows and columns
// are one dimension in between, and are side by side before. Columns and channels are not.
// CHECK-LABEL: @line
// CHECK-NEXT:    %[[A:.*]] = core.reshape %x [n, 6, 5]
// CHECK-NEXT:    %[[B:.*]] = core.exp %[[A]] : {{.*}} -> tensor<?x6x5xf32, #core.tensor<dims = [n, 6, 5]>>
// CHECK-NEXT:    %[[C:.*]] = core.reshape %[[B]]
// CHECK-NOT:     core.transpose
// CHECK-LABEL: @image
// CHECK:         %[[A:.*]] = core.reshape %x [n, 6, 20]
// CHECK-NEXT:    %[[K:.*]] = core.constant
// CHECK-NEXT:    %[[B:.*]] = core.add %[[A]], %[[K]]
// CHECK-NEXT:    %[[C:.*]] = core.reshape %[[B]] [n, 6, 4, 5]
// CHECK-NEXT:    func.return %[[C]]
// CHECK-LABEL: @merged_channels
// CHECK-NEXT:    core.transpose
// CHECK-NEXT:    core.reshape
func.func @line(%x : tensor<?x6x1x5xf32, #core.tensor<dims = [n, 6, 1, 5]>>) -> tensor<?x6x1x5xf32, #core.tensor<dims = [n, 6, 1, 5]>> {
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<?x6x1x5xf32, #core.tensor<dims = [n, 6, 1, 5]>>) -> tensor<?x1x5x6xf32, #core.tensor<dims = [n, 1, 5, 6]>>
  %1 = core.reshape %0 [n, 5, 6] : (tensor<?x1x5x6xf32, #core.tensor<dims = [n, 1, 5, 6]>>) -> tensor<?x5x6xf32, #core.tensor<dims = [n, 5, 6]>>
  %2 = core.exp %1 : (tensor<?x5x6xf32, #core.tensor<dims = [n, 5, 6]>>) -> tensor<?x5x6xf32, #core.tensor<dims = [n, 5, 6]>>
  %3 = core.reshape %2 [n, 1, 5, 6] : (tensor<?x5x6xf32, #core.tensor<dims = [n, 5, 6]>>) -> tensor<?x1x5x6xf32, #core.tensor<dims = [n, 1, 5, 6]>>
  %4 = core.transpose %3 [0, 3, 1, 2] : (tensor<?x1x5x6xf32, #core.tensor<dims = [n, 1, 5, 6]>>) -> tensor<?x6x1x5xf32, #core.tensor<dims = [n, 6, 1, 5]>>
  func.return %4 : tensor<?x6x1x5xf32, #core.tensor<dims = [n, 6, 1, 5]>>
}
func.func @image(%x : tensor<?x6x4x5xf32, #core.tensor<dims = [n, 6, 4, 5]>>) -> tensor<?x6x4x5xf32, #core.tensor<dims = [n, 6, 4, 5]>> {
  %c = core.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<6xf32>
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<?x6x4x5xf32, #core.tensor<dims = [n, 6, 4, 5]>>) -> tensor<?x4x5x6xf32, #core.tensor<dims = [n, 4, 5, 6]>>
  %1 = core.reshape %0 [n, 20, 6] : (tensor<?x4x5x6xf32, #core.tensor<dims = [n, 4, 5, 6]>>) -> tensor<?x20x6xf32, #core.tensor<dims = [n, 20, 6]>>
  %2 = core.add %1, %c : (tensor<?x20x6xf32, #core.tensor<dims = [n, 20, 6]>>, tensor<6xf32>) -> tensor<?x20x6xf32, #core.tensor<dims = [n, 20, 6]>>
  %3 = core.reshape %2 [n, 4, 5, 6] : (tensor<?x20x6xf32, #core.tensor<dims = [n, 20, 6]>>) -> tensor<?x4x5x6xf32, #core.tensor<dims = [n, 4, 5, 6]>>
  %4 = core.transpose %3 [0, 3, 1, 2] : (tensor<?x4x5x6xf32, #core.tensor<dims = [n, 4, 5, 6]>>) -> tensor<?x6x4x5xf32, #core.tensor<dims = [n, 6, 4, 5]>>
  func.return %4 : tensor<?x6x4x5xf32, #core.tensor<dims = [n, 6, 4, 5]>>
}
func.func @merged_channels(%x : tensor<2x6x4x5xf32>) -> tensor<2x6x4x5xf32> {
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<2x6x4x5xf32>) -> tensor<2x4x5x6xf32>
  %1 = core.reshape %0 [2, 4, 30] : (tensor<2x4x5x6xf32>) -> tensor<2x4x30xf32>
  %2 = core.exp %1 : (tensor<2x4x30xf32>) -> tensor<2x4x30xf32>
  %3 = core.reshape %2 [2, 4, 5, 6] : (tensor<2x4x30xf32>) -> tensor<2x4x5x6xf32>
  %4 = core.transpose %3 [0, 3, 1, 2] : (tensor<2x4x5x6xf32>) -> tensor<2x6x4x5xf32>
  func.return %4 : tensor<2x6x4x5xf32>
}

// -----

// Rows and channels that are in order before the transpose, but have columns between them.
// CHECK-LABEL: @not_side_by_side
// CHECK-COUNT-2: core.transpose
func.func @not_side_by_side(%x : tensor<2x3x4xf32>) -> tensor<8x3xf32> {
  %0 = core.transpose %x [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %1 = core.reshape %0 [3, 8] : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
  %2 = core.exp %1 : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %3 = core.transpose %2 [1, 0] : (tensor<3x8xf32>) -> tensor<8x3xf32>
  func.return %3 : tensor<8x3xf32>
}

// -----

// What is written along an inner dimension is written in place, beside the numbers of those before
// it, in the order of the tensor.
// CHECK-LABEL: @scatter
// CHECK:         %[[N:.+]] = core.constant dense<{{\[\[\[}}0]], {{\[\[}}1]]]> : tensor<2x1x1xi64>
// CHECK-NEXT:    %[[A:.+]] = core.broadcast %[[N]] [2, 2, 1]
// CHECK-NEXT:    %[[B:.+]] = core.broadcast %i [2, 2, 1]
// CHECK-NEXT:    %[[I:.+]] = core.concat %[[A]], %[[B]] axis 2
// CHECK-NEXT:    %[[U:.+]] = core.transpose %u [1, 0, 2, 3]
// CHECK-NEXT:    %[[Y:.+]] = core.scatter_nd none %x, %[[I]], %[[U]]
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @scatter_along_two
// CHECK:         core.transpose %u [2, 0, 1, 3]
// CHECK-NEXT:    core.scatter_nd add %x
// CHECK-NEXT:    func.return
func.func @scatter(%x: tensor<2x5x3x4xf32>, %i: tensor<2x1xi64>, %u: tensor<2x2x3x4xf32>) -> tensor<2x5x3x4xf32> {
  %0 = core.transpose %x [1, 0, 2, 3] : (tensor<2x5x3x4xf32>) -> tensor<5x2x3x4xf32>
  %1 = core.scatter_nd none %0, %i, %u : (tensor<5x2x3x4xf32>, tensor<2x1xi64>, tensor<2x2x3x4xf32>) -> tensor<5x2x3x4xf32>
  %2 = core.transpose %1 [1, 0, 2, 3] : (tensor<5x2x3x4xf32>) -> tensor<2x5x3x4xf32>
  func.return %2 : tensor<2x5x3x4xf32>
}
func.func @scatter_along_two(%x: tensor<2x3x3x32xf32>, %i: tensor<2x1x2xi64>, %u: tensor<2x1x2x32xf32>) -> tensor<2x3x3x32xf32> {
  %0 = core.transpose %x [1, 2, 0, 3] : (tensor<2x3x3x32xf32>) -> tensor<3x3x2x32xf32>
  %1 = core.scatter_nd add %0, %i, %u : (tensor<3x3x2x32xf32>, tensor<2x1x2xi64>, tensor<2x1x2x32xf32>) -> tensor<3x3x2x32xf32>
  %2 = core.transpose %1 [2, 0, 1, 3] : (tensor<3x3x2x32xf32>) -> tensor<2x3x3x32xf32>
  func.return %2 : tensor<2x3x3x32xf32>
}

// -----

// Not where the indices, of which there may be as many as there are places, are more than what moves,
// nor from another order; and a byte does not count to 199. Nor where indices have more than the
// dimensions that were brought to the front.
// CHECK-LABEL: @scatter_many
// CHECK:         core.transpose %x [1, 0, 2]
// CHECK-LABEL: @scatter_otherwise
// CHECK:         core.transpose %x [2, 1, 0]
// CHECK-LABEL: @scatter_of_bytes
// CHECK:         core.transpose %x [1, 0, 2]
// CHECK-LABEL: @scatter_elements
// CHECK:         core.transpose %x [1, 0]
// CHECK-LABEL: @scatter_deep
// CHECK:         core.transpose %x [2, 0, 1]
func.func @scatter_many(%x: tensor<2x5x3xf32>, %i: tensor<?x1xi64, #core.tensor<dims = [n, 1]>>, %u: tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>) -> tensor<2x5x3xf32> {
  %0 = core.transpose %x [1, 0, 2] : (tensor<2x5x3xf32>) -> tensor<5x2x3xf32>
  %1 = core.scatter_nd none %0, %i, %u : (tensor<5x2x3xf32>, tensor<?x1xi64, #core.tensor<dims = [n, 1]>>, tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>) -> tensor<5x2x3xf32>
  %2 = core.transpose %1 [1, 0, 2] : (tensor<5x2x3xf32>) -> tensor<2x5x3xf32>
  func.return %2 : tensor<2x5x3xf32>
}
func.func @scatter_otherwise(%x: tensor<2x3x64xf32>, %i: tensor<1x1xi64>, %u: tensor<1x3x2xf32>) -> tensor<2x3x64xf32> {
  %0 = core.transpose %x [2, 1, 0] : (tensor<2x3x64xf32>) -> tensor<64x3x2xf32>
  %1 = core.scatter_nd none %0, %i, %u : (tensor<64x3x2xf32>, tensor<1x1xi64>, tensor<1x3x2xf32>) -> tensor<64x3x2xf32>
  %2 = core.transpose %1 [2, 1, 0] : (tensor<64x3x2xf32>) -> tensor<2x3x64xf32>
  func.return %2 : tensor<2x3x64xf32>
}
func.func @scatter_of_bytes(%x: tensor<200x2x64xf32>, %i: tensor<1x1xi8>, %u: tensor<1x200x64xf32>) -> tensor<200x2x64xf32> {
  %0 = core.transpose %x [1, 0, 2] : (tensor<200x2x64xf32>) -> tensor<2x200x64xf32>
  %1 = core.scatter_nd none %0, %i, %u : (tensor<2x200x64xf32>, tensor<1x1xi8>, tensor<1x200x64xf32>) -> tensor<2x200x64xf32>
  %2 = core.transpose %1 [1, 0, 2] : (tensor<2x200x64xf32>) -> tensor<200x2x64xf32>
  func.return %2 : tensor<200x2x64xf32>
}
func.func @scatter_elements(%x: tensor<3x64xf32>, %i: tensor<1x2xi64>, %u: tensor<1xf32>) -> tensor<3x64xf32> {
  %0 = core.transpose %x [1, 0] : (tensor<3x64xf32>) -> tensor<64x3xf32>
  %1 = core.scatter_nd add %0, %i, %u : (tensor<64x3xf32>, tensor<1x2xi64>, tensor<1xf32>) -> tensor<64x3xf32>
  %2 = core.transpose %1 [1, 0] : (tensor<64x3xf32>) -> tensor<3x64xf32>
  func.return %2 : tensor<3x64xf32>
}
func.func @scatter_deep(%x: tensor<2x64x3xf32>, %i: tensor<1x2xi64>, %u: tensor<1x64xf32>) -> tensor<2x64x3xf32> {
  %0 = core.transpose %x [2, 0, 1] : (tensor<2x64x3xf32>) -> tensor<3x2x64xf32>
  %1 = core.scatter_nd add %0, %i, %u : (tensor<3x2x64xf32>, tensor<1x2xi64>, tensor<1x64xf32>) -> tensor<3x2x64xf32>
  %2 = core.transpose %1 [1, 2, 0] : (tensor<3x2x64xf32>) -> tensor<2x64x3xf32>
  func.return %2 : tensor<2x64x3xf32>
}

// -----

// Elements of a table are a map of the indices, alone and beside other maps of these.
// CHECK-LABEL: @lookups
// CHECK-NOT:     core.transpose
// CHECK:         %[[I:.*]] = core.cast %x to i64
// CHECK:         %[[E:.*]] = core.gather %{{.*}}, %[[I]] axis 0 {inside} : (tensor<256xf32>, tensor<1x2x2x3xi64>) -> tensor<1x2x2x3xf32>
// CHECK-NOT:     core.transpose
// CHECK:         func.return
func.func @lookups(%x : tensor<1x2x2x3xui8>, %t : tensor<256xf32>) -> tensor<1x2x2x3xf32> {
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<1x2x2x3xui8>) -> tensor<1x2x3x2xui8>
  %1 = core.cast %0 to i64 : (tensor<1x2x3x2xui8>) -> tensor<1x2x3x2xi64>
  %2 = core.gather %t, %1 axis 0 {inside} : (tensor<256xf32>, tensor<1x2x3x2xi64>) -> tensor<1x2x3x2xf32>
  %3 = core.cast %0 to f32 : (tensor<1x2x3x2xui8>) -> tensor<1x2x3x2xf32>
  %4 = core.mul %2, %3 : (tensor<1x2x3x2xf32>, tensor<1x2x3x2xf32>) -> tensor<1x2x3x2xf32>
  %5 = core.transpose %4 [0, 3, 1, 2] : (tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32>
  func.return %5 : tensor<1x2x2x3xf32>
}

// -----

// Rows of a table are more than the indices are, and a table is in another order for all of them.
// CHECK-LABEL: @rows
// CHECK:         core.transpose %i [1, 0]
// CHECK:         core.transpose %{{.*}} [1, 0, 2]
// CHECK:         core.transpose %t [1, 0]
// CHECK:         core.transpose %{{.*}} [1, 0]
func.func @rows(%i : tensor<3x4xi64>, %t : tensor<5x3xf32>) -> (tensor<3x4x3xf32>, tensor<5x2xf32>) {
  %0 = core.transpose %i [1, 0] : (tensor<3x4xi64>) -> tensor<4x3xi64>
  %1 = core.gather %t, %0 axis 0 : (tensor<5x3xf32>, tensor<4x3xi64>) -> tensor<4x3x3xf32>
  %2 = core.transpose %1 [1, 0, 2] : (tensor<4x3x3xf32>) -> tensor<3x4x3xf32>
  %j = core.constant dense<[2, 0]> : tensor<2xi64>
  %3 = core.transpose %t [1, 0] : (tensor<5x3xf32>) -> tensor<3x5xf32>
  %4 = core.gather %3, %j axis 0 : (tensor<3x5xf32>, tensor<2xi64>) -> tensor<2x5xf32>
  %5 = core.transpose %4 [1, 0] : (tensor<2x5xf32>) -> tensor<5x2xf32>
  func.return %2, %5 : tensor<3x4x3xf32>, tensor<5x2xf32>
}
