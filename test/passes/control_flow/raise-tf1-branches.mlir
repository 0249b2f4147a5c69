// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file | filecheck %s

// No control flow: dominance order, arguments by name, and what is needed only by control goes.
// CHECK-LABEL: func.func @main(%a: tensor<*xf32> {core.name = "a:0"}, %b: tensor<*xf32> {core.name = "b:0"}) -> (tensor<*xf32> {core.name = "y"})
// CHECK-NEXT:    %z = tf1.Mul %b, %a
// CHECK-NEXT:    %y = tf1.AddV2 %z, %a {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
// CHECK-NEXT:    func.return %y
tf1.graph @main {
  %y = tf1.AddV2 %z, %a {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %z = tf1.Mul %b, %a {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %unused = tf1.Neg %b {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("b")
  %a = tf1.Placeholder %n_c {dtype = #tf1.dtype<float>} : (!tf1.control) -> tensor<*xf32> loc("a")
  %n_c = tf1.NoOp %c_c : (!tf1.control) -> !tf1.control
  %c, %c_c = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : () -> (tensor<f32>, !tf1.control)
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A node that both branches use stays outside, others go into their branch. The false side comes
// first.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %shared = tf1.Exp %x
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %w = tf1.Tanh %x
// CHECK-NEXT:      %a = tf1.Mul %shared, %w
// CHECK-NEXT:      core.yield %a
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %b = tf1.Neg %shared
// CHECK-NEXT:      core.yield %b
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return %m
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %shared = tf1.Exp %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %s0, %s1 = tf1.Switch %shared, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %w = tf1.Tanh %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %w0, %w1 = tf1.Switch %w, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Mul %s1, %w1 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Neg %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %b, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// Switches on p and on not p are one choice.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK:         } else {
// CHECK-NEXT:      %b = tf1.Relu %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %np = tf1.LogicalNot %p : (tensor<*xi1>) -> tensor<*xi1>
  %same = tf1.Identity %np {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> tensor<*xi1>
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %x, %same {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Relu %r1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// Branches of constants only: the control input on the pivot says which side.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %a = tf1.Const
// CHECK-NEXT:      core.yield %a
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %b = tf1.Const
// CHECK-NEXT:      core.yield %b
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %s0, %s1 = tf1.Switch %p, %p {T = #tf1.dtype<bool>} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi1>)
  %pivot_t, %pivot_t_c = tf1.Identity %s1 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  %pivot_f, %pivot_f_c = tf1.Identity %s0 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  %a = tf1.Const %pivot_t_c {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : (!tf1.control) -> tensor<f32>
  %b = tf1.Const %pivot_f_c {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000040">} : (!tf1.control) -> tensor<f32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<f32>, tensor<f32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// The aliveness of a branch goes through a NoOp that joins its control inputs.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %a = tf1.Neg
// CHECK:         } else {
// CHECK-NEXT:      %b = tf1.Exp
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %p, %p {T = #tf1.dtype<bool>} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi1>)
  %t, %t_c = tf1.Identity %s1 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  %f, %f_c = tf1.Identity %s0 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  %join_c = tf1.NoOp %t_c : (!tf1.control) -> !tf1.control
  %a = tf1.Neg %x, %join_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  %b = tf1.Exp %x, %f_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// Three inputs are nested choices; the outer predicate decides first.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %zero = tf1.Const
// CHECK-NEXT:      %q = tf1.Less %x, %zero
// CHECK-NEXT:      %[[M:.*]] = core.if %q
// CHECK-NEXT:        %b = tf1.Exp %x
// CHECK:           } else {
// CHECK-NEXT:        %a = tf1.Neg %x
// CHECK:           core.yield %[[M]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %c = tf1.Tanh %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32>
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %q = tf1.Less %s1, %zero {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
  %r0, %r1 = tf1.Switch %s1, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %r1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %c = tf1.Tanh %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %c, %b {T = #tf1.dtype<float>, N = 3 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// The index of a Merge is one more result, for each of three inputs.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m, %k = core.if %p : tensor<*xi1> -> tensor<*xf32>, tensor<i32> {
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK-NEXT:      %[[ONE:.*]] = core.constant dense<1> : tensor<i32>
// CHECK-NEXT:      core.yield %a, %[[ONE]] : tensor<*xf32>, tensor<i32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[I:.*]] = core.if %q : tensor<*xi1> -> tensor<i32>
// CHECK-NEXT:        %[[TWO:.*]] = core.constant dense<2> : tensor<i32>
// CHECK-NEXT:        core.yield %[[TWO]]
// CHECK-NEXT:      } else {
// CHECK-NEXT:        %[[ZERO:.*]] = core.constant dense<0> : tensor<i32>
// CHECK-NEXT:        core.yield %[[ZERO]]
// CHECK-NEXT:      }
// CHECK-NEXT:      core.yield %x, %[[I]]
// CHECK:         func.return %m, %k
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %s0, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %k = tf1.Merge %r0, %a, %r1 {T = #tf1.dtype<float>, N = 3 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m, %k : tensor<*xf32>, tensor<*xi32> {names = ["m", "k"]}
}

// -----

// Merges of one predicate become one op if neither needs the other ...
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m, %n = core.if %p
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK-NEXT:      core.yield %a, %x
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %b = tf1.Exp %x
// CHECK-NEXT:      core.yield %x, %b
// CHECK-NEXT:    }
// CHECK-NEXT:    %y = tf1.AddV2 %m, %n
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %y = tf1.AddV2 %m, %n {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %a0, %a1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b0, %b1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %a1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %b0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a0, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %n, %n_1 = tf1.Merge %b, %b1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// ... and follow one another if one does.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK:         %e = tf1.Exp %m
// CHECK-NEXT:    %n = core.if %p
// CHECK:         func.return %n
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %a0, %a1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %a1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a0, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %e = tf1.Exp %m {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b0, %b1 = tf1.Switch %e, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b = tf1.Tanh %b0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %n, %n_1 = tf1.Merge %b, %b1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %n : tensor<*xf32> {names = ["n"]}
}

// -----

// Three pairs of Merges, of which the middle one waits for one of its partners: no cycle of ops.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p
// CHECK:         %n, %o = core.if %q
// CHECK:         %r = core.if %p
// CHECK-NOT:     core.if
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %a0, %a1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %a1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a0, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %b0, %b1 = tf1.Switch %m, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b = tf1.Exp %b1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %n, %n_1 = tf1.Merge %b0, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c0, %c1 = tf1.Switch %x, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %c = tf1.Tanh %c1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %o, %o_1 = tf1.Merge %c0, %c {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %d0, %d1 = tf1.Switch %o, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %d = tf1.Relu %d1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %r, %r_1 = tf1.Merge %d0, %d {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %y = tf1.AddV2 %n, %r {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A Switch output that nobody reads, and a Merge that nobody reads, vanish.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     tf1.Exp
// CHECK:         %y = tf1.Identity %m
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %s0 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %dead = tf1.Exp %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %other, %other_1 = tf1.Merge %s1, %dead {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %y = tf1.Identity %m {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A predicate that is constant takes its branch.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %b = tf1.Exp %x
// CHECK-NEXT:    func.return %b
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %yes = tf1.Const {dtype = #tf1.dtype<bool>, value = #core.blob<"0x01">} : () -> tensor<i1>
  %p = tf1.LogicalNot %yes : (tensor<i1>) -> tensor<*xi1>
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// Both branches give the same value: there is nothing to choose.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    func.return %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %m, %m_1 = tf1.Merge %s0, %r1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// One Switch feeds both inputs of a Merge; only its index depends on the predicate.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %k = core.if %p : tensor<*xi1> -> tensor<i32> {
// CHECK:         func.return %x, %k
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %m, %k = tf1.Merge %s1, %s0 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m, %k : tensor<*xf32>, tensor<*xi32> {names = ["m", "k"]}
}

// -----

// _SwitchN: the last output takes every other index.
// CHECK-LABEL: func.func @main
// CHECK:         %[[ZERO:.*]] = core.constant dense<0> : tensor<i32>
// CHECK-NEXT:    %[[IS:.*]] = tf1.Equal %i, %[[ZERO]]
// CHECK-NEXT:    %m = core.if %[[IS]]
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK:         } else {
// CHECK:           %[[ONE:.*]] = core.constant dense<1> : tensor<i32>
// CHECK-NEXT:      %[[IS1:.*]] = tf1.Equal %i, %[[ONE]]
// CHECK-NEXT:      %{{.*}} = core.if %[[IS1]]
// CHECK-NEXT:        %b = tf1.Exp %x
// CHECK:           } else {
// CHECK-NEXT:        %c = tf1.Tanh %x
tf1.graph @main {
  %i = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> tensor<*xi32> loc("i")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1, %s2 = tf1._SwitchN %x, %i {T = #tf1.dtype<float>, num_outs = 3 : i64} : (tensor<*xf32>, tensor<*xi32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %c = tf1.Tanh %s2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b, %c {T = #tf1.dtype<float>, N = 3 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// _SwitchN by a constant out of range.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %b = tf1.Exp %x
// CHECK-NEXT:    func.return %b
tf1.graph @main {
  %i = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0xFFFFFFFF">} : () -> tensor<i32>
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1._SwitchN %x, %i {T = #tf1.dtype<float>, num_outs = 2 : i64} : (tensor<*xf32>, tensor<i32>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// Nodes on references are like those on values.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %r = tf1.Identity %x
// CHECK-NEXT:    %m = core.if %p
// CHECK-NEXT:      %a = tf1.Neg %r
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %r = tf1.RefIdentity %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %s0, %s1 = tf1.RefSwitch %r, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.RefMerge %s0, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// A composed predicate is one choice by its value.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %both = tf1.LogicalAnd %p, %q
// CHECK-NEXT:    %m = core.if %both
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK:         } else {
// CHECK-NEXT:      %b = tf1.Exp %x
// CHECK-NEXT:      core.yield %b
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %both = tf1.LogicalAnd %p, %q : (tensor<*xi1>, tensor<*xi1>) -> tensor<*xi1>
  %s0, %s1 = tf1.Switch %x, %both {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// Switch(p and q) beside Switch(not p or not q): the predicates are compared as values.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %both = tf1.LogicalAnd %p, %q
// CHECK-NEXT:    %m = core.if %both
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK:         } else {
// CHECK-NEXT:      %b = tf1.Exp %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %both = tf1.LogicalAnd %p, %q : (tensor<*xi1>, tensor<*xi1>) -> tensor<*xi1>
  %np = tf1.LogicalNot %p : (tensor<*xi1>) -> tensor<*xi1>
  %nq = tf1.LogicalNot %q : (tensor<*xi1>) -> tensor<*xi1>
  %either = tf1.LogicalOr %nq, %np : (tensor<*xi1>, tensor<*xi1>) -> tensor<*xi1>
  %s0, %s1 = tf1.Switch %x, %both {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %x, %either {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %r1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// A Merge whose inputs share a case: alive under (not p) or (p and not q), and p and q.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %n = core.if %p
// CHECK-NEXT:      %[[N:.*]] = core.if %q
// CHECK-NEXT:        %c = tf1.Tanh %x
// CHECK:           } else {
// CHECK-NEXT:        %a = tf1.Neg %x
// CHECK-NEXT:        %b = tf1.Exp %a
// CHECK:           core.yield %[[N]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[B:.*]] = tf1.Exp %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %s1, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %s0, %a {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %b = tf1.Exp %m {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %c = tf1.Tanh %r1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %n, %n_1 = tf1.Merge %b, %c {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %n : tensor<*xf32> {names = ["n"]}
}

// -----

// A chain: the second predicate is computed from the first result.
// CHECK-LABEL: func.func @main
// CHECK:         %m = core.if %p
// CHECK:         %q = tf1.Less %m, %zero
// CHECK-NEXT:    %n = core.if %q
// CHECK-NEXT:      core.yield %m
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32>
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %s0 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %q = tf1.Less %m, %zero {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
  %r0, %r1 = tf1.Switch %m, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b = tf1.Exp %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %n, %n_1 = tf1.Merge %b, %r1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %n : tensor<*xf32> {names = ["n"]}
}

// -----

// Branches of different shape: the result has no rank yet.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %m = core.if %p : tensor<*xi1> -> tensor<*xf32> {
// CHECK:           core.yield %a : tensor<f32>
// CHECK:           core.yield %b : tensor<*xf32>
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %s0, %s1 = tf1.Switch %p, %p {T = #tf1.dtype<bool>} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi1>)
  %a = tf1.Const %pt_c {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : (!tf1.control) -> tensor<f32>
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %b = tf1.Neg %x, %pf_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<f32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %pt, %pt_c = tf1.Identity %s1 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  %pf, %pf_c = tf1.Identity %s0 {T = #tf1.dtype<bool>} : (tensor<*xi1>) -> (tensor<*xi1>, !tf1.control)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// A default is the value of its placeholder.
// CHECK-LABEL: func.func @main() -> (tensor<*xf32> {core.name = "y"})
// CHECK-NEXT:    %one = tf1.Const
// CHECK-NEXT:    %y = tf1.Neg %one
tf1.graph @main {
  %one = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : () -> tensor<f32>
  %d = tf1.PlaceholderWithDefault %one {dtype = #tf1.dtype<float>, shape = #tf1.shape<*>} : (tensor<f32>) -> tensor<*xf32>
  %y = tf1.Neg %d {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A ControlTrigger runs even if what it waits for is dead.
// CHECK-LABEL: func.func @main(%x: {{.*}} attributes {core.unused_inputs = ["p:0"]}
// CHECK-NEXT:    %y = tf1.Neg %x
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %i, %i_c = tf1.Identity %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  %t_c = tf1.ControlTrigger %i_c : (!tf1.control) -> !tf1.control
  %y = tf1.Neg %x, %t_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// Two comparisons of the same values, of which one is written the other way round, are one predicate.
// CHECK-LABEL: func.func @main
// CHECK:         %m = core.if %p
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK:         } else {
// CHECK-NEXT:      %b = tf1.Relu %x
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %one = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : () -> tensor<f32>
  %uno = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x0000803F">} : () -> tensor<f32>
  %same = tf1.Identity %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %p = tf1.Less %x, %one {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1>
  %q = tf1.Greater %uno, %same {T = #tf1.dtype<float>} : (tensor<f32>, tensor<*xf32>) -> tensor<*xi1>
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %x, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Relu %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// On integers, a <= b is not b < a; the branches would change places if the negation got lost.
// CHECK-LABEL: func.func @main
// CHECK:         %m = core.if %p
// CHECK-NEXT:      %a = tf1.Neg %x
// CHECK:         } else {
// CHECK-NEXT:      %b = tf1.Relu %x
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %i = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> tensor<*xi32> loc("i")
  %j = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> tensor<*xi32> loc("j")
  %p = tf1.LessEqual %i, %j {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %q = tf1.Less %j, %i {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %r0, %r1 = tf1.Switch %x, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Relu %r1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// A predicate that is itself chosen is the composition of what it is chosen from.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: core.if
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %r = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("r")
  %q0, %q1 = tf1.Switch %q, %p {T = #tf1.dtype<bool>} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi1>)
  %r0, %r1 = tf1.Switch %r, %p {T = #tf1.dtype<bool>} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi1>)
  %t, %t_1 = tf1.Merge %q1, %r0 {T = #tf1.dtype<bool>, N = 2 : i64} : (tensor<*xi1>, tensor<*xi1>) -> (tensor<*xi1>, tensor<*xi32>)
  %x0, %x1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a0, %a1 = tf1.Switch %x1, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %b0, %b1 = tf1.Switch %x0, %r {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %a1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Relu %b1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %s0, %s1 = tf1.Switch %x, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %c = tf1.Exp %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %a, %b, %c {T = #tf1.dtype<float>, N = 3 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}
