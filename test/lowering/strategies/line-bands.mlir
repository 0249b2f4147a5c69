// RUN: opt-tool %s --for-target=x86-64-v3 --threads=2 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies --split-input-file | filecheck %s --check-prefix=ALONE

// Two threads share four bands, where one alone computes three.
// CHECK-LABEL: @line
// CHECK:         schedule = #core.schedule<conv_lines, {{.*}}columns = 104>
// ALONE-LABEL: @line
// ALONE:         schedule = #core.schedule<conv_lines, {{.*}}columns = 136>
func.func @line(%x: tensor<1x80x400xf32>) -> tensor<1x80x400xf32> {
  %w = core.constant dense<0.1> : tensor<80x80x5xf32>
  %y = core.conv %x, %w strides [1] dilations [1] pads [2] [2] groups 1 : (tensor<1x80x400xf32>, tensor<80x80x5xf32>) -> tensor<1x80x400xf32>
  func.return %y : tensor<1x80x400xf32>
}

// -----

// Of four groups there are enough bands.
// CHECK-LABEL: @groups
// CHECK:         schedule = #core.schedule<conv_lines, {{.*}}rows = 5
// ALONE-LABEL: @groups
// ALONE:         schedule = #core.schedule<conv_lines, {{.*}}rows = 5
func.func @groups(%x: tensor<1x240x14x14xf32>) -> tensor<1x240x14x14xf32> {
  %w = core.constant dense<0.1> : tensor<240x60x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 4 : (tensor<1x240x14x14xf32>, tensor<240x60x3x3xf32>) -> tensor<1x240x14x14xf32>
  func.return %y : tensor<1x240x14x14xf32>
}
