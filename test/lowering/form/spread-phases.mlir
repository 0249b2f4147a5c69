// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=spread-phases --split-input-file | filecheck %s

// Of four taps two belong to each phase; every other output begins one input later.
// CHECK-LABEL: @images
// CHECK:         %[[W:.+]] = core.constant {{.*}} : tensor<12x1x2x2xf32>
// CHECK-NEXT:    %[[C:.+]] = core.conv %x, %[[W]] strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : {{.*}} -> tensor<1x12x6x7xf32>
// CHECK-NEXT:    core.slice %[[C]] [0, 0, 0, 0] [1, 3, 5, 6]
// CHECK-NEXT:    core.slice %[[C]] [0, 3, 0, 1] [1, 3, 5, 6]
// CHECK-NEXT:    core.slice %[[C]] [0, 6, 1, 0] [1, 3, 5, 6]
// CHECK-NEXT:    core.slice %[[C]] [0, 9, 1, 1] [1, 3, 5, 6]
// CHECK-NEXT:    core.concat
// CHECK-NEXT:    core.reshape %{{.*}} [1, 2, 2, 3, 5, 6]
// CHECK-NEXT:    core.transpose %{{.*}} [0, 3, 4, 1, 5, 2]
// CHECK-NEXT:    core.reshape %{{.*}} [1, 3, 10, 12]
func.func @images(%x: tensor<1x1x5x6xf32>) -> tensor<1x3x10x12xf32> {
  %w = core.constant dense<1.0> : tensor<1x3x4x4xf32>
  %y = core.conv_transpose %x, %w strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] output_padding [0, 0] groups 1 : (tensor<1x1x5x6xf32>, tensor<1x3x4x4xf32>) -> tensor<1x3x10x12xf32>
  func.return %y : tensor<1x3x10x12xf32>
}

// -----

// Windows side by side need no slices; sizes may be open.
// CHECK-LABEL: @side_by_side
// CHECK:         core.conv {{.*}} strides [1] dilations [1] pads [0] [0] {{.*}} -> tensor<?x6x?xf32, {{.*}}[n, 6, w]>>
// CHECK-NEXT:    core.reshape %{{.*}} [n, 3, 2, w]
// CHECK-NEXT:    core.transpose %{{.*}} [0, 2, 3, 1]
func.func @side_by_side(%x: tensor<?x4x?xf32, #core.tensor<dims = [n, 4, w]>>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, 3 * w]>> {
  %w = core.constant dense<1.0> : tensor<4x2x3xf32>
  %y = core.conv_transpose %x, %w strides [3] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<?x4x?xf32, #core.tensor<dims = [n, 4, w]>>, tensor<4x2x3xf32>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, 3 * w]>>
  func.return %y : tensor<?x2x?xf32, #core.tensor<dims = [n, 2, 3 * w]>>
}

// -----

// Phases with one tap and with two are convolutions of their own; the last output is none.
// CHECK-LABEL: @uneven
// CHECK:         %[[A:.+]] = core.conv %x, {{.*}} pads [0] [1] {{.*}}tensor<2x4x1xf32>{{.*}} -> tensor<1x2x6xf32>
// CHECK:         %[[B:.+]] = core.conv %x, {{.*}} pads [1] [1] {{.*}}tensor<2x4x2xf32>{{.*}} -> tensor<1x2x6xf32>
// CHECK-NEXT:    %[[C:.+]] = core.slice %[[A]]
// CHECK-NEXT:    %[[D:.+]] = core.slice %[[B]]
// CHECK-NEXT:    core.concat %[[D]], %[[C]] axis 1
// CHECK-NEXT:    core.reshape %{{.*}} [1, 2, 2, 6]
// CHECK-NEXT:    core.transpose %{{.*}} [0, 2, 3, 1]
// CHECK-NEXT:    core.reshape %{{.*}} [1, 2, 12]
// CHECK-NEXT:    core.slice %{{.*}} [0, 0, 0] [1, 2, 11]
func.func @uneven(%x: tensor<1x4x5xf32>) -> tensor<1x2x11xf32> {
  %w = core.constant dense<1.0> : tensor<4x2x3xf32>
  %y = core.conv_transpose %x, %w strides [2] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x4x5xf32>, tensor<4x2x3xf32>) -> tensor<1x2x11xf32>
  func.return %y : tensor<1x2x11xf32>
}

