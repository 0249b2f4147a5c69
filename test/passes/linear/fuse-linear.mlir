// RUN: opt-tool %s --pass-pipeline=fuse-linear --split-input-file | filecheck %s

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
// CHECK-NEXT:    %[[P:.*]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[-1.0, 8.5]>
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

// -----

// Channels are the last dimension here, as in a TensorFlow graph: 2 and 4 meet rows of the weight.
// CHECK-LABEL: @transposed
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[\[}}2.0]], {{\[\[}}12.0]]]>
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[10.0, 20.0]>
// CHECK-NEXT:    %[[C:.*]] = core.conv %x, %[[W]], %[[B]]
// CHECK-NEXT:    %[[T:.*]] = core.transpose %[[C]] [0, 2, 1]
// CHECK:         core.max %[[T]]
func.func @transposed(%x : tensor<1x1x5xf32>) -> tensor<1x5x2xf32> {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %d = core.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %t = core.transpose %c [0, 2, 1] : (tensor<1x2x5xf32>) -> tensor<1x5x2xf32>
  %p = core.mul %t, %s : (tensor<1x5x2xf32>, tensor<2xf32>) -> tensor<1x5x2xf32>
  %a = core.add %p, %d : (tensor<1x5x2xf32>, tensor<2xf32>) -> tensor<1x5x2xf32>
  %z = core.constant dense<0.0> : tensor<f32>
  %y = core.max %a, %z : (tensor<1x5x2xf32>, tensor<f32>) -> tensor<1x5x2xf32>
  func.return %y : tensor<1x5x2xf32>
}

// -----

// Of the four columns of each row, the second pair belongs to channel 1.
// CHECK-LABEL: @reshaped
// CHECK:         core.constant dense<[{{\[\[}}2.0]], {{\[\[}}12.0]]]>
// CHECK-NOT:     core.mul
func.func @reshaped(%x : tensor<1x1x2xf32>) -> tensor<1x4xf32> {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %s = core.constant dense<[2.0, 2.0, 4.0, 4.0]> : tensor<4xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %r = core.reshape %c [1, 4] : (tensor<1x2x2xf32>) -> tensor<1x4xf32>
  %y = core.mul %r, %s : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// -----

// Each of the four columns has its own scale: channel 1 has two.
// CHECK-LABEL: @within_channels
// CHECK:         core.mul
func.func @within_channels(%x : tensor<1x1x2xf32>) -> tensor<1x4xf32> {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %s = core.constant dense<[2.0, 2.0, 4.0, 5.0]> : tensor<4xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x2xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2xf32>
  %r = core.reshape %c [1, 4] : (tensor<1x2x2xf32>) -> tensor<1x4xf32>
  %y = core.mul %r, %s : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
  func.return %y : tensor<1x4xf32>
}

// -----

// Rows and columns of any number are behind the channels.
// CHECK-LABEL: @open_sizes
// CHECK-NOT:     core.mul
func.func @open_sizes(%x : tensor<?x1x?xf32, #core.tensor<dims = [n, 1, w]>>) -> tensor<?x?x2xf32, #core.tensor<dims = [n, w, 2]>> {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x1x?xf32, #core.tensor<dims = [n, 1, w]>>, tensor<2x1x1xf32>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, w]>>
  %t = core.transpose %c [0, 2, 1] : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, w]>>) -> tensor<?x?x2xf32, #core.tensor<dims = [n, w, 2]>>
  %y = core.mul %t, %s : (tensor<?x?x2xf32, #core.tensor<dims = [n, w, 2]>>, tensor<2xf32>) -> tensor<?x?x2xf32, #core.tensor<dims = [n, w, 2]>>
  func.return %y : tensor<?x?x2xf32, #core.tensor<dims = [n, w, 2]>>
}

// -----

