// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Every input element is added to the outputs that its kernel reaches; here
// all lie inside, whatever the tap.

// CHECK: buffer.func @conv_transpose_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 6, 1]>
// CHECK: buffer.for <[0, 8, 1]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d1, d0, d2, d3]>
// CHECK-NEXT: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, d0, d1, d2]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[0, d0, d1 + d3 * 2, d2 + d4 * 2]>
// CHECK: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1 + d3 * 2, d2 + d4 * 2]>
// CHECK: buffer.entry
// CHECK: buffer.call @conv_transpose_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x2x3x4xf32>, %w: tensor<2x3x2x2xf32>) -> tensor<1x3x6x8xf32> {
  %y = core.conv_transpose %x, %w strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 1 : (tensor<1x2x3x4xf32>, tensor<2x3x2x2xf32>) -> tensor<1x3x6x8xf32>
  func.return %y : tensor<1x3x6x8xf32>
}
