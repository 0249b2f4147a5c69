// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file | filecheck %s

// A counter: the condition is asked before the loop and after each iteration.
// CHECK-LABEL: func.func @main
// CHECK:         %zero = tf1.Const
// CHECK:         %[[C0:.*]] = tf1.Less %zero, %
// CHECK-NEXT:    %[[M:.*]], %[[N:.*]] = core.loop cond %[[C0]] : tensor<*xi1> carry %{{zero|x}}, %{{zero|x}} : {{.*}} {
// CHECK:           %i1 = tf1.AddV2 %b0, %one
// CHECK:           %[[C1:.*]] = tf1.Less %i1,
// CHECK-NEXT:      core.yield %[[C1]], %
// CHECK:         func.return %m1
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %e0 = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %e1 = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %m0, %m0_1 = tf1.Merge %e0, %n0 {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %m1, %m1_1 = tf1.Merge %e1, %n1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %ten = tf1.Const %ok_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x0A000000">} : (!tf1.control) -> tensor<i32>
  %ok, %ok_c = tf1.Identity %m0 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %c = tf1.Less %m0, %ten {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f0, %t0 = tf1.Switch %m0, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %f1, %t1 = tf1.Switch %m1, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b0, %b0_c = tf1.Identity %t0 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %one = tf1.Const %b0_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %i1 = tf1.AddV2 %b0, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %n0 = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %two = tf1.Neg %t1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %n1 = tf1.NextIteration %two {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// NextIteration first; several Switches on a Merge, several Exits on a Switch, and none on another.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %c = tf1.Less %x, %limit
// CHECK-NEXT:    %m = core.loop cond %c : tensor<*xi1> carry %x : tensor<*xf32> -> tensor<*xf32> {
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<i64>, %[[V:.*]]: tensor<*xf32>):
// CHECK-NEXT:      %a = tf1.AddV2 %[[V]], %[[V]]
// CHECK-NEXT:      %[[C:.*]] = tf1.Less %a, %limit
// CHECK-NEXT:      core.yield %[[C]], %a
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %m, %m
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %n, %e {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %ff, %tt = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %t, %tt {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %z = tf1.Exit %ff {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y, %z : tensor<*xf32>, tensor<*xf32> {names = ["y", "z"]}
}

// -----

// Two variables change places; the condition is on an invariant that is not marked as one.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %c = tf1.Less %a, %limit
// CHECK-NEXT:    %ma, %mb = core.loop cond %c : tensor<*xi1> carry %a, %b : {{.*}} {
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<i64>, %[[A:.*]]: tensor<*xf32>, %[[B:.*]]: tensor<*xf32>):
// CHECK-NEXT:      %s = tf1.AddV2 %[[A]], %[[B]]
// CHECK-NEXT:      %[[C:.*]] = tf1.Less %[[B]], %limit
// CHECK-NEXT:      core.yield %[[C]], %[[B]], %s
// CHECK:         func.return %ma
tf1.graph @main {
  %a = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("a")
  %b = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("b")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %ea = tf1.Enter %a {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %eb = tf1.Enter %b {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %el = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %ma, %ma_1 = tf1.Merge %ea, %na {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %mb, %mb_1 = tf1.Merge %eb, %nb {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %ml, %ml_1 = tf1.Merge %el, %nl {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %ma, %ml {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %fa, %ta = tf1.Switch %ma, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %fb, %tb = tf1.Switch %mb, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %fl, %tl = tf1.Switch %ml, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %na = tf1.NextIteration %tb {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %s = tf1.AddV2 %ta, %tb {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %nb = tf1.NextIteration %s {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %nl = tf1.NextIteration %tl {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %fa {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// What is between a Switch and an Exit runs once, after the loop, and may use invariants.
// CHECK-LABEL: func.func @main
// CHECK:         %m = core.loop
// CHECK:           core.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %after = tf1.Mul %m, %limit
// CHECK-NEXT:    %more = tf1.Exp %after
// CHECK-NEXT:    func.return %more
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %after = tf1.Mul %f, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %more = tf1.Exp %after {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %more {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A conditional in the condition, and another one in the body on the same predicate.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %v = core.if %p
// CHECK-NEXT:      %u = tf1.Tanh %x
// CHECK:         %c = tf1.Less %v, %limit
// CHECK-NEXT:    %m = core.loop cond %c
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<i64>, %[[V:.*]]: tensor<*xf32>):
// CHECK-NEXT:      %k = core.if %p
// CHECK-NEXT:        %h = tf1.Exp %[[V]]
// CHECK:           } else {
// CHECK-NEXT:        %g = tf1.AddV2 %[[V]], %[[V]]
// CHECK:           %[[W:.*]] = core.if %p
// CHECK-NEXT:        %{{.*}} = tf1.Tanh %k
// CHECK:           %[[C:.*]] = tf1.Less %[[W]], %limit
// CHECK-NEXT:      core.yield %[[C]], %k
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %q = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1>
  %r = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %s0, %s1 = tf1.Switch %m, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %u = tf1.Tanh %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %v, %v_1 = tf1.Merge %u, %s0 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %v, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %t, %r {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %q0, %q1 = tf1.Switch %t, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %g = tf1.AddV2 %r0, %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %h = tf1.Exp %q1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %k, %k_1 = tf1.Merge %g, %h {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %n = tf1.NextIteration %k {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A loop in a loop, of the same name; an invariant enters both frames.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %c = tf1.Less %x, %limit
// CHECK-NEXT:    %m = core.loop cond %c
// CHECK-NEXT:    ^bb0(%{{.*}}: tensor<i64>, %[[V:.*]]: tensor<*xf32>):
// CHECK-NEXT:      %ci = tf1.Greater %[[V]], %limit
// CHECK-NEXT:      %mi = core.loop cond %ci : tensor<*xi1> carry %[[V]]
// CHECK-NEXT:      ^bb0(%{{.*}}: tensor<i64>, %[[W:.*]]: tensor<*xf32>):
// CHECK-NEXT:        %d = tf1.Mul %[[W]], %limit
// CHECK-NEXT:        %[[CI:.*]] = tf1.Greater %d, %limit
// CHECK-NEXT:        core.yield %[[CI]], %d
// CHECK-NEXT:      }
// CHECK-NEXT:      %a = tf1.AddV2 %mi, %limit
// CHECK-NEXT:      %[[C:.*]] = tf1.Less %a, %limit
// CHECK-NEXT:      core.yield %[[C]], %a
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %m
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %le = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %le {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %ie = tf1.Enter %t {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %lie = tf1.Enter %le {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %mi, %mi_1 = tf1.Merge %ie, %ni {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %ci = tf1.Greater %mi, %lie {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %goi = tf1.LoopCond %ci : (tensor<*xi1>) -> tensor<*xi1>
  %fi, %ti = tf1.Switch %mi, %goi {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %d = tf1.Mul %ti, %lie {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %ni = tf1.NextIteration %d {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %xi = tf1.Exit %fi {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %a = tf1.AddV2 %xi, %le {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A loop in the condition of a loop: it runs before, and again in each iteration.
// CHECK-LABEL: func.func @main
// CHECK:         %mi = core.loop
// CHECK:         %c = tf1.Less %x, %mi
// CHECK-NEXT:    %m = core.loop cond %c
// CHECK:           %a = tf1.AddV2
// CHECK:           %[[MI:.*]] = core.loop
// CHECK:           %[[C:.*]] = tf1.Less %a, %[[MI]]
// CHECK-NEXT:      core.yield %[[C]], %a
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %le = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %ie = tf1.Enter %m {T = #tf1.dtype<float>, frame_name = "v"} : (tensor<*xf32>) -> tensor<*xf32>
  %lie = tf1.Enter %le {T = #tf1.dtype<float>, frame_name = "v", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %mi, %mi_1 = tf1.Merge %ie, %ni {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %ci = tf1.Less %mi, %lie {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %goi = tf1.LoopCond %ci : (tensor<*xi1>) -> tensor<*xi1>
  %fi, %ti = tf1.Switch %mi, %goi {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %d = tf1.AddV2 %ti, %ti {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %ni = tf1.NextIteration %d {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %xi = tf1.Exit %fi {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %c = tf1.Less %m, %xi {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A loop in a branch does not run for the other one; constants in it have a control input only.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %y = core.if %p
// CHECK:           core.loop
// CHECK:         } else {
// CHECK-NEXT:      %neg = tf1.Exp %x
// CHECK-NEXT:      core.yield %neg
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %y
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %e1 = tf1.Enter %s1 {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %pt, %pt_c = tf1.Identity %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  %zero = tf1.Const %pt_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : (!tf1.control) -> tensor<i32>
  %e0 = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %m0, %m0_1 = tf1.Merge %e0, %n0 {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %m1, %m1_1 = tf1.Merge %e1, %n1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %ten = tf1.Const %ok_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x0A000000">} : (!tf1.control) -> tensor<i32>
  %ok, %ok_c = tf1.Identity %m0 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %c = tf1.Less %m0, %ten {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f0, %t0 = tf1.Switch %m0, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %f1, %t1 = tf1.Switch %m1, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b0, %b0_c = tf1.Identity %t0 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %one = tf1.Const %b0_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %i1 = tf1.AddV2 %b0, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %n0 = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %two = tf1.Neg %t1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %n1 = tf1.NextIteration %two {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %out = tf1.Exit %f1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %neg = tf1.Exp %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y, %y_1 = tf1.Merge %neg, %out {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// An Exit feeds the Enter of a second loop.
// CHECK-LABEL: func.func @main
// CHECK:         %m = core.loop
// CHECK:         %ci = tf1.Greater %m, %limit
// CHECK-NEXT:    %mi = core.loop cond %ci : tensor<*xi1> carry %m
// CHECK:         func.return %mi
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %le = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %le {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %xi = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %ie = tf1.Enter %xi {T = #tf1.dtype<float>, frame_name = "v"} : (tensor<*xf32>) -> tensor<*xf32>
  %lie = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "v", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %mi, %mi_1 = tf1.Merge %ie, %ni {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %ci = tf1.Greater %mi, %lie {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %goi = tf1.LoopCond %ci : (tensor<*xi1>) -> tensor<*xi1>
  %fi, %ti = tf1.Switch %mi, %goi {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %d = tf1.Mul %ti, %lie {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %ni = tf1.NextIteration %d {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %fi {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A condition that is never true: only what comes after the loop is left.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %g = tf1.Neg %x
// CHECK-NEXT:    func.return %g
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %no = tf1.Const {dtype = #tf1.dtype<bool>, value = #core.blob<"0x00">} : () -> tensor<i1>
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %q = tf1.Enter %no {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<i1>) -> tensor<*xi1>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %no2 = tf1.Const %ok_c {dtype = #tf1.dtype<bool>, value = #core.blob<"0x00">} : (!tf1.control) -> tensor<i1>
  %ok, %ok_c = tf1.Identity %m {T = #tf1.dtype<float>} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  %go = tf1.LoopCond %no2 : (tensor<i1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %g = tf1.Neg %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %g {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// Both branches of the body have their own NextIteration; two Enters are alive in turn.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[I:.*]] = core.if %p
// CHECK-NEXT:      core.yield %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %neg = tf1.Exp %x
// CHECK:         %[[M:.*]] = core.loop cond %c : tensor<*xi1> carry %[[I]]
// CHECK:           %[[N:.*]] = core.if %p
// CHECK-NEXT:        %b = tf1.AddV2 %{{.*}}, %limit
// CHECK:           } else {
// CHECK-NEXT:        %a = tf1.AddV2
// CHECK:           core.yield %{{.*}}, %[[N]]
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %neg = tf1.Exp %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %e = tf1.Enter %s1 {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %ee = tf1.Enter %neg {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %q = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1>
  %m, %m_1 = tf1.Merge %e, %n, %ee, %nn {T = #tf1.dtype<float>, N = 4 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %t, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %r0, %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.AddV2 %r1, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %nn = tf1.NextIteration %b {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// The index of a loop variable's Merge tells the first iteration from the others.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[ONE:.*]] = core.constant dense<1> : tensor<i32>
// CHECK:         %m, %i = core.loop cond %c : tensor<*xi1> carry %x, %[[ONE]] : tensor<*xf32>, tensor<i32> -> tensor<*xf32>, tensor<*xi32>
// CHECK:           %[[ZERO:.*]] = core.constant dense<0> : tensor<i32>
// CHECK:           core.yield %{{.*}}, %a, %[[ZERO]]
// CHECK:         func.return %m, %i
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %i = tf1.Merge %n, %e {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %g, %h = tf1.Switch %i, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %k = tf1.Exit %g {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  tf1.fetch %y, %k : tensor<*xf32>, tensor<*xi32> {names = ["y", "k"]}
}

// -----

// RefEnter, RefNextIteration and RefExit are like those on values.
// CHECK-LABEL: func.func @main
// CHECK:         %m = core.loop cond %c
// CHECK:         func.return %m
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.RefEnter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.RefEnter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.RefMerge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.RefSwitch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.RefNextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.RefExit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A variable without an Exit that others read stays; one that only feeds itself goes.
// CHECK-LABEL: func.func @main
// CHECK:         %m = core.loop cond %c : tensor<*xi1> carry %x : tensor<*xf32> -> tensor<*xf32> {
// CHECK-NOT:     tf1.Neg
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %z = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %o, %o_1 = tf1.Merge %z, %no {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %fo, %to = tf1.Switch %o, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %dead = tf1.Neg %to {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %no = tf1.NextIteration %dead {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %keep, %keep_c = tf1.Identity %o {T = #tf1.dtype<float>} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  %a = tf1.AddV2 %t, %t, %keep_c {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A frame in which nothing goes round: what enters leaves.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %n = tf1.Neg %x
// CHECK-NEXT:    func.return %n
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.Neg %e {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %n {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// What holds around a loop holds in it: the body has only the side of the branch that it is in.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %y = core.if %p
// CHECK:           core.loop cond
// CHECK-NOT:         core.if
// CHECK:         } else {
// CHECK-NEXT:      core.yield %x
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x0, %x1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %l0, %l1 = tf1.Switch %limit, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %p0, %p1 = tf1.Switch %p, %p {T = #tf1.dtype<bool>} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi1>)
  %e = tf1.Enter %x1 {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %l1 {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %q = tf1.Enter %p1 {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %s0, %s1 = tf1.Switch %t, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %s1, %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %o = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y, %y_1 = tf1.Merge %x0, %o {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A loop that the body ends, without a LoopCond: it goes on if both predicates hold, and its number
// tells which of the Exits is alive.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop cond %{{.*}} : tensor<i1> carry %x
// CHECK:         tf1.Equal
// CHECK:         %y, %k = core.if
// CHECK:         func.return %y, %k
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %c {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %d = tf1.Greater %a, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %b, %g = tf1.Switch %a, %d {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %n = tf1.NextIteration %g {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %o = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %u = tf1.Exit %b {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y, %k = tf1.Merge %o, %u {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %y, %k : tensor<*xf32>, tensor<*xi32> {names = ["y", "k"]}
}
