// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,fuse-epilogue,choose-strategies,bufferize,lower-kernels,pack-weights,tile,vectorize-lanes,unroll-tiles --split-input-file | filecheck %s

// Tiles of four rows by two vectors: one loop carries all the sums, each row is read once for both
// vectors, and the bias follows from registers. What remains of the columns is a shorter vector, in
// the second panel.
// CHECK-LABEL: buffer.func @matmul_0
// CHECK-NEXT:  ^bb0(%[[X:[0-9]+]]: !buffer.ref<[4, 6] x f32>, %[[W:[0-9]+]]: !buffer.ref<[2, 6, 32] x f32>, %[[B:[0-9]+]]: !buffer.ref<[40] x f32>, %[[Y:[0-9]+]]: !buffer.ref<[4, 40] x f32>):
// CHECK:         buffer.for <[0, 6, 1]> carry {{(%[0-9]+, ){7}%[0-9]+}} : vector<16xf32>
// CHECK:           buffer.load %[[W]](%{{.*}}) <[0, d0, 0]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:      buffer.load %[[W]](%{{.*}}) <[0, d0, 16]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:      buffer.load %[[X]](%{{.*}}) <[0, d0]> {{.*}} -> f32
// CHECK-NEXT:      vector.broadcast
// CHECK-NEXT:      math.fma
// CHECK-NEXT:      math.fma
// CHECK-NEXT:      buffer.load %[[X]](%{{.*}}) <[1, d0]>
// CHECK-COUNT-6:   math.fma
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.load %[[B]] <[0]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:    arith.addf
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]] <[0, 0]> : vector<16xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]] <[3, 16]> : vector<16xf32>
// CHECK:         buffer.for <[0, 6, 1]> carry {{(%[0-9]+, ){3}%[0-9]+}} : vector<8xf32>
// CHECK:           buffer.load %[[W]](%{{.*}}) <[1, d0, 0]> {{.*}} -> vector<8xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]] <[3, 32]> : vector<8xf32>
// CHECK-NOT:     buffer.store
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x40xf32> {
  %w = core.constant dense<1.0> : tensor<6x40xf32>
  %b = core.constant dense<1.0> : tensor<40xf32>
  %y = core.matmul %x, %w : (tensor<4x6xf32>, tensor<6x40xf32>) -> tensor<4x40xf32>
  %z = core.add %y, %b : (tensor<4x40xf32>, tensor<40xf32>) -> tensor<4x40xf32>
  func.return %z : tensor<4x40xf32>
}

// -----

// A vector by a matrix: as many vectors of columns side by side as one row of the panel has.
// CHECK-LABEL: buffer.func @matmul_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.for <[0, 6, 1]> carry {{(%[0-9]+, ){3}%[0-9]+}} : vector<16xf32>
// CHECK:           buffer.load %[[X0]](%{{.*}}) <[0, d0]> {{.*}} -> f32
// CHECK-NEXT:      %[[S:.*]] = vector.broadcast
// CHECK-NEXT:      buffer.load %[[X1]](%{{.*}}) <[0, d0, 0]>
// CHECK-NEXT:      math.fma %[[S]]
// CHECK-NEXT:      buffer.load %[[X1]](%{{.*}}) <[0, d0, 16]>
// CHECK-NEXT:      math.fma %[[S]]
// CHECK-NEXT:      buffer.load %[[X1]](%{{.*}}) <[0, d0, 32]>
// CHECK-NEXT:      math.fma %[[S]]
// CHECK-NEXT:      buffer.load %[[X1]](%{{.*}}) <[0, d0, 48]>
// CHECK-NEXT:      math.fma %[[S]]
// CHECK-NEXT:      buffer.yield
// CHECK-COUNT-4: buffer.store {{.*}} : vector<16xf32>
func.func @main(%x: tensor<1x6xf32>) -> tensor<1x64xf32> {
  %w = core.constant dense<1.0> : tensor<6x64xf32>
  %y = core.matmul %x, %w : (tensor<1x6xf32>, tensor<6x64xf32>) -> tensor<1x64xf32>
  func.return %y : tensor<1x64xf32>
}

// -----

