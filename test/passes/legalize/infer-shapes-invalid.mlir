// RUN: not opt-tool %s --pass-pipeline=infer-shapes 2>&1 | filecheck %s

// All ops that do not fit are named, with what they found.
// CHECK: m.onnx: node 'product' (core.matmul): cannot multiply rows of 3 with columns of 2
// CHECK: node 'grow' (core.loop): found a value of type tensor<4xf32> where tensor<2xf32> is expected
func.func @main(%n : tensor<i64>, %x : tensor<2x3xf32>, %v : tensor<2xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %e = core.exp %x : (tensor<2x3xf32>) -> tensor<*xf32>
  %p = core.matmul %e, %x : (tensor<*xf32>, tensor<2x3xf32>) -> tensor<*xf32> loc("product"("m.onnx":0:0))
  %u = core.exp %v : (tensor<2xf32>) -> tensor<*xf32>
  %a = core.loop trip %n : tensor<i64> carry %u : tensor<*xf32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %q : tensor<*xf32>):
    %r = core.concat %q, %q axis 0 : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
    core.yield %r : tensor<*xf32>
  } loc("grow")
  func.return %p, %a : tensor<*xf32>, tensor<*xf32>
}
