// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=choose-strategies --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=x86-64-v4 --threads=2 --pass-pipeline=choose-strategies --split-input-file | filecheck %s

// The number of images is assumed to be the same by all strategies, and work to be shared by the
// same threads.
// CHECK: @depthwise
// CHECK: schedule = #core.schedule<depthwise,
func.func @main(%x: tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>>) -> tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>> {
  %k = core.constant dense<1.0> : tensor<96x1x5x5xf32>
  %y = core.kernel @depthwise(%x, %k) : (tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>>, tensor<96x1x5x5xf32>) -> tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>> {
  ^bb0(%a: tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>>, %f: tensor<96x1x5x5xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [2, 2] [2, 2] groups 96 : (tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>>, tensor<96x1x5x5xf32>) -> tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>>
    core.yield %c : tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 2, 2] [0, 0, 2, 2]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<?x96x?x?xf32, #core.tensor<dims = [n, 96, h, w]>>
}

// -----

// The map of an open image is large at the beginning of a network.
// CHECK: @shallow
// CHECK: schedule = #core.schedule<winograd, {{.*}} size = 4,
func.func @main(%x: tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>>) -> tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>> {
  %k = core.constant dense<1.0> : tensor<512x512x3x3xf32>
  %y = core.kernel @shallow(%x, %k) : (tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>>, tensor<512x512x3x3xf32>) -> tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>> {
  ^bb0(%a: tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>>, %f: tensor<512x512x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>>, tensor<512x512x3x3xf32>) -> tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>>
    core.yield %c : tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, h, w]>>
}

// -----

// What five strides have left of it is small: larger tiles would have more weights, and nothing
// to share them.
// CHECK: @deep
// CHECK: schedule = #core.schedule<winograd, {{.*}} size = 2,
func.func @main(%x: tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>>) -> tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>> {
  %k = core.constant dense<1.0> : tensor<512x512x3x3xf32>
  %y = core.kernel @deep(%x, %k) : (tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>>, tensor<512x512x3x3xf32>) -> tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>> {
  ^bb0(%a: tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>>, %f: tensor<512x512x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>>, tensor<512x512x3x3xf32>) -> tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>>
    core.yield %c : tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x512x?x?xf32, #core.tensor<dims = [1, 512, (h + 31) floordiv 32, (w + 31) floordiv 32]>>
}
