// RUN: opt-tool %s --pass-pipeline='convert-to-caffe{dialect=ssd}' | filecheck %s

// CHECK:         caffe.Permute %x {order = [0, 3, 1, 2]}
// CHECK:         caffe.ReLU6
// CHECK-NEXT:    caffe.Clip {{.+}} {max = 6.0, min = 1.0}
func.func @main(%x : tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %six = core.constant dense<6.0> : tensor<f32>
  %t = core.transpose %x [0, 3, 1, 2] : (tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32>
  %a = core.max %t, %zero : (tensor<1x2x2x3xf32>, tensor<f32>) -> tensor<1x2x2x3xf32>
  %b = core.min %a, %six : (tensor<1x2x2x3xf32>, tensor<f32>) -> tensor<1x2x2x3xf32>
  %c = core.max %b, %one : (tensor<1x2x2x3xf32>, tensor<f32>) -> tensor<1x2x2x3xf32>
  %d = core.min %c, %six : (tensor<1x2x2x3xf32>, tensor<f32>) -> tensor<1x2x2x3xf32>
  func.return %d : tensor<1x2x2x3xf32>
}
