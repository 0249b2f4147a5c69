// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=choose-strategies --split-input-file | filecheck %s

// A sum at each position, and the next position beside it: one loop over all of them. Weights and
// inputs of so many channels do not stay in the first cache: those of 64 channels at a time do.
// CHECK-LABEL: @line
// CHECK:         schedule = #core.schedule<direct, tile {x = {{[0-9]+}}, oc = 2}, order [n, panel, oc, x], prefetch 1, depth_blocks = 8, panels = 128>
func.func @line(%x: tensor<1x512x7x7xf32>) -> tensor<1x2048x7x7xf32> {
  %w = core.constant dense<1.0> : tensor<2048x512x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x512x7x7xf32>, tensor<2048x512x1x1xf32>) -> tensor<1x2048x7x7xf32> {
  ^bb0(%a: tensor<1x512x7x7xf32>, %f: tensor<2048x512x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x512x7x7xf32>, tensor<2048x512x1x1xf32>) -> tensor<1x2048x7x7xf32>
    core.yield %c : tensor<1x2048x7x7xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x2048x7x7xf32>
}

// -----

// The nearest miss: rows of results end with a border.
// CHECK-LABEL: @border
// CHECK:         order [n, {{.*}}x0, x1]
func.func @border(%x: tensor<1x512x7x7xf32>) -> tensor<1x2048x7x7xf32> {
  %w = core.constant dense<1.0> : tensor<2048x512x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x512x7x7xf32>, tensor<2048x512x1x1xf32>) -> tensor<1x2048x7x7xf32> {
  ^bb0(%a: tensor<1x512x7x7xf32>, %f: tensor<2048x512x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x512x7x7xf32>, tensor<2048x512x1x1xf32>) -> tensor<1x2048x7x7xf32>
    core.yield %c : tensor<1x2048x7x7xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8 pad [0, 0, 1, 1] [0, 0, 1, 1]>]}
  func.return %y : tensor<1x2048x7x7xf32>
}

// -----

// So are strided windows: the next one does not begin at the next position.
// CHECK-LABEL: @strided
// CHECK:         order [n, {{.*}}x0, x1]
func.func @strided(%x: tensor<1x512x14x14xf32>) -> tensor<1x2048x7x7xf32> {
  %w = core.constant dense<1.0> : tensor<2048x512x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x512x14x14xf32>, tensor<2048x512x1x1xf32>) -> tensor<1x2048x7x7xf32> {
  ^bb0(%a: tensor<1x512x14x14xf32>, %f: tensor<2048x512x1x1xf32>):
    %c = core.conv %a, %f strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x512x14x14xf32>, tensor<2048x512x1x1xf32>) -> tensor<1x2048x7x7xf32>
    core.yield %c : tensor<1x2048x7x7xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x2048x7x7xf32>
}

// -----

// An image that is larger than the second cache is taken by groups of positions, which stay in the
// first one for all output channels.
// CHECK-LABEL: @groups
// CHECK:         schedule = #core.schedule<direct, tile {x = 6, oc = 2}, order [n, group, oc, x], prefetch 1, group = 30>
func.func @groups(%x: tensor<1x256x56x56xf32>) -> tensor<1x256x56x56xf32> {
  %w = core.constant dense<1.0> : tensor<256x256x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x256x56x56xf32>, tensor<256x256x1x1xf32>) -> tensor<1x256x56x56xf32> {
  ^bb0(%a: tensor<1x256x56x56xf32>, %f: tensor<256x256x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x256x56x56xf32>, tensor<256x256x1x1xf32>) -> tensor<1x256x56x56xf32>
    core.yield %c : tensor<1x256x56x56xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x256x56x56xf32>
}

// -----

// By rows, where these end with a border.
// CHECK-LABEL: @rows
// CHECK:         schedule = #core.schedule<direct, tile {{.*}}, order [n, x0, oc, x1], prefetch 1>
func.func @rows(%x: tensor<1x256x56x56xf32>) -> tensor<1x256x56x56xf32> {
  %w = core.constant dense<1.0> : tensor<256x256x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x256x56x56xf32>, tensor<256x256x1x1xf32>) -> tensor<1x256x56x56xf32> {
  ^bb0(%a: tensor<1x256x56x56xf32>, %f: tensor<256x256x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x256x56x56xf32>, tensor<256x256x1x1xf32>) -> tensor<1x256x56x56xf32>
    core.yield %c : tensor<1x256x56x56xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8 pad [0, 0, 1, 1] [0, 0, 1, 1]>]}
  func.return %y : tensor<1x256x56x56xf32>
}

// -----

// And where windows are strided.
// CHECK-LABEL: @apart
// CHECK:         order [n, x0, oc, x1]
func.func @apart(%x: tensor<1x256x56x56xf32>) -> tensor<1x512x28x28xf32> {
  %w = core.constant dense<1.0> : tensor<512x256x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x256x56x56xf32>, tensor<512x256x1x1xf32>) -> tensor<1x512x28x28xf32> {
  ^bb0(%a: tensor<1x256x56x56xf32>, %f: tensor<512x256x1x1xf32>):
    %c = core.conv %a, %f strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x256x56x56xf32>, tensor<512x256x1x1xf32>) -> tensor<1x512x28x28xf32>
    core.yield %c : tensor<1x512x28x28xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x512x28x28xf32>
}

// -----

// The nearest miss: an image that stays in the second cache is read again and again there.
// CHECK-LABEL: @stays
// CHECK:         order [n, oc, x]
func.func @stays(%x: tensor<1x128x28x28xf32>) -> tensor<1x512x28x28xf32> {
  %w = core.constant dense<1.0> : tensor<512x128x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x128x28x28xf32>, tensor<512x128x1x1xf32>) -> tensor<1x512x28x28xf32> {
  ^bb0(%a: tensor<1x128x28x28xf32>, %f: tensor<512x128x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x128x28x28xf32>, tensor<512x128x1x1xf32>) -> tensor<1x512x28x28xf32>
    core.yield %c : tensor<1x512x28x28xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x512x28x28xf32>
}

// -----

// Nor where the weights of a tile are more than the first cache holds.
// CHECK-LABEL: @deep
// CHECK:         order [n, panel, oc, x]
func.func @deep(%x: tensor<1x1024x28x28xf32>) -> tensor<1x256x28x28xf32> {
  %w = core.constant dense<1.0> : tensor<256x1024x1x1xf32>
  %y = core.kernel @k(%x, %w) : (tensor<1x1024x28x28xf32>, tensor<256x1024x1x1xf32>) -> tensor<1x256x28x28xf32> {
  ^bb0(%a: tensor<1x1024x28x28xf32>, %f: tensor<256x1024x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1024x28x28xf32>, tensor<256x1024x1x1xf32>) -> tensor<1x256x28x28xf32>
    core.yield %c : tensor<1x256x28x28xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
  func.return %y : tensor<1x256x28x28xf32>
}
