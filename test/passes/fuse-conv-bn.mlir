// RUN: opt-tool %s --pass-pipeline=fuse-conv-bn --split-input-file | filecheck %s

// Scale 2 / sqrt(4) = 1 and 4 / sqrt(1) = 4; shift 0 - 1 * 1 and 0.5 - 3 * 4.
// CHECK-LABEL: @conv
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[\[}}1.0, 2.0]], {{\[\[}}12.0, 16.0]]]>
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[-1.0, -11.5]>
// CHECK-NEXT:    %[[Y:.*]] = core.conv %x, %[[W]], %[[B]] {{.*}} pads [1]
// CHECK-NEXT:    func.return %[[Y]]
func.func @conv(%x : tensor<1x1x5xf32>) -> tensor<1x2x6xf32> {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>) -> tensor<1x2x6xf32>
  %y = core.batch_norm %c, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x6xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x6xf32>
  func.return %y : tensor<1x2x6xf32>
}

// -----

// The bias is scaled too: 10 * 1 - 1 and 20 * 4 - 11.5.
// CHECK-LABEL: @bias
// CHECK:         core.constant dense<[9.0, 68.5]>
// CHECK-NOT:     core.batch_norm
func.func @bias(%x : tensor<1x1x5xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %d = core.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.conv %x, %w, %d strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  %y = core.batch_norm %c, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// -----

// A transposed convolution in two groups: input channel 0 makes output 0, channel 1 output 1.
// Scaling its second weight dimension, as for one group, would not even have two entries.
// CHECK-LABEL: @transposed_groups
// CHECK:         core.constant dense<[{{\[\[}}1.0, 2.0]], {{\[\[}}12.0, 16.0]]]> : tensor<2x1x2xf32>
// CHECK-NOT:     core.batch_norm
func.func @transposed_groups(%x : tensor<1x2x5xf32>) -> tensor<1x2x6xf32> {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.conv_transpose %x, %w strides [1] dilations [1] pads [0] [0] output_padding [0] groups 2 : (tensor<1x2x5xf32>, tensor<2x1x2xf32>) -> tensor<1x2x6xf32>
  %y = core.batch_norm %c, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x6xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x6xf32>
  func.return %y : tensor<1x2x6xf32>
}

// -----

// The convolution itself is needed too.
// CHECK-LABEL: @shared
// CHECK:         core.conv
// CHECK:         core.batch_norm
func.func @shared(%x : tensor<1x1x5xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x4xf32>) {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
  %y = core.batch_norm %c, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  func.return %y, %c : tensor<1x2x4xf32>, tensor<1x2x4xf32>
}

// -----

// The normalized dimension has as many entries as there are channels, but it is another one.
// CHECK-LABEL: @other_axis
// CHECK:         core.batch_norm
func.func @other_axis(%x : tensor<1x1x3xf32>) -> tensor<1x2x2xf32> {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x3xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
  %y = core.batch_norm %c, %s, %b, %m, %v axis 2 {epsilon = 0.0 : f64} : (tensor<1x2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x2xf32>
  func.return %y : tensor<1x2x2xf32>
}

// -----

// A variance of -1 makes NaN, which the weights would bring into all sums.
// CHECK-LABEL: @not_finite
// CHECK:         core.batch_norm
func.func @not_finite(%x : tensor<1x1x5xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %n = core.constant dense<[4.0, -1.0]> : tensor<2xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32>
  %y = core.batch_norm %c, %s, %b, %m, %n axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  func.return %y : tensor<1x2x4xf32>
}

// -----

// Columns of a product, with a row added: (1, 4) * w and 4 * (5 - 3) + 0.5 in the second column.
// CHECK-LABEL: @matmul
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[}}1.0, 8.0], [3.0, 16.0]]>
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[-1.0, 8.5]>
// CHECK-NEXT:    %[[P:.*]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    %[[Y:.*]] = core.add %[[P]], %[[B]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @matmul(%x : tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %d = core.constant dense<[0.0, 5.0]> : tensor<2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.matmul %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %e = core.add %c, %d : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %y = core.batch_norm %e, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<3x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Rows of a product: the weight on the right has no part in them.
// CHECK-LABEL: @rows
// CHECK:         core.batch_norm
func.func @rows(%x : tensor<2x2xf32>) -> tensor<2x2xf32> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %y = core.batch_norm %c, %s, %b, %m, %v axis 0 {epsilon = 0.0 : f64} : (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  func.return %y : tensor<2x2xf32>
}

// -----

// Weights of fewer digits than the sums do not take in a scale.
// CHECK-LABEL: @wider_sums
// CHECK:         core.conv {{.*}} in f32
// CHECK-NEXT:    core.batch_norm
func.func @wider_sums(%x : tensor<1x1x4xbf16>) -> tensor<1x1x4xf32> {
  %w = core.constant dense<2.0> : tensor<1x1x1xbf16>
  %p = core.constant dense<3.0> : tensor<1xf32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 in f32 : (tensor<1x1x4xbf16>, tensor<1x1x1xbf16>) -> tensor<1x1x4xf32>
  %1 = core.batch_norm %0, %p, %p, %p, %p axis 1 {epsilon = 1.0e-05 : f64} : (tensor<1x1x4xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}
