// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file --verify-diagnostics | filecheck %s

// Functions that call each other.
// CHECK:      node 'b/call' (PartitionedCall): found a function that calls itself: 'a' > 'b' > 'a', expected none
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %y = tf1.PartitionedCall %x {f = @a, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}
tf1.function @a {
^bb0(%v : tensor<*xf32>):
  %w = tf1.PartitionedCall %v {f = @b, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32> loc("a/call")
  tf1.return %w : tensor<*xf32>
}
tf1.function @b {
^bb0(%v : tensor<*xf32>):
  %w = tf1.PartitionedCall %v {f = @a, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32> loc("b/call")
  tf1.return %w : tensor<*xf32>
}

// -----

// All that is wrong is listed: a function that is not there, one that does not fit, no branches, and
// an input.
// CHECK:      node 'gone' (PartitionedCall): its f 'nowhere' is not in the module
// CHECK-NEXT: node 'loop' (StatelessWhile): its body 'two' takes (tensor<*xf32>) and gives (tensor<*xf32>, tensor<*xf32>), expected (float) and (float)
// CHECK-NEXT: node 'case' (Case): found no branches, expected at least one
// CHECK-NEXT: node 'two/input' (Placeholder): found an input inside a function, expected an argument
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %k = tf1.Placeholder {dtype = #tf1.dtype<int32>} : () -> tensor<*xi32> loc("k")
  %a = tf1.PartitionedCall %x {f = @nowhere, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32> loc("gone")
  %b = tf1.StatelessWhile %a {T = [#tf1.dtype<float>], cond = @same, body = @two} : (tensor<*xf32>) -> tensor<*xf32> loc("loop")
  %c = tf1.Case %k, %b {Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>], branches = []} : (tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32> loc("case")
  %d, %e = tf1.PartitionedCall %c {f = @two, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>, #tf1.dtype<float>]} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) loc("call")
  %f, %g = tf1.PartitionedCall %e {f = @two, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>, #tf1.dtype<float>]} : (tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>) loc("again")
  tf1.fetch %d, %g : tensor<*xf32>, tensor<*xf32> {names = ["d", "g"]}
}
tf1.function @same {
^bb0(%v : tensor<*xf32>):
  tf1.return %v : tensor<*xf32>
}
tf1.function @two {
^bb0(%v : tensor<*xf32>):
  %p = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("two/input")
  tf1.return %v, %p : tensor<*xf32>, tensor<*xf32>
}

// -----

// An effect that nothing waits for, told once.
// CHECK:     node 'two/write' (Assign): found a node that changes state before others run, expected none
// CHECK-NOT: two/write
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %d = tf1.PartitionedCall %x {f = @two, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32> loc("call")
  %f = tf1.PartitionedCall %d {f = @two, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>) -> tensor<*xf32> loc("again")
  tf1.fetch %f : tensor<*xf32> {names = ["f"]}
}
tf1.function @two {
^bb0(%v : tensor<*xf32>):
  %w, %w_c = tf1.Assign %v, %v {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("two/write")
  tf1.return %v, %w_c : tensor<*xf32>, !tf1.control
}

// -----

// Which inputs of a Merge are alive is told with the nodes of functions.
// CHECK: node 'f/m' (Merge): found inputs in no frame that may be alive together ('f/p'; 'f/q'), expected at most one
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %y = tf1.PartitionedCall %x, %p {f = @f, Tin = [#tf1.dtype<float>, #tf1.dtype<bool>], Tout = [#tf1.dtype<float>]} : (tensor<*xf32>, tensor<*xi1>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}
tf1.function @f {
^bb0(%v : tensor<*xf32>, %b : tensor<*xi1>):
  %p = tf1.Less %v, %z {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("f/p")
  %q = tf1.Less %z, %w {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("f/q")
  %z = tf1.Exp %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %w = tf1.Tanh %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %p0, %p1 = tf1.Switch %v, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %q0, %q1 = tf1.Switch %v, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %m, %m_1 = tf1.Merge %p1, %q1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("f/m")
  tf1.return %m : tensor<*xf32>
}

// -----

// A way to call functions that is not supported.
// CHECK: node 'y' (RemoteCall): found an operator that calls a function in a way that is not supported
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s = tf1.Placeholder {dtype = #tf1.dtype<string>} : () -> tensor<*x!core.string> loc("s")
  %y = tf1.RemoteCall %s, %x {f = @same, Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>]} : (tensor<*x!core.string>, tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}
tf1.function @same {
^bb0(%v : tensor<*xf32>):
  tf1.return %v : tensor<*xf32>
}
