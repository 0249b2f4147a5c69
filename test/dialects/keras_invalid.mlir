// RUN: opt-tool %s --verify-diagnostics | filecheck %s

// CHECK: operand 1 of 1 (C1)
func.func @c1(%x : tensor<2xf32>, %w : tensor<2xf32>) {
  %y = "keras.PReLU"(%x, %w) <{arguments = [[{operand = 1 : i64}], {}], config = {}, version = 3 : i64, weights = ["alpha"]}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  func.return
}