// The parts of a concatenation have their own channels: 2 for the first, 4 for the second.
// CHECK-LABEL: @concatenated
// CHECK-DAG:     core.constant dense<[{{\[\[}}2.0]]]>
// CHECK-DAG:     core.constant dense<[{{\[\[}}12.0]]]>
// CHECK-NOT:     core.mul
func.func @concatenated(%x : tensor<1x1x5xf32>) -> tensor<1x2x5xf32> {
  %v = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %w = core.constant dense<[[[3.0]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<[[2.0], [4.0]]> : tensor<2x1xf32>
  %c = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %d = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %j = core.concat %c, %d axis 1 : (tensor<1x1x5xf32>, tensor<1x1x5xf32>) -> tensor<1x2x5xf32>
  %y = core.mul %j, %s : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}

// -----

// One part comes from somewhere else.
// CHECK-LABEL: @foreign_part
// CHECK:         core.mul
func.func @foreign_part(%x : tensor<1x1x5xf32>) -> tensor<1x2x5xf32> {
  %v = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<[[2.0], [4.0]]> : tensor<2x1xf32>
  %c = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %j = core.concat %c, %x axis 1 : (tensor<1x1x5xf32>, tensor<1x1x5xf32>) -> tensor<1x2x5xf32>
  %y = core.mul %j, %s : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}

// -----

// ... but it is not scaled: then it does not matter.
// CHECK-LABEL: @unscaled_part
// CHECK-NOT:     core.mul
func.func @unscaled_part(%x : tensor<1x1x5xf32>) -> tensor<1x2x5xf32> {
  %v = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<[[2.0], [1.0]]> : tensor<2x1xf32>
  %c = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %j = core.concat %c, %x axis 1 : (tensor<1x1x5xf32>, tensor<1x1x5xf32>) -> tensor<1x2x5xf32>
  %y = core.mul %j, %s : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}

// -----

// Only the second half of the channels is scaled, though others read the first.
// CHECK-LABEL: @split
// CHECK:         core.constant dense<[{{\[\[}}1.0]], {{\[\[}}6.0]]]>
// CHECK-NOT:     core.mul
func.func @split(%x : tensor<1x1x5xf32>) -> (tensor<1x1x5xf32>, tensor<1x1x5xf32>) {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %a, %b = core.split %c axis 1 sizes [1, 1] : (tensor<1x2x5xf32>) -> (tensor<1x1x5xf32>, tensor<1x1x5xf32>)
  %y = core.mul %b, %s : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  func.return %a, %y : tensor<1x1x5xf32>, tensor<1x1x5xf32>
}

// -----

// What is added at the border is scaled and shifted as well: 3 * 2 + 5.
// CHECK-LABEL: @padded_after
// CHECK:         core.constant dense<[5.0, 5.0]>
// CHECK:         %[[V:.*]] = core.constant dense<11.0> : tensor<f32>
// CHECK:         core.pad constant %{{.*}}, %[[V]]
// CHECK-NEXT:    return
func.func @padded_after(%x : tensor<1x1x5xf32>) -> tensor<1x2x6xf32> {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %v = core.constant dense<3.0> : tensor<f32>
  %s = core.constant dense<2.0> : tensor<f32>
  %d = core.constant dense<5.0> : tensor<f32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %p = core.pad constant %c, %v [0, 0, 1] [0, 0, 0] : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x6xf32>
  %m = core.mul %p, %s : (tensor<1x2x6xf32>, tensor<f32>) -> tensor<1x2x6xf32>
  %y = core.add %m, %d : (tensor<1x2x6xf32>, tensor<f32>) -> tensor<1x2x6xf32>
  func.return %y : tensor<1x2x6xf32>
}

// -----

// A border has one value, not one a channel.
// CHECK-LABEL: @padded_by_channel
// CHECK:         core.mul
func.func @padded_by_channel(%x : tensor<1x1x5xf32>) -> tensor<1x2x6xf32> {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %v = core.constant dense<3.0> : tensor<f32>
  %s = core.constant dense<[[2.0], [4.0]]> : tensor<2x1xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %p = core.pad constant %c, %v [0, 0, 1] [0, 0, 0] : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x6xf32>
  %y = core.mul %p, %s : (tensor<1x2x6xf32>, tensor<2x1xf32>) -> tensor<1x2x6xf32>
  func.return %y : tensor<1x2x6xf32>
}

// -----

// Forward: input channels of the weight are scaled, and a sum without padding is a bias:
// 1 * 10 + 2 * 20 and 3 * 10 + 4 * 20.
// CHECK-LABEL: @forward
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[\[}}2.0], [8.0]], {{\[\[}}6.0], [16.0]]]>
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[50.0, 110.0]>
// CHECK-NEXT:    core.conv %x, %[[W]], %[[B]]
// CHECK-NEXT:    return
func.func @forward(%x : tensor<1x2x5xf32>) -> tensor<1x2x5xf32> {
  %w = core.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
  %s = core.constant dense<[[2.0], [4.0]]> : tensor<2x1xf32>
  %d = core.constant dense<[[10.0], [20.0]]> : tensor<2x1xf32>
  %m = core.mul %x, %s : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  %a = core.add %m, %d : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  %y = core.conv %a, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x5xf32>, tensor<2x2x1xf32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}

