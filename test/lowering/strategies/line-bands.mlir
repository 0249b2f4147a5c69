// RUN: opt-tool %s --for-target=x86-64-v3 --threads=2 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies --split-input-file | filecheck %s --check-prefix=ALONE

// Two threads share four bands, where one alone computes three.
// CHECK-LABEL: @line
// CHECK:         schedule = #core.schedule<conv_lines, {{.*}}columns = 96>
// ALONE-LABEL: @line
// ALONE:         schedule = #core.schedule<conv_lines, {{.*}}columns = 128>
func.func @line(%x: tensor<1x80x384xf32>) -> tensor<1x80x384xf32> {
  %w = core.constant dense<0.1> : tensor<80x80x9xf32>
  %y = core.conv %x, %w strides [1] dilations [1] pads [4] [4] groups 1 : (tensor<1x80x384xf32>, tensor<80x80x9xf32>) -> tensor<1x80x384xf32>
  func.return %y : tensor<1x80x384xf32>
}

// -----

// Of four groups there are enough bands.
// CHECK-LABEL: @groups
// CHECK:         schedule = #core.schedule<conv_lines, {{.*}}rows = 2
// ALONE-LABEL: @groups
// ALONE:         schedule = #core.schedule<conv_lines, {{.*}}rows = 2
func.func @groups(%x: tensor<1x240x14x14xf32>) -> tensor<1x240x14x14xf32> {
  %w = core.constant dense<0.1> : tensor<240x60x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 4 : (tensor<1x240x14x14xf32>, tensor<240x60x3x3xf32>) -> tensor<1x240x14x14xf32>
  func.return %y : tensor<1x240x14x14xf32>
}

// -----

// Seven vectors of columns are no pairs, which take two rows instead: an even number of them.
// ALONE-LABEL: @pairs_of_rows
// ALONE:         schedule = #core.schedule<conv_lines, tile {oc = 6, row = 2, v = 1}, {{.*}}rows = {{2|4}}, columns = 28>
func.func @pairs_of_rows(%x: tensor<1x64x28x28xf64>) -> tensor<1x64x28x28xf64> {
  %w = core.constant dense<0.1> : tensor<64x64x3x3xf64>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x64x28x28xf64>, tensor<64x64x3x3xf64>) -> tensor<1x64x28x28xf64>
  func.return %y : tensor<1x64x28x28xf64>
}

// -----

// Single taps could read rows as they lie; those of 16 KB have few places in the caches, those of
// 2,700 bytes enough.
// ALONE-LABEL: @few_places
// ALONE:         schedule = #core.schedule<conv_lines, {{.*}}copied = 1>
// ALONE-LABEL: @enough_places
// ALONE-NOT:     copied = 1
func.func @few_places(%x: tensor<1x32x64x64xf32>) -> tensor<1x64x64x64xf32> {
  %w = core.constant dense<0.1> : tensor<64x32x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x64x64xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x64x64xf32>
  func.return %y : tensor<1x64x64x64xf32>
}
func.func @enough_places(%x: tensor<1x32x25x27xf32>) -> tensor<1x64x25x27xf32> {
  %w = core.constant dense<0.1> : tensor<64x32x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x25x27xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x25x27xf32>
  func.return %y : tensor<1x64x25x27xf32>
}
