// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=repeat-channels --split-input-file | filecheck %s

// Three filters for each of two channels: each channel three times, side by side, for filter k of
// channel c is output 3 c + k.
// CHECK-LABEL: @filters
// CHECK:         core.reshape %x [1, 2, 1, 4] : (tensor<1x2x2x2xf32>) -> tensor<1x2x1x4xf32>
// CHECK:         core.broadcast %{{.*}} [1, 2, 3, 4]
// CHECK:         core.reshape %{{.*}} [1, 6, 2, 2]
// CHECK:         core.conv {{.*}} groups 6 : (tensor<1x6x2x2xf32>, tensor<6x1x1x1xf32>) -> tensor<1x6x2x2xf32>
func.func @filters(%x: tensor<1x2x2x2xf32>, %w: tensor<6x1x1x1xf32>) -> tensor<1x6x2x2xf32> {
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x2x2x2xf32>, tensor<6x1x1x1xf32>) -> tensor<1x6x2x2xf32>
  func.return %y : tensor<1x6x2x2xf32>
}

// -----

// One filter a channel, groups of two channels, and one group stay.
// CHECK-LABEL: @others
// CHECK-NOT:     core.broadcast
func.func @others(%x: tensor<1x2x3xf32>, %w: tensor<2x1x1xf32>, %v: tensor<2x2x1xf32>, %z: tensor<1x4x3xf32>, %u: tensor<4x2x1xf32>) -> (tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x4x3xf32>) {
  %a = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x2x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x3xf32>
  %b = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x3xf32>, tensor<2x2x1xf32>) -> tensor<1x2x3xf32>
  %c = core.conv %z, %u strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x4x3xf32>, tensor<4x2x1xf32>) -> tensor<1x4x3xf32>
  func.return %a, %b, %c : tensor<1x2x3xf32>, tensor<1x2x3xf32>, tensor<1x4x3xf32>
}
