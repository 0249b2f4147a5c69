// RUN: opt-tool %s --pass-pipeline=fuse-linear | filecheck %s

// A weight whose bytes are not there cannot be scaled; a bias can be shifted.
// CHECK-LABEL: @elided
// CHECK:         %[[P:.*]] = core.conv %x, %w, %{{.*}} strides
// CHECK-NEXT:    core.mul %[[P]]
// CHECK-NOT:     core.add
func.func @elided(%x : tensor<1x1x5xf32>) -> tensor<1x2x5xf32> {
  %w = core.constant #core.blob<elided> : tensor<2x1x1xf32>
  %s = core.constant dense<2.0> : tensor<f32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %a = core.add %c, %s : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x5xf32>
  %y = core.mul %a, %s : (tensor<1x2x5xf32>, tensor<f32>) -> tensor<1x2x5xf32>
  func.return %y : tensor<1x2x5xf32>
}
