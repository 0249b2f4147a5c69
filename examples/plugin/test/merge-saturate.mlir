// RUN: opt-tool %s -p merge-saturate --split-input-file | filecheck %s
// RUN: opt-tool %s -p merge-saturate --split-input-file --check-each

// 1 / 0.75 is 1 / 1 + 1 / 3.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %y = core.custom "com.acme.Saturate" %x {limit = 7.500000e-01 : f64}
// CHECK-NEXT:    func.return %y
func.func @main(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.custom "com.acme.Saturate" %x {limit = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = core.custom "com.acme.Saturate" %a {limit = 3.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

// The value between is used elsewhere: both would have to be computed.

// CHECK-LABEL: func.func @main
// CHECK:         limit = 1.0
// CHECK:         limit = 3.0
func.func @main(%x : tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = core.custom "com.acme.Saturate" %x {limit = 1.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = core.custom "com.acme.Saturate" %a {limit = 3.0 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %a, %y : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Three in a row, from the first to the last: 1 / 0.5 is 1 / 1 + 1 / 2 + 1 / 2.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %y = core.custom "com.acme.Saturate" %x {limit = 5.000000e-01 : f64}
// CHECK-NEXT:    func.return %y
func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
  %a = core.custom "com.acme.Saturate" %x {limit = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %b = core.custom "com.acme.Saturate" %a {limit = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %y = core.custom "com.acme.Saturate" %b {limit = 2.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
