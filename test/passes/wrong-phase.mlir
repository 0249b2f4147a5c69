// RUN: not opt-tool %s --pass-pipeline=fuse 2>&1 | filecheck %s
// RUN: not opt-tool %s --pass-pipeline=legalize-onnx --disable=legalize-onnx 2>&1 | filecheck %s --check-prefix=DISABLE

// CHECK: fuse-softmax: found onnx ops; run legalize-onnx before fuse-softmax: node 'act' (Relu)
// DISABLE: 'legalize-onnx' cannot be disabled
func.func @main(%x : tensor<2xf32>) -> tensor<2xf32> {
  %a = onnx.Relu_14 %x : (tensor<2xf32>) -> tensor<2xf32> loc("act")
  func.return %a : tensor<2xf32>
}
