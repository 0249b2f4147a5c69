// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Stride and dilation scale the column that is read, not the one that is written.

// CHECK: buffer.func @conv_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[0, 0, 0, d0]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, 0, 0, d0]>
// CHECK-NEXT: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, 0, 0, d0 * 2 + d1 * 2]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[0, 0, 0, d0]>
// CHECK: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[0, 0, 0, d0]>
// CHECK: buffer.entry
// CHECK: buffer.call @conv_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x1x1x9xf32>, %w: tensor<1x1x1x3xf32>) -> tensor<1x1x1x3xf32> {
  %y = core.conv %x, %w strides [1, 2] dilations [1, 2] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x1x9xf32>, tensor<1x1x1x3xf32>) -> tensor<1x1x1x3xf32>
  func.return %y : tensor<1x1x1x3xf32>
}
