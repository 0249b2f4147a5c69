// RUN: opt-tool %s --pass-pipeline=convert-to-onnx --split-input-file | filecheck %s
// RUN: opt-tool %s --compile-to=onnx --disable=simplify,dce --split-input-file --check-each | filecheck %s --check-prefix=PHASE

// One op, one node of the newest version; the type of its result stays.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:[a-z0-9_]+]]: tensor<2x3xf32> {core.name = "x"})
// CHECK-NEXT:    %[[Y:.+]] = onnx.Tanh_13 %[[X]] : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    func.return %[[Y]]
// PHASE: onnx.Tanh_13
func.func @main(%x : tensor<2x3xf32> {core.name = "x"}) -> (tensor<2x3xf32> {core.name = "y"}) {
  %y = core.tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// -----

// ONNX leaves open what an integer divided by zero is; in core it is zero. The two constants stand
// at the beginning of the graph.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[ZERO:.+]] = onnx.initializer #core.blob<"0x00000000"> : tensor<i32>
// CHECK-DAG:     %[[ONE:.+]] = onnx.initializer #core.blob<"0x01000000"> : tensor<i32>
// CHECK:         %[[BY_ZERO:.+]] = onnx.Equal_19 %y, %[[ZERO]]
// CHECK-NEXT:    %[[SAFE:.+]] = onnx.Where_16 %[[BY_ZERO]], %[[ONE]], %y
// CHECK-NEXT:    %[[Q:.+]] = onnx.Div_14 %x, %[[SAFE]]
// CHECK-NEXT:    %[[R:.+]] = onnx.Where_16 %[[BY_ZERO]], %[[ZERO]], %[[Q]]
// CHECK-NEXT:    func.return %[[R]]
// PHASE: onnx.Div_14
func.func @main(%x : tensor<4xi32>, %y : tensor<4xi32>) -> tensor<4xi32> {
  %q = core.div %x, %y : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return %q : tensor<4xi32>
}

// -----

// The nearest case: a divisor that is known and has no zero needs none of that.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     onnx.Where
// CHECK:         onnx.Div_14
// CHECK-NOT:     onnx.Where
func.func @main(%x : tensor<2xi32>) -> tensor<2xi32> {
  %c = core.constant dense<[3, -2]> : tensor<2xi32>
  %q = core.div %x, %c : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  func.return %q : tensor<2xi32>
}

// -----

// A dimension is read where a value needs it, once, and what is computed of it follows.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[TWO:.+]] = onnx.initializer #core.blob<"0x0200000000000000"> : tensor<1xi64>
// CHECK:         %[[N:.+]] = onnx.Shape_21 %x {end = 1, start = 0}
// CHECK-NEXT:    %[[M:.+]] = onnx.Mul_14 %[[N]], %[[TWO]]
// CHECK-NEXT:    onnx.Reshape_21 %x, %[[M]] {allowzero = 1}
// CHECK-NOT:     onnx.Shape
func.func @main(%x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>)
    -> tensor<?xf32, #core.tensor<dims = [n * 2]>> {
  %y = core.reshape %x [n * 2]
    : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<?xf32, #core.tensor<dims = [n * 2]>>
  func.return %y : tensor<?xf32, #core.tensor<dims = [n * 2]>>
}

// -----

// Bodies capture what is around them, and have constants in the main graph; what they yield is a
// node's own.
// CHECK-LABEL: func.func @main
// CHECK:         %[[C:.+]] = onnx.initializer #core.blob<"0x0000004000000040000000C0"> : tensor<3xf32>
// CHECK:         %[[R:.+]] = onnx.Loop_21 %n, %{{.+}}, %x body {
// CHECK-NEXT:    ^{{.+}}(%{{.+}}: tensor<i64>, %[[GOING:.+]]: tensor<i1>, %[[V:.+]]: tensor<3xf32>):
// CHECK-NEXT:      %[[S:.+]] = onnx.Mul_14 %[[V]], %x
// CHECK-NEXT:      %[[W:.+]] = onnx.Add_14 %[[S]], %[[C]]
// CHECK-NEXT:      %[[AGAIN:.+]] = onnx.Identity_21 %[[GOING]]
// CHECK-NEXT:      %[[OUT:.+]] = onnx.Identity_21 %[[W]]
// CHECK-NEXT:      onnx.yield %[[AGAIN]], %[[OUT]]
// CHECK:         func.return %[[R]]
func.func @main(%n : tensor<i64>, %x : tensor<3xf32>) -> tensor<3xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<3xf32> -> tensor<3xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>):
    %c = core.constant dense<[2.0, 2.0, -2.0]> : tensor<3xf32>
    %s = core.mul %v, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %w = core.add %s, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    core.yield %w : tensor<3xf32>
  }
  func.return %r : tensor<3xf32>
}

