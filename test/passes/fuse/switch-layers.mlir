// RUN: opt-tool %s --pass-pipeline=switch-layers | filecheck %s

// Only a search asks for it, which no option of a command does.
// CHECK-LABEL: @main
// CHECK-SAME:  (%x: tensor<3x4xf32>) ->
// CHECK-NOT:   core.select
// CHECK:       core.matmul %x, %w
func.func @main(%x : tensor<3x4xf32>) -> tensor<3x2xf32> {
  %w = core.constant dense<0.5> : tensor<4x2xf32>
  %y = core.matmul %x, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}
