// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The reduced dimensions are the inner loops, wherever they stand; the map before it is computed on
// the way.

// CHECK: buffer.func @reduce_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 2, 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.for <[0, 4, 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d1, d0, d2]>
// CHECK: arith.extf %{{.*}}
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK: arith.truncf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.entry
// CHECK: buffer.call @reduce_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<3xf32> {
  %a = core.mul %x, %x : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %y = core.reduce sum %a [0, 2] : (tensor<2x3x4xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}