// -----

// The second phase begins one input later than the first one.
// CHECK-LABEL: @cut
// CHECK:         %[[C:.+]] = core.conv %x, {{.*}} pads [1] [2] {{.*}} -> tensor<1x4x7xf32>
// CHECK-NEXT:    core.slice %[[C]] [0, 0, 0] [1, 2, 6]
// CHECK-NEXT:    core.slice %[[C]] [0, 2, 1] [1, 2, 6]
// CHECK:         core.slice %{{.*}} [0, 0, 0] [1, 2, 11]
func.func @cut(%x: tensor<1x4x5xf32>) -> tensor<1x2x11xf32> {
  %w = core.constant dense<1.0> : tensor<4x2x4xf32>
  %y = core.conv_transpose %x, %w strides [2] dilations [1] pads [1] [0] output_padding [0] groups 1 : (tensor<1x4x5xf32>, tensor<4x2x4xf32>) -> tensor<1x2x11xf32>
  func.return %y : tensor<1x2x11xf32>
}

// -----

// Groups of few filters: all phases of one group side by side.
// CHECK-LABEL: @grouped
// CHECK:         %[[W:.+]] = core.constant dense<{{\[}}{{\[}}{{\[}}1.0], [5.0]], {{\[}}{{\[}}3.0], [7.0]], {{\[}}{{\[}}2.0], [6.0]], {{\[}}{{\[}}4.0], [8.0]], {{\[}}{{\[}}9.0], [13.0]]
// CHECK:         core.conv %x, %[[W]] {{.*}} groups 2 : {{.*}} -> tensor<1x8x5xf32>
// CHECK-NEXT:    core.reshape %{{.*}} [1, 2, 4, 5]
// CHECK-NEXT:    core.reshape %{{.*}} [1, 2, 2, 2, 5]
// CHECK-NEXT:    core.transpose %{{.*}} [0, 1, 3, 4, 2]
// CHECK-NEXT:    core.reshape %{{.*}} [1, 4, 10]
func.func @grouped(%x: tensor<1x4x5xf32>) -> tensor<1x4x10xf32> {
  %w = core.constant dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[9.0, 10.0], [11.0, 12.0]], [[13.0, 14.0], [15.0, 16.0]]]> : tensor<4x2x2xf32>
  %y = core.conv_transpose %x, %w strides [2] dilations [1] pads [0] [0] output_padding [0] groups 2 : (tensor<1x4x5xf32>, tensor<4x2x2xf32>) -> tensor<1x4x10xf32>
  func.return %y : tensor<1x4x10xf32>
}

// -----

// A stride of one: the convolution alone, with its taps in reverse.
// CHECK-LABEL: @one_phase
// CHECK:         %[[W:.+]] = core.constant dense<{{\[}}{{\[}}{{\[}}2.0, 1.0], [4.0, 3.0], [6.0, 5.0]]]> : tensor<1x3x2xf32>
// CHECK:         %[[Y:.+]] = core.conv %x, %[[W]] {{.*}} dilations [3] pads [3] [3] groups 1 : {{.*}} -> tensor<1x1x8xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @one_phase(%x: tensor<1x3x5xf32>) -> tensor<1x1x8xf32> {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]> : tensor<3x1x2xf32>
  %y = core.conv_transpose %x, %w strides [1] dilations [3] pads [0] [0] output_padding [0] groups 1 : (tensor<1x3x5xf32>, tensor<3x1x2xf32>) -> tensor<1x1x8xf32>
  func.return %y : tensor<1x1x8xf32>
}

// -----

// Every other output is computed of no input.
// CHECK-LABEL: @apart
// CHECK:         %[[C:.+]] = core.conv %x, {{.*}} dilations [1] pads [1] [1] {{.*}} -> tensor<1x2x6xf32>
// CHECK:         %[[Z:.+]] = core.constant {{.*}} : tensor<1x2x6xf32>
// CHECK-NEXT:    %[[P:.+]] = core.slice %[[C]] [0, 0, 0] [1, 2, 6]
// CHECK-NEXT:    core.concat %[[P]], %[[Z]] axis 1
func.func @apart(%x: tensor<1x4x5xf32>) -> tensor<1x2x11xf32> {
  %w = core.constant dense<1.0> : tensor<4x2x2xf32>
  %y = core.conv_transpose %x, %w strides [2] dilations [2] pads [0] [0] output_padding [0] groups 1 : (tensor<1x4x5xf32>, tensor<4x2x2xf32>) -> tensor<1x2x11xf32>
  func.return %y : tensor<1x2x11xf32>
}

