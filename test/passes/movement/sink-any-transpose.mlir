// RUN: opt-tool %s --pass-pipeline=sink-any-transpose --split-input-file --check-each | filecheck %s

// It fires without an inverse, and moves a constant along.
// CHECK-LABEL: func.func @main
// CHECK:         %[[C:.+]] = core.constant {{.+}} : tensor<1x2x1x1xf32>
// CHECK:         %[[A:.+]] = core.add %x, %[[C]] : (tensor<1x2x3x4xf32>
// CHECK:         core.transpose %[[A]] [0, 2, 3, 1]
func.func @main(%x : tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32> {
  %c = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %t = core.transpose %x [0, 2, 3, 1] : (tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32>
  %y = core.add %t, %c : (tensor<1x3x4x2xf32>, tensor<2xf32>) -> tensor<1x3x4x2xf32>
  func.return %y : tensor<1x3x4x2xf32>
}

// -----

// The nearest miss: the transposed value is read twice, and would be computed in both orders.
// CHECK-LABEL: func.func @main
// CHECK:         %[[T:.+]] = core.transpose %x
// CHECK:         core.tanh %[[T]]
func.func @main(%x : tensor<1x2x3x4xf32>) -> (tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>) {
  %t = core.transpose %x [0, 2, 3, 1] : (tensor<1x2x3x4xf32>) -> tensor<1x3x4x2xf32>
  %y = core.tanh %t : (tensor<1x3x4x2xf32>) -> tensor<1x3x4x2xf32>
  func.return %t, %y : tensor<1x3x4x2xf32>, tensor<1x3x4x2xf32>
}

// -----

// The axis is that of the other order; [0, 3, 1, 2] taken for its inverse would give 3.
// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.+]] = core.softmax %x axis 2
// CHECK:         core.transpose %[[S]] [0, 3, 1, 2]
func.func @main(%x : tensor<1x2x3x4xf32>) -> tensor<1x4x2x3xf32> {
  %t = core.transpose %x [0, 3, 1, 2] : (tensor<1x2x3x4xf32>) -> tensor<1x4x2x3xf32>
  %y = core.softmax %t axis 3 : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  func.return %y : tensor<1x4x2x3xf32>
}
