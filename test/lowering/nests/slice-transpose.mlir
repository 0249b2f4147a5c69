// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Data movement only changes the index at which a map reads: all of it is one nest.

// CHECK: buffer.func @slice_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[-d0 * 2 + 5, d1 + 1]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.func @add_0
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d1, d0]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @slice_0(%{{.*}}) <[]>
// CHECK-NEXT: buffer.call @add_0(%{{.*}}) <[]>
func.func @main(%x: tensor<6x8xf32>, %z: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %a = core.slice %x [5, 1] [3, 4] [-2, 1] : (tensor<6x8xf32>) -> tensor<3x4xf32>
  %b = core.transpose %a [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
  %y = core.add %b, %z : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}
