// RUN: opt-tool %s --pass-pipeline=legalize-onnx --split-input-file | filecheck %s

// Bounds of a dimension that is not a number stay exact; the largest and smallest numbers mean ends.
// CHECK-LABEL: @slice
// CHECK:         core.slice %x [1, 7] [max(0, n - 1), 8] [1, -1]
func.func @slice(%x: tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<*xf32> {
  %starts = onnx.Constant_13 {value_ints = [1, -1]} : () -> tensor<2xi64>
  %ends = onnx.Constant_13 {value_ints = [9223372036854775807, -9223372036854775808]} : () -> tensor<2xi64>
  %axes = onnx.Constant_13 {value_ints = [0, 1]} : () -> tensor<2xi64>
  %steps = onnx.Constant_13 {value_ints = [1, -1]} : () -> tensor<2xi64>
  %y = onnx.Slice_13 %x, %starts, %ends, %axes, %steps : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A start that only data decides gets a symbol; a negative one counts from the end.
// CHECK-LABEL: @slice_data
// CHECK:         core.bind_symbols %start ["[[S:u[0-9]+]]"]
// CHECK:         core.slice %x [min(8, max(-max(-1, min(0, [[S]])) * 8 + [[S]], 0))]
func.func @slice_data(%x: tensor<8xf32>, %start: tensor<1xi64>) -> tensor<*xf32> {
  %end = onnx.Constant_13 {value_ints = [8]} : () -> tensor<1xi64>
  %y = onnx.Slice_13 %x, %start, %end : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// 0 copies a dimension, -1 is what is left of the others.
// CHECK-LABEL: @reshape
// CHECK:         core.reshape %x [n, h * 3]
func.func @reshape(%x: tensor<?x3x?xf32, #core.tensor<dims = [n, 3, h]>>) -> tensor<*xf32> {
  %shape = onnx.Constant_13 {value_ints = [0, -1]} : () -> tensor<2xi64>
  %y = onnx.Reshape_14 %x, %shape : (tensor<?x3x?xf32, #core.tensor<dims = [n, 3, h]>>, tensor<2xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A shape from data may hold 0 and -1: it is resolved before it gets symbols.
// CHECK-LABEL: @reshape_data
// CHECK:         core.div
// CHECK:         %[[SHAPE:.*]] = core.select
// CHECK-NEXT:    core.bind_symbols %[[SHAPE]] ["[[A:u[0-9]+]]", "[[B:u[0-9]+]]"]
// CHECK:         core.reshape %x {{\[}}[[A]], [[B]]]
func.func @reshape_data(%x: tensor<6xf32>, %shape: tensor<2xi64>) -> tensor<*xf32> {
  %y = onnx.Reshape_14 %x, %shape : (tensor<6xf32>, tensor<2xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Elements are removed first, then others are added.
// CHECK-LABEL: @pad
// CHECK:         %[[CUT:.*]] = core.slice %x [0, 1] [4, 3]
// CHECK:         core.pad reflect %[[CUT]] [2, 0] [0, 3]
func.func @pad(%x: tensor<4x4xf32>) -> tensor<*xf32> {
  %pads = onnx.Constant_13 {value_ints = [2, -1, 0, 3]} : () -> tensor<4xi64>
  %y = onnx.Pad_13 %x, %pads {mode = "reflect"} : (tensor<4x4xf32>, tensor<4xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Seven elements in three parts: the last is what is left.
// CHECK-LABEL: @split
// CHECK:         core.split %x axis 0 sizes [3, 3, 1]
func.func @split(%x: tensor<7xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %none = onnx.none : none
  %a, %b, %c = onnx.Split_18 %x, %none {axis = 0, num_outputs = 3} : (tensor<7xf32>, none) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  func.return %a, %b, %c : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// One part is the input; equal parts that may leave a rest are checked at run time.
// CHECK-LABEL: @split_one
// CHECK-NEXT:    %[[P:.*]], %{{.*}} = core.split %x axis 0 sizes [n floordiv 2, n floordiv 2]
// CHECK-NEXT:    func.return %x, %[[P]]
func.func @split_one(%x: tensor<?xf32, #core.tensor<dims = [n]>>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a = onnx.Split_2 %x {axis = 0} : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<*xf32>
  %b, %c = onnx.Split_2 %x {axis = 0} : (tensor<?xf32, #core.tensor<dims = [n]>>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %a, %b : tensor<*xf32>, tensor<*xf32>
}

// -----

// A shape that is split stays known: rows and columns change places.
// CHECK-LABEL: @split_shape
// CHECK-NOT:     core.split
// CHECK:         core.reshape %x [4, n]
func.func @split_shape(%x: tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<*xf32> {
  %s = onnx.Shape_15 %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<*xi64>
  %a, %b = onnx.Split_11 %s {split = [1, 1]} : (tensor<*xi64>) -> (tensor<*xi64>, tensor<*xi64>)
  %t = onnx.Concat_13 %b, %a {axis = 0} : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
  %y = onnx.Reshape_14 %x, %t : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<*xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The number of elements that are not zero is a symbol of its own.
// CHECK-LABEL: @nonzero
// CHECK:         %[[COUNT:.*]] = core.count_nonzero %x
// CHECK-NEXT:    core.bind_symbols %[[COUNT]] ["[[N:u[0-9]+]]"]
// CHECK-NEXT:    core.nonzero %x {{\[}}[[N]]]
func.func @nonzero(%x: tensor<2x3xf32>) -> tensor<*xi64> {
  %y = onnx.NonZero_13 %x : (tensor<2x3xf32>) -> tensor<*xi64>
  func.return %y : tensor<*xi64>
}

// -----

// Shapes cut out, computed with and put together again leave no arithmetic on data.
// CHECK-LABEL: @shape_arithmetic
// CHECK-NOT:     core.mul
// CHECK-NOT:     core.concat
// CHECK:         core.broadcast %v [n, 4]
func.func @shape_arithmetic(%x: tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, %v: tensor<1x4xf32>) -> tensor<*xf32> {
  %first = onnx.Shape_15 %x {start = 0, end = 1} : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<*xi64>
  %last = onnx.Shape_15 %x {start = -1} : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<*xi64>
  %two = onnx.Constant_13 {value_ints = [2]} : () -> tensor<1xi64>
  %four = onnx.Mul_14 %last, %two : (tensor<*xi64>, tensor<1xi64>) -> tensor<*xi64>
  %shape = onnx.Concat_13 %first, %four {axis = 0} : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64>
  %y = onnx.Expand_13 %v, %shape : (tensor<1x4xf32>, tensor<*xi64>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A dimension that is open is taken for one that stays; a run in which it is one has no slice.
// CHECK-LABEL: @squeeze
// CHECK:         core.slice %x [max(0, min(1, n) * 2 - n), 0, 0] [n, 1, 4]
// CHECK-NEXT:    core.reshape
// CHECK-SAME:      [n, 4]
func.func @squeeze(%x: tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>) -> tensor<*xf32> {
  %y = onnx.Squeeze_11 %x : (tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}
