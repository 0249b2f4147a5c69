// RUN: opt-tool %s --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,vectorize-loops{lanes=8}' --split-input-file | filecheck %s

// A sum in f64 has partial sums of f32 in the lanes of four chains; what is left is in a vector that
// ends with it, whose first lanes have been added before.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 2, 1]> carry %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
// CHECK: buffer.load %[[X0]](%{{.*}}, %{{.*}}) <[d0, d1 * 32]> {{.*}} -> vector<8xf32>
// CHECK-NEXT: arith.addf
// CHECK-NEXT: buffer.load %[[X0]](%{{.*}}, %{{.*}}) <[d0, d1 * 32 + 8]> {{.*}} -> vector<8xf32>
// CHECK: buffer.yield
// CHECK: %[[NUMBERS:.*]] = buffer.lane_numbers : vector<8xi32>
// CHECK: %[[NEW:.*]] = buffer.compare ge %[[NUMBERS]], %{{.*}} : vector<8xi32> -> vector<8xi32>
// CHECK-NEXT: %[[LAST:.*]] = buffer.load %[[X0]](%{{.*}}) <[d0, 62]> {{.*}} -> vector<8xf32>
// CHECK: %[[TERMS:.*]] = buffer.select %[[NEW]], %[[LAST]], %{{.*}} : vector<8xi32>, vector<8xf32>
// CHECK-NEXT: %[[SUMS:.*]] = arith.addf %{{.*}}, %[[TERMS]]
// CHECK-NEXT: buffer.reduce add %[[SUMS]] : vector<8xf32> -> f32
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.addf %{{.*}} : f64
// CHECK-NOT: buffer.for
// CHECK: arith.truncf
// CHECK: buffer.store
func.func @main(%x: tensor<3x70xf32>) -> tensor<3xf32> {
  %y = core.reduce sum %x [1] : (tensor<3x70xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// The innermost dimension stays: elements of it are the lanes, four vectors side by side, and the
// sums are of f32 without conversions.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK: buffer.for <[0, 4, 1]>
// CHECK-NEXT: ^bb0(%[[U:.*]]: index)
// CHECK: buffer.for <[0, 3, 1]> carry %{{.*}} : vector<8xf32> -> vector<8xf32>
// CHECK: buffer.load %[[X0]](%{{.*}}, %[[U]], %{{.*}}) <[d2, d0 * 32 + d1 * 8]> {{.*}} -> vector<8xf32>
// CHECK-NEXT: arith.addf
// CHECK-NEXT: buffer.yield
// CHECK-NEXT: } {parallel = false}
// CHECK-NEXT: buffer.store %{{.*}}, %[[Y]](%{{.*}}, %[[U]]) <[0, d0 * 32 + d1 * 8]> : vector<8xf32>
// CHECK: } by unroll {
// CHECK-NOT: arith.truncf
func.func @main(%x: tensor<3x32xf32>) -> tensor<1x32xf32> {
  %y = core.reduce sum %x [0] {keep_dims = true} : (tensor<3x32xf32>) -> tensor<1x32xf32>
  func.return %y : tensor<1x32xf32>
}

// -----

// A maximum keeps NaN: the lanes are compared with themselves.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: buffer.reduce max %[[P:.*]] : vector<8xf32> -> f32
// CHECK-NEXT: %[[N:.*]] = buffer.compare ne %[[P]], %[[P]]
// CHECK-NEXT: %[[ANY:.*]] = buffer.any %[[N]]
// CHECK: arith.select %[[ANY]]
// CHECK: arith.maximumf
func.func @main(%x: tensor<3x16xf32>) -> tensor<3xf32> {
  %y = core.reduce max %x [1] : (tensor<3x16xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// The last vector of an extremum ends with the row: elements that are seen twice change nothing.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NOT: vector<4xf32>
// CHECK-NOT: buffer.lane_numbers
// CHECK: buffer.load {{.*}} <[d0, 12]> {{.*}} -> vector<8xf32>
// CHECK: buffer.entry
func.func @main(%x: tensor<3x20xf32>) -> tensor<3xf32> {
  %y = core.reduce min %x [1] : (tensor<3x20xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// A row of unknown length: where it fills a vector, the last one ends with it, and its first lanes
// have been added before; so with short vectors, and one by one what does not fill these. Chains that it does not fill are
// not combined.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: arith.cmpi sge
// CHECK: scf.if
// CHECK: scf.if {{.*}} -> (vector<8xf32>) {
// CHECK: buffer.for {{.*}} carry {{.*}} : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : vector<8xf32>
// CHECK: }
// CHECK: buffer.lane_numbers : vector<8xi32>
// CHECK: buffer.load {{.*}} <[d0, s0 - 8]> {{.*}} -> vector<8xf32>
// CHECK: buffer.reduce add %{{.*}} : vector<8xf32> -> f32
// CHECK: } else {
// CHECK: arith.cmpi sge
// CHECK: scf.if
// CHECK-NOT: vector<8xf32>
// CHECK: buffer.load {{.*}} <[d0, s0 - 4]> {{.*}} -> vector<4xf32>
// CHECK: buffer.reduce add %{{.*}} : vector<4xf32> -> f32
// CHECK: } else {
// CHECK-NOT: vector<
// CHECK: scf.yield
// CHECK: buffer.entry
func.func @main(%x: tensor<3x?xf32, #core.tensor<dims = [3, n]>>) -> tensor<3xf32> {
  %y = core.reduce sum %x [1] : (tensor<3x?xf32, #core.tensor<dims = [3, n]>>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// What memory holds in f64 is added up in it, in half as many lanes.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: arith.addf %{{.*}} : vector<4xf64>
// CHECK: buffer.reduce add %{{.*}} : vector<4xf64> -> f64
// CHECK-NOT: f32
// CHECK: buffer.entry
func.func @main(%x: tensor<3x16xf64>) -> tensor<3xf64> {
  %y = core.reduce sum %x [1] : (tensor<3x16xf64>) -> tensor<3xf64>
  func.return %y : tensor<3xf64>
}

// -----

// Running sums depend on each other, and so those of few rows do not become vectors. Products are
// computed in f64, in which they do not overflow.
// CHECK-LABEL: buffer.func @cumulative_0
// CHECK-NOT: vector
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: buffer.reduce mul %{{.*}} : vector<4xf64> -> f64
// CHECK: buffer.entry
func.func @main(%x: tensor<3x16xf32>) -> (tensor<3x16xf32>, tensor<3xf32>) {
  %y = core.cumulative sum %x axis 1 : (tensor<3x16xf32>) -> tensor<3x16xf32>
  %z = core.reduce prod %x [1] : (tensor<3x16xf32>) -> tensor<3xf32>
  func.return %y, %z : tensor<3x16xf32>, tensor<3xf32>
}

// -----

// Fewer iterations than the shortest vector has lanes, and fewer rows.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NOT: vector
// CHECK: buffer.entry
func.func @main(%x: tensor<3x3xf32>) -> tensor<3xf32> {
  %y = core.reduce sum %x [1] : (tensor<3x3xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// Rows that are shorter than vectors are summed side by side.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.load %[[X0]](%{{.*}}, %{{.*}}) <[d0 * 8, d1]> {{.*}} -> vector<8xf32> {axis = #builtin.int<0>}
// CHECK: buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0 * 8]> : vector<8xf32>
// CHECK-NOT: buffer.reduce
// CHECK: arith.truncf
func.func @main(%x: tensor<19x7xf32>) -> tensor<19xf32> {
  %y = core.reduce sum %x [1] : (tensor<19x7xf32>) -> tensor<19xf32>
  func.return %y : tensor<19xf32>
}

// -----

// The vectors of a row of sums wait for each other no more than they have to; the last one ends with
// the row.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK:      buffer.for <[0, 5, 1]>
// CHECK:        buffer.for <[0, 3, 1]>
// CHECK:          buffer.for <[0, 300, 1]> carry
// CHECK:            buffer.load %{{.*}} <[d0, d2, min(11, d1 * 8)]> : {{.*}} -> vector<8xf32>
// CHECK:          buffer.store %{{.*}}, %{{.*}} <[d0, min(11, d1 * 8)]> : vector<8xf32>
// CHECK:        } by unroll
// CHECK-NEXT:   buffer.yield
// CHECK-NEXT: } {parallel = true}
func.func @main(%x: tensor<5x300x19xf32>) -> tensor<5x19xf32> {
  %y = core.reduce max %x [1] : (tensor<5x300x19xf32>) -> tensor<5x19xf32>
  func.return %y : tensor<5x19xf32>
}

// -----

// So are running sums, which have no other vectors: each depends on the one before.
// CHECK-LABEL: buffer.func @cumulative_0
// CHECK: buffer.for <[0, 64, 1]> carry
// CHECK: buffer.load %{{.*}} -> vector<8xf32> {axis = #builtin.int<0>}
// CHECK: buffer.store %{{.*}} : vector<8xf32>, {{.*}} {axis = #builtin.int<0>}
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %y = core.cumulative sum %x axis 1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
  func.return %y : tensor<8x64xf32>
}

// -----

// The last vector of a row of unknown length that is copied ends with it, too,
// CHECK-LABEL: buffer.func @concat_0
// CHECK: arith.cmpi sge
// CHECK: scf.if
// CHECK: buffer.for <[0, s0 floordiv 8, 1]>
// CHECK: buffer.load {{.*}} <[d0, s0 - 8]> {{.*}} -> vector<8xf32>
// CHECK-NEXT: buffer.store {{.*}} <[d0, s0 - 8]> : vector<8xf32>
// CHECK: } else {
// CHECK: buffer.entry
func.func @main(%x: tensor<3x?xf32, #core.tensor<dims = [3, n]>>) -> tensor<3x?xf32, #core.tensor<dims = [3, 2 * n]>> {
  %y = core.concat %x, %x axis 1 : (tensor<3x?xf32, #core.tensor<dims = [3, n]>>, tensor<3x?xf32, #core.tensor<dims = [3, n]>>) -> tensor<3x?xf32, #core.tensor<dims = [3, 2 * n]>>
  func.return %y : tensor<3x?xf32, #core.tensor<dims = [3, 2 * n]>>
}

// -----

// but not of one that something is computed of, which may lie in place of it.
// CHECK-LABEL: buffer.func @mul_0
// CHECK-NOT: scf.if
// CHECK: buffer.load {{.*}} -> vector<4xf32>
// CHECK-NOT: scf.if
// CHECK: buffer.entry
func.func @main(%x: tensor<3x?xf32, #core.tensor<dims = [3, n]>>, %v: tensor<3x1xf32>) -> tensor<3x?xf32, #core.tensor<dims = [3, n]>> {
  %y = core.mul %x, %v : (tensor<3x?xf32, #core.tensor<dims = [3, n]>>, tensor<3x1xf32>) -> tensor<3x?xf32, #core.tensor<dims = [3, n]>>
  func.return %y : tensor<3x?xf32, #core.tensor<dims = [3, n]>>
}

// -----

// Sums side by side, an unknown number: their last vector ends with the row.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: scf.if
// CHECK: buffer.load {{.*}} <[{{.*}}s0 - 8]> {{.*}} -> vector<8xf32>
// CHECK: buffer.store {{.*}} <[{{.*}}s0 - 8]> : vector<8xf32>
// CHECK: } else {
// CHECK: buffer.entry
func.func @main(%x: tensor<3x5x?xf32, #core.tensor<dims = [3, 5, n]>>) -> tensor<3x?xf32, #core.tensor<dims = [3, n]>> {
  %y = core.reduce sum %x [1] : (tensor<3x5x?xf32, #core.tensor<dims = [3, 5, n]>>) -> tensor<3x?xf32, #core.tensor<dims = [3, n]>>
  func.return %y : tensor<3x?xf32, #core.tensor<dims = [3, n]>>
}
