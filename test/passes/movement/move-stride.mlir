// RUN: opt-tool %s --pass-pipeline=move-stride --split-input-file | filecheck %s

// Through the maximum and the sum into the convolution; of the other operand, which is needed as a
// whole, every second element is left. The convolution above takes strides, whatever its kernel.
// CHECK-LABEL: @residual
// CHECK-DAG:     %[[A:.*]] = core.conv %x, %v strides [2, 2] {{.*}} pads [1, 1] [1, 1] {{.*}} -> tensor<1x2x3x3xf32>
// CHECK-DAG:     %[[S:.*]] = core.slice %x [0, 0, 0, 0] [1, 2, 3, 3] [1, 1, 2, 2]
// CHECK:         %[[Y:.*]] = core.add %[[S]], %[[A]] {{.*}} -> tensor<1x2x3x3xf32>
// CHECK-NEXT:    %[[R:.*]] = core.max %[[Y]], %zero
// CHECK-NEXT:    %[[B:.*]] = core.conv %[[R]], %w strides [1, 1]
// CHECK-NEXT:    %[[C:.*]] = core.conv %[[R]], %u strides [1, 1]
// CHECK-NEXT:    func.return %x, %[[B]], %[[C]]
func.func @residual(%x : tensor<1x2x6x5xf32>, %v : tensor<2x2x3x3xf32>, %w : tensor<4x2x1x1xf32>, %u : tensor<3x2x1x1xf32>) -> (tensor<1x2x6x5xf32>, tensor<1x4x3x3xf32>, tensor<1x3x3x3xf32>) {
  %zero = core.constant dense<0.0> : tensor<f32>
  %0 = core.conv %x, %v strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x2x6x5xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x5xf32>
  %1 = core.add %x, %0 : (tensor<1x2x6x5xf32>, tensor<1x2x6x5xf32>) -> tensor<1x2x6x5xf32>
  %2 = core.max %1, %zero : (tensor<1x2x6x5xf32>, tensor<f32>) -> tensor<1x2x6x5xf32>
  %3 = core.conv %2, %w strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x2x6x5xf32>, tensor<4x2x1x1xf32>) -> tensor<1x4x3x3xf32>
  %4 = core.conv %2, %u strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x2x6x5xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x3x3xf32>
  func.return %x, %3, %4 : tensor<1x2x6x5xf32>, tensor<1x4x3x3xf32>, tensor<1x3x3x3xf32>
}

// -----

// Only the factor that both users have in common; the strides above are multiplied by it.
// CHECK-LABEL: @common
// CHECK:         %[[A:.*]] = core.conv %x, %v strides [6] {{.*}} -> tensor<1x2x6xf32>
// CHECK-NEXT:    %[[B:.*]] = core.conv %[[A]], %w strides [2] {{.*}} -> tensor<1x4x3xf32>
// CHECK-NEXT:    %[[C:.*]] = core.pool average %[[A]] kernel [1] strides [3] {{.*}} -> tensor<1x2x2xf32>
func.func @common(%x : tensor<1x2x33xf32>, %v : tensor<2x2x2xf32>, %w : tensor<4x2x1xf32>) -> (tensor<1x4x3xf32>, tensor<1x2x2xf32>) {
  %0 = core.conv %x, %v strides [3] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x33xf32>, tensor<2x2x2xf32>) -> tensor<1x2x11xf32>
  %1 = core.conv %0, %w strides [4] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x11xf32>, tensor<4x2x1xf32>) -> tensor<1x4x3xf32>
  %2 = core.pool average %0 kernel [1] strides [6] dilations [1] pads [0] [0] overhang [0] : (tensor<1x2x11xf32>) -> tensor<1x2x2xf32>
  func.return %1, %2 : tensor<1x4x3xf32>, tensor<1x2x2xf32>
}

// -----

// A kernel of 1 x 3 passes over rows, not over columns.
// CHECK-LABEL: @one_dimension
// CHECK:         %[[A:.*]] = core.conv %x, %v strides [2, 1] {{.*}} -> tensor<1x2x3x7xf32>
// CHECK-NEXT:    core.conv %[[A]], %w strides [1, 2] {{.*}} pads [0, 1] [0, 1]
func.func @one_dimension(%x : tensor<1x2x6x7xf32>, %v : tensor<2x2x1x1xf32>, %w : tensor<4x2x1x3xf32>) -> tensor<1x4x3x4xf32> {
  %0 = core.conv %x, %v strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x2x6x7xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x6x7xf32>
  %1 = core.conv %0, %w strides [2, 2] dilations [1, 1] pads [0, 1] [0, 1] groups 1 : (tensor<1x2x6x7xf32>, tensor<4x2x1x3xf32>) -> tensor<1x4x3x4xf32>
  func.return %1 : tensor<1x4x3x4xf32>
}

// -----