// -----

// Many channels: all taps are filters, and what belongs to one output is added up.
// CHECK-LABEL: @deep
// CHECK:         %[[P:.+]] = core.conv %x, %{{.*}} strides [1] dilations [1] pads [0] [1] groups 1 : {{.*}}tensor<6x16x1xf32>) -> tensor<1x6x6xf32>
// CHECK-NEXT:    core.slice %[[P]] [0, 2, 0] [1, 2, 5]
// CHECK-NEXT:    %[[A:.+]] = core.slice %[[P]] [0, 0, 1] [1, 2, 5]
// CHECK-NEXT:    %[[B:.+]] = core.slice %[[P]] [0, 4, 0] [1, 2, 5]
// CHECK-NEXT:    core.add %[[A]], %[[B]]
// CHECK-NEXT:    core.concat
func.func @deep(%x: tensor<1x16x5xf32>) -> tensor<1x2x10xf32> {
  %w = core.constant dense<1.0> : tensor<16x2x3xf32>
  %y = core.conv_transpose %x, %w strides [2] dilations [1] pads [1] [1] output_padding [1] groups 1 : (tensor<1x16x5xf32>, tensor<16x2x3xf32>) -> tensor<1x2x10xf32>
  func.return %y : tensor<1x2x10xf32>
}

// -----

// Computed weights are parts of what is computed, in reverse.
// CHECK-LABEL: @computed
// CHECK:         %[[A:.+]] = core.slice %w [0, 0, 2] [4, 2, 2] [1, 1, -2]
// CHECK:         core.transpose %{{.*}} [0, 2, 1, 3]
// CHECK:         core.slice %w [0, 0, 3] [4, 2, 2] [1, 1, -2]
// CHECK:         core.concat
// CHECK:         core.broadcast %{{.*}} [1, 2, 2]
// CHECK:         core.conv %x
func.func @computed(%x: tensor<1x4x5xf32>, %w: tensor<4x2x4xf32>, %b: tensor<2xf32>) -> tensor<1x2x12xf32> {
  %y = core.conv_transpose %x, %w, %b strides [2] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x4x5xf32>, tensor<4x2x4xf32>, tensor<2xf32>) -> tensor<1x2x12xf32>
  func.return %y : tensor<1x2x12xf32>
}

// -----

// Filters that fill half of a vector stay, and computed weights that are read but a few times.
// CHECK-LABEL: @many
// CHECK-NOT:     core.conv %
func.func @many(%x: tensor<1x4x5xf32>) -> tensor<1x9x10xf32> {
  %w = core.constant dense<1.0> : tensor<4x9x2xf32>
  %y = core.conv_transpose %x, %w strides [2] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x4x5xf32>, tensor<4x9x2xf32>) -> tensor<1x9x10xf32>
  func.return %y : tensor<1x9x10xf32>
}
func.func @few(%x: tensor<1x4x5xf32>, %w: tensor<4x16x3xf32>) -> tensor<1x16x7xf32> {
  %y = core.conv_transpose %x, %w strides [1] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x4x5xf32>, tensor<4x16x3xf32>) -> tensor<1x16x7xf32>
  func.return %y : tensor<1x16x7xf32>
}

// -----

// What a constant is made into for others stays as it was meant, as where weights have to be small.
// CHECK-LABEL: @beside
// CHECK:         core.cast %{{.*}} to f32
// CHECK-NOT:     core.cast
// CHECK-NOT:     core.slice
// CHECK:         core.conv %x
func.func @beside(%x: tensor<1x4x5xf32>) -> (tensor<1x2x6xf32>, tensor<2xf32>) {
  %h = core.constant dense<1.0> : tensor<2xf16>
  %c = core.cast %h to f32 : (tensor<2xf16>) -> tensor<2xf32>
  %w = core.constant dense<1.0> : tensor<4x2x2xf32>
  %y = core.conv_transpose %x, %w strides [1] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x4x5xf32>, tensor<4x2x2xf32>) -> tensor<1x2x6xf32>
  func.return %y, %c : tensor<1x2x6xf32>, tensor<2xf32>
}
