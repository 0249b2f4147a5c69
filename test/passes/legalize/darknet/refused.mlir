// RUN: opt-tool %s --verify-diagnostics --pass-pipeline=legalize-darknet | filecheck %s

// All that is refused is listed at once, and operands are not taken for granted.
// CHECK-DAG: op 'darknet.sam': found 1 results to read, expected 2
// CHECK-DAG: op 'darknet.connected': found weights of shapes [], expected [(1,), (1, 8)]
// CHECK-DAG: op 'darknet.gru': found no input, expected one
// CHECK-DAG: op 'darknet.upsample': found 8 numbers that are no image, expected an image
// CHECK-DAG: op 'darknet.activation': found activation=mish, expected one of
func.func @refused(%x : tensor<2x8xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %a = "darknet.sam"(%x) <{places = {input = array<i64: 0>}}> : (tensor<2x8xf32>) -> tensor<*xf32>
  %b = "darknet.connected"(%x) <{places = {input = array<i64: 0>}}> : (tensor<2x8xf32>) -> tensor<*xf32>
  %c = "darknet.gru"() <{places = {}}> : () -> tensor<*xf32>
  %d = "darknet.upsample"(%x) <{places = {input = array<i64: 0>}}> : (tensor<2x8xf32>) -> tensor<*xf32>
  %e = "darknet.activation"(%x) <{activation = "mish", places = {input = array<i64: 0>}}> : (tensor<2x8xf32>) -> tensor<*xf32>
  func.return %a, %b, %c, %d, %e : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
