// RUN: not opt-tool %s --pass-pipeline=raise-tf1-control-flow,legalize-tf1 2>&1 | filecheck %s

// What is refused inside of loops and branches is named with the path of its frames and with the
// predicate, as what cannot be raised is.
// CHECK:      node 'ranks' (core.if) in no frame, decided by 'p': found 'ranks' of type tensor<1xf32> if the condition holds, tensor<f32> if not, expected one rank and one element type
// CHECK-NEXT: node 'inside' (MatrixExponential) in frame 'w' > 'v' if 'p' and 'c' and 'c2': no legalization for MatrixExponential
// CHECK-NEXT: node 'go3' (core.loop) in frame 'u', repeated if 'c3': found the loop variable 'm3' that starts as tensor<f32> and becomes tensor<1xf32>, expected one rank and one element type
// CHECK-NOT:  node
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>, shape = #tf1.shape<[]>} : () -> tensor<f32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>, shape = #tf1.shape<[]>} : () -> tensor<i1> loc("p")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32> loc("zero")

  %no, %yes = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<f32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s")
  %more = tf1.ExpandDims %yes, %zero {T = #tf1.dtype<float>, Tdim = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<i32>) -> tensor<*xf32> loc("more")
  %ranks, %ranks_1 = tf1.Merge %no, %more {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("ranks")

  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<f32>) -> tensor<*xf32> loc("e")
  %ep = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<i1>) -> tensor<*xi1> loc("ep")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %m {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %e2 = tf1.Enter %t {T = #tf1.dtype<float>, frame_name = "v"} : (tensor<*xf32>) -> tensor<*xf32> loc("e2")
  %e2p = tf1.Enter %ep {T = #tf1.dtype<bool>, frame_name = "v", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1> loc("e2p")
  %m2, %m2_1 = tf1.Merge %e2, %n2 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m2")
  %c2 = tf1.Greater %m2, %m2 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c2")
  %go2 = tf1.LoopCond %c2 : (tensor<*xi1>) -> tensor<*xi1> loc("go2")
  %f2, %t2 = tf1.Switch %m2, %go2 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f2")
  %no2, %yes2 = tf1.Switch %t2, %e2p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s2")
  %inside = tf1.MatrixExponential %yes2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("inside")
  %j, %j_1 = tf1.Merge %no2, %inside {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("j")
  %n2 = tf1.NextIteration %j {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n2")
  %y2 = tf1.Exit %f2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y2")
  %n = tf1.NextIteration %y2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")

  %e3 = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "u"} : (tensor<f32>) -> tensor<*xf32> loc("e3")
  %axis = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "u", is_constant = true} : (tensor<i32>) -> tensor<*xi32> loc("axis")
  %limit = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "u", is_constant = true} : (tensor<f32>) -> tensor<*xf32> loc("limit")
  %m3, %m3_1 = tf1.Merge %e3, %n3 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m3")
  %c3 = tf1.Less %m3, %limit {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c3")
  %go3 = tf1.LoopCond %c3 : (tensor<*xi1>) -> tensor<*xi1> loc("go3")
  %f3, %t3 = tf1.Switch %m3, %go3 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f3")
  %wider = tf1.ExpandDims %t3, %axis {T = #tf1.dtype<float>, Tdim = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<*xi32>) -> tensor<*xf32> loc("wider")
  %n3 = tf1.NextIteration %wider {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n3")
  %y3 = tf1.Exit %f3 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y3")
  tf1.fetch %ranks, %y, %y3 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32> {names = ["ranks", "y", "y3"]}
}
