// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// Attributes print as plain values, absent operands are `none`, attributes in order of their names.
// CHECK-LABEL: func.func @attributes
// CHECK:         %[[W:.*]] = onnx.initializer #core.blob<"0x0000803F"> : tensor<1x1x1x1xf32>
// CHECK-NEXT:    %[[NONE:.*]] = onnx.none : none
// CHECK-NEXT:    %{{.*}} = onnx.Conv_11 %x, %[[W]], %[[NONE]] {auto_pad = "NOTSET", group = 1, pads = [0, 0, 0, 0]} : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>, none) -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = onnx.LeakyRelu_16 %{{.*}} {alpha = 1.0e-05} : (tensor<*xf32>) -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = onnx.LeakyRelu_16 %{{.*}} {alpha = "-inf"} attributes {note = "kept"} : (tensor<*xf32>) -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = onnx.Constant_13 {value = #onnx.tensor<tensor<1xi64>, #core.blob<"0x0100000000000000">>} : () -> tensor<1xi64>
// CHECK-NEXT:    %{{.*}} = onnx.Constant_13 {value_floats = [0.5, -2.0]} : () -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = onnx.Constant_13 {value_strings = ["a", "b"]} : () -> tensor<*x!core.string>
func.func @attributes(%x: tensor<1x1x2x2xf32>) -> tensor<*xf32> {
  %w = onnx.initializer #core.blob<"0x0000803F"> : tensor<1x1x1x1xf32>
  %none = onnx.none : none
  %y = onnx.Conv_11 %x, %w, %none {pads = [0, 0, 0, 0], auto_pad = "NOTSET", group = 1} : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>, none) -> tensor<*xf32>
  %a = onnx.LeakyRelu_16 %y {alpha = 1.0e-5} : (tensor<*xf32>) -> tensor<*xf32>
  %b = onnx.LeakyRelu_16 %a {alpha = "-inf"} attributes {note = "kept"} : (tensor<*xf32>) -> tensor<*xf32>
  %c = onnx.Constant_13 {value = #onnx.tensor<tensor<1xi64>, #core.blob<"0x0100000000000000">>} : () -> tensor<1xi64>
  %d = onnx.Constant_13 {value_floats = [0.5, -2.0]} : () -> tensor<*xf32>
  %e = onnx.Constant_13 {value_strings = ["a", "b"]} : () -> tensor<*x!core.string>
  func.return %b : tensor<*xf32>
}

// Subgraphs are regions that see the values around them; names of other domains have a prefix.
// CHECK-LABEL: func.func @subgraphs
// CHECK-NEXT:    %[[Z:.*]] = onnx.If_16 %c else_branch {
// CHECK-NEXT:      onnx.yield %x : tensor<3xf32>
// CHECK-NEXT:    } then_branch {
// CHECK-NEXT:      %[[R:.*]] = onnx.Relu_14 %x : (tensor<3xf32>) -> tensor<*xf32>
// CHECK-NEXT:      onnx.yield %[[R]] : tensor<*xf32>
// CHECK-NEXT:    } : (tensor<i1>) -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = onnx.ml.Scaler_1 %[[Z]] {offset = [0.0], scale = [2.0]} : (tensor<*xf32>) -> tensor<*xf32>
func.func @subgraphs(%x: tensor<3xf32>, %c: tensor<i1>) -> tensor<*xf32> {
  %z = onnx.If_16 %c else_branch {
    onnx.yield %x : tensor<3xf32>
  } then_branch {
    %r = onnx.Relu_14 %x : (tensor<3xf32>) -> tensor<*xf32>
    onnx.yield %r : tensor<*xf32>
  } : (tensor<i1>) -> tensor<*xf32>
  %s = onnx.ml.Scaler_1 %z {offset = [0.0], scale = [2.0]} : (tensor<*xf32>) -> tensor<*xf32>
  func.return %s : tensor<*xf32>
}

// Nothing is known of a value but that it is there.
// CHECK-LABEL: func.func @untyped
// CHECK-NEXT:    %{{.*}} = onnx.Identity_16 %x : (tensor<*xnone>) -> tensor<*xnone>
func.func @untyped(%x: tensor<*xnone>) -> tensor<*xnone> {
  %y = onnx.Identity_16 %x : (tensor<*xnone>) -> tensor<*xnone>
  func.return %y : tensor<*xnone>
}
