// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file --verify-diagnostics | filecheck %s

// What changes a variable that the output does not need is left out.
// CHECK-LABEL: func.func @unread
// CHECK-NOT:     Assign
// CHECK:         tf1.Neg
tf1.graph @unread {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %v = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32> loc("v")
  %same = tf1.Identity %v {T = #tf1.dtype<float>} : (tensor<f32>) -> tensor<f32> loc("v/read")
  %new = tf1.Sub %same, %x {T = #tf1.dtype<float>} : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32> loc("new")
  %asg, %asg_c = tf1.AssignSub %v, %new {T = #tf1.dtype<float>} : (tensor<f32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("asg")
  %y = tf1.Neg %x, %asg_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// What would run in a branch that is never taken is left out with it.
// CHECK-LABEL: func.func @never
// CHECK-NOT:     Assign
// CHECK-NOT:     core.if
// CHECK:         return
tf1.graph @never {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %mode = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32> loc("mode")
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32> loc("one")
  %p = tf1.Equal %mode, %one {T = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("p")
  %v = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32> loc("v")
  %v0, %v1 = tf1.Switch %v, %p {T = #tf1.dtype<float>} : (tensor<f32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) loc("vs")
  %x0, %x1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) loc("xs")
  %asg, %asg_c = tf1.Assign %v1, %x1 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("asg")
  %a = tf1.Identity %x1, %asg_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32> loc("a")
  %m, %i = tf1.Merge %v0, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("m")
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// If the branch may be taken, its predicate is told.
// CHECK: node 'asg' (Assign): found a node that changes state before others run if 'p', expected none; name outputs that do not need it (--output), or remove the control dependency, or fix what decides it with --set
tf1.graph @sometimes {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<i1> loc("p")
  %v = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32> loc("v")
  %v0, %v1 = tf1.Switch %v, %p {T = #tf1.dtype<float>} : (tensor<f32>, tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>) loc("vs")
  %asg, %asg_c = tf1.Assign %v1, %v1 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("asg")
  %a = tf1.Identity %v1, %asg_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32> loc("a")
  %m, %i = tf1.Merge %v0, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<i32>) loc("m")
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}
