// RUN: opt-tool %s --pass-pipeline=fuse-pad --split-input-file | filecheck %s

// One more row above and two more columns behind than the convolution pads itself, of an image with
// channels last; both that read it take it over.
// CHECK-LABEL: @conv
// CHECK:         %[[T:.*]] = core.transpose %x [0, 3, 1, 2]
// CHECK-NEXT:    %[[A:.*]] = core.conv %[[T]], %v strides [2, 2] dilations [1, 1] pads [1, 1] [0, 3] groups 1
// CHECK:         %[[B:.*]] = core.conv %{{.*}}, %w strides [1, 1] dilations [1, 1] pads [1, 0] [0, 2] groups 1
// CHECK-NEXT:    func.return %[[A]], %[[B]]
func.func @conv(%x : tensor<1x4x4x1xf32>) -> (tensor<1x1x2x4xf32>, tensor<1x1x5x6xf32>) {
  %v = core.constant dense<[[[[1.0, 2.0], [3.0, -4.0]]]]> : tensor<1x1x2x2xf32>
  %w = core.constant dense<2.0> : tensor<1x1x1x1xf32>
  %z = core.constant dense<0.0> : tensor<f32>
  %0 = core.pad constant %x, %z [0, 1, 0, 0] [0, 0, 2, 0] : (tensor<1x4x4x1xf32>, tensor<f32>) -> tensor<1x5x6x1xf32>
  %1 = core.transpose %0 [0, 3, 1, 2] : (tensor<1x5x6x1xf32>) -> tensor<1x1x5x6xf32>
  %2 = core.conv %1, %v strides [2, 2] dilations [1, 1] pads [0, 1] [0, 1] groups 1 : (tensor<1x1x5x6xf32>, tensor<1x1x2x2xf32>) -> tensor<1x1x2x4xf32>
  %3 = core.conv %1, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x1x5x6xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x5x6xf32>
  func.return %2, %3 : tensor<1x1x2x4xf32>, tensor<1x1x5x6xf32>
}

// -----

// A maximum passes over -infinity; an average divides by all of a window, as it did. Of open sizes.
// CHECK-LABEL: @pools
// CHECK-NEXT:    core.pool max %x kernel [2] strides [1] dilations [1] pads [1] [0] overhang [0]
// CHECK-NEXT:    core.pool average %x kernel [2] strides [2] dilations [1] pads [0] [1] overhang [0] {count_pads = true}
// CHECK-NEXT:    core.pool sum %x kernel [2] strides [2] dilations [1] pads [0] [2] overhang [0]
func.func @pools(%x : tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h]>>) -> (tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h]>>, tensor<?x1x?xf32, #core.tensor<dims = [n, 1, (h + 1) floordiv 2]>>, tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h floordiv 2 + 1]>>) {
  %i = core.constant #core.blob<"0x000080FF"> : tensor<f32>
  %0 = core.pad constant %x, %i [0, 0, 1] [0, 0, 0] : (tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h]>>, tensor<f32>) -> tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h + 1]>>
  %1 = core.pool max %0 kernel [2] strides [1] dilations [1] pads [0] [0] overhang [0] : (tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h + 1]>>) -> tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h]>>
  %2 = core.pad constant %x [0, 0, 0] [0, 0, 1] : (tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h]>>) -> tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h + 1]>>
  %3 = core.pool average %2 kernel [2] strides [2] dilations [1] pads [0] [0] overhang [0] : (tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h + 1]>>) -> tensor<?x1x?xf32, #core.tensor<dims = [n, 1, (h + 1) floordiv 2]>>
  %4 = core.pool sum %2 kernel [2] strides [2] dilations [1] pads [0] [1] overhang [0] : (tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h + 1]>>) -> tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h floordiv 2 + 1]>>
  func.return %1, %3, %4 : tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h]>>, tensor<?x1x?xf32, #core.tensor<dims = [n, 1, (h + 1) floordiv 2]>>, tensor<?x1x?xf32, #core.tensor<dims = [n, 1, h floordiv 2 + 1]>>
}

// -----

// A one is added; there is a channel more; an infinite weight makes NaN of a zero; another op reads
// the border, too; an average does not count what it pads itself; a maximum with zeros is not negative.
// CHECK-LABEL: @one
// CHECK:         core.pad
// CHECK-LABEL: @channel
// CHECK:         core.pad
// CHECK-LABEL: @infinite
// CHECK:         core.pad
// CHECK-LABEL: @needed_too
// CHECK:         core.pad
// CHECK-LABEL: @average
// CHECK:         core.pad
// CHECK-LABEL: @maximum
// CHECK:         core.pad
func.func @one(%x : tensor<1x1x4xf32>) -> tensor<1x1x4xf32> {
  %w = core.constant dense<2.0> : tensor<1x1x2xf32>
  %z = core.constant dense<1.0> : tensor<f32>
  %0 = core.pad constant %x, %z [0, 0, 1] [0, 0, 0] : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x5xf32>
  %1 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}
func.func @channel(%x : tensor<1x1x4xf32>) -> tensor<1x1x4xf32> {
  %w = core.constant dense<2.0> : tensor<1x2x2xf32>
  %0 = core.pad constant %x [0, 0, 1] [0, 1, 0] : (tensor<1x1x4xf32>) -> tensor<1x2x5xf32>
  %1 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x5xf32>, tensor<1x2x2xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}
func.func @infinite(%x : tensor<1x1x4xf32>) -> tensor<1x1x4xf32> {
  %w = core.constant #core.blob<"0x0000807F0000807F"> : tensor<1x1x2xf32>
  %0 = core.pad constant %x [0, 0, 1] [0, 0, 0] : (tensor<1x1x4xf32>) -> tensor<1x1x5xf32>
  %1 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}
func.func @needed_too(%x : tensor<1x1x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x5xf32>) {
  %w = core.constant dense<2.0> : tensor<1x1x2xf32>
  %0 = core.pad constant %x [0, 0, 1] [0, 0, 0] : (tensor<1x1x4xf32>) -> tensor<1x1x5xf32>
  %1 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  func.return %1, %0 : tensor<1x1x4xf32>, tensor<1x1x5xf32>
}
func.func @average(%x : tensor<1x1x4xf32>) -> tensor<1x1x5xf32> {
  %0 = core.pad constant %x [0, 0, 1] [0, 0, 0] : (tensor<1x1x4xf32>) -> tensor<1x1x5xf32>
  %1 = core.pool average %0 kernel [2] strides [1] dilations [1] pads [1] [0] overhang [0] : (tensor<1x1x5xf32>) -> tensor<1x1x5xf32>
  func.return %1 : tensor<1x1x5xf32>
}
func.func @maximum(%x : tensor<1x1x4xf32>) -> tensor<1x1x4xf32> {
  %0 = core.pad constant %x [0, 0, 1] [0, 0, 0] : (tensor<1x1x4xf32>) -> tensor<1x1x5xf32>
  %1 = core.pool max %0 kernel [2] strides [1] dilations [1] pads [0] [0] overhang [0] : (tensor<1x1x5xf32>) -> tensor<1x1x4xf32>
  func.return %1 : tensor<1x1x4xf32>
}
