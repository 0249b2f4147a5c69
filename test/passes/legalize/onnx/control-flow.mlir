// RUN: opt-tool %s --pass-pipeline=legalize-onnx --split-input-file | filecheck %s

// A condition that is always true is dropped; the iteration number is a symbol in the body, and a
// scan output has as many rows as there are trips.
// CHECK-LABEL: @loop
// CHECK-SAME:    tensor<5x4xf32>
// CHECK:         core.loop trip %{{.*}} carry %x : tensor<4xf32>
// CHECK:           %[[NEXT:.*]] = core.add
// CHECK:           core.yield %[[NEXT]], %[[NEXT]]
// CHECK:         iteration = "[[I:u[0-9]+]]"
func.func @loop(%x: tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %trips = onnx.Constant_13 {value_int = 5} : () -> tensor<i64>
  %none = onnx.none : none
  %y, %rows = onnx.Loop_13 %trips, %none, %x body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<*xf32>):
    %next = onnx.Add_14 %v, %x : (tensor<*xf32>, tensor<4xf32>) -> tensor<*xf32>
    onnx.yield %go, %next, %next : tensor<i1>, tensor<*xf32>, tensor<*xf32>
  } : (tensor<i64>, none, tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %y, %rows : tensor<*xf32>, tensor<*xf32>
}

// -----

// A condition that is computed stays, and decides how many rows there are.
// CHECK-LABEL: @while
// CHECK:         core.loop cond %go : tensor<i1> carry %x : tensor<4xf32> -> tensor<4xf32>, tensor<?xf32, #core.tensor<dims = {{\[}}[[N:u[0-9]+]]]>>
// CHECK:         count = "[[N]]"
func.func @while(%x: tensor<4xf32>, %go: tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) {
  %none = onnx.none : none
  %y, %rows = onnx.Loop_13 %none, %go, %x body {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<*xf32>):
    %next = onnx.Add_14 %v, %v : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    %sum = onnx.ReduceMax_13 %next {keepdims = 0} : (tensor<*xf32>) -> tensor<*xf32>
    %limit = onnx.Constant_13 {value_float = 100.0} : () -> tensor<f32>
    %less = onnx.Less_13 %sum, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
    onnx.yield %less, %next, %sum : tensor<*xi1>, tensor<*xf32>, tensor<*xf32>
  } : (none, tensor<i1>, tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %y, %rows : tensor<*xf32>, tensor<*xf32>
}

// -----

// What is carried grows in each iteration: a short loop is unrolled.
// CHECK-LABEL: @grow
// CHECK-SAME:    -> tensor<4xf32>
// CHECK-NOT:     core.loop
// CHECK-COUNT-2: core.concat
func.func @grow(%x: tensor<2xf32>, %y: tensor<1xf32>) -> tensor<*xf32> {
  %trips = onnx.Constant_13 {value_int = 2} : () -> tensor<i64>
  %none = onnx.none : none
  %z = onnx.Loop_13 %trips, %none, %x body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<*xf32>):
    %next = onnx.Concat_13 %v, %y {axis = 0} : (tensor<*xf32>, tensor<1xf32>) -> tensor<*xf32>
    onnx.yield %go, %next : tensor<i1>, tensor<*xf32>
  } : (tensor<i64>, none, tensor<2xf32>) -> tensor<*xf32>
  func.return %z : tensor<*xf32>
}

// -----

// The second sequence axis is read from its end.
// CHECK-LABEL: @scan
// CHECK:         core.loop
// CHECK:           core.slice %x [0, -[[I:u[0-9]+]] + 6] [2, 1]
func.func @scan(%s: tensor<2xf32>, %x: tensor<2x7xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %y, %rows = onnx.Scan_11 %s, %x {num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1]} body {
  ^bb0(%v: tensor<*xf32>, %e: tensor<*xf32>):
    %next = onnx.Add_14 %v, %e : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    onnx.yield %next, %next : tensor<*xf32>, tensor<*xf32>
  } : (tensor<2xf32>, tensor<2x7xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  func.return %y, %rows : tensor<*xf32>, tensor<*xf32>
}

// -----

