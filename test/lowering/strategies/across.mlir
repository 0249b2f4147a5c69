// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=choose-strategies,bufferize,lower-kernels,vectorize-lanes,unroll-tiles --split-input-file | filecheck %s

// Rows into blocks of channels, which lie innermost: vectors of columns become vectors of channels.
// CHECK-LABEL: buffer.func @to_blocks
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.scratch : !buffer.ref<[8, 8] x f32>
// CHECK-NEXT:    buffer.load %[[X0]](%{{.*}}) <[0, 0, d0, 0]> : {{.*}} -> vector<8xf32>
// CHECK-NEXT:    buffer.store %{{.*}} <[0, 0]> : vector<8xf32>
// CHECK-NEXT:    buffer.load %[[X0]](%{{.*}}) <[0, 1, d0, 0]> : {{.*}} -> vector<8xf32>
// CHECK:         buffer.transpose
// CHECK-NEXT:    buffer.load %{{.*}} <[0, 0]> : {{.*}} -> vector<8xf32>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[0, 0, d0, 0, 0]> : vector<8xf32>
// CHECK-NEXT:    buffer.load %{{.*}} <[1, 0]> : {{.*}} -> vector<8xf32>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[0, 0, d0, 1, 0]> : vector<8xf32>
// CHECK:         schedule = #core.schedule<map_squares, side = 8, along = 3, overlap = 0>
func.func @main(%x: tensor<1x8x3x8xf32>) -> tensor<1x8x3x8xf32> {
  %y = core.kernel @to_blocks(%x) : (tensor<1x8x3x8xf32>) -> tensor<1x8x3x8xf32> {
  ^bb0(%a: tensor<1x8x3x8xf32>):
    core.yield %a : tensor<1x8x3x8xf32>
  } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x8x3x8xf32>
}

// -----

// And back; the last eight of 13 columns begin among the first eight.
// CHECK-LABEL: buffer.func @to_rows
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.scratch : !buffer.ref<[8, 8] x f32>
// CHECK-NEXT:    buffer.load %[[X0]](%{{.*}}) <[0, 0, d0, 0, 0]> : {{.*}} -> vector<8xf32>
// CHECK:         buffer.transpose
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[0, 0, d0, 0]> : vector<8xf32>
// CHECK-NEXT:    buffer.load
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[0, 1, d0, 0]> : vector<8xf32>
// CHECK:         buffer.scratch : !buffer.ref<[8, 8] x f32>
// CHECK-NEXT:    buffer.load %[[X0]](%{{.*}}) <[0, 0, d0, 5, 0]> : {{.*}} -> vector<8xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[0, 0, d0, 5]> : vector<8xf32>
// CHECK-NOT:     buffer.for
// CHECK:         schedule = #core.schedule<map_squares, side = 8, along = 1, overlap = 0>
func.func @main(%x: tensor<1x8x3x13xf32>) -> tensor<1x8x3x13xf32> {
  %y = core.kernel @to_rows(%x) : (tensor<1x8x3x13xf32>) -> tensor<1x8x3x13xf32> {
  ^bb0(%a: tensor<1x8x3x13xf32>):
    core.yield %a : tensor<1x8x3x13xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>]}
  func.return %y : tensor<1x8x3x13xf32>
}

// -----

// Rows that end within a square, of enough blocks for threads: the last square ends with the row.
// CHECK-LABEL: buffer.func @long_rows
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK-NEXT:    buffer.for <[0, 8, 1]>
// CHECK:           buffer.load %[[X0]](%{{.*}}) <[0, d0 * 8, d1, d2 * 8]> : {{.*}} -> vector<8xf32>
// CHECK:           buffer.load %[[X0]](%{{.*}}) <[0, d0 * 8, d1, 11]> : {{.*}} -> vector<8xf32>
// CHECK:           buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[0, d0, d1, 11, 0]> : vector<8xf32>
// CHECK:         schedule = #core.schedule<map_squares, side = 8, along = 3, overlap = 1>
func.func @main(%x: tensor<1x64x3x19xf32>) -> tensor<1x64x3x19xf32> {
  %y = core.kernel @long_rows(%x) : (tensor<1x64x3x19xf32>) -> tensor<1x64x3x19xf32> {
  ^bb0(%a: tensor<1x64x3x19xf32>):
    core.yield %a : tensor<1x64x3x19xf32>
  } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x64x3x19xf32>
}

