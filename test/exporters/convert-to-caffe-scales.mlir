// RUN: opt-tool %s --compile-to=caffe --check-each | filecheck %s

// Two products and two sums with a number for each channel are one layer, also behind a rectifier.
// CHECK:         %[[A:.*]] = caffe.Scale %{{.*}} {{.*}}bias_term = true
// CHECK:         %[[R:.*]] = caffe.ReLU %[[A]]
// CHECK:         caffe.Scale %[[R]]
// CHECK-NOT:     caffe.Scale
func.func @main(%x : tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {
  %s = core.constant dense<[[[2.0]], [[-3.0]]]> : tensor<2x1x1xf32>
  %t = core.constant dense<[[[1.0]], [[0.5]]]> : tensor<2x1x1xf32>
  %z = core.constant dense<0.0> : tensor<f32>
  %0 = core.mul %x, %s : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %1 = core.add %0, %t : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %2 = core.mul %1, %t : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %3 = core.add %2, %s : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %4 = core.max %3, %z : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32>
  %5 = core.add %4, %t : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %6 = core.mul %5, %s : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %6 : tensor<1x2x4x4xf32>
}
