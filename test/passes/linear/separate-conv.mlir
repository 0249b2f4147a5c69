// RUN: opt-tool %s --pass-pipeline='separate-conv{axes=true},dce' --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline='separate-conv{error=0.3},dce' --split-input-file | filecheck %s --check-prefix=NEAR

// A Gauss filter of each channel, the second one of another size. Rows have pads 2, 1 and a stride;
// columns have a dilation.
// CHECK-LABEL: @gauss
// CHECK-NEXT:    %[[U:.*]] = core.constant dense<[{{\[\[}}[0.5], [1.0], [0.5]]], {{\[\[}}[0.0], [1.0], [0.0]]]]> : tensor<2x1x3x1xf32>
// CHECK-NEXT:    %[[T:.*]] = core.conv %x, %[[U]] strides [2, 1] dilations [1, 1] pads [2, 0] [1, 0] groups 2
// CHECK-NEXT:    %[[V:.*]] = core.constant dense<[{{\[\[}}[2.0, 4.0, 2.0]]], {{\[\[}}[3.0, -6.0, 1.0]]]]> : tensor<2x1x1x3xf32>
// CHECK-NEXT:    %[[Y:.*]] = core.conv %[[T]], %[[V]], %b strides [1, 1] dilations [1, 2] pads [0, 1] [0, 3] groups 2
// CHECK-NEXT:    func.return %[[Y]]
func.func @gauss(%x : tensor<1x2x16x9xf32>, %b : tensor<2xf32>) -> tensor<1x2x9x9xf32> {
  %w = core.constant dense<[[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]], [[[0.0, 0.0, 0.0], [3.0, -6.0, 1.0], [0.0, 0.0, 0.0]]]]> : tensor<2x1x3x3xf32>
  %y = core.conv %x, %w, %b strides [2, 1] dilations [1, 2] pads [2, 1] [1, 3] groups 2 : (tensor<1x2x16x9xf32>, tensor<2x1x3x3xf32>, tensor<2xf32>) -> tensor<1x2x9x9xf32>
  func.return %y : tensor<1x2x9x9xf32>
}

// -----

// Filters of two channels with one column for all outputs: w[m, c, i, j] = u[c, i] * v[m, j].
// CHECK-LABEL: @shared
// CHECK:         %[[T:.*]] = core.conv %x, %{{.*}} : (tensor<2x2x6x6xf64>, tensor<1x2x3x1xf64>) -> tensor<2x1x4x6xf64>
// CHECK:         core.conv %[[T]], %{{.*}} : (tensor<2x1x4x6xf64>, tensor<2x1x1x2xf64>) -> tensor<2x2x4x5xf64>
func.func @shared(%x : tensor<2x2x6x6xf64>) -> tensor<2x2x4x5xf64> {
  %w = core.constant dense<[[[[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]], [[3.0, 6.0], [-1.0, -2.0], [1.0, 2.0]]], [[[5.0, 1.0], [10.0, 2.0], [0.0, 0.0]], [[15.0, 3.0], [-5.0, -1.0], [5.0, 1.0]]]]> : tensor<2x2x3x2xf64>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<2x2x6x6xf64>, tensor<2x2x3x2xf64>) -> tensor<2x2x4x5xf64>
  func.return %y : tensor<2x2x4x5xf64>
}

// -----

// Strides along columns: with the columns first, no line is computed in vain. 1 / 3 is rounded.
// CHECK-LABEL: @columns_first
// CHECK:         %[[T:.*]] = core.conv %x, %{{.*}} strides [1, 3] {{.*}} : (tensor<1x1x9x90xf32>, tensor<1x1x1x3xf32>) -> tensor<1x1x9x30xf32>
// CHECK:         core.conv %[[T]], %{{.*}} strides [1, 1] {{.*}} : (tensor<1x1x9x30xf32>, tensor<1x1x3x1xf32>) -> tensor<1x1x7x30xf32>
func.func @columns_first(%x : tensor<1x1x9x90xf32>) -> tensor<1x1x7x30xf32> {
  %w = core.constant dense<0.333333333> : tensor<1x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 3] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x9x90xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x7x30xf32>
  func.return %y : tensor<1x1x7x30xf32>
}

// -----

