// RUN: opt-tool %s --for-target x86-64-amx --pass-pipeline=form-kernels,choose-strategies --split-input-file | filecheck %s

// Words of four bytes: in tiles. Constants are packed in panels of two tiles.
// CHECK-LABEL: @quads
// CHECK:         schedule = #core.schedule<matrix_tiles, order [n, m], lanes {n = 16}>
// CHECK-SAME:    layouts = [#core.layout<0, 1>, #core.layout<1/32, 0, 1 mod 32>, #core.layout<0, 1>]
func.func @quads(%x: tensor<64x128xi32>) -> tensor<64x512xi32> {
  %w = core.constant dense<1> : tensor<128x512xi32>
  %y = core.matmul %x, %w packed unsigned_left : (tensor<64x128xi32>, tensor<128x512xi32>) -> tensor<64x512xi32>
  func.return %y : tensor<64x512xi32>
}

// -----

// The larger factor is on the left, and the right one is computed.
// CHECK-LABEL: @computed
// CHECK:         schedule = #core.schedule<matrix_tiles, order [m, n], lanes {n = 16}>
// CHECK-NOT:     layouts
func.func @computed(%x: tensor<512x128xi32>, %w: tensor<128x64xi32>) -> tensor<512x64xi32> {
  %y = core.matmul %x, %w packed unsigned_right : (tensor<512x128xi32>, tensor<128x64xi32>) -> tensor<512x64xi32>
  func.return %y : tensor<512x64xi32>
}

// -----

// Constants on the left are packed in tiles: of rows of 117 words each has 13.
// CHECK-LABEL: @left
// CHECK:         schedule = #core.schedule<matrix_tiles
// CHECK-SAME:    layouts = [#core.layout<0/32, 1/13, 0 mod 32, 1 mod 13>, #core.layout<0, 1>, #core.layout<0, 1>]
func.func @left(%x: tensor<117x512xi32>) -> tensor<72x512xi32> {
  %w = core.constant dense<1> : tensor<72x117xi32>
  %y = core.matmul %w, %x packed unsigned_right : (tensor<72x117xi32>, tensor<117x512xi32>) -> tensor<72x512xi32>
  func.return %y : tensor<72x512xi32>
}

// -----

// Pairs of numbers of 16 bits are not what tiles multiply.
// CHECK-LABEL: @pairs
// CHECK-NOT:     matrix_tiles
// CHECK:         schedule = #core.schedule<tiled_matmul
func.func @pairs(%x: tensor<64x128xi32>, %w: tensor<128x512xi32>) -> tensor<64x512xi32> {
  %y = core.matmul %x, %w packed pairs : (tensor<64x128xi32>, tensor<128x512xi32>) -> tensor<64x512xi32>
  func.return %y : tensor<64x512xi32>
}

// -----

// For one row, what comes from the L2 cache takes as long anyway.
// CHECK-LABEL: @row
// CHECK-NOT:     matrix_tiles
// CHECK:         schedule = #core.schedule<tiled_matmul
func.func @row(%x: tensor<1x128xi32>) -> tensor<1x512xi32> {
  %w = core.constant dense<1> : tensor<128x512xi32>
  %y = core.matmul %x, %w packed unsigned_left : (tensor<1x128xi32>, tensor<128x512xi32>) -> tensor<1x512xi32>
  func.return %y : tensor<1x512xi32>
}
