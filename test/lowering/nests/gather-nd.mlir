// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The last dimension of the indices addresses one dimension each.

// CHECK: buffer.func @gather_nd_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, 0]>
// CHECK-NEXT: buffer.check_index %{{.*}} <[4]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0, 1]>
// CHECK-NEXT: buffer.check_index %{{.*}} <[6]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d1, d2, d0]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @gather_nd_0(%{{.*}}) <[]>
func.func @main(%x: tensor<4x6x2xf32>, %i: tensor<3x2xi64>) -> tensor<3x2xf32> {
  %y = core.gather_nd %x, %i batch_dims 0 : (tensor<4x6x2xf32>, tensor<3x2xi64>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}
