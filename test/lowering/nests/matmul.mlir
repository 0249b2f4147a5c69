// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Rows of the right matrix, weighted by a row of the left one; a batch of one on the left is read
// again and again.

// CHECK: buffer.func @matmul_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 5, 1]>
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[d0, d1, d2]>
// CHECK: buffer.for <[0, 7, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, d0, d1]>
// CHECK-NEXT: buffer.for <[0, 4, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1, d2]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0, d1, d2]>
// CHECK: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1, d2]>
// CHECK: buffer.entry
// CHECK: buffer.call @matmul_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x5x7xf32>, %w: tensor<3x7x4xf32>) -> tensor<3x5x4xf32> {
  %y = core.matmul %x, %w : (tensor<1x5x7xf32>, tensor<3x7x4xf32>) -> tensor<3x5x4xf32>
  func.return %y : tensor<3x5x4xf32>
}
