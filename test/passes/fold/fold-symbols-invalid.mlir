// RUN: not opt-tool %s --pass-pipeline=fold-symbols 2>&1 | filecheck %s

// All ops that cannot have the sizes which turn out are named: u is 1, and v is 0.
// CHECK: m.onnx: node 'border' (core.slice): a dimension is -1, which is negative
// CHECK: node 'rest' (core.slice): a dimension is -2, which is negative
// CHECK-NOT: Traceback
func.func @main(%x : tensor<?xf32, #core.tensor<dims = [n]>>) -> (tensor<?xf32, #core.tensor<dims = [u - 2]>>, tensor<?xf32, #core.tensor<dims = [v - 2]>>, tensor<?xf32, #core.tensor<dims = [u + v]>>) {
  %one = core.constant dense<[1, 0]> : tensor<2xi64>
  core.bind_symbols %one ["u", "v"] : tensor<2xi64>
  %a = core.slice %x [0] [u - 2] [1] : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [u - 2]>> loc("border"("m.onnx":0:0))
  %b = core.slice %x [0] [v - 2] [1] : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [v - 2]>> loc("rest"("m.onnx":0:0))
  %c = core.slice %x [0] [u + v] [1] : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [u + v]>>
  func.return %a, %b, %c : tensor<?xf32, #core.tensor<dims = [u - 2]>>, tensor<?xf32, #core.tensor<dims = [v - 2]>>, tensor<?xf32, #core.tensor<dims = [u + v]>>
}
