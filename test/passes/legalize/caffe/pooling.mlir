// RUN: opt-tool %s --pass-pipeline=legalize-caffe --split-input-file | filecheck %s

// Rounded up: a last window hangs over the end, by 1 in the height and by 0 in the width.
// CHECK-LABEL: @round_up
// CHECK:         core.pool max %x kernel [2, 2] {{.*}} pads [0, 0] [1, 0] overhang [1, 0] {from_lowest = true}
// CHECK-SAME:    tensor<1x1x3x2xf32>
func.func @round_up(%x : tensor<1x1x5x4xf32>) -> tensor<*xf32> {
  %y = caffe.Pooling %x {kernel_size = 2, stride = 2} : (tensor<1x1x5x4xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Rounded down on request.
// CHECK-LABEL: @round_down
// CHECK:         core.pool max %x {{.*}} overhang [0, 0]
// CHECK-SAME:    tensor<1x1x2x2xf32>
func.func @round_down(%x : tensor<1x1x5x4xf32>) -> tensor<*xf32> {
  %y = caffe.Pooling %x {kernel_size = 2, stride = 2, round_mode = "FLOOR"} : (tensor<1x1x5x4xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// With padding, a window that begins behind the blob and its padding is left out: 3 of 4.
// CHECK-LABEL: @clipped
// CHECK:         core.pool average %x {{.*}} pads [1, 1] [1, 1] overhang [0, 0] {count_pads = true}
// CHECK-SAME:    tensor<1x1x3x3xf32>
func.func @clipped(%x : tensor<1x1x5x5xf32>) -> tensor<*xf32> {
  %y = caffe.Pooling %x {pool = "AVE", kernel_size = 2, stride = 2, pad = 1} : (tensor<1x1x5x5xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Padding counts for the average, what hangs over it does not: 1 of the 2 at the end.
// CHECK-LABEL: @overhang
// CHECK:         core.pool average %x {{.*}} pads [1, 1] [2, 2] overhang [1, 1] {count_pads = true}
func.func @overhang(%x : tensor<1x1x4x4xf32>) -> tensor<*xf32> {
  %y = caffe.Pooling %x {pool = "AVE", kernel_size = 3, stride = 2, pad = 1} : (tensor<1x1x4x4xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Without padding a window may begin behind the blob: the maximum of nothing is the lowest float.
// CHECK-LABEL: @nothing
// CHECK:         %[[LOW:.*]] = core.constant dense<-3.4028234663852886e+38>
// CHECK:         %[[P:.*]] = core.pad constant %x, %[[LOW]] [0, 0, 0, 0] [0, 0, 1, 1]
// CHECK:         core.pool max %[[P]] {{.*}} -> tensor<1x1x3x3xf32>
func.func @nothing(%x : tensor<1x1x4x4xf32>) -> tensor<*xf32> {
  %y = caffe.Pooling %x {kernel_size = 1, stride = 2} : (tensor<1x1x4x4xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The mask is computed only if somebody reads it.
// CHECK-LABEL: @mask
// CHECK:         core.pool
// CHECK-NOT:     core.iota
// CHECK-LABEL: @used_mask
// CHECK:         core.iota
// CHECK:         core.cast {{.*}} to f32
func.func @mask(%x : tensor<1x1x4x4xf32>) -> tensor<*xf32> {
  %y, %m = caffe.Pooling %x {kernel_size = 2, stride = 2} : (tensor<1x1x4x4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %y : tensor<*xf32>
}
func.func @used_mask(%x : tensor<1x1x4x4xf32>) -> tensor<*xf32> {
  %y, %m = caffe.Pooling %x {kernel_size = 2, stride = 2} : (tensor<1x1x4x4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %m : tensor<*xf32>
}
