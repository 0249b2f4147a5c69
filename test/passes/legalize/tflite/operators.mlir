// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tflite,dce | filecheck %s

// A convolution of bytes is one of integers, and one op brings its sums to the result's scale.
// CHECK-LABEL: func.func @conv
// CHECK:       core.requantize double {{%.+}}, {{%.+}}, {{%.+}} zero 1 low 1 high 127 to i8
func.func @conv(%x : tensor<1x4x4x3xi8>) -> tensor<*xi8> {
  %w = core.constant #core.blob<uniform "0x01", 24> : tensor<2x2x2x3xi8>
  %b = core.constant dense<[1, 2]> : tensor<2xi32>
  %y = "tflite.CONV_2D"(%x, %w, %b) <{padding = "VALID", fused_activation_function = "RELU", quantization = [#tflite.q<0.5 : -3>, #tflite.q<[0.25 : 0, 0.5 : 0] along 0>, #tflite.q<0.125 : 0>, #tflite.q<0.75 : 1>], stride_h = 1 : i64, stride_w = 1 : i64}> : (tensor<1x4x4x3xi8>, tensor<2x2x2x3xi8>, tensor<2xi32>) -> tensor<*xi8>
  func.return %y : tensor<*xi8>
}

// -----

// A function of bytes is a table.
// CHECK-LABEL: func.func @table
// CHECK:       core.gather {{%.+}}, {{%.+}} axis 0 {{.*}} : (tensor<256xi8>, tensor<2x3xi64>) -> tensor<2x3xi8>
func.func @table(%x : tensor<2x3xi8>) -> tensor<*xi8> {
  %y = "tflite.HARD_SWISH"(%x) <{quantization = [#tflite.q<0.05 : 2>, #tflite.q<0.05 : -3>]}> : (tensor<2x3xi8>) -> tensor<*xi8>
  func.return %y : tensor<*xi8>
}

// -----

// What an operator of TensorFlow means has the same form here.
// CHECK-LABEL: func.func @reshape
// CHECK-NEXT:  core.reshape %x [3, 2] : (tensor<2x3xf32>) -> tensor<3x2xf32>
func.func @reshape(%x : tensor<2x3xf32>) -> tensor<*xf32> {
  %y = "tflite.RESHAPE"(%x) <{new_shape = array<i64: 3, -1>}> : (tensor<2x3xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The side with the larger scale is halved in the common one, which rounds nothing.
// CHECK-LABEL: func.func @sum
// CHECK:       %[[TIMES:.+]] = core.constant dense<524288> : tensor<i32>
// CHECK:       core.mul %{{.+}}, %[[TIMES]]
// CHECK:       core.requantize double {{.+}} to i32
// CHECK:       core.add
// CHECK:       core.requantize double {{.+}} zero 1 low -128 high 127 to i8
func.func @sum(%x: tensor<2x3xi8>, %y: tensor<2x3xi8>) -> tensor<*xi8> {
  %z = "tflite.ADD"(%x, %y) <{quantization = [#tflite.q<0.5 : -3>, #tflite.q<0.3 : 2>, #tflite.q<0.75 : 1>]}> : (tensor<2x3xi8>, tensor<2x3xi8>) -> tensor<*xi8>
  func.return %z : tensor<*xi8>
}
