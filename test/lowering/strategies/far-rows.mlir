// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=form-kernels,choose-strategies --split-input-file | filecheck %s

// Rows of 2 KB lie in two places of the L1 cache: more than 16 of them are copied, panel by panel.
// CHECK-LABEL: @two_places
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}wide = 1
func.func @two_places(%x: tensor<512x64xf32>, %w: tensor<64x512xf32>) -> tensor<512x512xf32> {
  %y = core.matmul %x, %w : (tensor<512x64xf32>, tensor<64x512xf32>) -> tensor<512x512xf32>
  func.return %y : tensor<512x512xf32>
}

// -----

// As many of 2,064 bytes have places enough.
// CHECK-LABEL: @many_places
// CHECK:         schedule = #core.schedule<tiled_matmul
// CHECK-NOT:     wide = 1
func.func @many_places(%x: tensor<512x64xf32>, %w: tensor<64x516xf32>) -> tensor<512x516xf32> {
  %y = core.matmul %x, %w : (tensor<512x64xf32>, tensor<64x516xf32>) -> tensor<512x516xf32>
  func.return %y : tensor<512x516xf32>
}

// -----

// 16 of 2 KB stay.
// CHECK-LABEL: @few_rows
// CHECK:         schedule = #core.schedule<tiled_matmul
// CHECK-NOT:     wide = 1
func.func @few_rows(%x: tensor<512x16xf32>, %w: tensor<16x512xf32>) -> tensor<512x512xf32> {
  %y = core.matmul %x, %w : (tensor<512x16xf32>, tensor<16x512xf32>) -> tensor<512x512xf32>
  func.return %y : tensor<512x512xf32>
}

// -----

// Of f64 rows of 256 elements are as long, and 24 of them too many.
// CHECK-LABEL: @of_f64
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}wide = 1
func.func @of_f64(%x: tensor<512x24xf64>, %w: tensor<24x256xf64>) -> tensor<512x256xf64> {
  %y = core.matmul %x, %w : (tensor<512x24xf64>, tensor<24x256xf64>) -> tensor<512x256xf64>
  func.return %y : tensor<512x256xf64>
}

// -----

// All rows of the left matrix would be read for each panel: where they are many, all panels are
// made before.
// CHECK-LABEL: @many_rows
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}panels = 1
func.func @many_rows(%x: tensor<20000x64xf32>, %w: tensor<64x512xf32>) -> tensor<20000x512xf32> {
  %y = core.matmul %x, %w : (tensor<20000x64xf32>, tensor<64x512xf32>) -> tensor<20000x512xf32>
  func.return %y : tensor<20000x512xf32>
}
