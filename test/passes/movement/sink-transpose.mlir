// RUN: opt-tool %s --pass-pipeline=sink-transpose,dce --split-input-file | filecheck %s

// The end of a network with channels last: all of it belongs to the convolution.
// CHECK-LABEL: @end
// CHECK:         %[[C:.*]] = core.conv %x, %w
// CHECK:         %[[B:.*]] = core.batch_norm %[[C]], {{.*}} axis 1
// CHECK:         %[[A:.*]] = core.add %[[B]], %{{.*}} : (tensor<1x3x4xf32>, tensor<1x3x1xf32>)
// CHECK-NEXT:    %[[M:.*]] = core.max %[[A]], %{{.*}}
// CHECK-NEXT:    %[[Y:.*]] = core.transpose %[[M]] [0, 2, 1]
// CHECK-NEXT:    func.return %[[Y]]
func.func @end(%x : tensor<1x2x4xf32>, %w : tensor<3x2x1xf32>, %p : tensor<3xf32>) -> tensor<1x4x3xf32> {
  %c = core.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %zero = core.constant dense<0.0> : tensor<f32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<3x2x1xf32>) -> tensor<1x3x4xf32>
  %1 = core.transpose %0 [0, 2, 1] : (tensor<1x3x4xf32>) -> tensor<1x4x3xf32>
  %2 = core.batch_norm %1, %p, %p, %p, %p axis 2 {epsilon = 0.1 : f64} : (tensor<1x4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<1x4x3xf32>
  %3 = core.add %2, %c : (tensor<1x4x3xf32>, tensor<3xf32>) -> tensor<1x4x3xf32>
  %4 = core.max %3, %zero : (tensor<1x4x3xf32>, tensor<f32>) -> tensor<1x4x3xf32>
  func.return %4 : tensor<1x4x3xf32>
}

// -----

