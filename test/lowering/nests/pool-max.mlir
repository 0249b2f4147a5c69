// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Padding takes no part in a maximum: the bounds leave it out. NaN is not larger than anything.

// CHECK: buffer.func @pool_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for(%{{.*}}) <[max(-d0 * 2 + 1, 0), 3, 1]> carry %{{.*}} : f32 -> f32
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, d0, d1 * 2 + d2 - 1]>
// CHECK-NEXT: arith.cmpf ogt, %{{.*}}
// CHECK-NEXT: arith.select %{{.*}}
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @pool_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x2x6xf32>) -> tensor<1x2x3xf32> {
  %y = core.pool max %x kernel [3] strides [2] dilations [1] pads [1] [0] overhang [0] : (tensor<1x2x6xf32>) -> tensor<1x2x3xf32>
  func.return %y : tensor<1x2x3xf32>
}
