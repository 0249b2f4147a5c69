// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// A row of outputs starts with the bias; padding narrows the loops over taps and columns, so that
// nothing is tested inside.

// CHECK: buffer.func @conv_0
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.for <[0, 5, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: buffer.for <[0, 6, 1]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for(%{{.*}}) <[max(-d0 + 1, 0), min(-d0 + 6, 3), 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1, d2, d3]>
// CHECK-NEXT: buffer.for(%{{.*}}) <[max(-d0 + 1, 0), min(-d0 + 7, 6), 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, d1, d0 + d2 - 1, d3 + d4 - 1]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK: buffer.entry
// CHECK: buffer.call @conv_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x2x5x6xf32>, %w: tensor<4x2x3x3xf32>, %b: tensor<4xf32>) -> tensor<1x4x5x6xf32> {
  %y = core.conv %x, %w, %b strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x2x5x6xf32>, tensor<4x2x3x3xf32>, tensor<4xf32>) -> tensor<1x4x5x6xf32>
  func.return %y : tensor<1x4x5x6xf32>
}
