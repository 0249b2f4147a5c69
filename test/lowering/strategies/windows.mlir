// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=choose-strategies,bufferize,lower-kernels,tile,vectorize-lanes,unroll-tiles --split-input-file | filecheck %s

// Each channel by itself: the lanes are channels, and one loop over rows of taps carries the sums
// of a row of outputs.
// CHECK-LABEL: buffer.func @depthwise
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         carry {{.*}} : vector<16xf32>, vector<16xf32> ->
// CHECK-COUNT-3:   buffer.load %[[X1]]
// CHECK-NEXT:      buffer.load %[[X0]]{{.*}}<[0, 0, d0 + d1, 0, 0]>
// CHECK-COUNT-6:   math.fma {{.*}} : vector<16xf32>
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.store {{.*}}<[0, 0, d0, 0, 0]> : vector<16xf32>
// CHECK-NEXT:    buffer.store {{.*}}<[0, 0, d0, 1, 0]> : vector<16xf32>
func.func @main(%x: tensor<1x16x3x2xf32>) -> tensor<1x16x3x2xf32> {
  %w = core.constant dense<1.0> : tensor<16x1x3x3xf32>
  %y = core.kernel @depthwise(%x, %w) : (tensor<1x16x3x2xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x3x2xf32> {
  ^bb0(%a: tensor<1x16x3x2xf32>, %f: tensor<16x1x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 16 : (tensor<1x16x3x2xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x3x2xf32>
    core.yield %c : tensor<1x16x3x2xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x16x3x2xf32>
}

// -----

// Without a border around the input the windows would be clipped: plain loops.
// CHECK-LABEL: buffer.func @no_border
// CHECK-NOT:     vector
// CHECK:         <[max(-d0 + 1, 0), min(-d0 + 4, 3), 1]>
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x16x3x2xf32>) -> tensor<1x16x3x2xf32> {
  %w = core.constant dense<1.0> : tensor<16x1x3x3xf32>
  %y = core.kernel @no_border(%x, %w) : (tensor<1x16x3x2xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x3x2xf32> {
  ^bb0(%a: tensor<1x16x3x2xf32>, %f: tensor<16x1x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 16 : (tensor<1x16x3x2xf32>, tensor<16x1x3x3xf32>) -> tensor<1x16x3x2xf32>
    core.yield %c : tensor<1x16x3x2xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x16x3x2xf32>
}

// -----

// Windows at the border are clipped in nests of their own; those between are whole.
// CHECK-LABEL: buffer.func @pool
// CHECK-COUNT-2: buffer.load
// CHECK:         arith.constant 5.000000e-01
// CHECK:         buffer.store {{.*}}<[0, 0, 0, 0, 0]> : vector<16xf32>
// CHECK-COUNT-3: buffer.load
// CHECK:         arith.constant 0.333333343
// CHECK:         buffer.store {{.*}}<[0, 0, 0, 1, 0]> : vector<16xf32>
// CHECK-COUNT-2: buffer.load
// CHECK:         arith.constant 5.000000e-01
// CHECK:         buffer.store {{.*}}<[0, 0, 0, 2, 0]> : vector<16xf32>
func.func @main(%x: tensor<1x16x1x5xf32>) -> tensor<1x16x1x3xf32> {
  %y = core.kernel @pool(%x) : (tensor<1x16x1x5xf32>) -> tensor<1x16x1x3xf32> {
  ^bb0(%a: tensor<1x16x1x5xf32>):
    %c = core.pool average %a kernel [1, 3] strides [1, 2] dilations [1, 1] pads [0, 1] [0, 1] overhang [0, 0] : (tensor<1x16x1x5xf32>) -> tensor<1x16x1x3xf32>
    core.yield %c : tensor<1x16x1x3xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x16x1x3xf32>
}

// -----

// Two phases a dimension of one tap each: four products that write every second output.
// CHECK-LABEL: buffer.func @transposed
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.load %[[X1]]({{.*}}) <[0, 0, 0, 0, d0, 0]>
// CHECK:         buffer.store {{.*}}<[0, 0, 0, 0, 0]> : vector<16xf32>
// CHECK-NEXT:    buffer.store {{.*}}<[0, 0, 0, 2, 0]> : vector<16xf32>
// CHECK:         buffer.load %[[X1]]({{.*}}) <[0, 1, 0, 0, d0, 0]>
// CHECK:         buffer.store {{.*}}<[0, 0, 0, 1, 0]> : vector<16xf32>
// CHECK-NEXT:    buffer.store {{.*}}<[0, 0, 0, 3, 0]> : vector<16xf32>
// CHECK:         buffer.load %[[X1]]({{.*}}) <[1, 0, 0, 0, d0, 0]>
// CHECK:         buffer.store {{.*}}<[0, 0, 1, 0, 0]> : vector<16xf32>
// CHECK:         buffer.load %[[X1]]({{.*}}) <[1, 1, 0, 0, d0, 0]>
// CHECK:         buffer.store {{.*}}<[0, 0, 1, 1, 0]> : vector<16xf32>
func.func @main(%x: tensor<1x16x1x2xf32>) -> tensor<1x16x2x4xf32> {
  %w = core.constant dense<1.0> : tensor<16x16x2x2xf32>
  %y = core.kernel @transposed(%x, %w) : (tensor<1x16x1x2xf32>, tensor<16x16x2x2xf32>) -> tensor<1x16x2x4xf32> {
  ^bb0(%a: tensor<1x16x1x2xf32>, %f: tensor<16x16x2x2xf32>):
    %c = core.conv_transpose %a, %f strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 1 : (tensor<1x16x1x2xf32>, tensor<16x16x2x2xf32>) -> tensor<1x16x2x4xf32>
    core.yield %c : tensor<1x16x2x4xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x16x2x4xf32>
}
