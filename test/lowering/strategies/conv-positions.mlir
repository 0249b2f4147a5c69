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
