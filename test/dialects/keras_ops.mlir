// RUN: LOWERDECK_ROUNDTRIP

// CHECK-LABEL: func.func @dense
// CHECK: "keras.Dense"(%x, %w) <{arguments = {{\[\[}}{operand = 0 : i64}], {}], config = {activation = "relu", units = 4 : i64}, version = 3 : i64, weights = ["kernel"]}>
func.func @dense(%x : tensor<2x3xf32>, %w : tensor<3x4xf32>) {
  %y = "keras.Dense"(%x, %w) <{arguments = [[{operand = 0 : i64}], {}], config = {activation = "relu", units = 4 : i64}, version = 3 : i64, weights = ["kernel"]}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<*xf32>
  func.return
}
