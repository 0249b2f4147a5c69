// RUN: opt-tool %s --for-target x86-64-amx --threads=2 --pass-pipeline=form-kernels,choose-strategies --split-input-file | filecheck %s --check-prefixes=CHECK,TWO
// RUN: opt-tool %s --for-target x86-64-amx --pass-pipeline=form-kernels,choose-strategies --split-input-file | filecheck %s --check-prefixes=CHECK,ONE

// All columns of one row are a tile; of two threads each has half of them.
// CHECK-LABEL: @row
// ONE:           schedule = #core.schedule<tiled_matmul, tile {m = 1, n = 4}, order [n, m], lanes {n = 16}>
// TWO:           schedule = #core.schedule<tiled_matmul, tile {m = 1, n = 2}, order [n, m], lanes {n = 16}>
func.func @row(%x: tensor<1x20000xf32>) -> tensor<1x64xf32> {
  %w = core.constant dense<1.0> : tensor<20000x64xf32>
  %y = core.matmul %x, %w : (tensor<1x20000xf32>, tensor<20000x64xf32>) -> tensor<1x64xf32>
  func.return %y : tensor<1x64xf32>
}

// -----

// So it is with a matrix that is read as it lies.
// CHECK-LABEL: @stream
// ONE:           schedule = #core.schedule<streamed_matmul, lanes {n = 16}, chunk = 4096>
// TWO:           schedule = #core.schedule<streamed_matmul, lanes {n = 16}, chunk = 32>
func.func @stream(%x: tensor<1x20000xf32>, %w: tensor<20000x64xf32>) -> tensor<1x64xf32> {
  %y = core.matmul %x, %w : (tensor<1x20000xf32>, tensor<20000x64xf32>) -> tensor<1x64xf32>
  func.return %y : tensor<1x64xf32>
}

// -----

// It is over before another thread has begun.
// CHECK-LABEL: @short
// CHECK:         schedule = #core.schedule<tiled_matmul, tile {m = 1, n = 4}, order [n, m], lanes {n = 16}>
func.func @short(%x: tensor<1x100xf32>) -> tensor<1x64xf32> {
  %w = core.constant dense<1.0> : tensor<100x64xf32>
  %y = core.matmul %x, %w : (tensor<1x100xf32>, tensor<100x64xf32>) -> tensor<1x64xf32>
  func.return %y : tensor<1x64xf32>
}

// -----

// Threads share products of bytes in tiles with a constant matrix, which each core has in its cache.
// CHECK-LABEL: @constant
// ONE:           schedule = #core.schedule<matrix_tiles, order [n, m], lanes {n = 16}>
// TWO:           schedule = #core.schedule<matrix_tiles, order [n, m], lanes {n = 16}, shared = 1>
func.func @constant(%x: tensor<64x128xi32>) -> tensor<64x512xi32> {
  %w = core.constant dense<1> : tensor<128x512xi32>
  %y = core.matmul %x, %w packed unsigned_left : (tensor<64x128xi32>, tensor<128x512xi32>) -> tensor<64x512xi32>
  func.return %y : tensor<64x512xi32>
}

// -----

// A matrix that another core has just made comes too late, unless it is in the cache of none.
// CHECK-LABEL: @computed
// CHECK:         schedule = #core.schedule<matrix_tiles, order [n, m], lanes {n = 16}>
func.func @computed(%x: tensor<64x128xi32>, %w: tensor<128x512xi32>) -> tensor<64x512xi32> {
  %y = core.matmul %x, %w packed unsigned_left : (tensor<64x128xi32>, tensor<128x512xi32>) -> tensor<64x512xi32>
  func.return %y : tensor<64x512xi32>
}

// -----

// CHECK-LABEL: @large
// ONE:           schedule = #core.schedule<matrix_tiles, order [n, m], lanes {n = 16}>
// TWO:           schedule = #core.schedule<matrix_tiles, order [n, m], lanes {n = 16}, shared = 1>
func.func @large(%x: tensor<64x1024xi32>, %w: tensor<1024x1024xi32>) -> tensor<64x1024xi32> {
  %y = core.matmul %x, %w packed unsigned_left : (tensor<64x1024xi32>, tensor<1024x1024xi32>) -> tensor<64x1024xi32>
  func.return %y : tensor<64x1024xi32>
}
