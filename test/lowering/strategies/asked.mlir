// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,choose-strategies | filecheck %s
// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,choose-strategies --disable-strategy=tiled_matmul | filecheck %s --check-prefix=PLAIN
// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,choose-strategies --strategy=row_maps | filecheck %s --check-prefix=ASKED

// A transposed tensor is made in squares, and a product in tiles.
// CHECK-LABEL: core.kernel @transpose_0
// CHECK:         schedule = #core.schedule<map_squares, side = 16, along = 0, overlap = 0>
// CHECK-LABEL: core.kernel @matmul_0
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}>

// Without tiles there are plain loops.
// PLAIN-LABEL: core.kernel @transpose_0
// PLAIN:         schedule = #core.schedule<map_squares
// PLAIN-LABEL: core.kernel @matmul_0
// PLAIN-NOT:     schedule

// What is asked for is taken wherever it can be, and nothing else changes.
// ASKED-LABEL: core.kernel @transpose_0
// ASKED:         schedule = #core.schedule<row_maps, lanes {d1 = 16}>
// ASKED-LABEL: core.kernel @matmul_0
// ASKED:         schedule = #core.schedule<tiled_matmul
func.func @main(%x: tensor<64x32xf32>, %w: tensor<64x48xf32>) -> tensor<32x48xf32> {
  %t = core.transpose %x [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
  %y = core.matmul %t, %w : (tensor<32x64xf32>, tensor<64x48xf32>) -> tensor<32x48xf32>
  func.return %y : tensor<32x48xf32>
}
