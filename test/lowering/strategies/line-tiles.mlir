// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=choose-strategies --split-input-file | filecheck %s

// 512 filters are no multiple of six: what compilers keep of the last two would not leave enough
// registers for 24 sums and four inputs.
// CHECK: @left_over
// CHECK: schedule = #core.schedule<conv_lines, tile {oc = 8, row = 1, v = 2}
func.func @main(%x: tensor<1x80x320xf32>) -> tensor<1x512x320xf32> {
  %k = core.constant dense<1.0> : tensor<512x80x3xf32>
  %y = core.kernel @left_over(%x, %k) : (tensor<1x80x320xf32>, tensor<512x80x3xf32>) -> tensor<1x512x320xf32> {
  ^bb0(%a: tensor<1x80x320xf32>, %f: tensor<512x80x3xf32>):
    %c = core.conv %a, %f strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x80x320xf32>, tensor<512x80x3xf32>) -> tensor<1x512x320xf32>
    core.yield %c : tensor<1x512x320xf32>
  }
  func.return %y : tensor<1x512x320xf32>
}

// -----

// 510 are.
// CHECK: @even
// CHECK: schedule = #core.schedule<conv_lines, tile {oc = 6, row = 1, v = 4}
func.func @main(%x: tensor<1x80x320xf32>) -> tensor<1x510x320xf32> {
  %k = core.constant dense<1.0> : tensor<510x80x3xf32>
  %y = core.kernel @even(%x, %k) : (tensor<1x80x320xf32>, tensor<510x80x3xf32>) -> tensor<1x510x320xf32> {
  ^bb0(%a: tensor<1x80x320xf32>, %f: tensor<510x80x3xf32>):
    %c = core.conv %a, %f strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x80x320xf32>, tensor<510x80x3xf32>) -> tensor<1x510x320xf32>
    core.yield %c : tensor<1x510x320xf32>
  }
  func.return %y : tensor<1x510x320xf32>
}

// -----

// Nor are registers short where no columns are left over.
// CHECK: @whole
// CHECK: schedule = #core.schedule<conv_lines, tile {oc = 6, row = 1, v = 4}
func.func @main(%x: tensor<1x256x500xf32>) -> tensor<1x256x500xf32> {
  %k = core.constant dense<1.0> : tensor<256x256x3xf32>
  %y = core.kernel @whole(%x, %k) : (tensor<1x256x500xf32>, tensor<256x256x3xf32>) -> tensor<1x256x500xf32> {
  ^bb0(%a: tensor<1x256x500xf32>, %f: tensor<256x256x3xf32>):
    %c = core.conv %a, %f strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x256x500xf32>, tensor<256x256x3xf32>) -> tensor<1x256x500xf32>
    core.yield %c : tensor<1x256x500xf32>
  }
  func.return %y : tensor<1x256x500xf32>
}

// -----

// Few channels, and more results than stay in the L2 cache: a few filters along all positions, then
// the next ones; and all filters of some positions where results stay there.
// CHECK: @mostly_results
// CHECK: order [oc, row, v]
// CHECK: @few_results
// CHECK: order [row, v, oc]
func.func @main(%x: tensor<1x40x5929xf32>, %z: tensor<1x40x900xf32>) -> (tensor<1x512x5929xf32>, tensor<1x512x900xf32>) {
  %k = core.constant dense<1.0> : tensor<512x10x1xf32>
  %y = core.kernel @mostly_results(%x, %k) : (tensor<1x40x5929xf32>, tensor<512x10x1xf32>) -> tensor<1x512x5929xf32> {
  ^bb0(%a: tensor<1x40x5929xf32>, %f: tensor<512x10x1xf32>):
    %c = core.conv %a, %f strides [1] dilations [1] pads [0] [0] groups 4 : (tensor<1x40x5929xf32>, tensor<512x10x1xf32>) -> tensor<1x512x5929xf32>
    core.yield %c : tensor<1x512x5929xf32>
  }
  %w = core.kernel @few_results(%z, %k) : (tensor<1x40x900xf32>, tensor<512x10x1xf32>) -> tensor<1x512x900xf32> {
  ^bb0(%a: tensor<1x40x900xf32>, %f: tensor<512x10x1xf32>):
    %c = core.conv %a, %f strides [1] dilations [1] pads [0] [0] groups 4 : (tensor<1x40x900xf32>, tensor<512x10x1xf32>) -> tensor<1x512x900xf32>
    core.yield %c : tensor<1x512x900xf32>
  }
  func.return %y, %w : tensor<1x512x5929xf32>, tensor<1x512x900xf32>
}
