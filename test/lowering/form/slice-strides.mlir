// RUN: opt-tool %s --pass-pipeline=slice-strides --split-input-file | filecheck %s

// The positions that are read, without the last row, which no window reaches.
// CHECK-LABEL: @strided
// CHECK:         %[[X:.+]] = core.slice %x [0, 0, 0, 0] [2, 3, 5, 3] [1, 1, 2, 3]
// CHECK-NEXT:    %[[Y:.+]] = core.conv %[[X]], %w, %b strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1
// CHECK-NEXT:    func.return %[[Y]]
func.func @strided(%x: tensor<2x3x10x7xf32>, %w: tensor<128x3x1x1xf32>, %b: tensor<128xf32>) -> tensor<2x128x5x3xf32> {
  %y = core.conv %x, %w, %b strides [2, 3] dilations [1, 4] pads [0, 0] [0, 0] groups 1 : (tensor<2x3x10x7xf32>, tensor<128x3x1x1xf32>, tensor<128xf32>) -> tensor<2x128x5x3xf32>
  func.return %y : tensor<2x128x5x3xf32>
}

// -----

// Groups stay groups.
// CHECK-LABEL: @groups
// CHECK:         core.slice %x [0, 0, 0] [1, 4, 20] [1, 1, 2]
// CHECK-NEXT:    core.conv %{{.+}}, %w strides [1] dilations [1] pads [0] [0] groups 2
func.func @groups(%x: tensor<1x4x40xf64>, %w: tensor<256x2x1xf64>) -> tensor<1x256x20xf64> {
  %y = core.conv %x, %w strides [2] dilations [1] pads [0] [0] groups 2 : (tensor<1x4x40xf64>, tensor<256x2x1xf64>) -> tensor<1x256x20xf64>
  func.return %y : tensor<1x256x20xf64>
}

// -----

// No stride, two taps, padding, few filters in a group, long rows and open ones stay.
// CHECK-LABEL: @others
// CHECK-NOT:     core.slice
func.func @others(%x: tensor<1x4x40xf32>, %l: tensor<1x4x42xf32>, %z: tensor<1x4x?xf32, #core.tensor<dims = [1, 4, t * 2]>>, %w: tensor<128x4x1xf32>, %v: tensor<128x4x2xf32>, %g: tensor<128x2x1xf32>) -> (tensor<1x128x40xf32>, tensor<1x128x20xf32>, tensor<1x128x14xf32>, tensor<1x128x20xf32>, tensor<1x128x21xf32>, tensor<1x128x?xf32, #core.tensor<dims = [1, 128, t]>>) {
  %a = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x40xf32>, tensor<128x4x1xf32>) -> tensor<1x128x40xf32>
  %b = core.conv %x, %v strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x40xf32>, tensor<128x4x2xf32>) -> tensor<1x128x20xf32>
  %c = core.conv %x, %w strides [3] dilations [1] pads [1] [1] groups 1 : (tensor<1x4x40xf32>, tensor<128x4x1xf32>) -> tensor<1x128x14xf32>
  %d = core.conv %x, %g strides [2] dilations [1] pads [0] [0] groups 2 : (tensor<1x4x40xf32>, tensor<128x2x1xf32>) -> tensor<1x128x20xf32>
  %e = core.conv %l, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x42xf32>, tensor<128x4x1xf32>) -> tensor<1x128x21xf32>
  %f = core.conv %z, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, t * 2]>>, tensor<128x4x1xf32>) -> tensor<1x128x?xf32, #core.tensor<dims = [1, 128, t]>>
  func.return %a, %b, %c, %d, %e, %f : tensor<1x128x40xf32>, tensor<1x128x20xf32>, tensor<1x128x14xf32>, tensor<1x128x20xf32>, tensor<1x128x21xf32>, tensor<1x128x?xf32, #core.tensor<dims = [1, 128, t]>>
}
