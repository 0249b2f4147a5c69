// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Only a dimension that is padded is tested, and outside nothing is read.

// CHECK: buffer.func @pad_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 6, 1]>
// CHECK: buffer.apply(%{{.*}}) <[d0 - 1]>
// CHECK: arith.cmpi sge, %{{.*}}
// CHECK-NEXT: buffer.apply(%{{.*}}) <[d0 - 4]>
// CHECK: arith.cmpi slt, %{{.*}}
// CHECK: scf.if %{{.*}} -> (f32)
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0, d1 - 1]>{{.*}}{volatile}
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @pad_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %y = core.pad constant %x [0, 1] [0, 2] : (tensor<2x3xf32>) -> tensor<2x6xf32>
  func.return %y : tensor<2x6xf32>
}
