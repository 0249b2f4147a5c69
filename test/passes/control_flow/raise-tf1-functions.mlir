// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file --print-debuginfo | filecheck %s --check-prefix=NAMES

// Calls become the nodes of their functions, each with its own copy; what no result needs goes, and
// so do functions, called or not.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %e = tf1.Exp %x
// CHECK-NEXT:    %[[W:.*]] = tf1.Neg %e
// CHECK-NEXT:    %[[V:.*]] = tf1.Neg %[[W]]
// CHECK-NEXT:    func.return %[[V]]
// CHECK-NOT:   tf1.function
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %a, %a1 = tf1.PartitionedCall %x {f = @two, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>, #tf1.dtype<float>]} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  %b = tf1.StatefulPartitionedCall %a1 {f = @one, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %b : tensor<*xf32> {names = ["b"]}
}
tf1.function @one {
^bb0(%v : tensor<*xf32>):
  %w = tf1.Neg %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %w : tensor<*xf32>
}
tf1.function @two {
^bb0(%v : tensor<*xf32>):
  %n = tf1.PartitionedCall %e {f = @one, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32>
  %e = tf1.Exp %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %t = tf1.Tanh %e {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %t, %n : tensor<*xf32>, tensor<*xf32>
}
tf1.function @unused {
  tf1.return
}

// -----

// A call waits for what its control inputs wait for, and so does all in it: constants, too.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %c = tf1.Const
// CHECK-NEXT:      core.yield %c
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %b = tf1.Neg %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %p, %p {T = #tf1.dtype<bool>} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi1>)
  %t, %t_c = tf1.Identity %s1 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  %f, %f_c = tf1.Identity %s0 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  %a = tf1.PartitionedCall %t_c {f = @constant, Tin = [], Tout = [#tf1.dtype<float>]} : (!tf1.control) -> tensor<*xf32>
  %b = tf1.Neg %x, %f_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}
tf1.function @constant {
  %c = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : () -> tensor<f32>
  tf1.return %c : tensor<f32>
}

// -----

// A call runs only if all of its inputs are alive, whatever its results need.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %w = tf1.Exp %x
// CHECK-NEXT:      core.yield %w
// CHECK-NEXT:    } else {
// CHECK-NEXT:      core.yield %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.PartitionedCall %x, %s1 {f = @first, Tin = [#tf1.dtype<float>, #tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %s0 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}
tf1.function @first {
^bb0(%v : tensor<*xf32>, %unused : tensor<*xf32>):
  %w = tf1.Exp %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %w : tensor<*xf32>
}

// -----

// The results of an If are those of one core.if; what only one branch needs is made there, and what
// both hand on is no result.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[P:.*]] = tf1.ToBool %p
// CHECK-NEXT:    %a = core.if %[[P]]
// CHECK-NEXT:      %e = tf1.Exp %x
// CHECK-NEXT:      %n = tf1.Neg %e
// CHECK-NEXT:      core.yield %n : tensor<*xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %c = tf1.Const
// CHECK-NEXT:      core.yield %c : tensor<f32>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %a, %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> tensor<*xi32> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %e = tf1.Exp %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %a, %b = tf1.StatelessIf %p, %x, %e {Tcond = #tf1.dtype<int32>, Tin = [#tf1.dtype<float>, #tf1.dtype<float>], Tout = [#tf1.dtype<float>, #tf1.dtype<float>], then_branch = @yes, else_branch = @no} : (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  tf1.fetch %a, %b : tensor<*xf32>, tensor<*xf32> {names = ["a", "b"]}
}
tf1.function @yes {
^bb0(%v : tensor<*xf32>, %w : tensor<*xf32>):
  %n = tf1.Neg %w {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %n, %v : tensor<*xf32>, tensor<*xf32>
}
tf1.function @no {
^bb0(%v : tensor<*xf32>, %w : tensor<*xf32>):
  %c = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : () -> tensor<f32>
  tf1.return %c, %v : tensor<f32>, tensor<*xf32>
}

// -----

// A condition that is a constant: a scalar counts by its value, another tensor by its size.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %n = tf1.Neg %x
// CHECK-NEXT:    %y = tf1.Exp %x
// CHECK-NEXT:    func.return %n, %y
tf1.graph @main {
  %p = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000080">} : () -> tensor<f32>
  %q = tf1.Const {dtype = #tf1.dtype<bool>, value = #core.blob<"0x00">} : () -> tensor<1xi1>
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %a = tf1.If %p, %x {Tcond = #tf1.dtype<float>, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>], then_branch = @yes, else_branch = @no} : (tensor<f32>, tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.If %q, %x {Tcond = #tf1.dtype<bool>, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>], then_branch = @yes, else_branch = @no} : (tensor<1xi1>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %a, %b : tensor<*xf32>, tensor<*xf32> {names = ["a", "b"]}
}
tf1.function @yes {
^bb0(%v : tensor<*xf32>):
  %y = tf1.Exp %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %y : tensor<*xf32>
}
tf1.function @no {
^bb0(%v : tensor<*xf32>):
  %n = tf1.Neg %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %n : tensor<*xf32>
}

// -----

// Case: the last branch takes what is out of range.
// CHECK-LABEL: func.func @main
// CHECK:         %[[ZERO:.*]] = core.constant dense<0>
// CHECK-NEXT:    %[[FIRST:.*]] = tf1.Equal %k, %[[ZERO]]
// CHECK-NEXT:    core.if %[[FIRST]]
// CHECK-NEXT:      tf1.Exp %x
// CHECK:         } else {
// CHECK-NEXT:      %[[ONE:.*]] = core.constant dense<1>
// CHECK-NEXT:      %[[SECOND:.*]] = tf1.Equal %k, %[[ONE]]
// CHECK-NEXT:      core.if %[[SECOND]]
// CHECK-NEXT:        tf1.Neg %x
// CHECK:           } else {
// CHECK-NEXT:        tf1.Tanh %x
tf1.graph @main {
  %k = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> tensor<*xi32> loc("k")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %y = tf1.Case %k, %x {Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>], branches = [@exp, @neg, @tanh]} : (tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}
tf1.function @exp {
^bb0(%v : tensor<*xf32>):
  %y = tf1.Exp %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %y : tensor<*xf32>
}
tf1.function @neg {
^bb0(%v : tensor<*xf32>):
  %y = tf1.Neg %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %y : tensor<*xf32>
}
tf1.function @tanh {
^bb0(%v : tensor<*xf32>):
  %y = tf1.Tanh %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %y : tensor<*xf32>
}

// -----

// A While: what the body hands on is not carried, and neither is what no result needs. Its condition
// is a number, which a ToBool tests before the loop and at the end of each iteration.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[FIRST:.*]] = tf1.ToBool %n
// CHECK-NEXT:    %c, %a = core.loop cond %[[FIRST]] : tensor<*xi1> carry %x, %n :
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<i64>, %[[X:.*]]: tensor<*xf32>, %[[N:.*]]: tensor<*xi32>):
// CHECK-NEXT:      %y = tf1.Mul %[[X]], %s
// CHECK-NEXT:      %zero = tf1.Const
// CHECK-NEXT:      %m = tf1.Mul %[[N]], %zero
// CHECK-NEXT:      %[[AGAIN:.*]] = tf1.ToBool %m
// CHECK-NEXT:      core.yield %[[AGAIN]], %y, %m
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %c
tf1.graph @main {
  %n = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> tensor<*xi32> loc("n")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("s")
  %a, %b, %c, %d = tf1.While %n, %s, %x, %x {T = [#tf1.dtype<int32>, #tf1.dtype<float>, #tf1.dtype<float>, #tf1.dtype<float>], cond = @left, body = @body} : (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  tf1.fetch %c : tensor<*xf32> {names = ["c"]}
}
tf1.function @left {
^bb0(%n : tensor<*xi32>, %s : tensor<*xf32>, %x : tensor<*xf32>, %u : tensor<*xf32>):
  tf1.return %n : tensor<*xi32>
}
tf1.function @body {
^bb0(%n : tensor<*xi32>, %s : tensor<*xf32>, %x : tensor<*xf32>, %u : tensor<*xf32>):
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %m = tf1.Mul %n, %zero {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %y = tf1.Mul %x, %s {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %v = tf1.Exp %u {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %m, %s, %y, %v : tensor<*xi32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}

// -----

// A function with a loop of version 1, called twice: each call has a frame of its own. Function and
// node are in the names of what is made.
// NAMES: core.loop
// NAMES: tf1.AddV2 {{.*}} loc("loop/w")
// NAMES: core.loop
// NAMES: tf1.AddV2 {{.*}} loc("loop/w")
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.*]] = core.loop cond %{{.*}} : tensor<*xi1> carry %x
// CHECK:         %[[B:.*]] = core.loop cond %{{.*}} : tensor<*xi1> carry %x
// CHECK:         func.return %[[A]], %[[B]]
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %a = tf1.PartitionedCall %x {f = @loop, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.PartitionedCall %x {f = @loop, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %a, %b : tensor<*xf32>, tensor<*xf32> {names = ["a", "b"]}
}
tf1.function @loop {
^bb0(%v : tensor<*xf32>):
  %e = tf1.Enter %v {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1, %m_c = tf1.Merge %e, %next {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>, !tf1.control)
  %limit = tf1.Const %m_c {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : (!tf1.control) -> tensor<f32>
  %less = tf1.Less %m, %limit {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
  %c = tf1.LoopCond %less : (tensor<*xi1>) -> tensor<*xi1>
  %s0, %s1 = tf1.Switch %m, %c {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %w = tf1.AddV2 %s1, %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("loop/w")
  %next = tf1.NextIteration %w {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.return %y : tensor<*xf32>
}
