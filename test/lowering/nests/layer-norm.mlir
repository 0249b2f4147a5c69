// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Mean, then the squares around it; f64 for sums alone.

// CHECK: buffer.func @layer_norm_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: arith.sitofp %{{.*}}
// CHECK: buffer.for <[0, 6, 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK: arith.divf %{{.*}} : f64
// CHECK-NEXT: arith.truncf %{{.*}}
// CHECK-NEXT: buffer.for <[0, 6, 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.subf %{{.*}} : f32
// CHECK-NEXT: arith.mulf %{{.*}} : f32
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK: arith.divf %{{.*}} : f64
// CHECK: arith.addf %{{.*}} : f64
// CHECK-NEXT: math.sqrt %{{.*}} : f64
// CHECK: arith.divf %{{.*}} : f64
// CHECK-NEXT: arith.truncf %{{.*}}
// CHECK-NEXT: buffer.for <[0, 6, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.subf %{{.*}} : f32
// CHECK-NEXT: arith.mulf %{{.*}} : f32
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: arith.mulf %{{.*}} : f32
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: arith.addf %{{.*}} : f32
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @layer_norm_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x6xf32>, %s: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<2x6xf32> {
  %y = core.layer_norm %x, %s, %b axis 1 {epsilon = 1.0e-5 : f64} : (tensor<2x6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}
