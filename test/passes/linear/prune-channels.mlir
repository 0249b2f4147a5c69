// RUN: opt-tool %s --pass-pipeline='prune-channels{keep=0.5}' --split-input-file | filecheck %s

// Of two channels the one with the larger squares stays, whatever its sign.
// CHECK-LABEL: @weakest
// CHECK:         core.constant dense<{{\[\[\[\[0.0\]\]\], \[\[\[-2.0\]\]\]\]}}>
func.func @weakest(%x : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %w = core.constant dense<[[[[1.0]]], [[[-2.0]]]]> : tensor<2x1x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  %v = core.constant dense<[[[[1.0]], [[2.0]]]]> : tensor<1x2x1x1xf32>
  %y = core.conv %a, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32>
  func.return %y : tensor<1x1x4x4xf32>
}

// -----

// Both are outputs.
// CHECK-LABEL: @outputs
// CHECK:         dense<{{\[\[\[\[1.0\]\]\], \[\[\[-2.0\]\]\]\]}}>
func.func @outputs(%x : tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = core.constant dense<[[[[1.0]]], [[[-2.0]]]]> : tensor<2x1x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<2x1x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %a : tensor<1x2x4x4xf32>
}
