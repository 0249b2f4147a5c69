// RUN: opt-tool %s --pass-pipeline=simplify-onnx,dce --split-input-file | filecheck %s

// A batch normalization becomes part of the weights: 2 * 3 / sqrt(3 + 1) = 3 and 2 - 1 * 3 / 2 = 0.5.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[W:.+]] = onnx.initializer #core.blob<"0x00004040"> : tensor<1x1x1x1xf32>
// CHECK-DAG:     %[[B:.+]] = onnx.initializer #core.blob<"0x0000003F"> : tensor<1xf32>
// CHECK:         %[[Y:.+]] = onnx.Conv_11 %x, %[[W]], %[[B]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @main(%x : tensor<1x1x4x4xf32> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}) {
  %w = onnx.initializer #core.blob<"0x00000040"> : tensor<1x1x1x1xf32>
  %scale = onnx.initializer #core.blob<"0x00004040"> : tensor<1xf32>
  %bias = onnx.initializer #core.blob<"0x00000040"> : tensor<1xf32>
  %mean = onnx.initializer #core.blob<"0x0000803F"> : tensor<1xf32>
  %variance = onnx.initializer #core.blob<"0x00004040"> : tensor<1xf32>
  %c = onnx.Conv_11 %x, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<*xf32>
  %y = onnx.BatchNormalization_9 %c, %scale, %bias, %mean, %variance {epsilon = 1.0} : (tensor<*xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The nearest case: something else reads the convolution.
// CHECK-LABEL: func.func @main
// CHECK:         onnx.Conv_11
// CHECK:         onnx.Mul_7
func.func @main(%x : tensor<1x1x4x4xf32> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}, tensor<*xf32> {core.name = "c"}) {
  %w = onnx.initializer #core.blob<"0x00000040"> : tensor<1x1x1x1xf32>
  %two = onnx.initializer #core.blob<"0x00000040"> : tensor<f32>
  %c = onnx.Conv_11 %x, %w : (tensor<1x1x4x4xf32>, tensor<1x1x1x1xf32>) -> tensor<*xf32>
  %y = onnx.Mul_7 %c, %two : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  func.return %y, %c : tensor<*xf32>, tensor<*xf32>
}

// -----

