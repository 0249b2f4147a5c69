// RUN: opt-tool %s --verify-diagnostics --pass-pipeline=legalize-tflite | filecheck %s

// Options that name dimensions which are not there.
// CHECK-DAG: op 'tflite.STABLEHLO_SLICE': found 'start_indices' is [0, 0, 1], expected 2 numbers
// CHECK-DAG: op 'tflite.STABLEHLO_REDUCE': found 'dimensions' is [2], expected dimensions below 2, each once
// CHECK-DAG: op 'tflite.STABLEHLO_GATHER': found 'index_vector_dim' is 3, expected one up to 1
func.func @dimensions(%x : tensor<2x3xf32>, %s : tensor<f32>, %i : tensor<1xi32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %a = "tflite.STABLEHLO_SLICE"(%x) <{start_indices = array<i64: 0, 0, 1>, limit_indices = array<i64: 1, 1>}> : (tensor<2x3xf32>) -> tensor<*xf32>
  %b = "tflite.STABLEHLO_REDUCE"(%x, %s) <{dimensions = array<i64: 2>, body = "ADD"}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<*xf32>
  %c = "tflite.STABLEHLO_GATHER"(%x, %i) <{index_vector_dim = 3 : i64, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<*xf32>
  func.return %a, %b, %c : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
