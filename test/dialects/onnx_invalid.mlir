// RUN: opt-tool %s --verify-diagnostics --split-input-file --parsing-diagnostics | filecheck %s

// CHECK: found 1 operands, expected 2 to 3
func.func @c1(%x: tensor<1x1x2x2xf32>) {
  %y = onnx.Conv_11 %x : (tensor<1x1x2x2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: found 2 results, expected 1
func.func @c1_results(%x: tensor<2xf32>) {
  %y, %z = onnx.Relu_14 %x : (tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return
}

// -----

// CHECK: operand 'W' is absent, but it is not optional
func.func @c2(%x: tensor<1x1x2x2xf32>) {
  %none = onnx.none : none
  %y = onnx.Conv_11 %x, %none : (tensor<1x1x2x2xf32>, none) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: Relu has no attribute 'alpha'
func.func @c3(%x: tensor<2xf32>) {
  %y = onnx.Relu_14 %x {alpha = 1.0} : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: attribute 'to' is not of kind INT
func.func @c3_kind(%x: tensor<2xf32>) {
  %y = "onnx.Cast_13"(%x) <{to = "float"}> : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: the required attribute 'to' is missing
func.func @c3_required(%x: tensor<2xf32>) {
  %y = onnx.Cast_13 %x : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: subgraph 'then_branch' is not a single block
func.func @c4(%c: tensor<i1>) {
  %y = onnx.If_16 %c else_branch {
    onnx.yield %c : tensor<i1>
  } : (tensor<i1>) -> tensor<i1>
  func.return
}

// -----

// CHECK: 'X' has type tensor(string), which is not among the types of T
func.func @c5(%x: tensor<2x!core.string>) {
  %y = onnx.Relu_14 %x : (tensor<2x!core.string>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: 'B' has type tensor(int64), but T is tensor(float) already
func.func @c5_variable(%x: tensor<2xf32>, %y: tensor<2xi64>) {
  %z = onnx.Add_14 %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: 3 bytes do not fit tensor<1xf32>, expected 4
func.func @initializer() {
  %w = onnx.initializer #core.blob<"0x000080"> : tensor<1xf32>
  func.return
}

// -----

// CHECK: expected a float of 32 bits
func.func @large_float(%x: tensor<2xf32>) {
  %y = onnx.LeakyRelu_16 %x {alpha = 1.0e300} : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: expected an integer of 64 bits
func.func @large_integer(%x: tensor<2xf32>) {
  %y = onnx.Cast_13 %x {to = 18446744073709551616} : (tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: 'X' has type tensor(i7), which is not among the types of T
func.func @foreign_type(%x: tensor<2xi7>) {
  %y = onnx.Relu_14 %x : (tensor<2xi7>) -> tensor<*xf32>
  func.return
}