// Two are one, by elements or joined; the axis is the one that it was before.
// CHECK-LABEL: @sum
// CHECK-NEXT:    %[[S:.*]] = core.add %x, %y
// CHECK-NEXT:    core.transpose %[[S]] [1, 2, 0]
// CHECK-LABEL: @join
// CHECK-NEXT:    %[[J:.*]] = core.concat %x, %y axis 0
// CHECK-NEXT:    core.transpose %[[J]] [1, 2, 0]
func.func @sum(%x : tensor<2x3x4xf32>, %y : tensor<2x3x4xf32>) -> tensor<3x4x2xf32> {
  %0 = core.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = core.transpose %y [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %2 = core.add %0, %1 : (tensor<3x4x2xf32>, tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  func.return %2 : tensor<3x4x2xf32>
}
func.func @join(%x : tensor<2x3x4xf32>, %y : tensor<5x3x4xf32>) -> tensor<3x4x7xf32> {
  %0 = core.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = core.transpose %y [1, 2, 0] : (tensor<5x3x4xf32>) -> tensor<3x4x5xf32>
  %2 = core.concat %0, %1 axis 2 : (tensor<3x4x2xf32>, tensor<3x4x5xf32>) -> tensor<3x4x7xf32>
  func.return %2 : tensor<3x4x7xf32>
}

// -----

// Parts that are transposed alike, one of them twice.
// CHECK-LABEL: @split
// CHECK-NEXT:    %[[T:.*]] = core.transpose %x [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = core.split %[[T]] axis 2 sizes [1, 2]
// CHECK-NEXT:    func.return %[[A]], %[[B]], %[[B]]
// CHECK-LABEL: @split_otherwise
// CHECK-NEXT:    core.split %x
// CHECK-LABEL: @split_in_part
// CHECK-NEXT:    core.split %x
func.func @split(%x : tensor<2x3x4xf32>) -> (tensor<4x2x1xf32>, tensor<4x2x2xf32>, tensor<4x2x2xf32>) {
  %0, %1 = core.split %x axis 1 sizes [1, 2] : (tensor<2x3x4xf32>) -> (tensor<2x1x4xf32>, tensor<2x2x4xf32>)
  %2 = core.transpose %0 [2, 0, 1] : (tensor<2x1x4xf32>) -> tensor<4x2x1xf32>
  %3 = core.transpose %1 [2, 0, 1] : (tensor<2x2x4xf32>) -> tensor<4x2x2xf32>
  %4 = core.transpose %1 [2, 0, 1] : (tensor<2x2x4xf32>) -> tensor<4x2x2xf32>
  func.return %2, %3, %4 : tensor<4x2x1xf32>, tensor<4x2x2xf32>, tensor<4x2x2xf32>
}
func.func @split_otherwise(%x : tensor<2x4x4xf32>) -> (tensor<4x2x2xf32>, tensor<2x4x2xf32>) {
  %0, %1 = core.split %x axis 1 sizes [2, 2] : (tensor<2x4x4xf32>) -> (tensor<2x2x4xf32>, tensor<2x2x4xf32>)
  %2 = core.transpose %0 [2, 0, 1] : (tensor<2x2x4xf32>) -> tensor<4x2x2xf32>
  %3 = core.transpose %1 [0, 2, 1] : (tensor<2x2x4xf32>) -> tensor<2x4x2xf32>
  func.return %2, %3 : tensor<4x2x2xf32>, tensor<2x4x2xf32>
}
func.func @split_in_part(%x : tensor<2x4x4xf32>) -> (tensor<4x2x2xf32>, tensor<2x2x4xf32>) {
  %0, %1 = core.split %x axis 1 sizes [2, 2] : (tensor<2x4x4xf32>) -> (tensor<2x2x4xf32>, tensor<2x2x4xf32>)
  %2 = core.transpose %0 [2, 0, 1] : (tensor<2x2x4xf32>) -> tensor<4x2x2xf32>
  func.return %2, %1 : tensor<4x2x2xf32>, tensor<2x2x4xf32>
}

// -----

// Nothing is gained behind an argument, which a map reads in any order; nor where more would be
// transposed, or the transpose is needed anyway.
// CHECK-LABEL: @argument
// CHECK:         core.transpose %x
// CHECK-NEXT:    core.max
// CHECK-LABEL: @grows
// CHECK:         core.transpose
// CHECK-NEXT:    core.add
// CHECK-LABEL: @needed_too
// CHECK:         core.transpose
// CHECK-NEXT:    core.exp
// CHECK-LABEL: @other_order
// CHECK-COUNT-2: core.transpose
// CHECK-NEXT:    core.add
func.func @argument(%x : tensor<2x4xf32>) -> tensor<4x2xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %0 = core.transpose %x [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %1 = core.max %0, %zero : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  func.return %1 : tensor<4x2xf32>
}
func.func @grows(%x : tensor<2x4xf32>, %w : tensor<4x3xf32>) -> tensor<5x3x2xf32> {
  %c = core.constant dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]]]> : tensor<5x1x1xf32>
  %0 = core.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = core.reshape %0 [1, 2, 3] : (tensor<2x3xf32>) -> tensor<1x2x3xf32>
  %2 = core.exp %1 : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  %3 = core.reduce sum %2 [0] {keep_dims = true} : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  %4 = core.transpose %3 [0, 2, 1] : (tensor<1x2x3xf32>) -> tensor<1x3x2xf32>
  %5 = core.add %4, %c : (tensor<1x3x2xf32>, tensor<5x1x1xf32>) -> tensor<5x3x2xf32>
  func.return %5 : tensor<5x3x2xf32>
}
func.func @needed_too(%x : tensor<2x4xf32>, %w : tensor<4x3xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %0 = core.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = core.transpose %0 [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = core.exp %1 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  func.return %1, %2 : tensor<3x2xf32>, tensor<3x2xf32>
}
func.func @other_order(%x : tensor<2x2x3xf32>, %y : tensor<2x3x2xf32>) -> tensor<3x2x2xf32> {
  %0 = core.transpose %x [2, 0, 1] : (tensor<2x2x3xf32>) -> tensor<3x2x2xf32>
  %1 = core.transpose %y [1, 0, 2] : (tensor<2x3x2xf32>) -> tensor<3x2x2xf32>
  %2 = core.add %0, %1 : (tensor<3x2x2xf32>, tensor<3x2x2xf32>) -> tensor<3x2x2xf32>
  func.return %2 : tensor<3x2x2xf32>
}

// -----

// A convolution computes what is below zero and above differently, and then a maximum of it.
// CHECK-LABEL: @shared
// CHECK:         %[[Y:.*]] = core.conv
// CHECK:         core.mul %[[Y]]
// CHECK:         %[[M:.*]] = core.max %{{.*}}, %[[Y]]
// CHECK-NEXT:    %[[E:.*]] = core.exp %[[M]]
// CHECK-NEXT:    %[[T:.*]] = core.transpose %[[E]] [0, 2, 1]
// CHECK-NEXT:    func.return %[[T]]
func.func @shared(%x : tensor<1x2x4xf32>, %w : tensor<3x2x1xf32>) -> tensor<1x4x3xf32> {
  %h = core.constant dense<0.5> : tensor<f32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<3x2x1xf32>) -> tensor<1x3x4xf32>
  %1 = core.transpose %0 [0, 2, 1] : (tensor<1x3x4xf32>) -> tensor<1x4x3xf32>
  %2 = core.mul %1, %h : (tensor<1x4x3xf32>, tensor<f32>) -> tensor<1x4x3xf32>
  %3 = core.max %2, %1 : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %4 = core.exp %3 : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  func.return %4 : tensor<1x4x3xf32>
}

