// RUN: opt-tool %s --pass-pipeline=simplify --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=simplify --disable=simplify-movement --split-input-file | filecheck %s --check-prefix=ARITHMETIC

// Movement, then arithmetic: once the sum reads the constant itself, -0 is neutral.
// CHECK-LABEL: @broadcast_neutral
// CHECK-SAME:    (%[[X:[a-z0-9_]+]]: tensor<2x3xf32>)
// CHECK-NOT:     core.add
// CHECK:         func.return %[[X]]
// ARITHMETIC-LABEL: @broadcast_neutral
// ARITHMETIC:         core.add
func.func @broadcast_neutral(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = core.constant dense<-0.0> : tensor<3xf32>
  %wide = core.broadcast %zero [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %0 = core.add %x, %wide : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}

// -----

// Then movement again: nothing is left between the transposes.
// CHECK-LABEL: @all_of_it
// CHECK-SAME:    (%[[X:[a-z0-9_]+]]: tensor<2x3xf32>)
// CHECK-NOT:     core.transpose
// CHECK:         func.return %[[X]]
// ARITHMETIC-LABEL: @all_of_it
// ARITHMETIC-COUNT-2: core.transpose
func.func @all_of_it(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %wide = core.broadcast %one [3, 2] : (tensor<f32>) -> tensor<3x2xf32>
  %0 = core.transpose %x [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = core.mul %0, %wide : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = core.transpose %1 [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
