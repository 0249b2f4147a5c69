// RUN: opt-tool %s --pass-pipeline=recover-operators,dce --split-input-file | filecheck %s

// The graph gets an opset with Gelu, in which its other nodes are newer versions.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]] = onnx.Add_14 %x, %x
// CHECK-NEXT:    %[[Y:.+]] = onnx.Gelu_20 %[[A]] :
// CHECK-NEXT:    func.return %[[Y]]
func.func @main(%x : tensor<4xf32> {core.name = "x"}) -> (tensor<4xf32> {core.name = "y"}) {
  %root = onnx.initializer #core.blob<"0xF304B53F"> : tensor<f32>
  %one = onnx.initializer #core.blob<"0x0000803F"> : tensor<f32>
  %half = onnx.initializer #core.blob<"0x0000003F"> : tensor<f32>
  %a = onnx.Add_13 %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d = onnx.Div_13 %a, %root : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %e = onnx.Erf_13 %d : (tensor<4xf32>) -> tensor<4xf32>
  %s = onnx.Add_13 %e, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %m = onnx.Mul_13 %a, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = onnx.Mul_13 %m, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// The nearest case: erf of another value than the one that it is multiplied by.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     onnx.Gelu
// CHECK:         onnx.Erf_13
func.func @main(%x : tensor<4xf32> {core.name = "x"}, %z : tensor<4xf32> {core.name = "z"}) -> (tensor<4xf32> {core.name = "y"}) {
  %root = onnx.initializer #core.blob<"0xF304B53F"> : tensor<f32>
  %one = onnx.initializer #core.blob<"0x0000803F"> : tensor<f32>
  %half = onnx.initializer #core.blob<"0x0000003F"> : tensor<f32>
  %d = onnx.Div_13 %z, %root : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %e = onnx.Erf_13 %d : (tensor<4xf32>) -> tensor<4xf32>
  %s = onnx.Add_13 %e, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %m = onnx.Mul_13 %x, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = onnx.Mul_13 %m, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// A node that means something else in newer opsets keeps the graph in its own: before version 13,
// Softmax takes all dimensions from `axis` on.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     onnx.Gelu
// CHECK:         onnx.Softmax_11
// CHECK:         onnx.Erf_9
func.func @main(%x : tensor<2x4xf32> {core.name = "x"}) -> (tensor<2x4xf32> {core.name = "y"}) {
  %root = onnx.initializer #core.blob<"0xF304B53F"> : tensor<f32>
  %one = onnx.initializer #core.blob<"0x0000803F"> : tensor<f32>
  %half = onnx.initializer #core.blob<"0x0000003F"> : tensor<f32>
  %a = onnx.Softmax_11 %x {axis = 0} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %d = onnx.Div_7 %a, %root : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %e = onnx.Erf_9 %d : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %s = onnx.Add_7 %e, %one : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %m = onnx.Mul_7 %a, %s : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %y = onnx.Mul_7 %m, %half : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  func.return %y : tensor<2x4xf32>
}

// -----

// So do slopes of channels, which are those of the last dimension since version 7.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     onnx.Mish
// CHECK:         onnx.PRelu_6
func.func @main(%x : tensor<2x3x3xf32> {core.name = "x"}) -> (tensor<2x3x3xf32> {core.name = "y"}) {
  %slope = onnx.initializer #core.blob<"0x000000000000803F00000040"> : tensor<3xf32>
  %a = onnx.PRelu_6 %x, %slope : (tensor<2x3x3xf32>, tensor<3xf32>) -> tensor<2x3x3xf32>
  %s = onnx.Softplus_1 %a : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %t = onnx.Tanh_6 %s : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %y = onnx.Mul_6 %a, %t : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  func.return %y : tensor<2x3x3xf32>
}

// -----

// So does a transform of the dimension that it takes if it is not told one: the second one, and the
// last but one since version 20.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     onnx.Gelu
// CHECK:         onnx.DFT_17
func.func @main(%x : tensor<2x3x4x1xf32> {core.name = "x"}) -> (tensor<2x3x4x2xf32> {core.name = "y"}) {
  %root = onnx.initializer #core.blob<"0xF304B53F"> : tensor<f32>
  %one = onnx.initializer #core.blob<"0x0000803F"> : tensor<f32>
  %half = onnx.initializer #core.blob<"0x0000003F"> : tensor<f32>
  %d = onnx.Div_14 %x, %root : (tensor<2x3x4x1xf32>, tensor<f32>) -> tensor<2x3x4x1xf32>
  %e = onnx.Erf_13 %d : (tensor<2x3x4x1xf32>) -> tensor<2x3x4x1xf32>
  %s = onnx.Add_14 %e, %one : (tensor<2x3x4x1xf32>, tensor<f32>) -> tensor<2x3x4x1xf32>
  %m = onnx.Mul_14 %x, %s : (tensor<2x3x4x1xf32>, tensor<2x3x4x1xf32>) -> tensor<2x3x4x1xf32>
  %g = onnx.Mul_14 %m, %half : (tensor<2x3x4x1xf32>, tensor<f32>) -> tensor<2x3x4x1xf32>
  %none = onnx.none : none
  %y = onnx.DFT_17 %g, %none : (tensor<2x3x4x1xf32>, none) -> tensor<2x3x4x2xf32>
  func.return %y : tensor<2x3x4x2xf32>
}

// -----

// Gelu keeps the shape of its operand, which a constant of the shape [1] changes if it is a scalar.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     onnx.Gelu
// CHECK:         onnx.Erf_13
func.func @main(%x : tensor<f32> {core.name = "x"}) -> (tensor<1xf32> {core.name = "y"}) {
  %root = onnx.initializer #core.blob<"0xF304B53F"> : tensor<f32>
  %one = onnx.initializer #core.blob<"0x0000803F"> : tensor<1xf32>
  %half = onnx.initializer #core.blob<"0x0000003F"> : tensor<f32>
  %d = onnx.Div_14 %x, %root : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %e = onnx.Erf_13 %d : (tensor<f32>) -> tensor<f32>
  %s = onnx.Add_14 %e, %one : (tensor<f32>, tensor<1xf32>) -> tensor<1xf32>
  %m = onnx.Mul_14 %x, %s : (tensor<f32>, tensor<1xf32>) -> tensor<1xf32>
  %y = onnx.Mul_14 %m, %half : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
  func.return %y : tensor<1xf32>
}
