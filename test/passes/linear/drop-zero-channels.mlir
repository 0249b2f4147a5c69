// RUN: opt-tool %s --pass-pipeline=drop-zero-channels --split-input-file | filecheck %s

// Channel 1 is zero: relu leaves it zero, and the second convolution does without it.
// CHECK-LABEL: @fires
// CHECK:         core.constant dense<{{.*}}> : tensor<2x1x1x1xf32>
// CHECK:         %[[A:.*]] = core.conv %x, {{.*}} -> tensor<1x2x4x4xf32>
// CHECK:         %[[R:.*]] = core.max %[[A]], {{.*}} -> tensor<1x2x4x4xf32>
// CHECK:         core.constant dense<{{\[\[\[\[1.0\]\], \[\[3.0\]\]\]\]}}> : tensor<1x2x1x1xf32>
// CHECK:         core.conv %[[R]], {{.*}} -> tensor<1x1x4x4xf32>
func.func @fires(%x : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %w = core.constant dense<[[[[1.0]]], [[[0.0]]], [[[2.0]]]]> : tensor<3x1x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<3x1x1x1xf32>) -> tensor<1x3x4x4xf32>
  %z = core.constant dense<0.0> : tensor<f32>
  %r = core.max %a, %z : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x4x4xf32>
  %v = core.constant dense<[[[[1.0]], [[2.0]], [[3.0]]]]> : tensor<1x3x1x1xf32>
  %y = core.conv %r, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x1x4x4xf32>
  func.return %y : tensor<1x1x4x4xf32>
}

// -----

// The lower limit makes 1 of zero, which the second convolution reads.
// CHECK-LABEL: @shifted
// CHECK:         core.conv {{.*}} -> tensor<1x3x4x4xf32>
func.func @shifted(%x : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> {
  %w = core.constant dense<[[[[1.0]]], [[[0.0]]], [[[2.0]]]]> : tensor<3x1x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<3x1x1x1xf32>) -> tensor<1x3x4x4xf32>
  %z = core.constant dense<1.0> : tensor<f32>
  %r = core.max %a, %z : (tensor<1x3x4x4xf32>, tensor<f32>) -> tensor<1x3x4x4xf32>
  %v = core.constant dense<[[[[1.0]], [[2.0]], [[3.0]]]]> : tensor<1x3x1x1xf32>
  %y = core.conv %r, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x1x4x4xf32>
  func.return %y : tensor<1x1x4x4xf32>
}

// -----

// A channel that is returned, too, is one of the result.
// CHECK-LABEL: @returned
// CHECK:         core.conv {{.*}} -> tensor<1x3x4x4xf32>
func.func @returned(%x : tensor<1x1x4x4xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x3x4x4xf32>) {
  %w = core.constant dense<[[[[1.0]]], [[[0.0]]], [[[2.0]]]]> : tensor<3x1x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<3x1x1x1xf32>) -> tensor<1x3x4x4xf32>
  %v = core.constant dense<[[[[1.0]], [[2.0]], [[3.0]]]]> : tensor<1x3x1x1xf32>
  %y = core.conv %a, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x3x4x4xf32>, tensor<1x3x1x1xf32>) -> tensor<1x1x4x4xf32>
  func.return %y, %a : tensor<1x1x4x4xf32>, tensor<1x3x4x4xf32>
}

// -----

// A pool whose first window is padding alone gives no zero.
// CHECK-LABEL: @padded
// CHECK:         core.conv {{.*}} -> tensor<1x3x4x4xf32>
func.func @padded(%x : tensor<1x1x4x4xf32>) -> tensor<1x1x3x2xf32> {
  %w = core.constant dense<[[[[1.0]]], [[[0.0]]], [[[2.0]]]]> : tensor<3x1x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<3x1x1x1xf32>) -> tensor<1x3x4x4xf32>
  %p = core.pool max %a kernel [2, 2] strides [2, 2] dilations [1, 1] pads [2, 0] [0, 0] overhang [0, 0] : (tensor<1x3x4x4xf32>) -> tensor<1x3x3x2xf32>
  %v = core.constant dense<[[[[1.0]], [[2.0]], [[3.0]]]]> : tensor<1x3x1x1xf32>
  %y = core.conv %p, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x3x3x2xf32>, tensor<1x3x1x1xf32>) -> tensor<1x1x3x2xf32>
  func.return %y : tensor<1x1x3x2xf32>
}

// -----

// What the slice takes stays as it is; the channel before it goes.
// CHECK-LABEL: @sliced
// CHECK:         %[[A:.*]] = core.conv %x, {{.*}} -> tensor<1x2x4x4xf32>
// CHECK:         core.slice %[[A]] [0, 0, 0, 0] [1, 2, 4, 4] [1, 1, 1, 1] {{.*}} -> tensor<1x2x4x4xf32>
func.func @sliced(%x : tensor<1x1x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %w = core.constant dense<[[[[0.0]]], [[[1.0]]], [[[2.0]]]]> : tensor<3x1x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x4x4xf32>, tensor<3x1x1x1xf32>) -> tensor<1x3x4x4xf32>
  %y = core.slice %a [0, 1, 0, 0] [1, 2, 4, 4] [1, 1, 1, 1] : (tensor<1x3x4x4xf32>) -> tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}
