// RUN: opt-tool %s --pass-pipeline=fuse-channel-shuffle --split-input-file | filecheck %s

// Two groups of three: 3 instead of 2 would undo the shuffle.
// CHECK-LABEL: @shuffle
// CHECK-NEXT:    %[[Y:.*]] = core.channel_shuffle %x groups 2 : (tensor<1x6x4x5xf32>) -> tensor<1x6x4x5xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @shuffle(%x : tensor<1x6x4x5xf32>) -> tensor<1x6x4x5xf32> {
  %0 = core.reshape %x [1, 2, 3, 4, 5] : (tensor<1x6x4x5xf32>) -> tensor<1x2x3x4x5xf32>
  %1 = core.transpose %0 [0, 2, 1, 3, 4] : (tensor<1x2x3x4x5xf32>) -> tensor<1x3x2x4x5xf32>
  %2 = core.reshape %1 [1, 6, 4, 5] : (tensor<1x3x2x4x5xf32>) -> tensor<1x6x4x5xf32>
  func.return %2 : tensor<1x6x4x5xf32>
}

// -----

// The spatial dimensions may be one in between, and sizes symbols.
// CHECK-LABEL: @flat
// CHECK-NEXT:    core.channel_shuffle %x groups 3
func.func @flat(%x : tensor<?x6x4x?xf32, #core.tensor<dims = [n, 6, 4, w]>>) -> tensor<?x6x4x?xf32, #core.tensor<dims = [n, 6, 4, w]>> {
  %0 = core.reshape %x [n, 3, 2, w * 4] : (tensor<?x6x4x?xf32, #core.tensor<dims = [n, 6, 4, w]>>) -> tensor<?x3x2x?xf32, #core.tensor<dims = [n, 3, 2, w * 4]>>
  %1 = core.transpose %0 [0, 2, 1, 3] : (tensor<?x3x2x?xf32, #core.tensor<dims = [n, 3, 2, w * 4]>>) -> tensor<?x2x3x?xf32, #core.tensor<dims = [n, 2, 3, w * 4]>>
  %2 = core.reshape %1 [n, 6, 4, w] : (tensor<?x2x3x?xf32, #core.tensor<dims = [n, 2, 3, w * 4]>>) -> tensor<?x6x4x?xf32, #core.tensor<dims = [n, 6, 4, w]>>
  func.return %2 : tensor<?x6x4x?xf32, #core.tensor<dims = [n, 6, 4, w]>>
}

// -----

// Rows move too: pixels are shuffled into channels.
// CHECK-LABEL: @pixels
// CHECK:         core.transpose
func.func @pixels(%x : tensor<1x6x2x2xf32>) -> tensor<1x6x2x2xf32> {
  %0 = core.reshape %x [1, 3, 4, 2] : (tensor<1x6x2x2xf32>) -> tensor<1x3x4x2xf32>
  %1 = core.transpose %0 [0, 2, 1, 3] : (tensor<1x3x4x2xf32>) -> tensor<1x4x3x2xf32>
  %2 = core.reshape %1 [1, 6, 2, 2] : (tensor<1x4x3x2xf32>) -> tensor<1x6x2x2xf32>
  func.return %2 : tensor<1x6x2x2xf32>
}

// -----

// Another dimension moves with them.
// CHECK-LABEL: @other_permutation
// CHECK:         core.transpose
func.func @other_permutation(%x : tensor<1x6x4x4xf32>) -> tensor<1x6x4x4xf32> {
  %0 = core.reshape %x [1, 2, 3, 4, 4] : (tensor<1x6x4x4xf32>) -> tensor<1x2x3x4x4xf32>
  %1 = core.transpose %0 [0, 2, 1, 4, 3] : (tensor<1x2x3x4x4xf32>) -> tensor<1x3x2x4x4xf32>
  %2 = core.reshape %1 [1, 6, 4, 4] : (tensor<1x3x2x4x4xf32>) -> tensor<1x6x4x4xf32>
  func.return %2 : tensor<1x6x4x4xf32>
}

// -----

// The groups would be of different channels: the result has another shape.
// CHECK-LABEL: @other_shape
// CHECK:         core.transpose
func.func @other_shape(%x : tensor<1x6x4xf32>) -> tensor<1x4x6xf32> {
  %0 = core.reshape %x [1, 2, 3, 4] : (tensor<1x6x4xf32>) -> tensor<1x2x3x4xf32>
  %1 = core.transpose %0 [0, 2, 1, 3] : (tensor<1x2x3x4xf32>) -> tensor<1x3x2x4xf32>
  %2 = core.reshape %1 [1, 4, 6] : (tensor<1x3x2x4xf32>) -> tensor<1x4x6xf32>
  func.return %2 : tensor<1x4x6xf32>
}