// One weight differs; a filter with two products, of which there would be more than now; 2 x 2, where
// nothing falls; one line; sizes that are not known.
// CHECK-LABEL: @nearly
// CHECK:         core.conv {{.*}} tensor<1x1x3x3xf32>
// NEAR-LABEL: @nearly
// NEAR:          core.conv {{.*}} tensor<1x1x3x1xf32>
// NEAR:          core.conv {{.*}} tensor<1x1x1x3xf32>
// CHECK-LABEL: @laplace
// CHECK:         core.conv {{.*}} tensor<1x1x3x3xf32>
// NEAR-LABEL: @laplace
// NEAR:          core.conv {{.*}} tensor<1x1x3x3xf32>
// CHECK-LABEL: @small
// CHECK:         core.conv {{.*}} tensor<1x1x2x2xf32>
// CHECK-LABEL: @line
// CHECK:         core.conv {{.*}} tensor<1x1x1x3xf32>
// CHECK-LABEL: @open
// CHECK:         core.conv {{.*}} tensor<1x1x3x3xf32>
func.func @nearly(%x : tensor<1x1x9x9xf32>) -> tensor<1x1x7x7xf32> {
  %w = core.constant dense<[[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.5]]]]> : tensor<1x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x9x9xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x7x7xf32>
  func.return %y : tensor<1x1x7x7xf32>
}
func.func @laplace(%x : tensor<1x1x9x9xf32>) -> tensor<1x1x7x7xf32> {
  %w = core.constant dense<[[[[1.0, 0.0, -1.0], [0.0, 2.0, 0.0], [-1.0, 0.0, 1.0]]]]> : tensor<1x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x9x9xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x7x7xf32>
  func.return %y : tensor<1x1x7x7xf32>
}
func.func @small(%x : tensor<1x1x9x9xf32>) -> tensor<1x1x8x8xf32> {
  %w = core.constant dense<1.0> : tensor<1x1x2x2xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x9x9xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x8x8xf32>
  func.return %y : tensor<1x1x8x8xf32>
}
func.func @line(%x : tensor<1x1x9x9xf32>) -> tensor<1x1x9x7xf32> {
  %w = core.constant dense<1.0> : tensor<1x1x1x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x9x9xf32>, tensor<1x1x1x3xf32>) -> tensor<1x1x9x7xf32>
  func.return %y : tensor<1x1x9x7xf32>
}
func.func @open(%x : tensor<1x1x9x?xf32, #core.tensor<dims = [1, 1, 9, n]>>) -> tensor<1x1x9x?xf32, #core.tensor<dims = [1, 1, 9, n]>> {
  %w = core.constant dense<1.0> : tensor<1x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x1x9x?xf32, #core.tensor<dims = [1, 1, 9, n]>>, tensor<1x1x3x3xf32>) -> tensor<1x1x9x?xf32, #core.tensor<dims = [1, 1, 9, n]>>
  func.return %y : tensor<1x1x9x?xf32, #core.tensor<dims = [1, 1, 9, n]>>
}

// -----

