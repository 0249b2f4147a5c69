// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize | filecheck %s

// Each place takes the best element behind the one before it; values and indices are stored
// together.

// CHECK: buffer.func @top_k_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 3, 1]> carry %{{.*}} : f32, i64 -> f32, i64
// CHECK: buffer.apply(%{{.*}}) <[d0]>
// CHECK: arith.cmpi eq, %{{.*}}
// CHECK: buffer.for <[0, 9, 1]> carry %{{.*}} : f32, i64 -> f32, i64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: buffer.apply(%{{.*}}) <[d0]>
// CHECK: arith.cmpf ogt, %{{.*}}
// CHECK-NEXT: arith.cmpf uno, %{{.*}}
// CHECK-NEXT: arith.cmpf ord, %{{.*}}
// CHECK: arith.cmpf ogt, %{{.*}}
// CHECK-NEXT: arith.cmpf uno, %{{.*}}
// CHECK-NEXT: arith.cmpf ord, %{{.*}}
// CHECK: arith.cmpi sgt, %{{.*}}
// CHECK: arith.cmpi eq, %{{.*}}
// CHECK-NEXT: arith.cmpf ogt, %{{.*}}
// CHECK-NEXT: arith.cmpf uno, %{{.*}}
// CHECK-NEXT: arith.cmpf ord, %{{.*}}
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.func @run
// CHECK: buffer.call @top_k_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %v, %i = core.top_k %x {k = #core.dims<[3]>, axis = #builtin.int<1>, largest = true} : (tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}