// Each matrix of a batch meets its own right one: tiles are rows of one matrix, and the batch is a
// loop that threads may share.
// CHECK-LABEL: buffer.func @matmul_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:       buffer.for <[0, 2, 1]> {
// CHECK-NEXT:  ^bb0(%[[B:.*]]: index):
// CHECK:         buffer.for <[0, 5, 1]> carry {{(%[0-9]+, ){2}%[0-9]+}} : vector<16xf32>
// CHECK-NEXT:    ^bb0(%[[K:[0-9]+]]: index
// CHECK-NEXT:      buffer.load %[[X1]](%[[B]], %[[K]]) <[d0, d1, 0]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:      buffer.load %[[X0]](%[[B]], %[[K]]) <[d0, 0, d1]> {{.*}} -> f32
// CHECK:         buffer.store %{{.*}}, %[[Y]](%[[B]]) <[d0, 2, 0]> : vector<16xf32>
// CHECK:       } {parallel = true, label = "b0"}
func.func @main(%x: tensor<2x3x5xf32>, %w: tensor<2x5x16xf32>) -> tensor<2x3x16xf32> {
  %y = core.matmul %x, %w : (tensor<2x3x5xf32>, tensor<2x5x16xf32>) -> tensor<2x3x16xf32>
  func.return %y : tensor<2x3x16xf32>
}

// -----

// One row of each matrix that meets the same right one: the matrices are the rows of a tile.
// CHECK-LABEL: buffer.func @matmul_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.for <[0, 5, 1]> carry {{(%[0-9]+, ){2}%[0-9]+}} : vector<16xf32>
// CHECK:           buffer.load %[[X0]](%{{.*}}) <[0, 0, d0]>
// CHECK:           buffer.load %[[X0]](%{{.*}}) <[1, 0, d0]>
// CHECK:           buffer.load %[[X0]](%{{.*}}) <[2, 0, d0]>
func.func @main(%x: tensor<3x1x5xf32>, %w: tensor<5x16xf32>) -> tensor<3x1x16xf32> {
  %y = core.matmul %x, %w : (tensor<3x1x5xf32>, tensor<5x16xf32>) -> tensor<3x1x16xf32>
  func.return %y : tensor<3x1x16xf32>
}

// -----

// Bytes are widened in the loop that adds up their products, and zero points subtracted there.
// CHECK-LABEL: buffer.func @matmul_0
// CHECK:         buffer.for <[0, 6, 1]> carry {{.*}} : vector<16xi32>
// CHECK:           %[[W:.*]] = buffer.load {{.*}} x i8> -> vector<16xi8>
// CHECK-NEXT:      %[[V:.*]] = buffer.convert %[[W]] : vector<16xi8> -> vector<16xi32>
// CHECK:           buffer.load {{.*}} x ui8> -> i8
// CHECK-NEXT:      arith.extui
// CHECK:           arith.subi
// CHECK:           arith.muli %{{.*}}, %[[V]] : vector<16xi32>
// CHECK-NEXT:      arith.addi {{.*}} : vector<16xi32>
func.func @main(%x: tensor<4x6xui8>, %w: tensor<6x32xi8>) -> tensor<4x32xi32> {
  %p = core.constant dense<7> : tensor<ui8>
  %q = core.constant dense<0> : tensor<i8>
  %y = core.matmul %x, %w, %p, %q in i32 : (tensor<4x6xui8>, tensor<6x32xi8>, tensor<ui8>, tensor<i8>) -> tensor<4x32xi32>
  func.return %y : tensor<4x32xi32>
}

// -----

// The nearest miss: integers that no schedule has vectors for.
// CHECK-LABEL: buffer.func @matmul_0
// CHECK-NOT:     vector
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<4x6xi64>, %w: tensor<6x32xi64>) -> tensor<4x32xi64> {
  %y = core.matmul %x, %w : (tensor<4x6xi64>, tensor<6x32xi64>) -> tensor<4x32xi64>
  func.return %y : tensor<4x32xi64>
}

// -----

// Rows that a run knows: tiles, smaller tiles, then rows one by one.
// CHECK-LABEL: buffer.func @matmul_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.for <[0, s0 floordiv [[R:[0-9]+]], 1]> {
// CHECK:         buffer.for <[0, 6, 1]> carry {{(%[0-9]+, ){10,}%[0-9]+}} : vector<16xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0 * [[R]], 0]> : vector<16xf32>
// CHECK:         buffer.for <[0, 6, 1]> carry {{(%[0-9]+, ){2,9}%[0-9]+}} : vector<16xf32>
// CHECK:         buffer.for <[0, 6, 1]> carry %{{[0-9]+}} : vector<16xf32>
// CHECK-NOT:     : f32, !buffer.ref
func.func @main(%x: tensor<?x6xf32, #core.tensor<dims = [m, 6]>>) -> tensor<?x16xf32, #core.tensor<dims = [m, 16]>> {
  %w = core.constant dense<1.0> : tensor<6x16xf32>
  %y = core.matmul %x, %w : (tensor<?x6xf32, #core.tensor<dims = [m, 6]>>, tensor<6x16xf32>) -> tensor<?x16xf32, #core.tensor<dims = [m, 16]>>
  func.return %y : tensor<?x16xf32, #core.tensor<dims = [m, 16]>>
}
