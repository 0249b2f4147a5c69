// RUN: LOWERDECK_ROUNDTRIP

// CHECK-LABEL: func.func @quantized
// CHECK: "tflite.CONV_2D"(%x, %w) <{padding = "VALID", quantization = [#tflite.q<0.5 : -3>, #tflite.q<[0.25 : 0, 1.0e-05 : 0] along 0>, #tflite.q<0.125 : 0>], slots = array<i64: 0, 1, -1>, stride_h = 1 : i64, stride_w = 1 : i64}>
func.func @quantized(%x : tensor<1x4x4x3xi8>, %w : tensor<2x3x3x3xi8>) {
  %y = "tflite.CONV_2D"(%x, %w) <{padding = "VALID", quantization = [#tflite.q<0.5 : -3>, #tflite.q<[0.25 : 0, 1.0e-05 : 0] along 0>, #tflite.q<0.125 : 0>], slots = array<i64: 0, 1, -1>, stride_h = 1 : i64, stride_w = 1 : i64}> : (tensor<1x4x4x3xi8>, tensor<2x3x3x3xi8>) -> tensor<*xi8>
  func.return
}
