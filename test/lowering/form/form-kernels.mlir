// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue --split-input-file | filecheck %s

// A chain of maps behind a convolution is its epilogue; the literal moves in, the weight stays out.
// CHECK-LABEL: @chain
func.func @chain(%x: tensor<1x1x5xf32>, %b: tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  %w = core.constant dense<1.0> : tensor<2x1x3xf32>
  %zero = core.constant dense<0.0> : tensor<f32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x3xf32>) -> tensor<1x2x3xf32>
  %s = core.add %c, %b : (tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  %r = core.max %s, %zero : (tensor<1x2x3xf32>, tensor<f32>) -> tensor<1x2x3xf32>
  // CHECK-NEXT: core.constant
  // CHECK-NEXT: core.kernel @conv_0(
  // CHECK:      core.conv
  // CHECK-NEXT: core.constant dense<0.0>
  // CHECK-NEXT: core.add
  // CHECK-NEXT: core.max
  // CHECK-NEXT: core.yield
  // CHECK-NOT:  core.kernel
  func.return %r : tensor<1x2x3xf32>
}

// -----

// A second user needs the value in memory.
// CHECK-LABEL: @second_user
func.func @second_user(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = core.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: core.kernel @exp_0
  // CHECK: core.kernel @neg_0
  func.return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

// One user that reads it twice is one user.
// CHECK-LABEL: @read_twice
func.func @read_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %b = core.mul %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK:     core.kernel @mul_0
  // CHECK-NOT: core.kernel
  func.return %b : tensor<4xf32>
}

// -----

// A broadcast would compute its operand once an element of the result.
// CHECK-LABEL: @different_shape
func.func @different_shape(%x: tensor<3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %b = core.add %a, %y : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: core.kernel @exp_0
  // CHECK: core.kernel @add_0
  func.return %b : tensor<2x3xf32>
}

// -----

// A kernel has one anchor: the sum goes with the first of two products.
// CHECK-LABEL: @two_anchors
func.func @two_anchors(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %a = core.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = core.softmax %x axis 0 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = core.add %a, %b : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  // CHECK:      core.kernel @softmax_0
  // CHECK:      core.kernel @matmul_0
  // CHECK:      core.matmul
  // CHECK-NEXT: core.add
  func.return %c : tensor<2x2xf32>
}

// -----

// A product accumulates in its output, so what follows must keep the type.
// CHECK-LABEL: @type_change
func.func @type_change(%x: tensor<2x2xf32>) -> (tensor<2x2xi32>, tensor<2xi32>) {
  %a = core.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = core.cast %a to i32 : (tensor<2x2xf32>) -> tensor<2x2xi32>
  %c = core.reduce sum %x [0] : (tensor<2x2xf32>) -> tensor<2xf32>
  %d = core.cast %c to i32 : (tensor<2xf32>) -> tensor<2xi32>
  // CHECK: core.kernel @matmul_0
  // CHECK: core.kernel @cast_0
  // CHECK: core.kernel @reduce_0
  // CHECK: core.cast
  func.return %b, %d : tensor<2x2xi32>, tensor<2xi32>
}

// -----

// A reduction takes in the maps before it; a search writes its result alone.
// CHECK-LABEL: @around
func.func @around(%x: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x1xf32>) {
  %a = core.mul %x, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %b = core.reduce sum %a [1] : (tensor<2x3xf32>) -> tensor<2xf32>
  %v, %i = core.top_k %x [1] axis 1 : (tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x1xi64>)
  %n = core.neg %v : (tensor<2x1xf32>) -> tensor<2x1xf32>
  // CHECK:      core.kernel @reduce_0
  // CHECK:      core.mul
  // CHECK-NEXT: core.reduce
  // CHECK:      core.kernel @top_k_0
  // CHECK:      core.kernel @neg_0
  func.return %b, %n : tensor<2xf32>, tensor<2x1xf32>
}

// -----

// The entry function reshapes and decides; kernels form inside of branches.
// CHECK-LABEL: @driver
func.func @driver(%x: tensor<2x3xf32>, %c: tensor<i1>) -> tensor<6xf32> {
  // CHECK-NEXT: core.reshape
  %r = core.reshape %x [6] : (tensor<2x3xf32>) -> tensor<6xf32>
  // CHECK-NEXT: core.if
  %y = core.if %c : tensor<i1> -> tensor<6xf32> {
    // CHECK-NEXT: core.kernel @neg_0
    %n = core.neg %r : (tensor<6xf32>) -> tensor<6xf32>
    core.yield %n : tensor<6xf32>
  } else {
    core.yield %r : tensor<6xf32>
  }
  func.return %y : tensor<6xf32>
}