// -----

// Behind the end of the image there is a zero, not 10: the product becomes part of the weight, and
// the sum stays, of x and 10 / 2.
// CHECK-LABEL: @forward_padded
// CHECK:         %[[D:.*]] = core.constant dense<5.0> : tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = core.add %x, %[[D]]
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[\[}}2.0]]]>
// CHECK:         core.conv %[[A]], %[[W]] strides
// CHECK-NEXT:    return
func.func @forward_padded(%x : tensor<1x1x5xf32>) -> tensor<1x1x6xf32> {
  %w = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %d = core.constant dense<10.0> : tensor<f32>
  %m = core.mul %x, %s : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %a = core.add %m, %d : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %y = core.conv %a, %w strides [1] dilations [1] pads [0] [1] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x6xf32>
  func.return %y : tensor<1x1x6xf32>
}

// -----

// A pad of its own has a value that can change: zero is -10 + 10.
// CHECK-LABEL: @forward_pad
// CHECK:         %[[V:.*]] = core.constant dense<-10.0> : tensor<f32>
// CHECK-NEXT:    %[[P:.*]] = core.pad constant %x, %[[V]]
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[30.0]>
// CHECK:         core.conv %[[P]], %{{.*}}, %[[B]]
// CHECK-NEXT:    return
func.func @forward_pad(%x : tensor<1x1x5xf32>) -> tensor<1x1x6xf32> {
  %w = core.constant dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32>
  %d = core.constant dense<10.0> : tensor<f32>
  %a = core.add %x, %d : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %p = core.pad constant %a [0, 0, 1] [0, 0, 1] : (tensor<1x1x5xf32>) -> tensor<1x1x7xf32>
  %y = core.conv %p, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x7xf32>, tensor<1x1x2xf32>) -> tensor<1x1x6xf32>
  func.return %y : tensor<1x1x6xf32>
}

// -----

// Of two parts of the input, only the first is scaled.
// CHECK-LABEL: @forward_concat
// CHECK:         core.constant dense<[{{\[\[}}2.0], [3.0]]]>
// CHECK-NOT:     core.mul
func.func @forward_concat(%x : tensor<1x1x5xf32>, %z : tensor<1x1x5xf32>) -> tensor<1x1x5xf32> {
  %w = core.constant dense<[[[1.0], [3.0]]]> : tensor<1x2x1xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %m = core.mul %x, %s : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %j = core.concat %m, %z axis 1 : (tensor<1x1x5xf32>, tensor<1x1x5xf32>) -> tensor<1x2x5xf32>
  %y = core.conv %j, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x5xf32>, tensor<1x2x1xf32>) -> tensor<1x1x5xf32>
  func.return %y : tensor<1x1x5xf32>
}

// -----