// CHECK-LABEL: @if
// CHECK:         core.if %c : tensor<i1> -> tensor<2xf32>
// CHECK:           core.neg
// CHECK:         else
// CHECK-NEXT:      core.yield %x : tensor<2xf32>
func.func @if(%c: tensor<i1>, %x: tensor<2xf32>) -> tensor<*xf32> {
  %y = onnx.If_13 %c else_branch {
    onnx.yield %x : tensor<2xf32>
  } then_branch {
    %n = onnx.Neg_13 %x : (tensor<2xf32>) -> tensor<*xf32>
    onnx.yield %n : tensor<*xf32>
  } : (tensor<i1>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The rank is known, so the condition is: only one branch is looked at, and it may have another shape.
// CHECK-LABEL: @if_known
// CHECK-NOT:     core.if
// CHECK:         core.reshape %x [2]
func.func @if_known(%x: tensor<1x2xf32>) -> tensor<*xf32> {
  %shape = onnx.Shape_15 %x : (tensor<1x2xf32>) -> tensor<*xi64>
  %zero = onnx.Constant_13 {value_int = 0} : () -> tensor<i64>
  %dim = onnx.Gather_13 %shape, %zero : (tensor<*xi64>, tensor<i64>) -> tensor<*xi64>
  %one = onnx.Constant_13 {value_int = 1} : () -> tensor<i64>
  %c = onnx.Equal_13 %dim, %one : (tensor<*xi64>, tensor<i64>) -> tensor<*xi1>
  %axis = onnx.Constant_13 {value_ints = [0]} : () -> tensor<1xi64>
  %y = onnx.If_13 %c else_branch {
    onnx.yield %x : tensor<1x2xf32>
  } then_branch {
    %n = onnx.Squeeze_13 %x, %axis : (tensor<1x2xf32>, tensor<1xi64>) -> tensor<*xf32>
    onnx.yield %n : tensor<*xf32>
  } : (tensor<*xi1>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A sequence whose elements are known leaves nothing behind.
// CHECK-LABEL: @sequence
// CHECK-NOT:     onnx.
// CHECK:         %[[Z:.*]] = core.concat %y, %x
// CHECK-NEXT:    func.return %[[Z]]
func.func @sequence(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<*xf32> {
  %a = onnx.SequenceConstruct_11 %x : (tensor<2xf32>) -> !core.sequence<tensor<*xf32>>
  %front = onnx.Constant_13 {value_int = 0} : () -> tensor<i64>
  %b = onnx.SequenceInsert_11 %a, %y, %front : (!core.sequence<tensor<*xf32>>, tensor<3xf32>, tensor<i64>) -> !core.sequence<tensor<*xf32>>
  %z = onnx.ConcatFromSequence_11 %b {axis = 0} : (!core.sequence<tensor<*xf32>>) -> tensor<*xf32>
  func.return %z : tensor<*xf32>
}

// -----

// The number of trips is not known, so the size gets a symbol in each iteration and one after them.
// CHECK-LABEL: @grow_by_data
// CHECK:         core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<?xf32, #core.tensor<dims = {{\[}}[[R:u[0-9]+]]]>>
// CHECK:           tensor<?xf32, #core.tensor<dims = {{\[}}[[S:u[0-9]+]]]>>):
// CHECK:           core.concat {{.*}} -> tensor<?xf32, #core.tensor<dims = {{\[}}[[S]] + 1]>>
// CHECK:         carried_symbols = ["[[S]]"], result_symbols = ["[[R]]"]
func.func @grow_by_data(%n: tensor<i64>, %x: tensor<2xf32>, %y: tensor<1xf32>) -> tensor<*xf32> {
  %none = onnx.none : none
  %z = onnx.Loop_13 %n, %none, %x body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<*xf32>):
    %next = onnx.Concat_13 %v, %y {axis = 0} : (tensor<*xf32>, tensor<1xf32>) -> tensor<*xf32>
    onnx.yield %go, %next : tensor<i1>, tensor<*xf32>
  } : (tensor<i64>, none, tensor<2xf32>) -> tensor<*xf32>
  func.return %z : tensor<*xf32>
}

// -----

// CHECK-LABEL: @different_sizes
// CHECK:         core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = {{\[}}[[R:u[0-9]+]]]>>
// CHECK:         result_symbols = ["[[R]]"]
func.func @different_sizes(%c: tensor<i1>, %x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<*xf32> {
  %0 = onnx.If_13 %c else_branch {
    onnx.yield %y : tensor<3xf32>
  } then_branch {
    onnx.yield %x : tensor<2xf32>
  } : (tensor<i1>) -> tensor<*xf32>
  func.return %0 : tensor<*xf32>
}
