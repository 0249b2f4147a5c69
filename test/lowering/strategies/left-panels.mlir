// RUN: opt-tool %s --for-target x86-64-zen4 --pass-pipeline=form-kernels,choose-strategies --split-input-file | filecheck %s

// Words of weights on the left lie in the order in which tiles of rows read them.
// CHECK-LABEL: @words
// CHECK:         tile {m = [[M:[0-9]+]], n = {{[0-9]+}}}
// CHECK-SAME:    layouts = [#core.layout<0/[[M]], 1, 0 mod [[M]]>,
func.func @words(%x: tensor<64x208xi32>) -> tensor<60x208xi32> {
  %w = core.constant dense<1> : tensor<60x64xi32>
  %y = core.matmul %w, %x packed unsigned_right : (tensor<60x64xi32>, tensor<64x208xi32>) -> tensor<60x208xi32>
  func.return %y : tensor<60x208xi32>
}

// -----

// What is computed lies as it is.
// CHECK-LABEL: @computed
// CHECK:         lanes {n = 16}>}
func.func @computed(%w: tensor<60x64xi32>, %x: tensor<64x208xi32>) -> tensor<60x208xi32> {
  %y = core.matmul %w, %x packed unsigned_right : (tensor<60x64xi32>, tensor<64x208xi32>) -> tensor<60x208xi32>
  func.return %y : tensor<60x208xi32>
}
