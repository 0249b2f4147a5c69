// RUN: opt-tool %s --pass-pipeline=scale-channels --split-input-file | filecheck %s

// Every second element, times the number of its channel, and another one added.
// CHECK-LABEL: @strided
// CHECK:         %[[X:.+]] = core.slice %x [0, 0, 0, 0] [1, 2, 3, 4] [1, 1, 2, 1]
// CHECK-NEXT:    %[[W:.+]] = core.reshape %w [2, 1, 1]
// CHECK-NEXT:    %[[M:.+]] = core.mul %[[X]], %[[W]]
// CHECK-NEXT:    %[[B:.+]] = core.reshape %b [2, 1, 1]
// CHECK-NEXT:    %[[Y:.+]] = core.add %[[M]], %[[B]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @strided(%x: tensor<1x2x5x4xf32>, %w: tensor<2x1x1x1xf32>, %b: tensor<2xf32>) -> tensor<1x2x3x4xf32> {
  %y = core.conv %x, %w, %b strides [2, 1] dilations [1, 3] pads [0, 0] [0, 0] groups 2 : (tensor<1x2x5x4xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x3x4xf32>
  func.return %y : tensor<1x2x3x4xf32>
}

// -----

// Sizes may be open, and need no number to be added.
// CHECK-LABEL: @open
// CHECK:         %[[W:.+]] = core.reshape %w [3, 1]
// CHECK-NEXT:    %[[M:.+]] = core.mul %x, %[[W]]
// CHECK-NEXT:    func.return %[[M]]
func.func @open(%x: tensor<?x3x?xf64, #core.tensor<dims = [n, 3, t]>>, %w: tensor<3x1x1xf64>) -> tensor<?x3x?xf64, #core.tensor<dims = [n, 3, t]>> {
  %y = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 3 : (tensor<?x3x?xf64, #core.tensor<dims = [n, 3, t]>>, tensor<3x1x1xf64>) -> tensor<?x3x?xf64, #core.tensor<dims = [n, 3, t]>>
  func.return %y : tensor<?x3x?xf64, #core.tensor<dims = [n, 3, t]>>
}

// -----

// Two channels in a group, two filters, two taps, padding, and one channel alone stay.
// CHECK-LABEL: @others
// CHECK-NOT:     core.mul
func.func @others(%x: tensor<1x4x5xf32>, %a: tensor<4x2x1xf32>, %b: tensor<8x1x1xf32>, %c: tensor<4x1x2xf32>, %d: tensor<4x1x1xf32>, %z: tensor<1x1x5xf32>, %e: tensor<1x1x1xf32>) -> (tensor<1x4x5xf32>, tensor<1x8x5xf32>, tensor<1x4x4xf32>, tensor<1x4x7xf32>, tensor<1x1x5xf32>) {
  %0 = core.conv %x, %a strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x4x5xf32>, tensor<4x2x1xf32>) -> tensor<1x4x5xf32>
  %1 = core.conv %x, %b strides [1] dilations [1] pads [0] [0] groups 4 : (tensor<1x4x5xf32>, tensor<8x1x1xf32>) -> tensor<1x8x5xf32>
  %2 = core.conv %x, %c strides [1] dilations [1] pads [0] [0] groups 4 : (tensor<1x4x5xf32>, tensor<4x1x2xf32>) -> tensor<1x4x4xf32>
  %3 = core.conv %x, %d strides [1] dilations [1] pads [1] [1] groups 4 : (tensor<1x4x5xf32>, tensor<4x1x1xf32>) -> tensor<1x4x7xf32>
  %4 = core.conv %z, %e strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x1xf32>) -> tensor<1x1x5xf32>
  func.return %0, %1, %2, %3, %4 : tensor<1x4x5xf32>, tensor<1x8x5xf32>, tensor<1x4x4xf32>, tensor<1x4x7xf32>, tensor<1x1x5xf32>
}
