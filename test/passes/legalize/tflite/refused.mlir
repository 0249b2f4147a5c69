// RUN: opt-tool %s --verify-diagnostics --pass-pipeline=legalize-tflite | filecheck %s

// All that is refused is listed at once.
// CHECK-DAG: op 'tflite.RANDOM_UNIFORM': no legalization for RANDOM_UNIFORM; make the random numbers an input
// CHECK-DAG: op 'tflite.CUSTOM': no legalization for FlexErf; it needs TensorFlow itself
// CHECK-DAG: op 'tflite.SQUARE': found quantized integers, expected floats or plain integers
// CHECK-DAG: op 'tflite.ATAN2': found the option 'colour' is 3
// CHECK-DAG: op 'tflite.LEAKY_RELU': found a factor of nan between integers, expected a finite number
func.func @refused(%x : tensor<2xf32>, %q : tensor<2xi8>, %n : tensor<1xi32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>) {
  %a = "tflite.RANDOM_UNIFORM"(%n) : (tensor<1xi32>) -> tensor<*xf32>
  %b = "tflite.CUSTOM"(%x) <{custom_code = "FlexErf"}> : (tensor<2xf32>) -> tensor<*xf32>
  %c = "tflite.SQUARE"(%q) <{quantization = [#tflite.q<0.5 : 0>, #tflite.q<0.5 : 0>]}> : (tensor<2xi8>) -> tensor<*xi8>
  %d = "tflite.ATAN2"(%x, %x) <{colour = 3 : i64}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  %e = "tflite.LEAKY_RELU"(%q) <{alpha = 0x7FC00000 : f32, quantization = [#tflite.q<0.5 : 0>, #tflite.q<0.5 : 0>]}> : (tensor<2xi8>) -> tensor<*xi8>
  func.return %a, %b, %c, %d, %e : tensor<*xf32>, tensor<*xf32>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>
}
