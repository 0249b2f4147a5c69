// RUN: opt-tool %s --verify-diagnostics --pass-pipeline=legalize-keras | filecheck %s

// All that is refused is listed at once.
// CHECK-DAG: op 'keras.RandomCrop': no legalization for RandomCrop
// CHECK-DAG: op 'keras.ReLU': found 'colour' is 3, expected it not to be set
// CHECK-DAG: op 'keras.Activation': found the activation mine, expected one of Keras' own
// CHECK-DAG: op 'keras.Activation': found Activation in int8
func.func @refused(%x : tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %a = "keras.RandomCrop"(%x) <{arguments = [[{operand = 0 : i64}], {}], config = {}, version = 3 : i64, weights = []}> : (tensor<2xf32>) -> tensor<*xf32>
  %b = "keras.ReLU"(%x) <{arguments = [[{operand = 0 : i64}], {}], config = {colour = 3 : i64}, version = 3 : i64, weights = []}> : (tensor<2xf32>) -> tensor<*xf32>
  %c = "keras.Activation"(%x) <{arguments = [[{operand = 0 : i64}], {}], config = {activation = "mine"}, version = 3 : i64, weights = []}> : (tensor<2xf32>) -> tensor<*xf32>
  %d = "keras.Activation"(%x) <{arguments = [[{operand = 0 : i64}], {}], config = {activation = "relu", dtype = "int8_from_float32"}, version = 3 : i64, weights = []}> : (tensor<2xf32>) -> tensor<*xf32>
  func.return %a, %b, %c, %d : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
