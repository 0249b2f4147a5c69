// RUN: not opt-tool %s --pass-pipeline=convert-to-onnx 2>&1 | filecheck %s

// All that has no form is listed at once.
// CHECK: node 'shifted' (core.shl): shifts of i1 are not exported
// CHECK: node 'rolled' (core.shr): shifts of i1 are not exported
func.func @main(%x : tensor<4xi1>, %y : tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>) {
  %a = core.shl %x, %y : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1> loc("shifted")
  %b = core.shr %x, %y : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1> loc("rolled")
  func.return %a, %b : tensor<4xi1>, tensor<4xi1>
}
