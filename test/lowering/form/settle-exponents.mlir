// RUN: opt-tool %s --pass-pipeline=settle-exponents --split-input-file | filecheck %s

// Each channel is divided.
// CHECK-LABEL: @main
// CHECK: core.requantize double right
func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %m = core.constant dense<[1073741824, 0, 2147483647]> : tensor<3xi32>
  %e = core.constant dense<[-1, -8, -31]> : tensor<3xi32>
  %y = core.requantize double %x, %m, %e zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi8>
  func.return %y : tensor<2x3xi8>
}

// -----

// One exponent is 0: nothing is left to round there.
// CHECK-LABEL: @main
// CHECK-NOT: right
func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %m = core.constant dense<[1073741824, 0, 2147483647]> : tensor<3xi32>
  %e = core.constant dense<[-1, 0, -31]> : tensor<3xi32>
  %y = core.requantize double %x, %m, %e zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi8>
  func.return %y : tensor<2x3xi8>
}

// -----

// A product with the lowest multiplier may be the lowest number, from which nothing can be subtracted.
// CHECK-LABEL: @main
// CHECK-NOT: right
func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %m = core.constant dense<[1073741824, -2147483648, 2147483647]> : tensor<3xi32>
  %e = core.constant dense<[-1, -8, -31]> : tensor<3xi32>
  %y = core.requantize double %x, %m, %e zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi8>
  func.return %y : tensor<2x3xi8>
}

// -----

// Exponents that a run gives, and a rounding in one step.
// CHECK-LABEL: @main
// CHECK-NOT: right
func.func @main(%x: tensor<2x3xi32>, %e: tensor<3xi32>) -> (tensor<2x3xi8>, tensor<2x3xi8>) {
  %m = core.constant dense<1073741824> : tensor<i32>
  %d = core.constant dense<-8> : tensor<i32>
  %y = core.requantize double %x, %m, %e zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<i32>, tensor<3xi32>) -> tensor<2x3xi8>
  %z = core.requantize single %x, %m, %d zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<i32>, tensor<i32>) -> tensor<2x3xi8>
  func.return %y, %z : tensor<2x3xi8>, tensor<2x3xi8>
}