// -----

// A split becomes slices of the parts that are used, and their users take them in.
// CHECK-LABEL: @split
// CHECK:         core.kernel @exp_0(
// CHECK-NEXT:    ^
// CHECK-NEXT:      core.slice {{.*}}[0, 2] [2, 3]
// CHECK-NEXT:      core.exp
// CHECK-NOT:     core.kernel
func.func @split(%x: tensor<2x6xf32>) -> tensor<2x3xf32> {
  %a, %b, %c = core.split %x axis 1 sizes [2, 3, 1] : (tensor<2x6xf32>) -> (tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x1xf32>)
  %e = core.exp %b : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %e : tensor<2x3xf32>
}

// -----

// That the parts fill the dimension is left to a reshape, where it is not known.
// CHECK-LABEL: @split_of_unknown
// CHECK:         %[[R:.*]] = core.reshape %x [(n floordiv 2) * 2]
// CHECK:         core.kernel @slice_0(%[[R]]
func.func @split_of_unknown(%x: tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n floordiv 2]>> {
  %a, %b = core.split %x axis 0 sizes [n floordiv 2, n floordiv 2] : (tensor<?xf32, #core.tensor<dims = [n]>>) -> (tensor<?xf32, #core.tensor<dims = [n floordiv 2]>>, tensor<?xf32, #core.tensor<dims = [n floordiv 2]>>)
  func.return %b : tensor<?xf32, #core.tensor<dims = [n floordiv 2]>>
}

// -----

// Attention reads the parts where they lie: the tensor is one input, the slices are maps. What is
// computed is in memory before: every query reads it.
// CHECK-LABEL: @attention
// CHECK:         %[[V:.*]] = core.kernel @exp_0(
// CHECK:         core.kernel @attention_0(%x, %[[V]])
// CHECK-NEXT:    ^
// CHECK-NEXT:      core.slice {{.*}}[0, 0, 0] [4, 2, 3]
// CHECK-NEXT:      core.slice {{.*}}[0, 2, 0] [4, 2, 3]
// CHECK-NEXT:      core.attention
// CHECK-NOT:     core.kernel
func.func @attention(%x: tensor<4x4x3xf32>, %y: tensor<4x2x3xf32>) -> tensor<4x2x3xf32> {
  %q, %k = core.split %x axis 1 sizes [2, 2] : (tensor<4x4x3xf32>) -> (tensor<4x2x3xf32>, tensor<4x2x3xf32>)
  %v = core.exp %y : (tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  %a = core.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<4x2x3xf32>, tensor<4x2x3xf32>, tensor<4x2x3xf32>) -> tensor<4x2x3xf32>
  func.return %a : tensor<4x2x3xf32>
}

// -----

// What computes a causal mask of an open size is part of each attention that reads it; leading
// ones do not matter.
// CHECK-LABEL: @causal
// CHECK-NOT:     core.compare
// CHECK:         core.kernel @attention_0(
// CHECK-NEXT:    ^
// CHECK-NEXT:      %[[M:.*]] = core.compare le
// CHECK-NEXT:      core.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]]
// CHECK:         core.kernel @attention_1(
// CHECK-NEXT:    ^
// CHECK-NEXT:      %[[M:.*]] = core.compare le
// CHECK-NEXT:      core.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]]
// CHECK-NOT:     core.kernel
func.func @causal(%x: tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>> {
  %i = core.iota [n] axis 0 : tensor<?xi64, #core.tensor<dims = [n]>>
  %j = core.reshape %i [n, 1] : (tensor<?xi64, #core.tensor<dims = [n]>>) -> tensor<?x1xi64, #core.tensor<dims = [n, 1]>>
  %m = core.compare le %i, %j : (tensor<?xi64, #core.tensor<dims = [n]>>, tensor<?x1xi64, #core.tensor<dims = [n, 1]>>) -> tensor<?x?xi1, #core.tensor<dims = [n, n]>>
  %o = core.reshape %m [1, n, n] : (tensor<?x?xi1, #core.tensor<dims = [n, n]>>) -> tensor<1x?x?xi1, #core.tensor<dims = [1, n, n]>>
  %a = core.attention %x, %x, %x, %m {scale = 1.0 : f64, fill = -1.0e+09 : f64} : (tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x?xi1, #core.tensor<dims = [n, n]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
  %b = core.attention %a, %a, %a, %o {scale = 1.0 : f64, fill = -1.0e+09 : f64} : (tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<1x?x?xi1, #core.tensor<dims = [1, n, n]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
  func.return %b : tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
}

// -----

// A mask that something as large makes stays in memory, and so does one of a known size.
// CHECK-LABEL: @given_mask
// CHECK:         core.kernel @not_0(
// CHECK:         core.kernel @attention_0(
// CHECK-LABEL: @known_size
// CHECK:         core.kernel @compare_0(
// CHECK:         core.kernel @attention_1(
func.func @given_mask(%x: tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, %m: tensor<?x?xi1, #core.tensor<dims = [n, n]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>> {
  %o = core.not %m : (tensor<?x?xi1, #core.tensor<dims = [n, n]>>) -> tensor<?x?xi1, #core.tensor<dims = [n, n]>>
  %a = core.attention %x, %x, %x, %o {scale = 1.0 : f64, fill = -1.0e+09 : f64} : (tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<?x?xi1, #core.tensor<dims = [n, n]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
  func.return %a : tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
}
func.func @known_size(%x: tensor<4x2x3xf32>, %i: tensor<4xi64>, %j: tensor<4x1xi64>) -> tensor<4x2x3xf32> {
  %m = core.compare le %i, %j : (tensor<4xi64>, tensor<4x1xi64>) -> tensor<4x4xi1>
  %a = core.attention %x, %x, %x, %m {scale = 1.0 : f64, fill = -1.0e+09 : f64} : (tensor<4x2x3xf32>, tensor<4x2x3xf32>, tensor<4x2x3xf32>, tensor<4x4xi1>) -> tensor<4x2x3xf32>
  func.return %a : tensor<4x2x3xf32>
}

// -----

// What two members of the kernel use, and nobody else, joins them.
// CHECK-LABEL: @used_by_members
func.func @used_by_members(%x: tensor<1x1x5xf32>) -> tensor<1x2x5xf32> {
  %w = core.constant dense<1.0> : tensor<2x1x1xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %s = core.sigmoid %c : (tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
  %m = core.mul %c, %s : (tensor<1x2x5xf32>, tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
  // CHECK:      core.kernel @conv_0(
  // CHECK:      core.conv
  // CHECK-NEXT: core.sigmoid
  // CHECK-NEXT: core.mul
  // CHECK-NOT:  core.kernel
  func.return %m : tensor<1x2x5xf32>
}

// -----

// A third user needs it in memory.
// CHECK-LABEL: @used_elsewhere
func.func @used_elsewhere(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %s = core.sigmoid %a : (tensor<4xf32>) -> tensor<4xf32>
  %m = core.mul %a, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: core.kernel @exp_0
  // CHECK: core.kernel @mul_0
  func.return %a, %m : tensor<4xf32>, tensor<4xf32>
}

// -----

// A softmax reads its input several times, which is then not computed there.
// CHECK-LABEL: @used_by_an_anchor
func.func @used_by_an_anchor(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %s = core.softmax %a axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %m = core.mul %a, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: core.kernel @exp_0
  // CHECK: core.kernel @softmax_0
  func.return %m : tensor<4xf32>
}

// -----

// Parts that end within a block of channels are copied: slices are read where they lie. Whole
// blocks may lie in the result, so a slice of these stays a kernel.
// CHECK-LABEL: @concat_slices
// CHECK:         core.kernel @concat_0(%x, %y)
// CHECK:           core.slice
// CHECK-NEXT:      core.concat
// CHECK:         core.kernel @slice_0(%x)
// CHECK:         core.kernel @concat_1
func.func @concat_slices(%x : tensor<1x32x3xf32>, %y : tensor<1x8x3xf32>) -> (tensor<1x13x3xf32>, tensor<1x24x3xf32>) {
  %0 = core.slice %x [0, 7, 0] [1, 5, 3] [1, 1, 1] : (tensor<1x32x3xf32>) -> tensor<1x5x3xf32>
  %1 = core.concat %0, %y axis 1 : (tensor<1x5x3xf32>, tensor<1x8x3xf32>) -> tensor<1x13x3xf32>
  %2 = core.slice %x [0, 16, 0] [1, 16, 3] [1, 1, 1] : (tensor<1x32x3xf32>) -> tensor<1x16x3xf32>
  %3 = core.concat %2, %y axis 1 : (tensor<1x16x3xf32>, tensor<1x8x3xf32>) -> tensor<1x24x3xf32>
  func.return %1, %3 : tensor<1x13x3xf32>, tensor<1x24x3xf32>
}

// -----

// What is broadcast behind itself would be computed again for each row: it is a kernel of its own.
// CHECK-LABEL: @broadcast_behind
// CHECK:         core.kernel @exp_0(%x)
// CHECK:         core.kernel @add_0
// CHECK-NOT:       core.exp
func.func @broadcast_behind(%x : tensor<3xf32>, %z : tensor<5x3xf32>) -> tensor<5x3xf32> {
  %e = core.exp %x : (tensor<3xf32>) -> tensor<3xf32>
  %y = core.add %e, %z : (tensor<3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  func.return %y : tensor<5x3xf32>
}

// -----

// Rows are copied anyway: halves are swapped, and one is negated, where they are read. A slice that
// two parts read is read by both.
// CHECK-LABEL: @concat_halves
// CHECK-NEXT:    core.kernel @concat_0(%x, %z)
// CHECK-NOT:     core.kernel
func.func @concat_halves(%x : tensor<2x6xf32>, %z : tensor<2x3xf32>) -> tensor<2x6xf32> {
  %a = core.slice %x [0, 0] [2, 3] [1, 1] : (tensor<2x6xf32>) -> tensor<2x3xf32>
  %b = core.slice %x [0, 3] [2, 3] [1, 1] : (tensor<2x6xf32>) -> tensor<2x3xf32>
  %n = core.neg %b : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = core.mul %b, %z : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = core.add %s, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = core.concat %n, %m axis 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}

// -----

// What two parts need is computed once; parts one after the other may be computed in place.
// CHECK-LABEL: @concat_shared
// CHECK:         core.kernel @exp_0
// CHECK:         core.kernel @concat_0
// CHECK:           core.neg
// CHECK:         core.kernel @neg_0
// CHECK:         core.kernel @concat_1
func.func @concat_shared(%x : tensor<2x3x3xf32>, %z : tensor<2x3xf32>) -> (tensor<2x3x6xf32>, tensor<4x3xf32>) {
  %a = core.exp %x : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %n = core.neg %a : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %s = core.mul %a, %x : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %y = core.concat %n, %s axis 2 : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x6xf32>
  %m = core.neg %z : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %w = core.concat %m, %z axis 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return %y, %w : tensor<2x3x6xf32>, tensor<4x3xf32>
}

// -----

// The epilogue of a product stays one.
// CHECK-LABEL: @concat_epilogue
// CHECK:         core.kernel @matmul_0
// CHECK:           core.neg
// CHECK:         core.kernel @concat_0
// CHECK-NOT:       core.neg
func.func @concat_epilogue(%x : tensor<2x3x4xf32>, %w : tensor<4x5xf32>) -> tensor<2x3x9xf32> {
  %p = core.matmul %x, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  %n = core.neg %p : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %y = core.concat %n, %x axis 2 : (tensor<2x3x5xf32>, tensor<2x3x4xf32>) -> tensor<2x3x9xf32>
  func.return %y : tensor<2x3x9xf32>
}

// -----

// Of gathered elements every index is read once, but not what they are gathered from.
// CHECK-LABEL: @gathered
func.func @gathered(%x: tensor<4x9xf32>, %i: tensor<4x5xi64>) -> tensor<4x5xf32> {
  %n = core.neg %x : (tensor<4x9xf32>) -> tensor<4x9xf32>
  %j = core.add %i, %i : (tensor<4x5xi64>, tensor<4x5xi64>) -> tensor<4x5xi64>
  %y = core.gather_elements %n, %j axis 1 : (tensor<4x9xf32>, tensor<4x5xi64>) -> tensor<4x5xf32>
  // CHECK:      core.kernel @neg_0
  // CHECK:      core.kernel @gather_elements_0
  // CHECK:      core.add
  // CHECK-NEXT: core.gather_elements
  // CHECK-NOT:  core.kernel
  func.return %y : tensor<4x5xf32>
}
