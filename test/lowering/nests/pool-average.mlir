// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The window is clipped to the input, and the average divides by what is left of it.

// CHECK: buffer.func @pool_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 5, 1]>
// CHECK: buffer.for(%{{.*}}) <[max(-d0 + 1, 0), min(-d0 + 6, 3), 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, d0, d1 + d2 - 1]>
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK: buffer.apply(%{{.*}}) <[-max(-d0 + 1, 0) + min(-d0 + 6, 3)]>
// CHECK: arith.sitofp %{{.*}}
// CHECK-NEXT: arith.divf %{{.*}}
// CHECK-NEXT: arith.truncf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @pool_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x2x5xf32>) -> tensor<1x2x5xf32> {
  %y = core.pool average %x kernel [3] strides [1] dilations [1] pads [1] [1] overhang [0] : (tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}
