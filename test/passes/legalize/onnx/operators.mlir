// RUN: opt-tool %s --pass-pipeline=legalize-onnx --split-input-file | filecheck %s

// SAME pads so that there are ceil(h / 2) rows, whatever h is.
// CHECK-LABEL: @conv_same
// CHECK-NEXT:    %y = core.conv %x, %w {{.*}} pads [{{.*}}, 1]
// CHECK-SAME:      -> tensor<1x4x?x4xf32, #core.tensor<dims = [1, 4, (h + 1) floordiv 2, 4]>>
func.func @conv_same(%x : tensor<1x2x?x7xf32, #core.tensor<dims = [1, 2, h, 7]>>, %w : tensor<4x2x3x3xf32>) -> tensor<*xf32> {
  %b = onnx.none : none
  %y = onnx.Conv_11 %x, %w, %b {auto_pad = "SAME_UPPER", strides = [2, 2]} : (tensor<1x2x?x7xf32, #core.tensor<dims = [1, 2, h, 7]>>, tensor<4x2x3x3xf32>, none) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The last row of windows hangs over by one; no window starts in the padding of the columns.
// CHECK-LABEL: @max_pool_ceil
// CHECK-NEXT:    core.pool max %x {{.*}} pads [0, 0] [1, 1] overhang [1, 0]
// CHECK-SAME:      -> tensor<1x1x3x2xf32>
func.func @max_pool_ceil(%x : tensor<1x1x5x6xf32>) -> tensor<*xf32> {
  %y = onnx.MaxPool_12 %x {ceil_mode = 1, kernel_shape = [2, 2], pads = [0, 0, 0, 1], strides = [2, 3]} : (tensor<1x1x5x6xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// CHECK-LABEL: @gemm
// CHECK-DAG:     %[[A:.*]] = core.transpose %a
// CHECK-DAG:     %[[B:.*]] = core.transpose %b
// CHECK:         %[[AB:.*]] = core.matmul %[[A]], %[[B]]
// CHECK-NEXT:    %[[HALF:.*]] = core.constant dense<0.5> : tensor<f32>
// CHECK-NEXT:    %[[SCALED:.*]] = core.mul %[[AB]], %[[HALF]]
// CHECK-NEXT:    core.add %[[SCALED]], %c
func.func @gemm(%a : tensor<3x2xf32>, %b : tensor<4x3xf32>, %c : tensor<4xf32>) -> tensor<*xf32> {
  %y = onnx.Gemm_13 %a, %b, %c {alpha = 0.5, transA = 1, transB = 1} : (tensor<3x2xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Before opset 13 the dimensions from the axis on are one row.
// CHECK-LABEL: @flat_softmax
// CHECK-NEXT:    %[[ROWS:.*]] = core.reshape %x [2, 12]
// CHECK-NEXT:    %[[Y:.*]] = core.softmax %[[ROWS]] axis 1
// CHECK-NEXT:    core.reshape %[[Y]] [2, 3, 4]
func.func @flat_softmax(%x : tensor<2x3x4xf32>) -> tensor<*xf32> {
  %y = onnx.Softmax_11 %x : (tensor<2x3x4xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The operand belongs to dimension 1, not to the last one.
// CHECK-LABEL: @old_add
// CHECK-NEXT:    %[[Y:.*]] = core.reshape %y [3, 1]
// CHECK-NEXT:    core.add %x, %[[Y]]
func.func @old_add(%x : tensor<2x3x3xf32>, %y : tensor<3xf32>) -> tensor<*xf32> {
  %z = onnx.Add_6 %x, %y {axis = 1, broadcast = 1} : (tensor<2x3x3xf32>, tensor<3xf32>) -> tensor<*xf32>
  func.return %z : tensor<*xf32>
}

// -----

// The upper bound is applied last: it wins if the bounds are in disorder. Of equal values the second
// stays.
// CHECK-LABEL: @clip
// CHECK-NEXT:    %[[LOW:.*]] = core.max %low, %x
// CHECK-NEXT:    core.min %high, %[[LOW]]
func.func @clip(%x : tensor<4xf32>, %low : tensor<f32>, %high : tensor<f32>) -> tensor<*xf32> {
  %y = onnx.Clip_13 %x, %low, %high : (tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Shape arithmetic does not stay as data.
// CHECK-LABEL: @shape_arithmetic
// CHECK-NOT:     core.mul
// CHECK:         %y = core.from_dims [n * 2, 12]
// CHECK-NEXT:    func.return %y
func.func @shape_arithmetic(%x : tensor<?x6xf32, #core.tensor<dims = [n, 6]>>) -> tensor<*xi64> {
  %s = onnx.Shape_15 %x : (tensor<?x6xf32, #core.tensor<dims = [n, 6]>>) -> tensor<*xi64>
  %two = onnx.initializer #core.blob<"0x0200000000000000"> : tensor<1xi64>
  %y = onnx.Mul_14 %s, %two : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  func.return %y : tensor<*xi64>
}

// -----

// CHECK-LABEL: @instance_norm
// CHECK-DAG:     %[[S:.*]] = core.reshape %s [3, 1]
// CHECK-DAG:     %[[B:.*]] = core.reshape %b [3, 1]
// CHECK:         core.layer_norm %x, %[[S]], %[[B]] axis 2
func.func @instance_norm(%x : tensor<1x3x8xf32>, %s : tensor<3xf32>, %b : tensor<3xf32>) -> tensor<*xf32> {
  %y = onnx.InstanceNormalization_6 %x, %s, %b : (tensor<1x3x8xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// CHECK-LABEL: @einsum
// CHECK-NEXT:    %[[B:.*]] = core.transpose %b [0, 1, 3, 2]
// CHECK-NEXT:    %y = core.matmul %a, %[[B]]
// CHECK-NEXT:    func.return %y
func.func @einsum(%a : tensor<2x3x4x5xf32>, %b : tensor<2x3x6x5xf32>) -> tensor<*xf32> {
  %y = onnx.Einsum_12 %a, %b {equation = "bhid,bhjd->bhij"} : (tensor<2x3x4x5xf32>, tensor<2x3x6x5xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The input is projected outside of the loop, which goes through it from the end.
// CHECK-LABEL: @rnn
// CHECK:         %[[P:.*]] = core.reshape %{{.*}} [5, 1, 3]
// CHECK:         core.loop trip
// CHECK:           core.slice %[[P]] [-[[T:u[0-9]+]] + 4, 0, 0]
// CHECK:           core.tanh
// CHECK:         } {iteration = "[[T]]"
// CHECK:         core.slice %{{.*}} [-1, 1, 1] :
func.func @rnn(%x : tensor<5x1x2xf32>, %w : tensor<1x3x2xf32>, %r : tensor<1x3x3xf32>) -> tensor<*xf32> {
  %y, %h = onnx.RNN_14 %x, %w, %r {direction = "reverse", hidden_size = 3} : (tensor<5x1x2xf32>, tensor<1x3x2xf32>, tensor<1x3x3xf32>) -> (tensor<*xf32>, none)
  func.return %y : tensor<*xf32>
}

// -----

// Rounded before the zero point is added, then saturated.
// CHECK-LABEL: @quantize
// CHECK:         core.div
// CHECK-NEXT:    core.round
// CHECK:         core.add
// CHECK:         core.min
// CHECK:         core.max
// CHECK-NEXT:    core.cast %{{.*}} to ui8
func.func @quantize(%x : tensor<4xf32>, %s : tensor<f32>, %z : tensor<ui8>) -> tensor<*xui8> {
  %y = onnx.QuantizeLinear_13 %x, %s, %z : (tensor<4xf32>, tensor<f32>, tensor<ui8>) -> tensor<*xui8>
  func.return %y : tensor<*xui8>
}

// -----

// An axis that only the data tells decides between the reduced tensor and the tensor itself.
// CHECK-LABEL: @reduce_from_data
// CHECK:         core.bind_symbols %{{.*}} ["[[A:u[0-9]+]]", "[[B:u[0-9]+]]"] : tensor<1x2xi1>
// CHECK:         core.concat
// CHECK-NEXT:    core.slice %{{.*}} [-[[A]] + 1, 0]
// CHECK:         core.concat
// CHECK-NEXT:    core.slice %{{.*}} [0, -[[B]] + 1]
func.func @reduce_from_data(%x : tensor<2x3xf32>, %axes : tensor<1xi64>) -> tensor<*xf32> {
  %y = onnx.ReduceSum_13 %x, %axes : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// An operator without a legalization of its own is what its schema says.
// CHECK-LABEL: @expanded
// CHECK:         core.cast %{{.*}} to ui8
func.func @expanded(%x : tensor<3xf32>) -> tensor<*xui8> {
  %y, %s, %z = onnx.DynamicQuantizeLinear_11 %x : (tensor<3xf32>) -> (tensor<*xui8>, tensor<*xf32>, tensor<*xui8>)
  func.return %y : tensor<*xui8>
}
