// RUN: opt-tool %s --pass-pipeline=opt | filecheck %s
// RUN: opt-tool %s --pass-pipeline=pre,opt,post | filecheck %s
// RUN: opt-tool %s --compile-to=optimized | filecheck %s
// RUN: opt-tool %s --compile-to=optimized --disable=opt | filecheck %s --check-prefix=KEPT
// RUN: opt-tool %s --pass-pipeline=pre,opt,post --disable=opt | filecheck %s --check-prefix=KEPT
// RUN: opt-tool %s --pass-pipeline=opt --disable=fuse-linear | filecheck %s --check-prefix=KEPT

// The factor becomes part of the weights.
// CHECK-LABEL: @main
// CHECK:         core.conv
// CHECK-NOT:     core.mul
// KEPT-LABEL:  @main
// KEPT:          core.conv
// KEPT:          core.mul
func.func @main(%x : tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
  %f = core.constant dense<[[2.0], [4.0]]> : tensor<2x1xf32>
  %a = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1
      : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %b = core.mul %a, %f : (tensor<1x2x4xf32>, tensor<2x1xf32>) -> tensor<1x2x4xf32>
  func.return %b : tensor<1x2x4xf32>
}
