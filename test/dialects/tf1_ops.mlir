// RUN: opt-tool %s | opt-tool | filecheck %s
// RUN: opt-tool %s --print-op-generic | opt-tool | filecheck %s

// Types, attributes of every kind, a control edge, a constant of strings, and a cycle.

// CHECK-LABEL: tf1.graph @main attributes {producer = 27 : i64}
tf1.graph @main attributes {producer = 27 : i64} {
  // CHECK: tf1.Placeholder {dtype = #tf1.dtype<float>, shape = #tf1.shape<[?, 3]>} : () -> tensor<*xf32>
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>, shape = #tf1.shape<[?, 3]>} : () -> tensor<*xf32>
  // CHECK: tf1.Placeholder {dtype = #tf1.dtype<bool>, shape = #tf1.shape<*>}
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>, shape = #tf1.shape<*>} : () -> tensor<*xi1>
  // CHECK: %[[Y:.*]], %[[C:.*]] = tf1.LeakyRelu %{{.*}} {T = #tf1.dtype<float>, alpha = 5.000000e-01 : f32} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  %y, %c = tf1.LeakyRelu %x {T = #tf1.dtype<float>, alpha = 0.5 : f32} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  // CHECK: tf1.Const %[[C]] {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %k = tf1.Const %c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  // CHECK: tf1.Const {dtype = #tf1.dtype<string>, value = ["a", "b"]} : () -> tensor<2x!core.string>
  %s = tf1.Const {dtype = #tf1.dtype<string>, value = ["a", "b"]} : () -> tensor<2x!core.string>
  // CHECK: tf1.TensorArrayV3 %{{.*}} {dtype = #tf1.dtype<float>, dynamic_size = true} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %h, %flow = tf1.TensorArrayV3 %k {dtype = #tf1.dtype<float>, dynamic_size = true} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  // CHECK: tf1.Split %{{.*}}, %[[Y]] {T = #tf1.dtype<float>, num_split = 3 : i64}
  %a, %b, %d = tf1.Split %k, %y {T = #tf1.dtype<float>, num_split = 3 : i64} : (tensor<i32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  // CHECK: tf1.Assert %{{.*}}, %{{.*}}, %{{.*}} {T = [#tf1.dtype<float>, #tf1.dtype<string>]} : (tensor<*xi1>, tensor<*xf32>, tensor<2x!core.string>) -> ()
  tf1.Assert %p, %y, %s {T = [#tf1.dtype<float>, #tf1.dtype<string>]} : (tensor<*xi1>, tensor<*xf32>, tensor<2x!core.string>) -> ()
  // CHECK: tf1.AvgPool %{{.*}} {T = #tf1.dtype<float>, ksize = [1 : i64, 2 : i64, 2 : i64, 1 : i64]
  %pool = tf1.AvgPool %x {T = #tf1.dtype<float>, ksize = [1 : i64, 2 : i64, 2 : i64, 1 : i64], strides = [1 : i64, 1 : i64, 1 : i64, 1 : i64], padding = "SAME"} : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: tf1.Merge %{{.*}}, %[[NEXT:.*]] {T = #tf1.dtype<float>, N = 2 : i64}
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "loop"} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %i = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  // CHECK: %[[NEXT]] = tf1.NextIteration
  %n = tf1.NextIteration %m {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: tf1.fetch %{{.*}}, %{{.*}} : tensor<*xf32>, tensor<*xf32> {names = ["a:0", "b:1"]}
  tf1.fetch %a, %b : tensor<*xf32>, tensor<*xf32> {names = ["a:0", "b:1"]}
}
