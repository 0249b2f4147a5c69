// RUN: opt-tool %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: slots [0, 0] for 2 operands (C1)
func.func @c1(%x : tensor<2xf32>) {
  %y = "tflite.ADD"(%x, %x) <{slots = array<i64: 0, 0>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xf32>
  func.return
}

// -----

// CHECK: 2 entries of quantization for 3 (C2)
func.func @c2(%x : tensor<2xi8>) {
  %y = "tflite.ADD"(%x, %x) <{quantization = [#tflite.q<0.5 : 0>, unit]}> : (tensor<2xi8>, tensor<2xi8>) -> tensor<*xi8>
  func.return
}
