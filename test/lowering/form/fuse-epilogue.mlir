// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue --split-input-file --disable=fuse-epilogue | filecheck %s --check-prefix=OFF

// Both uses of the product are in the maps behind it.
// CHECK-LABEL: @fires
// CHECK:       core.kernel @matmul_0
// CHECK:         core.matmul
// CHECK-NEXT:    core.sigmoid
// CHECK-NEXT:    core.mul
// CHECK-NOT:   core.kernel
// OFF-LABEL:   @fires
// OFF:         core.kernel @matmul_0
// OFF:         core.kernel @mul_0
func.func @fires(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %p = core.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %s = core.sigmoid %p : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = core.mul %p, %s : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// Another user needs the product in memory.
// CHECK-LABEL: @second_user
// CHECK:       core.kernel @matmul_0
// CHECK:       core.kernel @neg_0
func.func @second_user(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %p = core.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = core.neg %p : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %p, %y : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// The maps run over more elements than the product has.
// CHECK-LABEL: @broadcast
// CHECK:       core.kernel @matmul_0
// CHECK:       core.kernel @add_0
func.func @broadcast(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>, %z: tensor<5x2x4xf32>) -> tensor<5x2x4xf32> {
  %p = core.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = core.add %z, %p : (tensor<5x2x4xf32>, tensor<2x4xf32>) -> tensor<5x2x4xf32>
  func.return %y : tensor<5x2x4xf32>
}

// -----

// Products accumulate in the output, which must have their type.
// CHECK-LABEL: @another_type
// CHECK:       core.kernel @matmul_0
// CHECK:       core.kernel @cast_0
func.func @another_type(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xi32> {
  %p = core.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = core.cast %p to i32 : (tensor<2x4xf32>) -> tensor<2x4xi32>
  func.return %y : tensor<2x4xi32>
}

// -----

// Of two products the first one takes the sum in; the other one is its input.
// CHECK-LABEL: @two_products
// CHECK:       core.kernel @matmul_1
// CHECK:       core.kernel @matmul_0
// CHECK:         core.matmul
// CHECK-NEXT:    core.add
func.func @two_products(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {
  %p = core.matmul %x, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %n = core.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %q = core.matmul %n, %w : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %y = core.add %p, %q : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}
