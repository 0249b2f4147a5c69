// RUN: opt-tool %s --pass-pipeline=settle-factors --for-target cortex-m4 --split-input-file | filecheck %s

// 1/256, where halves are met: the multiplier is more than 2^30, so that those of negative sums are passed, too.
// CHECK-LABEL: @main
// CHECK: dense<1073741825> : tensor<i32>
// CHECK: dense<-7> : tensor<i32>
// CHECK: core.requantize single
func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %f = core.constant dense<0.00390625> : tensor<f64>
  %y = core.requantize real %x, %f zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<f64>) -> tensor<2x3xi8>
  func.return %y : tensor<2x3xi8>
}

// -----

// A small factor of sums that may be of any size: no multiplier of 31 bits steps where all the products do.
// CHECK-LABEL: @main
// CHECK: core.requantize real
func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi8> {
  %f = core.constant dense<4.1234567890123456e-08> : tensor<f64>
  %y = core.requantize real %x, %f zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<f64>) -> tensor<2x3xi8>
  func.return %y : tensor<2x3xi8>
}

// -----

// The same, of sums that are small: all are rounded to 0.
// CHECK-LABEL: @main
// CHECK: dense<0> : tensor<i32>
// CHECK: core.requantize single
func.func @main(%x: tensor<2x4xi8>, %w: tensor<4x3xi8>) -> tensor<2x3xi8> {
  %f = core.constant dense<4.1234567890123456e-08> : tensor<f64>
  %b = core.constant dense<[5, -1000, 1000]> : tensor<3xi32>
  %s = core.matmul %x, %w in i32 : (tensor<2x4xi8>, tensor<4x3xi8>) -> tensor<2x3xi32>
  %t = core.add %s, %b : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %y = core.requantize real %t, %f zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<f64>) -> tensor<2x3xi8>
  func.return %y : tensor<2x3xi8>
}

// -----

// A negative factor, sums of 64 bits, and factors that a run gives.
// CHECK-LABEL: @main
// CHECK-NOT: single
func.func @main(%x: tensor<2x3xi32>, %v: tensor<2x3xi64>, %f: tensor<3xf64>) -> (tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>) {
  %n = core.constant dense<[0.25, -0.25, 0.25]> : tensor<3xf64>
  %q = core.constant dense<0.25> : tensor<f64>
  %y = core.requantize real %x, %n zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<3xf64>) -> tensor<2x3xi8>
  %z = core.requantize real %v, %q zero 3 low -128 high 127 to i8 : (tensor<2x3xi64>, tensor<f64>) -> tensor<2x3xi8>
  %u = core.requantize real %x, %f zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<3xf64>) -> tensor<2x3xi8>
  func.return %y, %z, %u : tensor<2x3xi8>, tensor<2x3xi8>, tensor<2x3xi8>
}