// Two groups: channel 1 is the only input of the second output.
// CHECK-LABEL: @forward_groups
// CHECK:         core.constant dense<[{{\[\[}}2.0]], {{\[\[}}12.0]]]>
// CHECK-NEXT:    core.constant dense<[10.0, 60.0]>
// CHECK-NOT:     core.mul
// CHECK-NOT:     core.add
func.func @forward_groups(%x : tensor<1x2x5xf32>) -> tensor<1x2x5xf32> {
  %w = core.constant dense<[[[1.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %s = core.constant dense<[[2.0], [4.0]]> : tensor<2x1xf32>
  %d = core.constant dense<[[10.0], [20.0]]> : tensor<2x1xf32>
  %m = core.mul %x, %s : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  %a = core.add %m, %d : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  %y = core.conv %a, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x2x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}

// -----

// Both convolutions take the scale; so it is computed for none of them.
// CHECK-LABEL: @two_consumers
// CHECK-NOT:     core.mul
func.func @two_consumers(%x : tensor<1x1x5xf32>) -> (tensor<1x1x5xf32>, tensor<1x1x7xf32>) {
  %w = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %m = core.mul %x, %s : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %y = core.conv %m, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %z = core.conv %m, %w strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x7xf32>
  func.return %y, %z : tensor<1x1x5xf32>, tensor<1x1x7xf32>
}

// -----

// One of them is no convolution.
// CHECK-LABEL: @other_consumer
// CHECK:         core.mul
func.func @other_consumer(%x : tensor<1x1x5xf32>) -> (tensor<1x1x5xf32>, tensor<1x1x5xf32>) {
  %w = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %m = core.mul %x, %s : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %y = core.conv %m, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %z = core.exp %m : (tensor<1x1x5xf32>) -> tensor<1x1x5xf32>
  func.return %y, %z : tensor<1x1x5xf32>, tensor<1x1x5xf32>
}

// -----

// Forward into a product: rows of the right factor; the sum is one of what is added to its result.
// CHECK-LABEL: @forward_matmul
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[}}2.0, 4.0], [12.0, 16.0]]>
// CHECK-NEXT:    %[[P:.*]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[70.0, 100.0]>
// CHECK-NEXT:    core.add %[[P]], %[[B]]
// CHECK-NEXT:    return
func.func @forward_matmul(%x : tensor<3x2xf32>) -> tensor<3x2xf32> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %d = core.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %m = core.mul %x, %s : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %a = core.add %m, %d : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %y = core.matmul %a, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Attention divides the product of rows and a matrix, with its bias, by a number: (x @ w + b) / 2.
// CHECK-LABEL: @behind_a_bias
// CHECK-DAG:     core.constant dense<[{{\[}}0.5, 1.0], [1.5, 2.0]]>
// CHECK-DAG:     core.constant dense<[5.0, 10.0]>
// CHECK-NOT:     core.div
func.func @behind_a_bias(%x : tensor<3x2xf32>) -> tensor<3x2x1xf32> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %b = core.constant dense<[10.0, 20.0]> : tensor<2xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %p = core.matmul %x, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %a = core.add %p, %b : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %r = core.reshape %a [3, 2, 1] : (tensor<3x2xf32>) -> tensor<3x2x1xf32>
  %y = core.div %r, %s : (tensor<3x2x1xf32>, tensor<f32>) -> tensor<3x2x1xf32>
  func.return %y : tensor<3x2x1xf32>
}

// -----

// The bias takes the sum with the number that makes zero of it: what it rounds would be lost.
// CHECK-LABEL: @cancel
// CHECK:         core.conv %x, %w, %b
// CHECK-NEXT:    core.add
func.func @cancel(%x : tensor<1x1x5xf32>) -> tensor<1x1x5xf32> {
  %w = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %b = core.constant dense<[12582912.0]> : tensor<1xf32>
  %d = core.constant dense<-12582912.0> : tensor<f32>
  %c = core.conv %x, %w, %b strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>, tensor<1xf32>) -> tensor<1x1x5xf32>
  %y = core.add %c, %d : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  func.return %y : tensor<1x1x5xf32>
}

