// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// One nest an input, each behind the one before; threads may share all of them.

// CHECK: buffer.func @concat_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: } {parallel = true}
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1 + 3]>
// CHECK: } {parallel = true}
// CHECK: buffer.entry
// CHECK: buffer.call @concat_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x3xf32>, %z: tensor<2x4xf32>) -> tensor<2x7xf32> {
  %y = core.concat %x, %z axis 1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  func.return %y : tensor<2x7xf32>
}