// -----

// Dimensions of one, as TensorFlow adds them to lines: those of all parts are added before the split and dropped behind
// the concatenation, and maps are next to the convolutions.
// CHECK-LABEL: @lines
// CHECK:         %[[T:.*]] = core.transpose %x [0, 2, 1] : {{.*}} -> tensor<2x5x3xf32>
// CHECK-NEXT:    %[[R:.*]] = core.reshape %[[T]] [2, 5, 1, 3]
// CHECK-NEXT:    %[[P:.*]], %[[Q:.*]] = core.split %[[R]] axis 1 sizes [2, 3]
// CHECK-DAG:     %[[C:.*]] = core.conv %[[P]]
// CHECK-DAG:     %[[M:.*]] = core.add %[[C]], %{{.*}} : (tensor<2x6x1x3xf32>, tensor<1x6x1x1xf32>)
// CHECK-DAG:     %[[D:.*]] = core.conv %[[Q]]
// CHECK-DAG:     %[[N:.*]] = core.exp %[[D]]
// CHECK:         %[[Y:.*]] = core.concat %[[M]], %[[N]] axis 1
// CHECK-NEXT:    %[[S:.*]] = core.reshape %[[Y]] [2, 8, 3]
// CHECK-NEXT:    %[[Z:.*]] = core.transpose %[[S]] [0, 2, 1]
// CHECK-NEXT:    func.return %[[Z]]
func.func @lines(%x : tensor<2x3x5xf32>, %v : tensor<6x2x1x1xf32>, %w : tensor<2x3x1x1xf32>) -> tensor<2x3x8xf32> {
  %b = core.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]> : tensor<6xf32>
  %p, %q = core.split %x axis 2 sizes [2, 3] : (tensor<2x3x5xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x3xf32>)
  %0 = core.reshape %p [2, 1, 3, 2] : (tensor<2x3x2xf32>) -> tensor<2x1x3x2xf32>
  %1 = core.transpose %0 [0, 3, 1, 2] : (tensor<2x1x3x2xf32>) -> tensor<2x2x1x3xf32>
  %2 = core.conv %1, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<2x2x1x3xf32>, tensor<6x2x1x1xf32>) -> tensor<2x6x1x3xf32>
  %3 = core.transpose %2 [0, 2, 3, 1] : (tensor<2x6x1x3xf32>) -> tensor<2x1x3x6xf32>
  %4 = core.reshape %3 [2, 3, 6] : (tensor<2x1x3x6xf32>) -> tensor<2x3x6xf32>
  %5 = core.add %4, %b : (tensor<2x3x6xf32>, tensor<6xf32>) -> tensor<2x3x6xf32>
  %6 = core.reshape %q [2, 1, 3, 3] : (tensor<2x3x3xf32>) -> tensor<2x1x3x3xf32>
  %7 = core.transpose %6 [0, 3, 1, 2] : (tensor<2x1x3x3xf32>) -> tensor<2x3x1x3xf32>
  %8 = core.conv %7, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<2x3x1x3xf32>, tensor<2x3x1x1xf32>) -> tensor<2x2x1x3xf32>
  %9 = core.transpose %8 [0, 2, 3, 1] : (tensor<2x2x1x3xf32>) -> tensor<2x1x3x2xf32>
  %10 = core.reshape %9 [2, 3, 2] : (tensor<2x1x3x2xf32>) -> tensor<2x3x2xf32>
  %11 = core.exp %10 : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %12 = core.concat %5, %11 axis 2 : (tensor<2x3x6xf32>, tensor<2x3x2xf32>) -> tensor<2x3x8xf32>
  func.return %12 : tensor<2x3x8xf32>
}

// -----