// Images of any size: every second window of (h - 1) floordiv 3 + 1.
// CHECK-LABEL: @open
// CHECK:         %[[A:.*]] = core.conv %x, %v strides [6] {{.*}}dims = [n, 2, (h + 5) floordiv 6]
// CHECK-NEXT:    core.conv %[[A]], %w strides [1]
func.func @open(%x : tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>, %v : tensor<2x2x1xf32>, %w : tensor<4x2x1xf32>) -> tensor<?x4x?xf32, #core.tensor<dims = [n, 4, (h + 5) floordiv 6]>> {
  %0 = core.conv %x, %v strides [3] dilations [1] pads [0] [0] groups 1 : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>, tensor<2x2x1xf32>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, (h + 2) floordiv 3]>>
  %1 = core.conv %0, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, (h + 2) floordiv 3]>>, tensor<4x2x1xf32>) -> tensor<?x4x?xf32, #core.tensor<dims = [n, 4, (h + 5) floordiv 6]>>
  func.return %1 : tensor<?x4x?xf32, #core.tensor<dims = [n, 4, (h + 5) floordiv 6]>>
}

// -----

// The first window begins in the padding: it reads no element that another one passes over.
// CHECK-LABEL: @padded
// CHECK:         core.conv %x, %v strides [1]
// CHECK-NEXT:    core.conv {{.*}} strides [2] {{.*}} pads [1] [0]
// CHECK-LABEL: @needed_too
// CHECK:         core.conv %x, %v strides [1]
// CHECK-NEXT:    core.conv {{.*}} strides [2]
// CHECK-LABEL: @other_stride
// CHECK:         core.conv %x, %v strides [1]
// CHECK-NEXT:    core.conv {{.*}} strides [2]
// CHECK-NEXT:    core.conv {{.*}} strides [3]
func.func @padded(%x : tensor<1x2x7xf32>, %v : tensor<2x2x1xf32>, %w : tensor<4x2x1xf32>) -> tensor<1x4x4xf32> {
  %0 = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<2x2x1xf32>) -> tensor<1x2x7xf32>
  %1 = core.conv %0, %w strides [2] dilations [1] pads [1] [0] groups 1 : (tensor<1x2x7xf32>, tensor<4x2x1xf32>) -> tensor<1x4x4xf32>
  func.return %1 : tensor<1x4x4xf32>
}
func.func @needed_too(%x : tensor<1x2x7xf32>, %v : tensor<2x2x1xf32>, %w : tensor<4x2x1xf32>) -> (tensor<1x2x7xf32>, tensor<1x4x4xf32>) {
  %0 = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<2x2x1xf32>) -> tensor<1x2x7xf32>
  %1 = core.conv %0, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<4x2x1xf32>) -> tensor<1x4x4xf32>
  func.return %0, %1 : tensor<1x2x7xf32>, tensor<1x4x4xf32>
}
func.func @other_stride(%x : tensor<1x2x7xf32>, %v : tensor<2x2x1xf32>, %w : tensor<4x2x1xf32>) -> (tensor<1x4x4xf32>, tensor<1x4x3xf32>) {
  %0 = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<2x2x1xf32>) -> tensor<1x2x7xf32>
  %1 = core.conv %0, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<4x2x1xf32>) -> tensor<1x4x4xf32>
  %2 = core.conv %0, %w strides [3] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<4x2x1xf32>) -> tensor<1x4x3xf32>
  func.return %1, %2 : tensor<1x4x4xf32>, tensor<1x4x3xf32>
}

// -----

// A value that exists anyway, and a map that a running sum computes on the way: to
// leave out some of it would only copy the rest.
// CHECK-LABEL: @argument
// CHECK-NEXT:    core.conv %x, %w strides [2]
// CHECK-LABEL: @epilogue
// CHECK:         core.exp
// CHECK-NEXT:    core.conv {{.*}} strides [2]
func.func @argument(%x : tensor<1x2x7xf32>, %w : tensor<4x2x1xf32>) -> tensor<1x4x4xf32> {
  %1 = core.conv %x, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<4x2x1xf32>) -> tensor<1x4x4xf32>
  func.return %1 : tensor<1x4x4xf32>
}
func.func @epilogue(%x : tensor<1x2x7xf32>, %w : tensor<4x2x1xf32>) -> tensor<1x4x4xf32> {
  %0 = core.cumulative sum %x axis 2 : (tensor<1x2x7xf32>) -> tensor<1x2x7xf32>
  %1 = core.exp %0 : (tensor<1x2x7xf32>) -> tensor<1x2x7xf32>
  %2 = core.conv %1, %w strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x7xf32>, tensor<4x2x1xf32>) -> tensor<1x4x4xf32>
  func.return %2 : tensor<1x4x4xf32>
}

// -----

// The weights are data, too: what is read of them as input is not all that is read.
// CHECK-LABEL: @own_weight
// CHECK:         core.conv {{.*}} strides [2]
func.func @own_weight(%x : tensor<2x2x1xf32>) -> tensor<2x2x1xf32> {
  %0 = core.exp %x : (tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
  %1 = core.conv %0, %0 strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<2x2x1xf32>, tensor<2x2x1xf32>) -> tensor<2x2x1xf32>
  func.return %1 : tensor<2x2x1xf32>
}