// -----

// 12582912 rounds x to an integer; a bias after the convolution would not.
// CHECK-LABEL: @rounds
// CHECK:         core.add %x
func.func @rounds(%x : tensor<1x1x5xf32>) -> tensor<1x1x5xf32> {
  %w = core.constant dense<[[[1.0]]]> : tensor<1x1x1xf32>
  %d = core.constant dense<12582912.0> : tensor<f32>
  %a = core.add %x, %d : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %y = core.conv %a, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  func.return %y : tensor<1x1x5xf32>
}

// -----

// The weight would be infinite.
// CHECK-LABEL: @overflow
// CHECK:         core.mul
func.func @overflow(%x : tensor<1x1x5xf32>) -> tensor<1x1x5xf32> {
  %w = core.constant dense<[[[1.0e30]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<1.0e10> : tensor<f32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %y = core.mul %c, %s : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  func.return %y : tensor<1x1x5xf32>
}

// -----

// The weight would have no digits left.
// CHECK-LABEL: @underflow
// CHECK:         core.mul
func.func @underflow(%x : tensor<1x1x5xf32>) -> tensor<1x1x5xf32> {
  %w = core.constant dense<[[[1.0e-30]]]> : tensor<1x1x1xf32>
  %s = core.constant dense<1.0e-14> : tensor<f32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  %y = core.mul %c, %s : (tensor<1x1x5xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  func.return %y : tensor<1x1x5xf32>
}

// -----

// The weight is not known; a bias can be shifted.
// CHECK-LABEL: @computed_weight
// CHECK-NOT:     core.add
func.func @computed_weight(%x : tensor<1x1x5xf32>, %w : tensor<2x1x1xf32>) -> tensor<1x2x5xf32> {
  %s = core.constant dense<2.0> : tensor<f32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %y = core.add %c, %s : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}

// -----

// A product in a loop takes the factor; the sum behind it would be repeated. So it stays before it,
// as 10 / 2.
// CHECK-LABEL: @loop
// CHECK:         core.constant dense<5.0>
// CHECK-NEXT:    core.add %x
// CHECK-NOT:     core.mul
// CHECK:         core.loop
// CHECK:         core.matmul
// CHECK-NOT:     core.add
func.func @loop(%x : tensor<2x2xf32>, %n : tensor<i64>) -> tensor<2x2xf32> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %d = core.constant dense<10.0> : tensor<f32>
  %0 = core.mul %x, %s : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %1 = core.add %0, %d : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  %2 = core.loop trip %n : tensor<i64> carry %x : tensor<2x2xf32> -> tensor<2x2xf32> {
  ^bb0(%i : tensor<i64>, %p : tensor<2x2xf32>):
    %3 = core.matmul %1, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %4 = core.max %3, %p : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    core.yield %4 : tensor<2x2xf32>
  }
  func.return %2 : tensor<2x2xf32>
}

// -----

// One channel has almost no scale: its 10 / s would leave no digits of x.
// CHECK-LABEL: @tiny_scale
// CHECK:         core.mul
// CHECK-NEXT:    core.add
func.func @tiny_scale(%x : tensor<1x2x5xf32>) -> tensor<1x1x7xf32> {
  %w = core.constant dense<[[[1.0], [1.0]]]> : tensor<1x2x1xf32>
  %s = core.constant dense<[[2.0], [1.0e-30]]> : tensor<2x1xf32>
  %d = core.constant dense<10.0> : tensor<f32>
  %m = core.mul %x, %s : (tensor<1x2x5xf32>, tensor<2x1xf32>) -> tensor<1x2x5xf32>
  %a = core.add %m, %d : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x5xf32>
  %y = core.conv %a, %w strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x2x5xf32>, tensor<1x2x1xf32>) -> tensor<1x1x7xf32>
  func.return %y : tensor<1x1x7xf32>
}