// The nearest misses: a reshape that takes dimensions together as well, parts whose ones differ, and ones at different
// places of a concatenation.
// CHECK-LABEL: @together
// CHECK:         %[[T:.*]] = core.transpose %x [0, 2, 1]
// CHECK-NEXT:    core.reshape %[[T]] [6, 2]
// CHECK-LABEL: @different
// CHECK:         core.split %x axis 1 sizes [2, 2]
// CHECK-LABEL: @elsewhere
// CHECK:         %[[P:.*]] = core.reshape %x [2, 3]
// CHECK-NEXT:    %[[Q:.*]] = core.reshape %y [2, 3]
// CHECK-NEXT:    core.concat %[[P]], %[[Q]] axis 0
func.func @together(%x : tensor<3x2x2xf32>) -> tensor<6x2xf32> {
  %0 = core.transpose %x [0, 2, 1] : (tensor<3x2x2xf32>) -> tensor<3x2x2xf32>
  %1 = core.reshape %0 [6, 2] : (tensor<3x2x2xf32>) -> tensor<6x2xf32>
  func.return %1 : tensor<6x2xf32>
}
func.func @different(%x : tensor<3x4xf32>) -> (tensor<1x3x2xf32>, tensor<3x1x2xf32>) {
  %p, %q = core.split %x axis 1 sizes [2, 2] : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>)
  %0 = core.reshape %p [1, 3, 2] : (tensor<3x2xf32>) -> tensor<1x3x2xf32>
  %1 = core.reshape %q [3, 1, 2] : (tensor<3x2xf32>) -> tensor<3x1x2xf32>
  func.return %0, %1 : tensor<1x3x2xf32>, tensor<3x1x2xf32>
}
func.func @elsewhere(%x : tensor<1x2x3xf32>, %y : tensor<2x1x3xf32>) -> tensor<4x3xf32> {
  %0 = core.reshape %x [2, 3] : (tensor<1x2x3xf32>) -> tensor<2x3xf32>
  %1 = core.reshape %y [2, 3] : (tensor<2x1x3xf32>) -> tensor<2x3xf32>
  %2 = core.concat %0, %1 axis 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return %2 : tensor<4x3xf32>
}

// -----

