// RUN: opt-tool %s --verify-diagnostics --split-input-file --parsing-diagnostics | filecheck %s

// CHECK: 2 operands, expected 1
tf1.graph @c1 {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32>
  %y = tf1.Relu %x, %x {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch {names = []}
}

// -----

// CHECK: operands 0 has type tensor<*xf32>, expected int32
tf1.graph @c1_type {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32>
  %y = tf1.Relu %x {T = #tf1.dtype<int32>} : (tensor<*xf32>) -> tensor<*xi32>
  tf1.fetch {names = []}
}

// -----

// CHECK: 3 operands, expected 2
tf1.graph @c1_count {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32>
  %y = tf1.AddN %x, %x, %x {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch {names = []}
}

// -----

// CHECK: 1 results, expected 2
tf1.graph @c2 {
  %k = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %h = tf1.TensorArrayV3 %k {dtype = #tf1.dtype<float>} : (tensor<i32>) -> !tf1.resource
  tf1.fetch {names = []}
}

// -----

// CHECK: only the last result may be a control token
tf1.graph @c2_control {
  %x, %c, %d = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> (tensor<*xf32>, !tf1.control, !tf1.control)
  tf1.fetch {names = []}
}

// -----

// CHECK: attribute 'T' is missing
tf1.graph @c3 {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32>
  %y = tf1.Relu %x : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch {names = []}
}

// -----

// CHECK: 4 bytes do not fit tensor<2xi32>, expected 8
tf1.graph @c4 {
  %k = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<2xi32>
  tf1.fetch {names = []}
}

// -----

// CHECK: 1 strings do not fit tensor<2x!core.string>
tf1.graph @c4_strings {
  %k = tf1.Const {dtype = #tf1.dtype<string>, value = ["a"]} : () -> tensor<2x!core.string>
  tf1.fetch {names = []}
}

// -----

// CHECK: a constant needs a static shape
tf1.graph @c4_shape {
  %k = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<?xi32, #core.tensor<dims = [n]>>
  tf1.fetch {names = []}
}

// -----

// CHECK: 1 values with 2 names
tf1.graph @names {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32>
  tf1.fetch %x : tensor<*xf32> {names = ["x:0", "y:0"]}
}

// -----

// CHECK: a graph ends with tf1.fetch
tf1.graph @terminator {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32>
  func.return
}

// -----

// CHECK: 4 bytes do not fit tensor<2xf32>, expected 8
tf1.graph @c5 {
  %v = tf1.VarHandleOp {dtype = #tf1.dtype<float>, shape = #tf1.shape<[2]>, value = #core.blob<"0x0000803F">} : () -> !tf1.resource
  tf1.fetch {names = []}
}

// -----

// CHECK: a variable with a value cannot be of type tf1.shape
tf1.graph @c5_type {
  %v = tf1.VarHandleOp {dtype = #tf1.dtype<tf1.shape>, shape = #tf1.shape<[1]>, value = #core.blob<"0x0000803F">} : () -> !tf1.resource
  tf1.fetch {names = []}
}

// -----

// CHECK: a variable with a value needs a static shape
tf1.graph @c5_shape {
  %v = tf1.VarHandleOp {dtype = #tf1.dtype<float>, shape = #tf1.shape<[?]>, value = #core.blob<"0x0000803F">} : () -> !tf1.resource
  tf1.fetch {names = []}
}