// -----

// Products of bytes are those of ONNX; a zero point a filter is a vector there, and the bias comes
// behind.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:[a-z0-9_]+]]: {{.*}} %[[W:[a-z0-9_]+]]: {{.*}} %[[B:[a-z0-9_]+]]: {{.*}} %[[P:[a-z0-9_]+]]: {{.*}} %[[Q:[a-z0-9_]+]]:
// CHECK:         %[[V:.+]] = onnx.Reshape_{{.*}} %[[Q]], %{{.+}} :
// CHECK-NEXT:    %[[C:.+]] = onnx.ConvInteger_10 %[[X]], %[[W]], %[[P]], %[[V]] {{.*}}pads = [0, 1, 0, 0]
// CHECK:         %[[R:.+]] = onnx.Reshape_{{.*}} %[[B]], %{{.+}}
// CHECK-NEXT:    onnx.Add_14 %[[C]], %[[R]]
// PHASE: onnx.ConvInteger_10
func.func @main(%x : tensor<1x2x1x5xui8> {core.name = "x"}, %w : tensor<3x2x1x2xi8> {core.name = "w"}, %b : tensor<3xi32> {core.name = "b"}, %p : tensor<ui8> {core.name = "p"}, %q : tensor<3x1x1x1xi8> {core.name = "q"}) -> (tensor<1x3x1x5xi32> {core.name = "y"}) {
  %y = core.conv %x, %w, %b, %p, %q strides [1, 1] dilations [1, 1] pads [0, 1] [0, 0] groups 1 in i32 : (tensor<1x2x1x5xui8>, tensor<3x2x1x2xi8>, tensor<3xi32>, tensor<ui8>, tensor<3x1x1x1xi8>) -> tensor<1x3x1x5xi32>
  func.return %y : tensor<1x3x1x5xi32>
}

// -----

// MatMulInteger takes one zero point for the left factor; with one a row, i32 are multiplied.
// CHECK-LABEL: func.func @main
// CHECK:         onnx.MatMulInteger_10 %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : (tensor<2x3xui8>, tensor<3x4xi8>, tensor<ui8>, tensor<4xi8>) -> tensor<2x4xi32>
// CHECK:         %[[L:.+]] = onnx.Sub_14
// CHECK:         %[[R:.+]] = onnx.Sub_14
// CHECK:         onnx.MatMul_13 %[[L]], %[[R]] :
// PHASE: onnx.MatMulInteger_10
func.func @main(%x : tensor<2x3xui8> {core.name = "x"}, %w : tensor<3x4xi8> {core.name = "w"}, %p : tensor<ui8> {core.name = "p"}, %q : tensor<4xi8> {core.name = "q"}, %r : tensor<2x1xui8> {core.name = "r"}) -> (tensor<2x4xi32> {core.name = "y"}, tensor<2x4xi32> {core.name = "z"}) {
  %y = core.matmul %x, %w, %p, %q in i32 : (tensor<2x3xui8>, tensor<3x4xi8>, tensor<ui8>, tensor<4xi8>) -> tensor<2x4xi32>
  %z = core.matmul %x, %w, %r, %q in i32 : (tensor<2x3xui8>, tensor<3x4xi8>, tensor<2x1xui8>, tensor<4xi8>) -> tensor<2x4xi32>
  func.return %y, %z : tensor<2x4xi32>, tensor<2x4xi32>
}

// -----