// As many products as now: 2 x 2 in pads, where no line is lost. A weight that differs in the fourth
// digit; half precision; sums that are wider than the factors.
// CHECK-LABEL: @same_number
// CHECK:         core.conv {{.*}} tensor<1x1x2x2xf32>
// CHECK-LABEL: @fourth_digit
// CHECK:         core.conv {{.*}} tensor<1x1x3x3xf32>
// CHECK-LABEL: @half_precision
// CHECK:         core.conv {{.*}} tensor<1x1x3x3xf16>
// CHECK-LABEL: @wider_sums
// CHECK:         core.conv {{.*}} tensor<1x1x3x3xbf16>
func.func @same_number(%x : tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32> {
  %w = core.constant dense<1.0> : tensor<1x1x2x2xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [0, 0] groups 1 : (tensor<1x1x8x8xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x8x8xf32>
  func.return %y : tensor<1x1x8x8xf32>
}
func.func @fourth_digit(%x : tensor<1x1x9x9xf32>) -> tensor<1x1x7x7xf32> {
  %w = core.constant dense<[[[[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.001]]]]> : tensor<1x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x9x9xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x7x7xf32>
  func.return %y : tensor<1x1x7x7xf32>
}
func.func @half_precision(%x : tensor<1x1x9x9xf16>) -> tensor<1x1x7x7xf16> {
  %w = core.constant dense<1.0> : tensor<1x1x3x3xf16>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x9x9xf16>, tensor<1x1x3x3xf16>) -> tensor<1x1x7x7xf16>
  func.return %y : tensor<1x1x7x7xf16>
}
func.func @wider_sums(%x : tensor<1x1x9x9xbf16>) -> tensor<1x1x7x7xf32> {
  %w = core.constant dense<1.0> : tensor<1x1x3x3xbf16>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in f32 : (tensor<1x1x9x9xbf16>, tensor<1x1x3x3xbf16>) -> tensor<1x1x7x7xf32>
  func.return %y : tensor<1x1x7x7xf32>
}

// -----

// One weight of two convolutions, the second of which has pads of different widths and no filter but
// zeros in its second group.
// CHECK-LABEL: @one_weight
// CHECK-COUNT-2: core.conv {{.*}} tensor<2x1x3x1xf32>
// CHECK-NOT:     tensor<2x1x3x3xf32>
// NEAR-LABEL: @one_weight
// NEAR-NOT:      tensor<2x1x3x3xf32>
// NEAR:          func.return
func.func @one_weight(%x : tensor<1x2x9x9xf32>) -> (tensor<1x2x7x7xf32>, tensor<1x2x10x8xf32>) {
  %w = core.constant dense<[[[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [-1.0, -2.0, -3.0]]], [[[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]]]> : tensor<2x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x2x9x9xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x7x7xf32>
  %z = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 0] [2, 1] groups 2 : (tensor<1x2x9x9xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x10x8xf32>
  func.return %y, %z : tensor<1x2x7x7xf32>, tensor<1x2x10x8xf32>
}

// -----

// One filter for each of two channels, mixed eight times, of an image of open size; a column more.
// CHECK-LABEL: @channels
// CHECK:         %[[D:.*]] = core.conv %x, %{{.*}} strides [2] dilations [1] pads [1] [4] groups 2 : {{.*}}, tensor<2x1x6xf32>
// CHECK:         core.conv %[[D]], %{{.*}}, %b strides [1] dilations [1] pads [0] [0] groups 1 : {{.*}}, tensor<8x2x1xf32>, tensor<8xf32>
// CHECK-LABEL: @not_channels
// CHECK-COUNT-1: core.conv
// CHECK-NOT:     core.conv
func.func @channels(%x : tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>, %b : tensor<8xf32>) -> tensor<?x8x?xf32, #core.tensor<dims = [n, 8, (h + 1) floordiv 2]>> {
  %w = core.constant dense<[[[1.0, 2.0, 0.0, -1.0, 3.0, 1.0], [4.0, -2.0, 2.0, 2.0, 0.0, 8.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-2.0, 1.0, -1.0, -1.0, 0.0, -4.0]], [[3.0, 6.0, 0.0, -3.0, 9.0, 3.0], [2.0, -1.0, 1.0, 1.0, 0.0, 4.0]], [[-2.0, -4.0, 0.0, 2.0, -6.0, -2.0], [1.0, -0.5, 0.5, 0.5, 0.0, 2.0]], [[1.0, 2.0, 0.0, -1.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [[4.0, 8.0, 0.0, -4.0, 12.0, 4.0], [2.0, -1.0, 1.0, 1.0, 0.0, 4.0]], [[0.5, 1.0, 0.0, -0.5, 1.5, 0.5], [6.0, -3.0, 3.0, 3.0, 0.0, 12.0]], [[-1.0, -2.0, 0.0, 1.0, -3.0, -1.0], [-2.0, 1.0, -1.0, -1.0, 0.0, -4.0]]]> : tensor<8x2x6xf32>
  %y = core.conv %x, %w, %b strides [2] dilations [1] pads [1] [4] groups 1 : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>, tensor<8x2x6xf32>, tensor<8xf32>) -> tensor<?x8x?xf32, #core.tensor<dims = [n, 8, (h + 1) floordiv 2]>>
  func.return %y : tensor<?x8x?xf32, #core.tensor<dims = [n, 8, (h + 1) floordiv 2]>>
}
func.func @not_channels(%x : tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>) -> tensor<?x8x?xf32, #core.tensor<dims = [n, 8, h - 5]>> {
  %w = core.constant dense<[[[1.0, 2.0, 0.0, -1.0, 3.0, 1.0], [4.0, -2.0, 2.0, 2.0, 0.0, 8.0]], [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [-2.0, 1.0, -1.0, -1.0, 0.0, -4.0]], [[3.0, 6.0, 0.0, -3.0, 9.0, 3.0], [2.0, -1.0, 1.0, 1.0, 0.0, 4.0]], [[-2.0, -4.0, 0.0, 2.0, -6.0, -2.0], [1.0, -0.5, 0.5, 0.5, 0.0, 2.0]], [[1.0, 2.0, 0.0, -1.0, 3.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]], [[4.0, 8.0, 0.0, -4.0, 12.0, 4.0], [2.0, -1.0, 1.0, 1.0, 0.0, 4.0]], [[0.5, 1.0, 0.0, -0.5, 1.5, 0.5], [6.0, -3.0, 3.0, 3.0, 0.0, 12.0]], [[-1.0, -2.0, 0.0, 1.0, -3.0, -1.0], [-2.0, 1.0, -1.0, -1.0, 0.0, -3.0]]]> : tensor<8x2x6xf32>
  %y = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>, tensor<8x2x6xf32>) -> tensor<?x8x?xf32, #core.tensor<dims = [n, 8, h - 5]>>
  func.return %y : tensor<?x8x?xf32, #core.tensor<dims = [n, 8, h - 5]>>
}
