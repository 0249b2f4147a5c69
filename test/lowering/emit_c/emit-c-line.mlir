// RUN: opt-tool %s --for-target=x86-64-v3 --compile-to=c | filecheck %s

// The row and the column of a position make up its place in line again: nothing is left of the
// division by the width, which is open.
// CHECK:      LOWERDECK_KERNEL void {{.*}}conv_0(
// CHECK:        < lowerdeck_floordiv(h * w, [[TILE:[0-9]+]]); [[I:i_[0-9]+]] += 1)
// CHECK:        const float v_{{[0-9]+}} = x0[{{[a-z0-9_ +*]*}} + [[I]] * [[TILE]]];
// CHECK-NOT:    = x0[{{.*}}, w)
func.func @main(%x: tensor<1x64x?x?xf32, #core.tensor<dims = [1, 64, h, w]>>) -> tensor<1x128x?x?xf32, #core.tensor<dims = [1, 128, h, w]>> {
  %w = core.constant dense<1.0> : tensor<128x64x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x64x?x?xf32, #core.tensor<dims = [1, 64, h, w]>>, tensor<128x64x1x1xf32>) -> tensor<1x128x?x?xf32, #core.tensor<dims = [1, 128, h, w]>>
  func.return %y : tensor<1x128x?x?xf32, #core.tensor<dims = [1, 128, h, w]>>
}
