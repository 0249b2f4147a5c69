// RUN: not opt-tool %s --pass-pipeline=legalize-onnx 2>&1 | filecheck %s

// Everything that cannot be converted is listed at once, with what to do about it.
// CHECK:      node 'branches' (If): found result 0 of type tensor<2xf32> from then_branch and tensor<?x2xf32, #core.tensor<dims = [n, 2]>> from else_branch, expected one rank and element type
// CHECK-NEXT: node 'forever' (Loop): found a loop without trip count whose condition is always true
// CHECK-NEXT: node 'grow' (Loop): found a loop in which carried value 0 starts as tensor<2xf32> and becomes tensor<1x2xf32>, expected values of one rank and element type
// CHECK-NEXT: node 'noise' (RandomNormal): found a random number generator
// CHECK-NEXT: node 'flat' (LSTM): found 'X' of type tensor<2xf32>, expected 3 dimensions
// CHECK-NEXT: node 'list' (onnx.list): found an output of type !core.sequence<tensor<*xf32>>, expected tensors
func.func @refused(%x: tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, %c: tensor<i1>, %a: tensor<2xf32>, %b: tensor<3xf32>, %trips: tensor<i64>) -> !core.sequence<tensor<*xf32>> {
  %none = onnx.none : none
  %0 = onnx.Squeeze_13 %x : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<*xf32> loc("squeeze")
  %1 = onnx.If_13 %c else_branch {
    onnx.yield %x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  } then_branch {
    onnx.yield %a : tensor<2xf32>
  } : (tensor<i1>) -> tensor<*xf32> loc("branches")
  %2 = onnx.Loop_13 %none, %none, %a body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<*xf32>):
    onnx.yield %go, %v : tensor<i1>, tensor<*xf32>
  } : (none, none, tensor<2xf32>) -> tensor<*xf32> loc("forever")
  %3 = onnx.Loop_13 %trips, %none, %a body {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %v: tensor<*xf32>):
    %axes = onnx.Constant_13 {value_ints = [0]} : () -> tensor<1xi64>
    %w = onnx.Unsqueeze_13 %v, %axes : (tensor<*xf32>, tensor<1xi64>) -> tensor<*xf32>
    onnx.yield %go, %w : tensor<i1>, tensor<*xf32>
  } : (tensor<i64>, none, tensor<2xf32>) -> tensor<*xf32> loc("grow")
  %4 = onnx.RandomNormal_1 {shape = [2]} : () -> tensor<*xf32> loc("noise")
  %6:3 = onnx.LSTM_7 %a, %a, %a, %none, %none, %none, %none, %none {hidden_size = 2} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, none, none, none, none, none) -> (tensor<*xf32>, none, none) loc("flat")
  %5 = onnx.SequenceConstruct_11 %a, %b : (tensor<2xf32>, tensor<3xf32>) -> !core.sequence<tensor<*xf32>> loc("list")
  func.return %5 : !core.sequence<tensor<*xf32>>
}
