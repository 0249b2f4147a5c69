// RUN: opt-tool %s --precision=bf16 --for-target=x86-64-zen4 --pass-pipeline=halve-attention --split-input-file | filecheck %s
// RUN: opt-tool %s --precision=int8 --for-target=x86-64-zen4 --pass-pipeline=halve-attention --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=x86-64-zen4 --pass-pipeline=halve-attention --split-input-file | filecheck %s --check-prefix=NONE
// RUN: opt-tool %s --precision=bf16 --for-target=x86-64-v4 --pass-pipeline=halve-attention --split-input-file | filecheck %s --check-prefix=NONE

// CHECK-LABEL: @tokens
// CHECK:         core.attention {{.*}}in_halves
// NONE-NOT:      in_halves
func.func @tokens(%q: tensor<1x16x2x8xf32>, %k: tensor<1x7x2x8xf32>) -> tensor<1x16x2x8xf32> {
  %y = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x16x2x8xf32>, tensor<1x7x2x8xf32>, tensor<1x7x2x8xf32>) -> tensor<1x16x2x8xf32>
  func.return %y : tensor<1x16x2x8xf32>
}

// -----

// Fewer queries than lanes are not side by side.
// CHECK-LABEL: @few
// CHECK-NOT:     in_halves
func.func @few(%q: tensor<1x15x2x8xf32>, %k: tensor<1x7x2x8xf32>) -> tensor<1x15x2x8xf32> {
  %y = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x15x2x8xf32>, tensor<1x7x2x8xf32>, tensor<1x7x2x8xf32>) -> tensor<1x15x2x8xf32>
  func.return %y : tensor<1x15x2x8xf32>
}

// -----

// An odd number of components has no pairs.
// CHECK-LABEL: @odd
// CHECK-NOT:     in_halves
func.func @odd(%q: tensor<1x16x2x7xf32>, %k: tensor<1x7x2x7xf32>) -> tensor<1x16x2x7xf32> {
  %y = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x16x2x7xf32>, tensor<1x7x2x7xf32>, tensor<1x7x2x7xf32>) -> tensor<1x16x2x7xf32>
  func.return %y : tensor<1x16x2x7xf32>
}
