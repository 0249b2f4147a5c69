// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The best element and its index are carried, from the second element on; a NaN beats every number.

// CHECK: buffer.func @arg_reduce_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, 0]>
// CHECK: buffer.for <[1, 5, 1]> carry %{{.*}} : f32, i64 -> f32, i64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.cmpf ogt, %{{.*}}
// CHECK-NEXT: arith.cmpf uno, %{{.*}}
// CHECK-NEXT: arith.cmpf ord, %{{.*}}
// CHECK: buffer.apply(%{{.*}}) <[d0]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.entry
// CHECK: buffer.call @arg_reduce_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x5xf32>) -> tensor<2xi64> {
  %y = core.arg_reduce max %x axis 1 : (tensor<2x5xf32>) -> tensor<2xi64>
  func.return %y : tensor<2xi64>
}
