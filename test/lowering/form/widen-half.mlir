// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=widen-half --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=c99 --pass-pipeline=widen-half --split-input-file | filecheck %s --check-prefix=SCALAR

// Factors and the bias become f32, constants at once; the sum is rounded where it ends.
// CHECK-LABEL: @conv
// CHECK:         core.cast %x to f32
// CHECK-NEXT:    core.constant {{.*}} : tensor<2x1x1xf32>
// CHECK-NEXT:    core.cast %b to f32
// CHECK-NEXT:    core.conv {{.*}} -> tensor<1x2x4xf32>
// CHECK-NEXT:    core.cast %{{.*}} to f16
// SCALAR-LABEL: @conv
// SCALAR-NOT:    core.cast
func.func @conv(%x: tensor<1x1x4xf16>, %b: tensor<2xf16>) -> tensor<1x2x4xf16> {
  %w = core.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf16>
  %y = core.conv %x, %w, %b strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf16>, tensor<2x1x1xf16>, tensor<2xf16>) -> tensor<1x2x4xf16>
  func.return %y : tensor<1x2x4xf16>
}

// -----

// What is added up in f32 stays so; f64 is left alone.
// CHECK-LABEL: @products
// CHECK:         core.cast %x to f32
// CHECK:         core.matmul {{.*}} -> tensor<2x2xf32>
// CHECK-NOT:     core.cast
// CHECK:         func.return
func.func @products(%x: tensor<2x3xbf16>, %w: tensor<3x2xbf16>, %d: tensor<2x2xf64>) -> (tensor<2x2xf32>, tensor<2x2xf64>) {
  %y = core.matmul %x, %w in f32 : (tensor<2x3xbf16>, tensor<3x2xbf16>) -> tensor<2x2xf32>
  %z = core.matmul %d, %d : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  func.return %y, %z : tensor<2x2xf32>, tensor<2x2xf64>
}

// -----

// What two maps read is stored in f32 and rounded already: each of them reads it so. What only one map
// of the same shape reads is in one kernel with it.
// CHECK-LABEL: @stored
// CHECK:         %[[S:.+]] = core.matmul {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT:    %[[H:.+]] = core.cast %[[S]] to f16
// CHECK-NEXT:    %[[W:.+]] = core.cast %[[H]] to f32
// CHECK-NEXT:    %[[A:.+]] = core.cast %[[W]] to f16
// CHECK-NEXT:    %[[T:.+]] = core.tanh %[[A]]
// CHECK-NEXT:    core.abs %[[T]]
// CHECK-NEXT:    %[[B:.+]] = core.cast %[[W]] to f16
// CHECK-NEXT:    core.exp %[[B]]
func.func @stored(%x: tensor<2x3xf16>, %w: tensor<3x4xf16>) -> (tensor<2x4xf16>, tensor<2x4xf16>) {
  %y = core.matmul %x, %w : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
  %t = core.tanh %y : (tensor<2x4xf16>) -> tensor<2x4xf16>
  %a = core.abs %t : (tensor<2x4xf16>) -> tensor<2x4xf16>
  %e = core.exp %y : (tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %a, %e : tensor<2x4xf16>, tensor<2x4xf16>
}

// -----

// What is moved or chosen is not rounded again; sums are.
// CHECK-LABEL: @between
// CHECK:         %[[W:.+]] = core.cast %{{.*}} to f32 : (tensor<2x4xf16>)
// CHECK-NEXT:    %[[T:.+]] = core.transpose %[[W]] [1, 0]
// CHECK-NEXT:    %[[M:.+]] = core.max %[[T]], %[[T]]
// CHECK-NEXT:    %[[R:.+]] = core.reduce sum %[[M]] [0]
// CHECK-NEXT:    %[[H:.+]] = core.cast %[[R]] to f16
// CHECK-NEXT:    %[[S:.+]] = core.cast %[[H]] to f32
// CHECK-NEXT:    core.mul %[[M]], %[[S]]
func.func @between(%x: tensor<2x3xf16>, %w: tensor<3x4xf16>) -> tensor<4x2xf16> {
  %y = core.matmul %x, %w : (tensor<2x3xf16>, tensor<3x4xf16>) -> tensor<2x4xf16>
  %t = core.transpose %y [1, 0] : (tensor<2x4xf16>) -> tensor<4x2xf16>
  %m = core.max %t, %t : (tensor<4x2xf16>, tensor<4x2xf16>) -> tensor<4x2xf16>
  %r = core.reduce sum %m [0] : (tensor<4x2xf16>) -> tensor<2xf16>
  %z = core.mul %m, %r : (tensor<4x2xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  func.return %z : tensor<4x2xf16>
}

// -----

// Without convolutions and products, nothing becomes larger.
// CHECK-LABEL: @small
// CHECK-NOT:     core.cast
func.func @small(%x: tensor<2x4xf16>) -> (tensor<4x2xf16>, tensor<2x4xf16>) {
  %y = core.exp %x : (tensor<2x4xf16>) -> tensor<2x4xf16>
  %t = core.transpose %y [1, 0] : (tensor<2x4xf16>) -> tensor<4x2xf16>
  %m = core.max %y, %y : (tensor<2x4xf16>, tensor<2x4xf16>) -> tensor<2x4xf16>
  func.return %t, %m : tensor<4x2xf16>, tensor<2x4xf16>
}
