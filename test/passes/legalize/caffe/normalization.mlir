// RUN: opt-tool %s --pass-pipeline=legalize-caffe --split-input-file | filecheck %s

// Statistics are sums: they are divided by the third blob, at once if they are small.
// CHECK-LABEL: @batch_norm
// CHECK-DAG:     %[[M:.*]] = core.constant dense<[0.5, 1.0]>
// CHECK-DAG:     %[[V:.*]] = core.constant dense<[1.0, 2.0]>
// CHECK-DAG:     %[[ONE:.*]] = core.constant dense<[1.0, 1.0]> : tensor<2xf32>
// CHECK-DAG:     %[[ZERO:.*]] = core.constant dense<[0.0, 0.0]> : tensor<2xf32>
// CHECK:         %[[Y:.*]] = core.batch_norm %x, %[[ONE]], %[[ZERO]], %[[M]], %[[V]] axis 1 {epsilon = 0.0010000000474974513 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @batch_norm(%x : tensor<1x2x3x3xf32>) -> tensor<*xf32> {
  %m = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 8.0]> : tensor<2xf32>
  %f = core.constant dense<4.0> : tensor<1xf32>
  %y = caffe.BatchNorm %x blobs(%m, %v, %f) {eps = 0.001} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A factor of 0 makes zeros of the statistics, not infinities.
// CHECK-LABEL: @factor_zero
// CHECK:         %[[M:.*]] = core.constant dense<[0.0, 0.0]> : tensor<2xf32>
// CHECK:         core.batch_norm %x, %{{.*}}, %{{.*}}, %[[M]], %{{.*}}
// CHECK-NOT:     inf
func.func @factor_zero(%x : tensor<1x2x3x3xf32>) -> tensor<*xf32> {
  %m = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %f = core.constant dense<0.0> : tensor<1xf32>
  %y = caffe.BatchNorm %x blobs(%m, %m, %f) {} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Scale and bias move into the normalization before them.
// CHECK-LABEL: @scaled
// CHECK:         %[[Y:.*]] = core.batch_norm %x, %s, %b,
// CHECK-NEXT:    func.return %[[Y]]
func.func @scaled(%x : tensor<1x2x3x3xf32>, %m : tensor<2xf32>, %f : tensor<1xf32>, %s : tensor<2xf32>, %b : tensor<2xf32>) -> tensor<*xf32> {
  %n = caffe.BatchNorm %x blobs(%m, %m, %f) {} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  %y = caffe.Scale %n blobs(%s, %b) {bias_term = true} : (tensor<*xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Without a bias the zeros stay.
// CHECK-LABEL: @scaled_only
// CHECK:         %[[ZERO:.*]] = core.constant dense<[0.0, 0.0]> : tensor<2xf32>
// CHECK:         core.batch_norm %x, %s, %[[ZERO]],
// CHECK-NEXT:    func.return
func.func @scaled_only(%x : tensor<1x2x3x3xf32>, %m : tensor<2xf32>, %f : tensor<1xf32>, %s : tensor<2xf32>) -> tensor<*xf32> {
  %n = caffe.BatchNorm %x blobs(%m, %m, %f) {} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  %y = caffe.Scale %n blobs(%s) {} : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The normalized blob has another reader, so it is needed as it is.
// CHECK-LABEL: @read_twice
// CHECK:         %[[N:.*]] = core.batch_norm
// CHECK:         %[[Y:.*]] = core.mul %[[N]], %{{.*}}
// CHECK:         func.return %[[N]], %[[Y]]
func.func @read_twice(%x : tensor<1x2x3x3xf32>, %m : tensor<2xf32>, %f : tensor<1xf32>, %s : tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %n = caffe.BatchNorm %x blobs(%m, %m, %f) {} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  %y = caffe.Scale %n blobs(%s) {} : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  func.return %n, %y : tensor<*xf32>, tensor<*xf32>
}

// -----

// A scale along the width, of as many numbers as there are channels, is another one.
// CHECK-LABEL: @other_axis
// CHECK:         %[[N:.*]] = core.batch_norm
// CHECK:         core.mul %[[N]], %s
func.func @other_axis(%x : tensor<1x2x3x2xf32>, %m : tensor<2xf32>, %f : tensor<1xf32>, %s : tensor<2xf32>) -> tensor<*xf32> {
  %n = caffe.BatchNorm %x blobs(%m, %m, %f) {} : (tensor<1x2x3x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  %y = caffe.Scale %n blobs(%s) {axis = 3} : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The second of two scales is on its own.
// CHECK-LABEL: @scaled_twice
// CHECK:         %[[N:.*]] = core.batch_norm %x, %s,
// CHECK:         %[[T:.*]] = core.reshape %t [2, 1, 1]
// CHECK:         core.mul %[[N]], %[[T]]
func.func @scaled_twice(%x : tensor<1x2x3x3xf32>, %m : tensor<2xf32>, %f : tensor<1xf32>, %s : tensor<2xf32>, %t : tensor<2xf32>) -> tensor<*xf32> {
  %n = caffe.BatchNorm %x blobs(%m, %m, %f) {} : (tensor<1x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  %y = caffe.Scale %n blobs(%s) {} : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  %z = caffe.Scale %y blobs(%t) {} : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32>
  func.return %z : tensor<*xf32>
}

// -----

// alpha is divided by the size across channels, k counts; within a channel k is 1.
// CHECK-LABEL: @lrn
// CHECK:         core.pool sum %{{.*}}
// CHECK:         core.constant dense<0.5>
// CHECK:         core.constant dense<7.0>
// CHECK:         core.pool average %{{.*}}{count_pads = true}
// CHECK:         core.constant dense<1.5>
// CHECK:         core.constant dense<1.0>
// CHECK-NOT:     dense<7.0>
func.func @lrn(%x : tensor<1x4x3x3xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a = caffe.LRN %x {local_size = 3, alpha = 1.5, k = 7.0} : (tensor<1x4x3x3xf32>) -> tensor<*xf32>
  %b = caffe.LRN %x {local_size = 3, alpha = 1.5, k = 7.0, norm_region = "WITHIN_CHANNEL"} : (tensor<1x4x3x3xf32>) -> tensor<*xf32>
  func.return %a, %b : tensor<*xf32>, tensor<*xf32>
}
