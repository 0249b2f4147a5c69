// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies --split-input-file | filecheck %s

// One filter for each channel of an image that comes and leaves row-major: nothing is converted.
// CHECK-LABEL: @alone
// CHECK-NOT:     @layout_0
// CHECK:         schedule = #core.schedule<conv_lines, tile {oc = 1, row = {{[2-4]}}, v = {{[1-4]}}}
// CHECK-SAME:    vector = 16
func.func @alone(%x: tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32> {
  %w = core.constant dense<0.1> : tensor<32x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 32 : (tensor<1x32x56x56xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x56x56xf32>
  func.return %y : tensor<1x32x56x56xf32>
}

// -----

// Rows of three fill no vector: the lanes are channels.
// CHECK-LABEL: @narrow
// CHECK:         schedule = #core.schedule<depthwise
func.func @narrow(%x: tensor<1x32x3x3xf32>) -> tensor<1x32x3x3xf32> {
  %w = core.constant dense<0.1> : tensor<32x1x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 32 : (tensor<1x32x3x3xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x3x3xf32>
  func.return %y : tensor<1x32x3x3xf32>
}

// -----

// Between convolutions over channel blocks it works on blocks, too.
// CHECK-LABEL: @between
// CHECK:         schedule = #core.schedule<direct
// CHECK:         schedule = #core.schedule<depthwise
// CHECK:         schedule = #core.schedule<direct
func.func @between(%x: tensor<1x32x56x56xf32>) -> tensor<1x32x56x56xf32> {
  %v = core.constant dense<0.1> : tensor<32x32x1x1xf32>
  %w = core.constant dense<0.1> : tensor<32x1x3x3xf32>
  %a = core.conv %x, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x56x56xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x56x56xf32>
  %b = core.conv %a, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 32 : (tensor<1x32x56x56xf32>, tensor<32x1x3x3xf32>) -> tensor<1x32x56x56xf32>
  %y = core.conv %b, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x56x56xf32>, tensor<32x32x1x1xf32>) -> tensor<1x32x56x56xf32>
  func.return %y : tensor<1x32x56x56xf32>
}

// -----

// Groups of six filters, which cut blocks.
// CHECK-LABEL: @groups
// CHECK-NOT:     @layout_0
// CHECK:         schedule = #core.schedule<conv_lines
func.func @groups(%x: tensor<1x90x28x28xf32>) -> tensor<1x30x28x28xf32> {
  %w = core.constant dense<0.1> : tensor<30x18x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 5 : (tensor<1x90x28x28xf32>, tensor<30x18x1x1xf32>) -> tensor<1x30x28x28xf32>
  func.return %y : tensor<1x30x28x28xf32>
}

// -----

// Vectors of f64 hold half as many; there are no blocks of them.
// CHECK-LABEL: @doubles
// CHECK:         schedule = #core.schedule<conv_lines
// CHECK-SAME:    vector = 8
func.func @doubles(%x: tensor<1x16x28x28xf64>) -> tensor<1x16x28x28xf64> {
  %w = core.constant dense<0.1> : tensor<16x16x3x3xf64>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x28x28xf64>, tensor<16x16x3x3xf64>) -> tensor<1x16x28x28xf64>
  func.return %y : tensor<1x16x28x28xf64>
}

// -----

// A dilated convolution is one of images between each other, if these have a tile of results.
// CHECK-LABEL: @dilated
// CHECK:         schedule = #core.schedule<winograd
func.func @dilated(%x: tensor<1x64x30x30xf32>) -> tensor<1x64x30x30xf32> {
  %w = core.constant dense<0.1> : tensor<64x64x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [3, 3] pads [3, 3] [3, 3] groups 1 : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x30x30xf32>
  func.return %y : tensor<1x64x30x30xf32>
}

// -----

// CHECK-LABEL: @far
// CHECK-NOT:     winograd
// CHECK:         schedule = #core.schedule<taps
// CHECK-NOT:     winograd
func.func @far(%x: tensor<1x64x30x30xf32>) -> tensor<1x64x30x30xf32> {
  %w = core.constant dense<0.1> : tensor<64x64x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [16, 16] pads [16, 16] [16, 16] groups 1 : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x30x30xf32>
  func.return %y : tensor<1x64x30x30xf32>
}

// -----

// Groups of whole blocks are transformed side by side.
// CHECK-LABEL: @whole
// CHECK:         schedule = #core.schedule<winograd
func.func @whole(%x: tensor<1x64x28x28xf32>) -> tensor<1x64x28x28xf32> {
  %w = core.constant dense<0.1> : tensor<64x32x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<1x64x28x28xf32>, tensor<64x32x3x3xf32>) -> tensor<1x64x28x28xf32>
  func.return %y : tensor<1x64x28x28xf32>
}

