// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// An output channel reads the channels of its own group only.

// CHECK: buffer.func @conv_0
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1, 0, 0]>
// CHECK-NEXT: buffer.for <[0, 4, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, (d0 floordiv 2) * 3 + d2, d1, d3]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK: buffer.entry
// CHECK: buffer.call @conv_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x6x4x4xf32>, %w: tensor<4x3x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x6x4x4xf32>, tensor<4x3x1x1xf32>) -> tensor<1x4x4x4xf32>
  func.return %y : tensor<1x4x4x4xf32>
}
