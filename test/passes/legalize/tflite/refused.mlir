// RUN: opt-tool %s --verify-diagnostics --pass-pipeline=legalize-tflite | filecheck %s

// All that is refused is listed at once.
// CHECK-DAG: op 'tflite.RANDOM_UNIFORM': no legalization for RANDOM_UNIFORM; make the random numbers an input
// CHECK-DAG: op 'tflite.CUSTOM': no legalization for FlexErf; it needs TensorFlow itself
// CHECK-DAG: op 'tflite.SQUARE': found quantized integers, expected floats or plain integers
// CHECK-DAG: op 'tflite.ATAN2': found the option 'colour' is 3
// CHECK-DAG: op 'tflite.LEAKY_RELU': found a factor of nan between integers, expected a finite number
// CHECK-DAG: op 'tflite.RELU6': found a scale of 1e-40, expected a step of which f32 can tell how many are 6.0
// CHECK-DAG: op 'tflite.SUM': expected integers, got f32
func.func @refused(%x : tensor<2xf32>, %q : tensor<2xi8>, %n : tensor<1xi32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>, tensor<*xi8>, tensor<*xf32>) {
  %a = "tflite.RANDOM_UNIFORM"(%n) : (tensor<1xi32>) -> tensor<*xf32>
  %b = "tflite.CUSTOM"(%x) <{custom_code = "FlexErf"}> : (tensor<2xf32>) -> tensor<*xf32>
  %c = "tflite.SQUARE"(%q) <{quantization = [#tflite.q<0.5 : 0>, #tflite.q<0.5 : 0>]}> : (tensor<2xi8>) -> tensor<*xi8>
  %d = "tflite.ATAN2"(%x, %x) <{colour = 3 : i64}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  %e = "tflite.LEAKY_RELU"(%q) <{alpha = 0x7FC00000 : f32, quantization = [#tflite.q<0.5 : 0>, #tflite.q<0.5 : 0>]}> : (tensor<2xi8>) -> tensor<*xi8>
  %f = "tflite.RELU6"(%q) <{quantization = [#tflite.q<0.5 : 0>, #tflite.q<1.0e-40 : 0>]}> : (tensor<2xi8>) -> tensor<*xi8>
  %half = core.constant dense<0.5> : tensor<1xf32>
  %g = "tflite.SUM"(%x, %half) <{keep_dims = false}> : (tensor<2xf32>, tensor<1xf32>) -> tensor<*xf32>
  func.return %a, %b, %c, %d, %e, %f, %g : tensor<*xf32>, tensor<*xf32>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>, tensor<*xi8>, tensor<*xf32>
}