// Sizes that a shape takes from the input itself are copied: 0, 0, and 12 in two parts.
// CHECK-LABEL: func.func @main
// CHECK:         %[[S:.+]] = onnx.initializer #core.blob<"0x0000000000000000000000000000000003000000000000000400000000000000"> : tensor<4xi64>
// CHECK-NEXT:    %[[Y:.+]] = onnx.Reshape_5 %x, %[[S]] : {{.*}} -> tensor<?x?x3x4xf32, #core.tensor<dims = [b, t, 3, 4]>>
// CHECK-NEXT:    func.return %[[Y]]
func.func @main(%x : tensor<?x?x12xf32, #core.tensor<dims = [b, t, 12]>> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}) {
  %parts = onnx.initializer #core.blob<"0x03000000000000000400000000000000"> : tensor<2xi64>
  %zero = onnx.initializer #core.blob<"0x0000000000000000"> : tensor<1xi64>
  %two = onnx.initializer #core.blob<"0x0200000000000000"> : tensor<1xi64>
  %shape = onnx.Shape_1 %x : (tensor<?x?x12xf32, #core.tensor<dims = [b, t, 12]>>) -> tensor<*xi64>
  %front = onnx.Slice_10 %shape, %zero, %two : (tensor<*xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xi64>
  %all = onnx.Concat_4 %front, %parts {axis = 0} : (tensor<*xi64>, tensor<2xi64>) -> tensor<*xi64>
  %y = onnx.Reshape_5 %x, %all : (tensor<?x?x12xf32, #core.tensor<dims = [b, t, 12]>>, tensor<*xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The nearest case: sizes in another order are none of the input's at their place, and two of them
// cannot be left to Reshape.
// CHECK-LABEL: func.func @main
// CHECK:         onnx.Shape_1
// CHECK:         onnx.Reshape_5
func.func @main(%x : tensor<?x?x12xf32, #core.tensor<dims = [b, t, 12]>> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}) {
  %order = onnx.initializer #core.blob<"0x010000000000000000000000000000000200000000000000"> : tensor<3xi64>
  %shape = onnx.Shape_1 %x : (tensor<?x?x12xf32, #core.tensor<dims = [b, t, 12]>>) -> tensor<*xi64>
  %turned = onnx.Gather_1 %shape, %order {axis = 0} : (tensor<*xi64>, tensor<3xi64>) -> tensor<*xi64>
  %y = onnx.Reshape_5 %x, %turned : (tensor<?x?x12xf32, #core.tensor<dims = [b, t, 12]>>, tensor<*xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// p[q] and not q[p]: [1, 2, 0] behind [0, 2, 1] is [2, 1, 0].
// CHECK-LABEL: func.func @main
// CHECK:         onnx.Transpose_13 %x {perm = [2, 1, 0]}
// CHECK-NOT:     onnx.Transpose
func.func @main(%x : tensor<2x3x4xf32> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}) {
  %a = onnx.Transpose_13 %x {perm = [0, 2, 1]} : (tensor<2x3x4xf32>) -> tensor<*xf32>
  %b = onnx.Identity_13 %a : (tensor<*xf32>) -> tensor<*xf32>
  %y = onnx.Transpose_13 %b {perm = [1, 2, 0]} : (tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Weights of integers stay integers; a runtime multiplies them as such.
// CHECK-LABEL: func.func @main
// CHECK:         onnx.DequantizeLinear_13
func.func @main(%x : tensor<4xf32> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}) {
  %w = onnx.initializer #core.blob<"0x01020304"> : tensor<4xi8>
  %s = onnx.initializer #core.blob<"0x0000003F"> : tensor<f32>
  %d = onnx.DequantizeLinear_13 %w, %s : (tensor<4xi8>, tensor<f32>) -> tensor<*xf32>
  %y = onnx.Add_13 %x, %d : (tensor<4xf32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A size that is copied is one of the tensor before: 4 * n here, not n.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]] = onnx.Reshape_14 %x
// CHECK:         onnx.Reshape_14 %[[A]]
func.func @main(%x : tensor<?x12xf32, #core.tensor<dims = [n, 12]>> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}) {
  %first = onnx.initializer #core.blob<"0xFFFFFFFFFFFFFFFF0300000000000000"> : tensor<2xi64>
  %then = onnx.initializer #core.blob<"0x000000000000000003000000000000000100000000000000"> : tensor<3xi64>
  %a = onnx.Reshape_14 %x, %first : (tensor<?x12xf32, #core.tensor<dims = [n, 12]>>, tensor<2xi64>) -> tensor<*xf32>
  %y = onnx.Reshape_14 %a, %then : (tensor<*xf32>, tensor<3xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Both states of an LSTM have to be zeros: its cell begins with 1.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[C:.+]] = onnx.initializer #core.blob<"0x0000803F"> : tensor<1x1x1xf32>
// CHECK:         onnx.LSTM_14 %x, {{.*}}, %[[C]]
func.func @main(%x : tensor<2x1x1xf32> {core.name = "x"}) -> (tensor<*xf32> {core.name = "y"}) {
  %none = onnx.none : none
  %w = onnx.initializer #core.blob<"0x0000803F0000803F0000803F0000803F"> : tensor<1x4x1xf32>
  %h = onnx.initializer #core.blob<"0x00000000"> : tensor<1x1x1xf32>
  %c = onnx.initializer #core.blob<"0x0000803F"> : tensor<1x1x1xf32>
  %y, %a, %b = onnx.LSTM_14 %x, %w, %w, %none, %none, %h, %c {hidden_size = 1} : (tensor<2x1x1xf32>, tensor<1x4x1xf32>, tensor<1x4x1xf32>, none, none, tensor<1x1x1xf32>, tensor<1x1x1xf32>) -> (tensor<*xf32>, none, none)
  func.return %y : tensor<*xf32>
}
