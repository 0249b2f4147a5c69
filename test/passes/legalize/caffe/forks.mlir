// RUN: opt-tool %s --pass-pipeline=legalize-caffe --split-input-file | filecheck %s

// The dilation has another name in old files of DeepLab.
// CHECK-LABEL: @hole
// CHECK:         core.conv {{.*}} dilations [2, 2]
func.func @hole(%x : tensor<1x1x5x5xf32>, %w : tensor<1x1x3x3xf32>) -> tensor<*xf32> {
  %y = caffe.Convolution %x blobs(%w) {kernel_size = [3], num_output = 1, hole = 2, bias_term = false} : (tensor<1x1x5x5xf32>, tensor<1x1x3x3xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// As many groups as channels, which nothing says.
// CHECK-LABEL: @depthwise
// CHECK:         core.conv {{.*}} groups 4
func.func @depthwise(%x : tensor<1x4x5x5xf32>, %w : tensor<4x1x3x3xf32>) -> tensor<*xf32> {
  %y = caffe.ConvolutionDepthwise %x blobs(%w) {kernel_size = [3], num_output = 4, bias_term = false} : (tensor<1x4x5x5xf32>, tensor<4x1x3x3xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Planes of equal size stay as they are; a crop alone is a slice.
// CHECK-LABEL: @same_size
// CHECK-NOT:     core.gather
// CHECK:         core.slice %x
// CHECK-SAME:    tensor<1x2x3x3xf32>
func.func @same_size(%x : tensor<1x2x5x5xf32>) -> tensor<*xf32> {
  %y = caffe.Interp %x {height = 3, width = 3, pad_beg = -1, pad_end = -1} : (tensor<1x2x5x5xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// With a mask, elements go where it says; without one, each is there several times.
// CHECK-LABEL: @upsample
// CHECK:         core.scatter_elements none
// CHECK:         core.broadcast {{.*}} -> tensor<1x2x3x2x3x2xf32>
func.func @upsample(%x : tensor<1x2x3x3xf32>, %m : tensor<1x2x3x3xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %y = caffe.Upsample %x, %m {scale = 2} : (tensor<1x2x3x3xf32>, tensor<1x2x3x3xf32>) -> tensor<*xf32>
  %z = caffe.Upsample %x {scale = 2} : (tensor<1x2x3x3xf32>) -> tensor<*xf32>
  func.return %y, %z : tensor<*xf32>, tensor<*xf32>
}

// -----

// The number of detections depends on data.
// CHECK-LABEL: @detections
// CHECK:         core.suppress
// CHECK:         core.bind_symbols
// CHECK:         func.return %{{.*}} : tensor<1x1x?x7xf32
func.func @detections(%l : tensor<1x8xf32>, %c : tensor<1x4xf32>, %p : tensor<1x2x8xf32>) -> tensor<*xf32> {
  %y = caffe.DetectionOutput %l, %c, %p {num_classes = 2, nms_param = {nms_threshold = 0.5}} : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x2x8xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// What follows has as many items as there are proposals.
// CHECK-LABEL: @proposals
// CHECK:         core.suppress
// CHECK:         func.return %{{.*}} : tensor<?x2x2x2xf32
func.func @proposals(%x : tensor<1x2x3x3xf32>, %s : tensor<1x2x3x3xf32>, %d : tensor<1x4x3x3xf32>, %i : tensor<1x3xf32>) -> tensor<*xf32> {
  %r = caffe.Proposal %s, %d, %i {ratio = [1.0], scale = [1.0]} : (tensor<1x2x3x3xf32>, tensor<1x4x3x3xf32>, tensor<1x3xf32>) -> tensor<*xf32>
  %y = caffe.ROIPooling %x, %r {pooled_h = 2, pooled_w = 2} : (tensor<1x2x3x3xf32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}
