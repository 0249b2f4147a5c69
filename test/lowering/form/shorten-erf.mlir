// RUN: opt-tool %s --precision=int8 --pass-pipeline=shorten-erf --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=shorten-erf --split-input-file | filecheck %s --check-prefix=NONE

// What GELU makes becomes bytes, with a range for each row.
// CHECK-LABEL: @rows
// CHECK:         core.short_erf
// NONE-NOT:      short_erf
func.func @rows(%x : tensor<3x4xf32>) -> (tensor<3x4xi8>, tensor<3x1xf32>) {
  %one = core.constant dense<1.0> : tensor<f32>
  %most = core.constant dense<127.0> : tensor<f32>
  %least = core.constant dense<-127.0> : tensor<f32>
  %f = core.erf %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %g = core.add %f, %one : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %y = core.mul %x, %g : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %a = core.abs %y : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %m = core.reduce max %a [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %r = core.div %most, %m : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %s = core.mul %y, %r : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %t = core.round %s : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %u = core.min %t, %most : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %v = core.max %u, %least : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %q = core.cast %v to i8 : (tensor<3x4xf32>) -> tensor<3x4xi8>
  func.return %q, %m : tensor<3x4xi8>, tensor<3x1xf32>
}

// -----

// Not where the numbers are needed themselves, too.
// CHECK-LABEL: @numbers
// CHECK:         core.erf
func.func @numbers(%x : tensor<4xf32>) -> (tensor<4xi8>, tensor<4xf32>) {
  %most = core.constant dense<127.0> : tensor<f32>
  %f = core.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %s = core.mul %f, %most : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %t = core.round %s : (tensor<4xf32>) -> tensor<4xf32>
  %q = core.cast %t to i8 : (tensor<4xf32>) -> tensor<4xi8>
  func.return %q, %f : tensor<4xi8>, tensor<4xf32>
}

// -----

// Nor where more than a byte is made, or another function follows, which may need more digits.
// CHECK-LABEL: @more
// CHECK-COUNT-2: core.erf
func.func @more(%x : tensor<4xf32>) -> (tensor<4xi16>, tensor<4xi8>) {
  %f = core.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %t = core.round %f : (tensor<4xf32>) -> tensor<4xf32>
  %q = core.cast %t to i16 : (tensor<4xf32>) -> tensor<4xi16>
  %g = core.erf %x : (tensor<4xf32>) -> tensor<4xf32>
  %e = core.log %g : (tensor<4xf32>) -> tensor<4xf32>
  %u = core.round %e : (tensor<4xf32>) -> tensor<4xf32>
  %r = core.cast %u to i8 : (tensor<4xf32>) -> tensor<4xi8>
  func.return %q, %r : tensor<4xi16>, tensor<4xi8>
}