// -----

// Pieces of four channels do not fill a vector of eight.
// CHECK-LABEL: buffer.func @small_blocks
// CHECK-NOT:     buffer.transpose
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x8x3x8xf32>) -> tensor<1x8x3x8xf32> {
  %y = core.kernel @small_blocks(%x) : (tensor<1x8x3x8xf32>) -> tensor<1x8x3x8xf32> {
  ^bb0(%a: tensor<1x8x3x8xf32>):
    core.yield %a : tensor<1x8x3x8xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 3, 1 mod 4>, #core.layout<0, 1, 2, 3>]}
  func.return %y : tensor<1x8x3x8xf32>
}

// -----

// Few rows far apart, whose halves of lines stay in the cache: what they give is written whole.
// CHECK-LABEL: buffer.func @wide
// CHECK:         buffer.for <[0, 392, 1]>
// CHECK:           buffer.for <[0, 8, 1]>
// CHECK:             buffer.transpose
func.func @main(%x: tensor<64x3136xf32>) -> tensor<3136x64xf32> {
  %y = core.kernel @wide(%x) : (tensor<64x3136xf32>) -> tensor<3136x64xf32> {
  ^bb0(%a: tensor<64x3136xf32>):
    %b = core.transpose %a [1, 0] : (tensor<64x3136xf32>) -> tensor<3136x64xf32>
    core.yield %b : tensor<3136x64xf32>
  }
  func.return %y : tensor<3136x64xf32>
}

// -----

// The other way around: few rows are written.
// CHECK-LABEL: buffer.func @high
// CHECK:         buffer.for <[0, 392, 1]>
// CHECK:           buffer.for <[0, 8, 1]>
// CHECK:             buffer.load {{.*}} <[d0 * 8, d1 * 8]> : {{.*}} -> vector<8xf32>
func.func @main(%x: tensor<3136x64xf32>) -> tensor<64x3136xf32> {
  %y = core.kernel @high(%x) : (tensor<3136x64xf32>) -> tensor<64x3136xf32> {
  ^bb0(%a: tensor<3136x64xf32>):
    %b = core.transpose %a [1, 0] : (tensor<3136x64xf32>) -> tensor<64x3136xf32>
    core.yield %b : tensor<64x3136xf32>
  }
  func.return %y : tensor<64x3136xf32>
}

// -----

// Rows that are short and far apart, but all in the same sets of the cache: as if they were many.
// CHECK-LABEL: buffer.func @crowded
// CHECK:         buffer.for <[0, 25, 1]>
// CHECK:           buffer.for <[0, 256, 1]>
func.func @main(%x: tensor<2048x200xf32>) -> tensor<200x2048xf32> {
  %y = core.kernel @crowded(%x) : (tensor<2048x200xf32>) -> tensor<200x2048xf32> {
  ^bb0(%a: tensor<2048x200xf32>):
    %b = core.transpose %a [1, 0] : (tensor<2048x200xf32>) -> tensor<200x2048xf32>
    core.yield %b : tensor<200x2048xf32>
  }
  func.return %y : tensor<200x2048xf32>
}

// -----

// Six columns: two squares of four, which share two of them.
// CHECK-LABEL: buffer.func @narrow
// CHECK:         buffer.load {{.*}} <[d0 * 4, 0]> : {{.*}} -> vector<4xf32>
// CHECK:         buffer.load {{.*}} <[d0 * 4, 2]> : {{.*}} -> vector<4xf32>
// CHECK:         schedule = #core.schedule<map_squares, side = 4, along = 0, overlap = 1>
func.func @main(%x: tensor<400x6xf32>) -> tensor<6x400xf32> {
  %y = core.kernel @narrow(%x) : (tensor<400x6xf32>) -> tensor<6x400xf32> {
  ^bb0(%a: tensor<400x6xf32>):
    %b = core.transpose %a [1, 0] : (tensor<400x6xf32>) -> tensor<6x400xf32>
    core.yield %b : tensor<6x400xf32>
  }
  func.return %y : tensor<6x400xf32>
}
