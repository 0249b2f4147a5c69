// RUN: opt-tool %s -p multiply-windows --for-target=x86-64-v4 --split-input-file | filecheck %s

// Weights are read as they lie; the taps of a channel are beside each other in the windows, too.
// CHECK-LABEL: @open_weights
// CHECK:         %[[PADDED:.+]] = core.pad constant %x, %{{.+}} [0, 0, 1] [0, 0, 1]
// CHECK-NEXT:    %[[LONE:.+]] = core.reshape %[[PADDED]] [1, 4, 1, s + 2]
// CHECK-NEXT:    %[[WEIGHT:.+]] = core.reshape %w [o, k * 4]
// CHECK-NEXT:    %[[SEEN:.+]] = core.windows %[[LONE]] taps [k] strides [2] dilations [1] apart
// CHECK-NEXT:    %[[COLUMNS:.+]] = core.reshape %[[SEEN]]
// CHECK-NEXT:    core.matmul %[[WEIGHT]], %[[COLUMNS]]
func.func @open_weights(%x: tensor<1x4x?xf32, #core.tensor<dims = [1, 4, s]>>, %w: tensor<?x4x?xf32, #core.tensor<dims = [o, 4, k]>>) -> tensor<1x?x?xf32, #core.tensor<dims = [1, o, (s - k + 2) floordiv 2 + 1]>> {
  %y = core.conv %x, %w strides [2] dilations [1] pads [1] [1] groups 1 : (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, s]>>, tensor<?x4x?xf32, #core.tensor<dims = [o, 4, k]>>) -> tensor<1x?x?xf32, #core.tensor<dims = [1, o, (s - k + 2) floordiv 2 + 1]>>
  func.return %y : tensor<1x?x?xf32, #core.tensor<dims = [1, o, (s - k + 2) floordiv 2 + 1]>>
}

// -----

// Sizes of weights that are known leave an open image to other algorithms.
// CHECK-LABEL: @known_weights
// CHECK-NOT:     core.windows
func.func @known_weights(%x: tensor<1x4x?xf32, #core.tensor<dims = [1, 4, s]>>, %w: tensor<8x4x3xf32>) -> tensor<1x8x?xf32, #core.tensor<dims = [1, 8, s]>> {
  %y = core.conv %x, %w strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, s]>>, tensor<8x4x3xf32>) -> tensor<1x8x?xf32, #core.tensor<dims = [1, 8, s]>>
  func.return %y : tensor<1x8x?xf32, #core.tensor<dims = [1, 8, s]>>
}
