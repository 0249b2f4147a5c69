// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Half precision accumulates one element at a time in f32 and is rounded once.

// CHECK: buffer.func @conv_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 2, 1]> carry %{{.*}} : f32 -> f32
// CHECK: buffer.for <[0, 2, 1]> carry %{{.*}} : f32 -> f32
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[0, d1, d0 + d2]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0, d1, d2]>
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK: arith.addf %{{.*}}
// CHECK: arith.truncf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[0, d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @conv_0(%{{.*}}) <[]>
func.func @main(%x: tensor<1x2x4xf16>, %w: tensor<3x2x2xf16>) -> tensor<1x3x3xf16> {
  %y = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf16>, tensor<3x2x2xf16>) -> tensor<1x3x3xf16>
  func.return %y : tensor<1x3x3xf16>
}
