// RUN: opt-tool %s --pass-pipeline=legalize-darknet --split-input-file | filecheck %s

// Half of the padding, rounded down, is before the image.
// CHECK-LABEL: @maxpool
// CHECK: core.pool max %{{.*}} kernel [2, 2] strides [1, 1] dilations [1, 1] pads [0, 0] [1, 1]
func.func @maxpool(%x : tensor<1x3x4x4xf32>) -> tensor<*xf32> {
  %r = "darknet.maxpool"(%x) <{size = 2, stride = 1, places = {input = array<i64: 0>}}> : (tensor<1x3x4x4xf32>) -> tensor<*xf32>
  func.return %r : tensor<*xf32>
}

// -----

// [reorg] takes the numbers for those of an image with fewer channels; [reorg3d] does not.
// CHECK-LABEL: @reorg
// CHECK: core.reshape %{{.*}} [1, 1, 4, 2, 2, 2]
func.func @reorg(%x : tensor<1x4x4x2xf32>) -> tensor<*xf32> {
  %r = "darknet.reorg"(%x) <{stride = 2, places = {input = array<i64: 0>}}> : (tensor<1x4x4x2xf32>) -> tensor<*xf32>
  func.return %r : tensor<*xf32>
}

// -----

// CHECK-LABEL: @reorg3d
// CHECK: core.reshape %{{.*}} [1, 4, 2, 2, 1, 2]
func.func @reorg3d(%x : tensor<1x4x4x2xf32>) -> tensor<*xf32> {
  %r = "darknet.reorg3d"(%x) <{stride = 2, places = {input = array<i64: 0>}}> : (tensor<1x4x4x2xf32>) -> tensor<*xf32>
  func.return %r : tensor<*xf32>
}
