// RUN: opt-tool %s --pass-pipeline=split-pools --split-input-file | filecheck %s

// Planes side by side first, then the lines that these gave.
// CHECK-LABEL: @deep
// CHECK:         %[[A:.+]] = core.reshape %x [n, d * 4, 9, w]
// CHECK-NEXT:    %[[B:.+]] = core.pool max %[[A]] kernel [4, 4] strides [2, 1] dilations [1, 2] pads [1, 0] [1, 0] overhang [0, 0] {{.*}}[n, d * 4, 4, w - 6]
// CHECK-NEXT:    %[[C:.+]] = core.reshape %[[B]] [n, 4, d, w * 4 - 24]
// CHECK-NEXT:    %[[D:.+]] = core.pool max %[[C]] kernel [3, 1] strides [1, 1] dilations [1, 1] pads [1, 0] [1, 0] overhang [0, 0]
// CHECK-NEXT:    core.reshape %[[D]] [n, 4, d, 4, w - 6]
func.func @deep(%x: tensor<?x4x?x9x?xf32, #core.tensor<dims = [n, 4, d, 9, w]>>) -> tensor<?x4x?x4x?xf32, #core.tensor<dims = [n, 4, d, 4, w - 6]>> {
  %y = core.pool max %x kernel [3, 4, 4] strides [1, 2, 1] dilations [1, 1, 2] pads [1, 1, 0] [1, 1, 0] overhang [0, 0, 0] : (tensor<?x4x?x9x?xf32, #core.tensor<dims = [n, 4, d, 9, w]>>) -> tensor<?x4x?x4x?xf32, #core.tensor<dims = [n, 4, d, 4, w - 6]>>
  func.return %y : tensor<?x4x?x4x?xf32, #core.tensor<dims = [n, 4, d, 4, w - 6]>>
}

// -----

// Sums, too, but neither averages nor maxima that the first element may make NaN; windows of one
// plane or one line, small ones, and those that have few planes in common stay as they are.
// CHECK-LABEL: @others
// CHECK:         core.pool sum {{.*}} kernel [4, 4]
// CHECK:         core.pool sum {{.*}} kernel [4, 1]
// CHECK:         core.pool average {{.*}} kernel [4, 4, 4]
// CHECK:         core.pool max {{.*}} kernel [4, 4, 4]
// CHECK:         core.pool max {{.*}} kernel [1, 8, 8]
// CHECK:         core.pool max {{.*}} kernel [8, 1, 1]
// CHECK:         core.pool max {{.*}} kernel [3, 3, 3]
// CHECK:         core.pool max {{.*}} kernel [4, 4, 4] strides [2, 2, 2]
func.func @others(%x: tensor<1x4x8x8x8xf32>) -> (tensor<1x4x5x2x2xf32>, tensor<1x4x5x2x2xf32>, tensor<1x4x5x2x2xf32>, tensor<1x4x8x1x1xf32>, tensor<1x4x1x8x8xf32>, tensor<1x4x6x6x6xf32>, tensor<1x4x3x3x3xf32>) {
  %0 = core.pool sum %x kernel [4, 4, 4] strides [1, 4, 4] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x5x2x2xf32>
  %1 = core.pool average %x kernel [4, 4, 4] strides [1, 4, 4] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x5x2x2xf32>
  %2 = core.pool max %x kernel [4, 4, 4] strides [1, 4, 4] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] {keeps_first = true} : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x5x2x2xf32>
  %3 = core.pool max %x kernel [1, 8, 8] strides [1, 1, 1] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x8x1x1xf32>
  %4 = core.pool max %x kernel [8, 1, 1] strides [1, 1, 1] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x1x8x8xf32>
  %5 = core.pool max %x kernel [3, 3, 3] strides [1, 1, 1] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x6x6x6xf32>
  %6 = core.pool max %x kernel [4, 4, 4] strides [2, 2, 2] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x3x3x3xf32>
  func.return %0, %1, %2, %3, %4, %5, %6 : tensor<1x4x5x2x2xf32>, tensor<1x4x5x2x2xf32>, tensor<1x4x5x2x2xf32>, tensor<1x4x8x1x1xf32>, tensor<1x4x1x8x8xf32>, tensor<1x4x6x6x6xf32>, tensor<1x4x3x3x3xf32>
}

// -----

// NaN passes through both.
// CHECK-LABEL: @nan
// CHECK:         core.pool max {{.*}} kernel [4, 4] {{.*}}keeps_nan = true
// CHECK:         core.pool max {{.*}} kernel [4, 1] {{.*}}keeps_nan = true
func.func @nan(%x: tensor<1x4x8x8x8xf32>) -> tensor<1x4x5x2x2xf32> {
  %0 = core.pool max %x kernel [4, 4, 4] strides [1, 4, 4] dilations [1, 1, 1] pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0] {keeps_nan = true} : (tensor<1x4x8x8x8xf32>) -> tensor<1x4x5x2x2xf32>
  func.return %0 : tensor<1x4x5x2x2xf32>
}