// Layers between bytes: the factors are the scales of the weights, sums that are added have them,
// and limits that are not those of the type are limits of bytes. One whose zero point is beyond its
// type, or whose factor is no scale, is computed in integers.
// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.+]] = onnx.DequantizeLinear_21 %x, %[[ONE:.+]], %{{.+}} :
// CHECK-NEXT:    %[[W:.+]] = onnx.DequantizeLinear_21 %{{.+}}, %[[F:.+]], %{{.+}} {axis = 0} : (tensor<3x2x1x2xi8>, tensor<3xf32>, tensor<3xi8>)
// CHECK-NEXT:    %[[B:.+]] = onnx.DequantizeLinear_21 %{{.+}}, %[[F]] {axis = 0} : (tensor<3xi32>, tensor<3xf32>)
// CHECK-NEXT:    %[[C:.+]] = onnx.Conv_11 %[[X]], %[[W]], %[[B]] {{.*}}pads = [0, 1, 0, 0]
// CHECK-NEXT:    %[[Q:.+]] = onnx.QuantizeLinear_21 %[[C]], %[[ONE]], %{{.+}} :
// CHECK-NEXT:    %[[R:.+]] = onnx.Clip_13 %[[Q]],
// CHECK:         onnx.MatMul_13
// CHECK-NEXT:    onnx.QuantizeLinear_21
// CHECK-NOT:     QuantizeLinear
// PHASE-COUNT-2: onnx.QuantizeLinear_21
// PHASE-NOT:     QuantizeLinear
func.func @main(%x : tensor<1x2x1x5xui8> {core.name = "x"}, %v : tensor<2x3xi8> {core.name = "v"}) -> (tensor<1x3x1x5xui8> {core.name = "y"}, tensor<2x4xi8> {core.name = "z"}, tensor<2x4xi8> {core.name = "a"}, tensor<2x4xi8> {core.name = "b"}) {
  %w = core.constant dense<3> : tensor<3x2x1x2xi8>
  %p = core.constant dense<7> : tensor<ui8>
  %q = core.constant dense<1> : tensor<i8>
  %s = core.conv %x, %w, %p, %q strides [1, 1] dilations [1, 1] pads [0, 1] [0, 0] groups 1 in i32 : (tensor<1x2x1x5xui8>, tensor<3x2x1x2xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x3x1x5xi32>
  %shift = core.constant dense<[[[5]], [[6]], [[7]]]> : tensor<3x1x1xi32>
  %t = core.add %s, %shift : (tensor<1x3x1x5xi32>, tensor<3x1x1xi32>) -> tensor<1x3x1x5xi32>
  %f = core.constant dense<[[[0.5]], [[0.25]], [[0.125]]]> : tensor<3x1x1xf32>
  %y = core.requantize even %t, %f zero 9 low 9 high 255 to ui8 : (tensor<1x3x1x5xi32>, tensor<3x1x1xf32>) -> tensor<1x3x1x5xui8>
  %m = core.constant dense<2> : tensor<3x4xi8>
  %u = core.matmul %v, %m in i32 : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  %g = core.constant dense<0.01> : tensor<f32>
  %z = core.requantize even %u, %g zero -3 low -128 high 127 to i8 : (tensor<2x4xi32>, tensor<f32>) -> tensor<2x4xi8>
  %a = core.requantize even %u, %g zero 200 low -128 high 127 to i8 : (tensor<2x4xi32>, tensor<f32>) -> tensor<2x4xi8>
  %n = core.constant dense<-0.01> : tensor<f32>
  %b = core.requantize even %u, %n zero 0 low -128 high 127 to i8 : (tensor<2x4xi32>, tensor<f32>) -> tensor<2x4xi8>
  func.return %y, %z, %a, %b : tensor<1x3x1x5xui8>, tensor<2x4xi8>, tensor<2x4xi8>, tensor<2x4xi8>
}

// -----

// What runtimes fuse with the node before: a maximum with zero, and a minimum of a maximum.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[LOW:.+]] = onnx.initializer #core.blob<"0x000080BF"> : tensor<f32>
// CHECK-DAG:     %[[HIGH:.+]] = onnx.initializer #core.blob<"0x0000C040"> : tensor<f32>
// CHECK:         %[[R:.+]] = onnx.Relu_14 %x
// CHECK:         %[[C:.+]] = onnx.Clip_13 %x, %[[LOW]], %[[HIGH]]
// CHECK-NEXT:    func.return %[[R]], %[[C]]
// PHASE:         onnx.Relu_14
// PHASE:         onnx.Clip_13
func.func @main(%x : tensor<2x3xf32> {core.name = "x"}) -> (tensor<2x3xf32> {core.name = "y"}, tensor<2x3xf32> {core.name = "z"}) {
  %zero = core.constant dense<0.0> : tensor<f32>
  %low = core.constant dense<-1.0> : tensor<1xf32>
  %high = core.constant dense<6.0> : tensor<1x1xf32>
  %y = core.max %zero, %x : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %m = core.max %x, %low : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %z = core.min %m, %high : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  func.return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// The nearest cases: a number that widens the value, one for each column, and integers.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     onnx.Relu
// CHECK-NOT:     onnx.Clip
// CHECK-COUNT-3: onnx.Max_13
// CHECK-NOT:     onnx.Relu
func.func @main(%x : tensor<3xf32> {core.name = "x"}, %i : tensor<3xi32> {core.name = "i"}) -> (tensor<2x3xf32> {core.name = "y"}, tensor<3xf32> {core.name = "z"}, tensor<3xi32> {core.name = "k"}) {
  %zeros = core.constant dense<0.0> : tensor<2x1xf32>
  %several = core.constant dense<[0.0, 0.0, 1.0]> : tensor<3xf32>
  %none = core.constant dense<0> : tensor<i32>
  %y = core.max %x, %zeros : (tensor<3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %z = core.max %x, %several : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %k = core.max %i, %none : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  func.return %y, %z, %k : tensor<2x3xf32>, tensor<3xf32>, tensor<3xi32>
}
