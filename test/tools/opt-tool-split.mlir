// RUN: opt-tool %s --split-input-file --parsing-diagnostics --verify-diagnostics | filecheck %s

// CHECK: func.func @good
func.func @good(%x : tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}

// -----

// CHECK: {{// }}-----
// CHECK-NEXT: opt-tool-split.mlir:13:{{[0-9]+}}: {{.*}}core.nosuch
func.func @unknown(%x : tensor<2xf32>) -> tensor<2xf32> {
  %y = core.nosuch %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

// CHECK: {{// }}-----
// CHECK-NEXT: opt-tool-split.mlir:22:3: op 'core.exp': result 0 has type tensor<3xf32>
func.func @wrong(%x : tensor<2xf32>) -> tensor<3xf32> {
  %y = core.exp %x : (tensor<2xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// CHECK: {{// }}-----
// CHECK: func.func @last
func.func @last(%x : tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
