// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=choose-strategies,bufferize,lower-kernels,vectorize-lanes,unroll-tiles --split-input-file | filecheck %s

// Rows of three channels: eight of them are three vectors, and of 13 five are stored one by one. The
// result is stored as one dimension.
// CHECK-LABEL: buffer.func @to_last
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: !buffer.ref<[2, 3, 13] x f32>, %[[Y:[0-9]+]]: !buffer.ref<[2, 39] x f32>):
// CHECK-NEXT:    buffer.for <[0, 2, 1]>
// CHECK:           %[[T:.*]] = buffer.scratch : !buffer.ref<[3, 8] x f32>
// CHECK-NEXT:      %[[A:.*]] = buffer.load %[[X0]](%{{.*}}) <[d0, 0, 0]> : {{.*}} -> vector<8xf32>
// CHECK-NEXT:      buffer.store %[[A]], %[[T]] <[0, 0]> : vector<8xf32>
// CHECK:           buffer.load %[[X0]](%{{.*}}) <[d0, 2, 0]> : {{.*}} -> vector<8xf32>
// CHECK:           buffer.transpose %[[T]] : !buffer.ref<[3, 8] x f32>
// CHECK-NEXT:      buffer.load %[[T]] <[0, 0]>
// CHECK-NEXT:      buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, 0]> : vector<8xf32>
// CHECK-NEXT:      buffer.load %[[T]] <[1, 0]>
// CHECK-NEXT:      buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, 8]> : vector<8xf32>
// CHECK:               buffer.load %[[X0]](%{{.*}}) <[d0, 0, d1 + 8]> : {{.*}} -> f32
// CHECK-NEXT:          buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, d1 * 3 + 24]> : f32
// CHECK:               buffer.load %[[X0]](%{{.*}}) <[d0, 2, d1 + 8]> : {{.*}} -> f32
// CHECK-NEXT:          buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, d1 * 3 + 26]> : f32
// CHECK:         schedule = #core.schedule<interleaved_maps, at_once = 8>
func.func @main(%x: tensor<2x3x13xf32>) -> tensor<2x13x3xf32> {
  %y = core.kernel @to_last(%x) : (tensor<2x3x13xf32>) -> tensor<2x13x3xf32> {
  ^bb0(%a: tensor<2x3x13xf32>):
    %t = core.transpose %a [0, 2, 1] : (tensor<2x3x13xf32>) -> tensor<2x13x3xf32>
    core.yield %t : tensor<2x13x3xf32>
  }
  func.return %y : tensor<2x13x3xf32>
}

// -----

// Six rows are three pairs: each step takes as few apart as the number of rows allows.
// CHECK-LABEL: buffer.func @pairs
// CHECK:         buffer.transpose %{{.*}} : !buffer.ref<[6, 8] x f32>
func.func @main(%x: tensor<6x16xf32>) -> tensor<16x6xf32> {
  %y = core.kernel @pairs(%x) : (tensor<6x16xf32>) -> tensor<16x6xf32> {
  ^bb0(%a: tensor<6x16xf32>):
    %t = core.transpose %a [1, 0] : (tensor<6x16xf32>) -> tensor<16x6xf32>
    core.yield %t : tensor<16x6xf32>
  }
  func.return %y : tensor<16x6xf32>
}

// -----

// The dimension before the last is not the one along which the input is contiguous: eight elements
// of it lie far apart.
// CHECK-LABEL: buffer.func @far
// CHECK-NOT:     buffer.transpose
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<3x8x2xf32>) -> tensor<2x8x3xf32> {
  %y = core.kernel @far(%x) : (tensor<3x8x2xf32>) -> tensor<2x8x3xf32> {
  ^bb0(%a: tensor<3x8x2xf32>):
    %t = core.transpose %a [2, 1, 0] : (tensor<3x8x2xf32>) -> tensor<2x8x3xf32>
    core.yield %t : tensor<2x8x3xf32>
  }
  func.return %y : tensor<2x8x3xf32>
}

// -----

// Fewer rows than the least vector has lanes.
// CHECK-LABEL: buffer.func @few
// CHECK-NOT:     buffer.transpose
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<5x3x3xf32>) -> tensor<5x3x3xf32> {
  %y = core.kernel @few(%x) : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32> {
  ^bb0(%a: tensor<5x3x3xf32>):
    %t = core.transpose %a [0, 2, 1] : (tensor<5x3x3xf32>) -> tensor<5x3x3xf32>
    core.yield %t : tensor<5x3x3xf32>
  }
  func.return %y : tensor<5x3x3xf32>
}

// -----

// Single elements side by side, computed where they are stored; of ten rows, two are left over.
// CHECK-LABEL: buffer.func @parts
// CHECK:         %[[T:.*]] = buffer.scratch : !buffer.ref<[2, 8] x f32>
// CHECK-NEXT:    buffer.load %{{.*}} <[{{.*}}0]> : {{.*}} -> vector<8xf32>
// CHECK-NEXT:    arith.negf %{{.*}} : vector<8xf32>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[T]] <[0, 0]> : vector<8xf32>
// CHECK:         buffer.transpose %[[T]]
// CHECK:         schedule = #core.schedule<interleaved_concat, at_once = 8>
func.func @main(%x: tensor<3x10x1xf32>, %z: tensor<3x10x1xf32>) -> tensor<3x10x2xf32> {
  %y = core.kernel @parts(%x, %z) : (tensor<3x10x1xf32>, tensor<3x10x1xf32>) -> tensor<3x10x2xf32> {
  ^bb0(%a: tensor<3x10x1xf32>, %b: tensor<3x10x1xf32>):
    %n = core.neg %a : (tensor<3x10x1xf32>) -> tensor<3x10x1xf32>
    %c = core.concat %n, %b axis 2 : (tensor<3x10x1xf32>, tensor<3x10x1xf32>) -> tensor<3x10x2xf32>
    core.yield %c : tensor<3x10x2xf32>
  }
  func.return %y : tensor<3x10x2xf32>
}

// -----

// A part of two elements does not lie along the rows.
// CHECK-LABEL: buffer.func @pair
// CHECK-NOT:     buffer.transpose
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<3x10x2xf32>, %z: tensor<3x10x1xf32>) -> tensor<3x10x3xf32> {
  %y = core.kernel @pair(%x, %z) : (tensor<3x10x2xf32>, tensor<3x10x1xf32>) -> tensor<3x10x3xf32> {
  ^bb0(%a: tensor<3x10x2xf32>, %b: tensor<3x10x1xf32>):
    %c = core.concat %a, %b axis 2 : (tensor<3x10x2xf32>, tensor<3x10x1xf32>) -> tensor<3x10x3xf32>
    core.yield %c : tensor<3x10x3xf32>
  }
  func.return %y : tensor<3x10x3xf32>
}