// -----

// The nearest miss: groups of 24 channels end within blocks.
// CHECK-LABEL: @cut
// CHECK-NOT:     schedule<winograd
// CHECK:         func.return
func.func @cut(%x: tensor<1x48x28x28xf32>) -> tensor<1x48x28x28xf32> {
  %w = core.constant dense<0.1> : tensor<48x24x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<1x48x28x28xf32>, tensor<48x24x3x3xf32>) -> tensor<1x48x28x28xf32>
  func.return %y : tensor<1x48x28x28xf32>
}

// -----

// Thirty columns of a product that lie where they were computed: the second vector overlaps the first.
// CHECK-LABEL: @overlapping
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}width = 16
func.func @overlapping(%x: tensor<100x60xf32>, %w: tensor<60x30xf32>) -> tensor<100x30xf32> {
  %y = core.matmul %x, %w : (tensor<100x60xf32>, tensor<60x30xf32>) -> tensor<100x30xf32>
  func.return %y : tensor<100x30xf32>
}

// -----

// Three columns are no vector: they are transposed by a kernel before.
// CHECK-LABEL: @few
// CHECK:         core.kernel @{{.*}}pack_1
// CHECK:         schedule = #core.schedule<dot_products
func.func @few(%x: tensor<500x300xf32>, %w: tensor<300x3xf32>) -> tensor<500x3xf32> {
  %y = core.matmul %x, %w : (tensor<500x300xf32>, tensor<300x3xf32>) -> tensor<500x3xf32>
  func.return %y : tensor<500x3xf32>
}

// -----

// So it is with constants if columns would be computed one by one.
// CHECK-LABEL: @ragged
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}width = 16
func.func @ragged(%x: tensor<77x768xf32>) -> tensor<77x30xf32> {
  %w = core.constant dense<0.1> : tensor<768x30xf32>
  %y = core.matmul %x, %w : (tensor<77x768xf32>, tensor<768x30xf32>) -> tensor<77x30xf32>
  func.return %y : tensor<77x30xf32>
}

// -----

// Sums of 432 products are totals of parts: of four filters each would load its inputs by itself.
// CHECK-LABEL: @totals
// CHECK:         schedule = #core.schedule<conv_lines, tile {oc = 8,
func.func @totals(%x: tensor<1x16x16x56x56xf32>) -> tensor<1x32x16x56x56xf32> {
  %w = core.constant dense<0.1> : tensor<32x16x3x3x3xf32>
  %y = core.conv %x, %w strides [1, 1, 1] dilations [1, 1, 1] pads [1, 1, 1] [1, 1, 1] groups 1 : (tensor<1x16x16x56x56xf32>, tensor<32x16x3x3x3xf32>) -> tensor<1x32x16x56x56xf32>
  func.return %y : tensor<1x32x16x56x56xf32>
}

// -----

// Sums of 81 products are not.
// CHECK-LABEL: @no_totals
// CHECK:         schedule = #core.schedule<conv_lines, tile {oc = 4,
func.func @no_totals(%x: tensor<1x3x8x28x28xf32>) -> tensor<1x32x8x28x28xf32> {
  %w = core.constant dense<0.1> : tensor<32x3x3x3x3xf32>
  %y = core.conv %x, %w strides [1, 1, 1] dilations [1, 1, 1] pads [1, 1, 1] [1, 1, 1] groups 1 : (tensor<1x3x8x28x28xf32>, tensor<32x3x3x3x3xf32>) -> tensor<1x32x8x28x28xf32>
  func.return %y : tensor<1x32x8x28x28xf32>
}