// Rows of weights move instead of what is flattened: rows 0, 3, 1, 4, 2, 5 come after one another. With
// integers, too, and for each of several products.
// CHECK-LABEL: @rows
// CHECK:         %[[W:.*]] = core.reshape %w [2, 3, 2] : (tensor<6x2xf32>)
// CHECK-NEXT:    %[[T:.*]] = core.transpose %[[W]] [1, 0, 2] : {{.*}} -> tensor<3x2x2xf32>
// CHECK-NEXT:    %[[R:.*]] = core.reshape %[[T]] [6, 2]
// CHECK-NEXT:    %[[X:.*]] = core.reshape %x [n, 6]
// CHECK-NEXT:    core.matmul %[[X]], %[[R]]
func.func @rows(%x : tensor<?x3x2xf32, #core.tensor<dims = [n, 3, 2]>>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0], [11.0, 12.0]]> : tensor<6x2xf32>
  %0 = core.transpose %x [0, 2, 1] : (tensor<?x3x2xf32, #core.tensor<dims = [n, 3, 2]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
  %1 = core.reshape %0 [n, 6] : (tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>) -> tensor<?x6xf32, #core.tensor<dims = [n, 6]>>
  %2 = core.matmul %1, %w : (tensor<?x6xf32, #core.tensor<dims = [n, 6]>>, tensor<6x2xf32>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  func.return %2 : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
}

// CHECK-LABEL: @bytes
// CHECK:         %[[X:.*]] = core.reshape %x [1, 12] : (tensor<1x2x3x2xi8>)
// CHECK-NEXT:    core.matmul %[[X]], %{{.*}}, %z, %z in i32
// CHECK:         %[[Y:.*]] = core.reshape %x [1, 12] : (tensor<1x2x3x2xi8>)
// CHECK-NEXT:    core.matmul %[[Y]]
// CHECK-NOT:     core.transpose %x
func.func @bytes(%x : tensor<1x2x3x2xi8>, %z : tensor<i8>) -> (tensor<1x1xi32>, tensor<1x1xi32>) {
  %w = core.constant dense<[[1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11], [12]]> : tensor<12x1xi8>
  %0 = core.transpose %x [0, 2, 3, 1] : (tensor<1x2x3x2xi8>) -> tensor<1x3x2x2xi8>
  %1 = core.reshape %0 [1, 12] : (tensor<1x3x2x2xi8>) -> tensor<1x12xi8>
  %2 = core.matmul %1, %w, %z, %z in i32 : (tensor<1x12xi8>, tensor<12x1xi8>, tensor<i8>, tensor<i8>) -> tensor<1x1xi32>
  %3 = core.matmul %1, %w, %z, %z in i32 : (tensor<1x12xi8>, tensor<12x1xi8>, tensor<i8>, tensor<i8>) -> tensor<1x1xi32>
  func.return %2, %3 : tensor<1x1xi32>, tensor<1x1xi32>
}

// -----

// Not if images move among one another, if the numbers that are flattened are read otherwise, if a
// zero point is another one in each place, or if weights are computed.
// CHECK-LABEL: @images
// CHECK:         core.transpose %x [1, 0]
// CHECK-LABEL: @read
// CHECK:         core.transpose %x [0, 2, 1]
// CHECK-LABEL: @zeros
// CHECK:         core.transpose %x [0, 2, 1]
// CHECK-LABEL: @computed
// CHECK:         core.transpose %x [0, 2, 1]
func.func @images(%x : tensor<6x2xf32>) -> tensor<2x1xf32> {
  %w = core.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]> : tensor<6x1xf32>
  %0 = core.transpose %x [1, 0] : (tensor<6x2xf32>) -> tensor<2x6xf32>
  %1 = core.reshape %0 [2, 6] : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2 = core.matmul %1, %w : (tensor<2x6xf32>, tensor<6x1xf32>) -> tensor<2x1xf32>
  func.return %2 : tensor<2x1xf32>
}
func.func @read(%x : tensor<1x3x2xf32>) -> (tensor<1x1xf32>, tensor<1x6xf32>) {
  %w = core.constant dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]]> : tensor<6x1xf32>
  %0 = core.transpose %x [0, 2, 1] : (tensor<1x3x2xf32>) -> tensor<1x2x3xf32>
  %1 = core.reshape %0 [1, 6] : (tensor<1x2x3xf32>) -> tensor<1x6xf32>
  %2 = core.matmul %1, %w : (tensor<1x6xf32>, tensor<6x1xf32>) -> tensor<1x1xf32>
  func.return %2, %1 : tensor<1x1xf32>, tensor<1x6xf32>
}
func.func @zeros(%x : tensor<1x3x2xi8>, %z : tensor<6xi8>, %q : tensor<i8>) -> tensor<1x1xi32> {
  %w = core.constant dense<[[1], [2], [3], [4], [5], [6]]> : tensor<6x1xi8>
  %0 = core.transpose %x [0, 2, 1] : (tensor<1x3x2xi8>) -> tensor<1x2x3xi8>
  %1 = core.reshape %0 [1, 6] : (tensor<1x2x3xi8>) -> tensor<1x6xi8>
  %2 = core.matmul %1, %w, %z, %q in i32 : (tensor<1x6xi8>, tensor<6x1xi8>, tensor<6xi8>, tensor<i8>) -> tensor<1x1xi32>
  func.return %2 : tensor<1x1xi32>
}
func.func @computed(%x : tensor<1x3x2xf32>, %w : tensor<6x1xf32>) -> tensor<1x1xf32> {
  %0 = core.transpose %x [0, 2, 1] : (tensor<1x3x2xf32>) -> tensor<1x2x3xf32>
  %1 = core.reshape %0 [1, 6] : (tensor<1x2x3xf32>) -> tensor<1x6xf32>
  %2 = core.matmul %1, %w : (tensor<1x6xf32>, tensor<6x1xf32>) -> tensor<1x1xf32>
  func.return %2 : tensor<1x1xf32>
}

// -----

// A function of bytes by a table belongs to the convolution, too.
// CHECK-LABEL: @table
// CHECK:         %[[C:.*]] = core.conv %x, %w
// CHECK-NEXT:    %[[I:.*]] = core.cast %[[C]] to i64
// CHECK-NEXT:    %[[E:.*]] = core.gather %t, %[[I]] axis 0 : (tensor<9xi8>, tensor<1x3x4xi64>) -> tensor<1x3x4xi8>
// CHECK-NEXT:    core.transpose %[[E]] [0, 2, 1]
func.func @table(%x : tensor<1x2x4xf32>, %w : tensor<3x2x1xf32>, %t : tensor<9xi8>) -> tensor<1x4x3xi8> {
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<3x2x1xf32>) -> tensor<1x3x4xf32>
  %1 = core.transpose %0 [0, 2, 1] : (tensor<1x3x4xf32>) -> tensor<1x4x3xf32>
  %2 = core.cast %1 to i64 : (tensor<1x4x3xf32>) -> tensor<1x4x3xi64>
  %3 = core.gather %t, %2 axis 0 : (tensor<9xi8>, tensor<1x4x3xi64>) -> tensor<1x4x3xi8>
  func.return %3 : tensor<1x4x3xi8>
}
