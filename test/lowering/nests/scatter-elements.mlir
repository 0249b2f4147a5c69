// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// A copy first; then each update meets what is there.

// CHECK: buffer.func @scatter_elements_0
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: buffer.check_index %{{.*}} <[4]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.entry
// CHECK: buffer.call @scatter_elements_0(%{{.*}}) <[]>
func.func @main(%x: tensor<4xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %y = core.scatter_elements add %x, %i, %u axis 0 : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
