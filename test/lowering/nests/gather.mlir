// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// An index from data is checked against the dimension that it goes into.

// CHECK: buffer.func @gather_0
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.check_index %{{.*}} <[6]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @gather_0(%{{.*}}) <[]>
func.func @main(%x: tensor<4x6xf32>, %i: tensor<3xi32>) -> tensor<4x3xf32> {
  %y = core.gather %x, %i axis 1 : (tensor<4x6xf32>, tensor<3xi32>) -> tensor<4x3xf32>
  func.return %y : tensor<4x3xf32>
}
