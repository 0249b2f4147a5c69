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

// Some microseconds: each of two threads has half of them.
// CHECK-LABEL: @some
// ONE:           schedule = #core.schedule<tiled_matmul, tile {m = 1, n = 4}, order [n, m], lanes {n = 16}>
// TWO:           schedule = #core.schedule<tiled_matmul, tile {m = 1, n = 2}, order [n, m], lanes {n = 16}>
func.func @some(%x: tensor<1x3000xf32>) -> tensor<1x64xf32> {
  %w = core.constant dense<1.0> : tensor<3000x64xf32>
  %y = core.matmul %x, %w : (tensor<1x3000xf32>, tensor<3000x64xf32>) -> tensor<1x64xf32>
  func.return %y : tensor<1x64xf32>
}
