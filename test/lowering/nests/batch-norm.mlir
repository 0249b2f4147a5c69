// RUN: opt-tool %s --pass-pipeline=form-kernels,bufferize,lower-kernels | filecheck %s

// Parameters by the channel, which is the last dimension; half precision is rounded once.

// CHECK: buffer.func @batch_norm_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 6, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}, %{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.extf %{{.*}} : f16 to f32
// CHECK-COUNT-4: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK: arith.addf
// CHECK-NEXT: math.sqrt %{{.*}} : f32
// CHECK-NEXT: arith.divf
// CHECK-NEXT: arith.subf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT: buffer.store
func.func @main(%x: tensor<2x6xf16>, %s: tensor<6xf16>, %b: tensor<6xf16>, %m: tensor<6xf16>, %v: tensor<6xf16>) -> tensor<2x6xf16> {
  %y = core.batch_norm %x, %s, %b, %m, %v axis 1 {epsilon = 1.0e-3 : f64} : (tensor<2x6xf16>, tensor<6xf16>, tensor<6xf16>, tensor<6xf16>, tensor<6xf16>) -> tensor<2x6xf16>
  func.return %y : tensor<2x6xf16>
}
