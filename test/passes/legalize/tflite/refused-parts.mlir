// RUN: opt-tool %s --verify-diagnostics --pass-pipeline=legalize-tflite | filecheck %s

// Parts that do not belong together.
// CHECK-DAG: op 'tflite.PRELU': found a result of f32, expected i8
// CHECK-DAG: op 'tflite.RESIZE_BILINEAR': found 3 sizes of the result, expected its height and width
// CHECK-DAG: op 'tflite.CONCATENATION': found no input 0, expected it to be given
// CHECK-DAG: op 'tflite.FULLY_CONNECTED': found 3 scales of 2 channels, expected one for each
// CHECK-DAG: op 'tflite.SPACE_TO_DEPTH': found 2 inputs, expected 1
// CHECK-DAG: op 'tflite.STABLEHLO_MINIMUM': found no input 0, expected it to be given
// CHECK-DAG: op 'tflite.LOGISTIC': found result 0 with scale 0.0, expected a positive one
// CHECK-DAG: op 'tflite.PACK': found no inputs, expected one or more
// CHECK-DAG: op 'tflite.STABLEHLO_CONCATENATE': found no input 0, expected it to be given
// CHECK-DAG: op 'tflite.TOPK_V2': found 1 results, expected 2 or more
// CHECK-DAG: op 'tflite.TRANSPOSE_CONV': found 3 numbers as the size of the result, expected 4
// CHECK-DAG: op 'tflite.DYNAMIC_UPDATE_SLICE': found 'update' of type tensor<2xi8>, expected 2 dimensions
// CHECK-DAG: op 'tflite.STABLEHLO_GATHER': found 'operand' of type tensor<f32>, expected 1 or more dimensions
func.func @apart(%q : tensor<1x2xi8>, %i : tensor<1x2x2x1xi8>) -> (tensor<*xf32>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>) {
  %a = "tflite.PRELU"(%q, %q) <{quantization = [#tflite.q<0.5 : 0>, #tflite.q<0.5 : 0>, #tflite.q<0.5 : 0>]}> : (tensor<1x2xi8>, tensor<1x2xi8>) -> tensor<*xf32>
  %s = core.constant dense<[4, 4, 4]> : tensor<3xi32>
  %b = "tflite.RESIZE_BILINEAR"(%i, %s) <{quantization = [#tflite.q<0.5 : 0>, unit, #tflite.q<0.5 : 0>]}> : (tensor<1x2x2x1xi8>, tensor<3xi32>) -> tensor<*xi8>
  %c = "tflite.CONCATENATION"() : () -> tensor<*xf32>
  %w = core.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi8>
  %d = "tflite.FULLY_CONNECTED"(%q, %w) <{quantization = [#tflite.q<0.5 : 0>, #tflite.q<[0.5 : 0, 0.25 : 0, 0.5 : 0] along 0>, #tflite.q<0.5 : 0>]}> : (tensor<1x2xi8>, tensor<2x2xi8>) -> tensor<*xi8>
  %e = "tflite.SPACE_TO_DEPTH"(%i, %i) <{block_size = 2 : i64}> : (tensor<1x2x2x1xi8>, tensor<1x2x2x1xi8>) -> tensor<*xi8>
  %f = "tflite.STABLEHLO_MINIMUM"() : () -> tensor<*xf32>
  %g = "tflite.LOGISTIC"(%q) <{quantization = [#tflite.q<0.5 : 0>, #tflite.q<0.0 : 0>]}> : (tensor<1x2xi8>) -> tensor<*xi8>
  %h = "tflite.PACK"() : () -> tensor<*xf32>
  %j = "tflite.STABLEHLO_CONCATENATE"() : () -> tensor<*xf32>
  %one = core.constant dense<1> : tensor<i32>
  %k = "tflite.TOPK_V2"(%w, %one) : (tensor<2x2xi8>, tensor<i32>) -> tensor<*xi8>
  %real = core.constant dense<1.0> : tensor<1x2x2x1xf32>
  %l = "tflite.TRANSPOSE_CONV"(%s, %real, %real) : (tensor<3xi32>, tensor<1x2x2x1xf32>, tensor<1x2x2x1xf32>) -> tensor<*xf32>
  %u = core.constant dense<[1, 2]> : tensor<2xi8>
  %m = "tflite.DYNAMIC_UPDATE_SLICE"(%w, %u, %s) : (tensor<2x2xi8>, tensor<2xi8>, tensor<3xi32>) -> tensor<*xi8>
  %scalar = core.constant dense<1.0> : tensor<f32>
  %n = "tflite.STABLEHLO_GATHER"(%scalar, %one) : (tensor<f32>, tensor<i32>) -> tensor<*xf32>
  func.return %a, %b, %c, %d, %e, %f, %g : tensor<*xf32>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>, tensor<*xi8>, tensor<*xf32>, tensor<*xi8>
}
