// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file --verify-diagnostics | filecheck %s

// A read through the flow from before the loop, after the writes of earlier iterations: the next
// index waits for the write.
// CHECK: node 'read' (TensorArrayReadV3): found it in frame 'w' after writes to its array ('write') that its flow does not come from, expected the flow of the last write; use what that gives
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %three = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x03000000">} : () -> tensor<i32>
  %h, %flow = tf1.TensorArrayV3 %three {dtype = #tf1.dtype<float>, clear_after_read = false} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %start = tf1.TensorArrayWriteV3 %h, %zero, %x, %flow {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %e = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %ef = tf1.Enter %start {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %old = tf1.Enter %start {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %eh = tf1.Enter %h {T = #tf1.dtype<resource>, frame_name = "w", is_constant = true} : (!tf1.resource) -> !tf1.resource
  %e2 = tf1.Enter %two {T = #tf1.dtype<int32>, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %m, %m_1 = tf1.Merge %e, %nx {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %mf, %mf_1 = tf1.Merge %ef, %nf {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %e2 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %ff, %tf = tf1.Switch %mf, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %t1, %t1_c = tf1.Identity %t {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %one = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %i1 = tf1.AddV2 %t1, %one, %done {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>, !tf1.control) -> tensor<*xi32>
  %at = tf1.AddV2 %t1, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %v = tf1.TensorArrayReadV3 %eh, %t1, %old {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32> loc("read")
  %w, %done = tf1.TensorArrayWriteV3 %eh, %at, %v, %tf {T = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("write")
  %nx = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %nf = tf1.NextIteration %w {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %last = tf1.Exit %ff {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.TensorArrayReadV3 %h, %two, %last {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// The write before the read is in a branch, and need not have run.
// CHECK: node 'read' (TensorArrayReadV3): found it in no frame after writes to its array ('write') that its flow does not come from
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %h, %flow = tf1.TensorArrayV3 %one {dtype = #tf1.dtype<float>, element_shape = #tf1.shape<[]>, clear_after_read = false} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %f0, %f1 = tf1.Switch %flow, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %z0, %z1 = tf1.Switch %zero, %p {T = #tf1.dtype<int32>} : (tensor<i32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %w, %done = tf1.TensorArrayWriteV3 %h, %zero, %x, %f1 {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("write")
  %a = tf1.Identity %z1, %done {T = #tf1.dtype<int32>} : (tensor<*xi32>, !tf1.control) -> tensor<*xi32>
  %at, %at_1 = tf1.Merge %z0, %a {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %all, %all_1 = tf1.Merge %f0, %w {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %r = tf1.TensorArrayReadV3 %h, %at, %flow {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32> loc("read")
  %n = tf1.TensorArrayReadV3 %h, %zero, %all {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %r, %n : tensor<*xf32>, tensor<*xf32> {names = ["r", "n"]}
}
