// RUN: not opt-tool %s --pass-pipeline=legalize-tf1 2>&1 | filecheck %s

// All nodes at once; what depends on a refused node is not listed again.
// CHECK:      node 'power' (MatrixExponential): no legalization for MatrixExponential; compute the decomposition outside
// CHECK-NEXT: node 'uneven' (TensorArrayWriteV3): found an element of shape [2, 1] in an array of elements of shape [2], expected elements of one shape
// CHECK-NEXT: node 'unwritten' (TensorArrayReadV3): found an array that is read and never written, expected a write before it
// CHECK-NEXT: node 'retyped' (core.loop): found a loop variable that starts as tensor<2xf32> and becomes tensor<1x2xf32>, expected one rank and one element type
// CHECK-NEXT: node 'ranks' (core.if): found a result of type tensor<2xf32> if the condition holds, tensor<2x2xf32> if not, expected one rank and one element type
// CHECK-NEXT: node 'text' (ToBool): found a condition of type tensor<!core.string>, expected a number
// CHECK-NOT:  (Neg)
func.func @refused(%text : tensor<!core.string>, %x : tensor<2xf32>, %m : tensor<2x2xf32>, %v : tensor<2x1xf32>, %k : tensor<i32>, %c : tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi1>) {
  %i = tf1.MatrixExponential %m {T = #tf1.dtype<float>} : (tensor<2x2xf32>) -> tensor<*xf32> loc("power")
  %j = tf1.Neg %i {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("negated")
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %w = tf1.TensorArrayWriteV3 %h, %k, %x, %f {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<2xf32>, tensor<*xf32>) -> tensor<*xf32>
  %u = tf1.TensorArrayWriteV3 %h, %k, %v, %w {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<2x1xf32>, tensor<*xf32>) -> tensor<*xf32> loc("uneven")
  %p = tf1.TensorArrayReadV3 %h, %k, %f {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32> loc("unwritten")
  %r = core.loop cond %c : tensor<i1> carry %x : tensor<2xf32> -> tensor<*xf32> {
  ^bb0(%it : tensor<i64>, %a : tensor<*xf32>):
    %e = tf1.ExpandDims %a, %zero {T = #tf1.dtype<float>, Tdim = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<i32>) -> tensor<*xf32>
    core.yield %c, %e : tensor<i1>, tensor<*xf32>
  } loc("retyped")
  %s = core.if %c : tensor<i1> -> tensor<*xf32> {
    core.yield %x : tensor<2xf32>
  } else {
    core.yield %m : tensor<2x2xf32>
  } loc("ranks")
  %t = tf1.ToBool %text {T = #tf1.dtype<string>} : (tensor<!core.string>) -> tensor<*xi1> loc("text")
  func.return %j, %u, %p, %r, %s, %t : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi1>
}
