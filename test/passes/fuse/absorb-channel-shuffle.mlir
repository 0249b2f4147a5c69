// RUN: opt-tool %s --pass-pipeline=absorb-channel-shuffle --split-input-file | filecheck %s

// The channels are 3, 1, 4, 2 of x: read as they lie, with the weights in that order.
// CHECK-LABEL: @cut
// CHECK:         %[[X:.*]] = core.slice %x [0, 1, 0] [1, 4, 3]
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<{{\[\[}}[20.0], [40.0], [10.0], [30.0]]]>
// CHECK-NEXT:    %[[Y:.*]] = core.conv %[[X]], %[[W]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @cut(%x : tensor<1x6x3xf32>) -> tensor<1x1x3xf32> {
  %w = core.constant dense<[[[10.0], [20.0], [30.0], [40.0]]]> : tensor<1x4x1xf32>
  %0 = core.channel_shuffle %x groups 2 : (tensor<1x6x3xf32>) -> tensor<1x6x3xf32>
  %1 = core.slice %0 [0, 1, 0] [1, 4, 3] [1, 1, 1] : (tensor<1x6x3xf32>) -> tensor<1x4x3xf32>
  %2 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x3xf32>, tensor<1x4x1xf32>) -> tensor<1x1x3xf32>
  func.return %2 : tensor<1x1x3xf32>
}

// -----

// Through two rounds of concat, shuffle and split: the second half of x, the second of y, and one
// channel of both that was passed on the first time.
// CHECK-LABEL: @rounds
// CHECK-NOT:     core.channel_shuffle
// CHECK:         core.concat
// CHECK-NOT:     core.channel_shuffle
// CHECK:         func.return
func.func @rounds(%x : tensor<1x4x3xf32>, %y : tensor<1x4x3xf32>, %z : tensor<1x4x3xf32>) -> tensor<1x1x3xf32> {
  %w = core.constant dense<[[[10.0], [20.0], [30.0], [40.0]]]> : tensor<1x4x1xf32>
  %0 = core.concat %x, %y axis 1 : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x8x3xf32>
  %1 = core.channel_shuffle %0 groups 2 : (tensor<1x8x3xf32>) -> tensor<1x8x3xf32>
  %2, %3 = core.split %1 axis 1 sizes [4, 4] : (tensor<1x8x3xf32>) -> (tensor<1x4x3xf32>, tensor<1x4x3xf32>)
  %4 = core.concat %2, %z axis 1 : (tensor<1x4x3xf32>, tensor<1x4x3xf32>) -> tensor<1x8x3xf32>
  %5 = core.channel_shuffle %4 groups 2 : (tensor<1x8x3xf32>) -> tensor<1x8x3xf32>
  %6, %7 = core.split %5 axis 1 sizes [4, 4] : (tensor<1x8x3xf32>) -> (tensor<1x4x3xf32>, tensor<1x4x3xf32>)
  %8 = core.conv %7, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x3xf32>, tensor<1x4x1xf32>) -> tensor<1x1x3xf32>
  func.return %8 : tensor<1x1x3xf32>
}

// -----

// Filters of their own for each channel keep the order of x, and pass the other one on.
// CHECK-LABEL: @depthwise
// CHECK:         %[[B:.*]] = core.constant dense<[5.0, 7.0, 6.0, 8.0]>
// CHECK-NEXT:    %[[D:.*]] = core.constant dense<{{\[\[}}[1.0]], {{\[\[}}3.0]], {{\[\[}}2.0]], {{\[\[}}4.0]]]>
// CHECK-NEXT:    %[[Y:.*]] = core.conv %x, %[[D]], %[[B]]
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<{{\[\[}}[10.0], [30.0], [20.0], [40.0]]]>
// CHECK-NEXT:    core.conv %[[Y]], %[[W]]
func.func @depthwise(%x : tensor<1x4x3xf32>) -> tensor<1x1x3xf32> {
  %d = core.constant dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]> : tensor<4x1x1xf32>
  %b = core.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %w = core.constant dense<[[[10.0], [20.0], [30.0], [40.0]]]> : tensor<1x4x1xf32>
  %0 = core.channel_shuffle %x groups 2 : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %1 = core.conv %0, %d, %b strides [1] dilations [1] pads [0] [0] groups 4 : (tensor<1x4x3xf32>, tensor<4x1x1xf32>, tensor<4xf32>) -> tensor<1x4x3xf32>
  %2 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x3xf32>, tensor<1x4x1xf32>) -> tensor<1x1x3xf32>
  func.return %2 : tensor<1x1x3xf32>
}

// -----

// The order of a result that is returned has to be made.
// CHECK-LABEL: @returned
// CHECK:         core.channel_shuffle
// CHECK-NEXT:    core.conv
// CHECK-NOT:     core.gather
func.func @returned(%x : tensor<1x4x3xf32>) -> tensor<1x4x3xf32> {
  %d = core.constant dense<[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]> : tensor<4x1x1xf32>
  %0 = core.channel_shuffle %x groups 2 : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %1 = core.conv %0, %d strides [1] dilations [1] pads [0] [0] groups 4 : (tensor<1x4x3xf32>, tensor<4x1x1xf32>) -> tensor<1x4x3xf32>
  func.return %1 : tensor<1x4x3xf32>
}

// -----

// Groups tie channels together, a weight that is computed cannot change, and without a shuffle there
// is nothing to gain.
// CHECK-LABEL: @kept
// CHECK:         %[[S:.*]] = core.channel_shuffle %x
// CHECK-NEXT:    core.conv %[[S]]
// CHECK-NEXT:    core.conv %[[S]]
// CHECK-NEXT:    core.slice
// CHECK-NEXT:    %[[C:.*]] = core.concat
// CHECK-NEXT:    core.conv %[[C]]
func.func @kept(%x : tensor<1x4x3xf32>, %v : tensor<1x4x1xf32>) -> (tensor<1x2x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>) {
  %g = core.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]]]> : tensor<2x2x1xf32>
  %w = core.constant dense<[[[10.0], [20.0], [30.0], [40.0]]]> : tensor<1x4x1xf32>
  %0 = core.channel_shuffle %x groups 2 : (tensor<1x4x3xf32>) -> tensor<1x4x3xf32>
  %1 = core.conv %0, %g strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x4x3xf32>, tensor<2x2x1xf32>) -> tensor<1x2x3xf32>
  %2 = core.conv %0, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x3xf32>, tensor<1x4x1xf32>) -> tensor<1x1x3xf32>
  %3 = core.slice %x [0, 0, 0] [1, 2, 3] [1, 1, 1] : (tensor<1x4x3xf32>) -> tensor<1x2x3xf32>
  %4 = core.concat %3, %3 axis 1 : (tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<1x4x3xf32>
  %5 = core.conv %4, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x3xf32>, tensor<1x4x1xf32>) -> tensor<1x1x3xf32>
  func.return %1, %2, %5 : tensor<1x2x3xf32>, tensor<1x1x3xf32>, tensor<1x1x3xf32>
}
