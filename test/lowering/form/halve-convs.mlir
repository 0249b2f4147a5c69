// RUN: opt-tool %s --precision=bf16 --for-target=x86-64-amx --pass-pipeline=halve-convs --split-input-file | filecheck %s
// RUN: opt-tool %s --precision=int8 --for-target=x86-64-amx --pass-pipeline=halve-convs --split-input-file | filecheck %s --check-prefix=NO
// RUN: opt-tool %s --precision=bf16 --for-target=x86-64-zen4 --pass-pipeline=halve-convs --split-input-file | filecheck %s --check-prefix=NO

// CHECK-LABEL: @conv
// CHECK:         %[[X:.+]] = core.cast %x to bf16
// CHECK-NEXT:    %[[W:.+]] = core.constant {{.*}} : tensor<16x32x1x1xbf16>
// CHECK-NEXT:    core.conv %[[X]], %[[W]] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in f32
// NO-LABEL:    @conv
// NO-NOT:        bf16
func.func @conv(%x: tensor<1x32x5x6xf32>) -> tensor<1x16x5x6xf32> {
  %w = core.constant dense<0.3> : tensor<16x32x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x5x6xf32>, tensor<16x32x1x1xf32>) -> tensor<1x16x5x6xf32>
  func.return %y : tensor<1x16x5x6xf32>
}

// -----

// Too few filters, and too few products of a sum.
// CHECK-LABEL: @few
// CHECK-NOT:     bf16
func.func @few(%x: tensor<1x32x5x6xf32>, %z: tensor<1x3x5x6xf32>) -> (tensor<1x15x5x6xf32>, tensor<1x16x3x4xf32>) {
  %w = core.constant dense<0.3> : tensor<15x32x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x5x6xf32>, tensor<15x32x1x1xf32>) -> tensor<1x15x5x6xf32>
  %v = core.constant dense<0.3> : tensor<16x3x3x3xf32>
  %u = core.conv %z, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x3x5x6xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x3x4xf32>
  func.return %y, %u : tensor<1x15x5x6xf32>, tensor<1x16x3x4xf32>
}

// -----

// Groups, weights that bf16 does not hold, and sizes that are not known.
// CHECK-LABEL: @others
// CHECK-NOT:     bf16
func.func @others(%x: tensor<1x64x5x6xf32>, %z: tensor<1x32x?x6xf32, #core.tensor<dims = [1, 32, h, 6]>>) -> (tensor<1x32x5x6xf32>, tensor<1x16x5x6xf32>, tensor<1x16x?x6xf32, #core.tensor<dims = [1, 16, h, 6]>>) {
  %w = core.constant dense<0.3> : tensor<32x32x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x64x5x6xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x5x6xf32>
  %v = core.constant dense<3.4e+38> : tensor<16x64x1x1xf32>
  %u = core.conv %x, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x64x5x6xf32>, tensor<16x64x1x1xf32>) -> tensor<1x16x5x6xf32>
  %t = core.constant dense<0.3> : tensor<16x32x1x1xf32>
  %s = core.conv %z, %t strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x?x6xf32, #core.tensor<dims = [1, 32, h, 6]>>, tensor<16x32x1x1xf32>) -> tensor<1x16x?x6xf32, #core.tensor<dims = [1, 16, h, 6]>>
  func.return %y, %u, %s : tensor<1x32x5x6xf32>, tensor<1x16x5x6xf32>, tensor<1x16x?x6xf32, #core.tensor<dims = [1, 16, h, 6]>>
}
