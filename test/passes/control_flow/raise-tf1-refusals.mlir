// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file --verify-diagnostics | filecheck %s

// A node in two frames: both paths.
// CHECK: node 'a' (AddV2): found inputs in frame 'w' (from 'f') and no frame (from 'x'), expected all of them in one
// CHECK-NEXT: {{.. -----}}
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %a = tf1.AddV2 %t, %x {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %b = tf1.Mul %a, %limit {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("b")
  %n = tf1.NextIteration %b {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A Merge with inputs that may both be alive.
// CHECK:      node 'm' (Merge): found the fetch 'm' alive only if 'p' and 'q' or not 'p', expected always
// CHECK-NEXT: node 'm' (Merge): found inputs in no frame that may be alive together (not 'p'; 'q'), expected at most one
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s0")
  %r0, %r1 = tf1.Switch %x, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("r0")
  %m, %m_1 = tf1.Merge %s0, %r1 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}

// -----

// A fetch that may be dead.
// CHECK: node 'a' (Neg): found the fetch 'a' alive only if not 'p' and 'q', expected always
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %q = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("q")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s0")
  %r0, %r1 = tf1.Switch %s0, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("r0")
  %a = tf1.Neg %r1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("a")
  tf1.fetch %a, %x : tensor<*xf32>, tensor<*xf32> {names = ["a", "x"]}
}

// -----

// A fetch that is never alive.
// CHECK: node 'a' (Neg): found the fetch 'a' alive only if never
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s0")
  %r0, %r1 = tf1.Switch %s0, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("r0")
  %a = tf1.Neg %r1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("a")
  tf1.fetch %a : tensor<*xf32> {names = ["a"]}
}

// -----

// A fetch inside of a loop.
// CHECK: node 'a' (AddV2): found the fetch 'a' in frame 'w', expected it outside of all loops; name what an Exit gives as --output
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %a, %y : tensor<*xf32>, tensor<*xf32> {names = ["a", "y"]}
}

// -----

// Two conditions in one frame.
// CHECK:      node 'go' (LoopCond): found 2 LoopConds in frame 'w', expected one
// CHECK-NEXT: node 'go2' (LoopCond): found 2 LoopConds in frame 'w', expected one
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %e2 = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e2")
  %m2, %m2_1 = tf1.Merge %e2, %n2 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m2")
  %c2 = tf1.Less %m2, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c2")
  %go2 = tf1.LoopCond %c2 : (tensor<*xi1>) -> tensor<*xi1> loc("go2")
  %f2, %t2 = tf1.Switch %m2, %go2 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f2")
  %a2 = tf1.AddV2 %t2, %t2 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a2")
  %n2 = tf1.NextIteration %a2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n2")
  %z = tf1.Exit %f2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("z")
  tf1.fetch %y, %z : tensor<*xf32>, tensor<*xf32> {names = ["y", "z"]}
}

// -----

// A loop that does not end, in a loop that does.
// CHECK: node 'goi' (LoopCond): found a condition of frame 'w' > 'w' that is always true, expected the loop to end
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %le = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("le")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %le {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %ie = tf1.Enter %t {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("ie")
  %lie = tf1.Enter %le {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("lie")
  %mi, %mi_1 = tf1.Merge %ie, %ni {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("mi")
  %ci, %ci_c = tf1.Greater %mi, %lie {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xi1>, !tf1.control) loc("ci")
  %yes = tf1.Const %ci_c {dtype = #tf1.dtype<bool>, value = #core.blob<"0x01">} : (!tf1.control) -> tensor<i1> loc("yes")
  %goi = tf1.LoopCond %yes : (tensor<i1>) -> tensor<*xi1> loc("goi")
  %fi, %ti = tf1.Switch %mi, %goi {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("fi")
  %d = tf1.Mul %ti, %lie {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("d")
  %ni = tf1.NextIteration %d {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("ni")
  %xi = tf1.Exit %fi {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("xi")
  %a = tf1.AddV2 %xi, %le {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A NextIteration that does not ask the condition, and an Exit in every iteration.
// CHECK:      node 'n' (NextIteration): found it alive in frame 'w' always, expected it whenever the loop goes on, and only then, if 'c'
// CHECK-NEXT: node 'z' (Exit): found it alive in frame 'w' if 'c', expected it when the loop ends, and only then, if not 'c'
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %b = tf1.Neg %m {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("b")
  %n = tf1.NextIteration %b {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %z = tf1.Exit %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("z")
  tf1.fetch %y, %z : tensor<*xf32>, tensor<*xf32> {names = ["y", "z"]}
}

// -----

// A body that ends the loop by itself, and has no Exit for that.
// CHECK: node 'y' (Exit): found the fetch 'y' alive only if frame 'w' ends with not 'c', expected always
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %q = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1> loc("q")
  %s0, %s1 = tf1.Switch %t, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s0")
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A cycle without a NextIteration.
// CHECK:      node 'b' (Neg): found it in a cycle without a NextIteration, expected none
// CHECK-NEXT: node 'a' (AddV2): found it in a cycle without a NextIteration, expected none
// CHECK-NEXT: {{.. -----}}
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %a = tf1.AddV2 %x, %b {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %b = tf1.Neg %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("b")
  %y = tf1.Exp %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A frame whose Enter waits for its own Exit.
// CHECK: found it in no frame in a cycle through a whole loop, expected Enters that wait for no Exit of it
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %e2 = tf1.Enter %y {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e2")
  %m2, %m2_1 = tf1.Merge %e2, %n2 {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m2")
  %f2, %t2 = tf1.Switch %m2, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f2")
  %a2 = tf1.AddV2 %t2, %t2 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a2")
  %n2 = tf1.NextIteration %a2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n2")
  %z = tf1.Exit %f2 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("z")
  tf1.fetch %z : tensor<*xf32> {names = ["z"]}
}

// -----

// A loop of which one part is entered only sometimes.
// CHECK:      node 'z' (Enter): found it alive if 'p', expected one predicate for all Enters of frame 'w'
// CHECK-NEXT: node 'e' (Enter): found it alive always, expected one predicate for all Enters of frame 'w'
// CHECK-NEXT: node 'l' (Enter): found it alive always
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %s0, %s1 = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s0")
  %e = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %z = tf1.Enter %s1 {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("z")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %k, %k_1 = tf1.Merge %z, %nk {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("k")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %fk, %tk = tf1.Switch %k, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("fk")
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %ak = tf1.Neg %tk {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("ak")
  %nk = tf1.NextIteration %ak {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("nk")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %u = tf1.Exit %fk {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("u")
  %w, %w_1 = tf1.Merge %s0, %u {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("w")
  %v = tf1.AddV2 %w, %y {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("v")
  tf1.fetch %v : tensor<*xf32> {names = ["v"]}
}

// -----

// A node that is needed for its effect only, on what the output is computed from.
// CHECK: node 'asg' (Assign): found a node that changes state before others run, expected none
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %v = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("v")
  %asg, %asg_c = tf1.Assign %v, %x {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("asg")
  %seen, %seen_c = tf1.CheckNumerics %x {T = #tf1.dtype<float>, message = ""} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("seen")
  %y = tf1.Neg %v, %asg_c, %seen_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control, !tf1.control) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// The index of a loop variable's Merge of three inputs.
// CHECK: node 'm' (Merge): found the index of 3 inputs in frame 'w' in use, expected 2 inputs
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %i = tf1.Merge %e, %n, %nn {T = #tf1.dtype<float>, N = 3 : i64} : (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %q = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1> loc("q")
  %s0, %s1 = tf1.Switch %t, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("s0")
  %a = tf1.Neg %s1 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("a")
  %nn = tf1.NextIteration %s0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("nn")
  %g, %h = tf1.Switch %i, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>) loc("g")
  %k = tf1.Exit %g {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32> loc("k")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  tf1.fetch %y, %k : tensor<*xf32>, tensor<*xi32> {names = ["y", "k"]}
}

// -----

// A call of a function that is not there.
// CHECK: node 'y' (PartitionedCall): its f 'body' is not in the module
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %y = tf1.PartitionedCall %x {Tin = [#tf1.dtype<float>], Tout = [#tf1.dtype<float>], f = @body} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// An Exit outside of all loops.
// CHECK: node 'y' (Exit): found an Exit in no frame, expected it inside of a loop
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %y = tf1.Exit %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A loop variable without an Enter.
// CHECK: node 'm' (Merge): found inputs from Neg, NextIteration in frame 'w', expected Enters and NextIterations
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %o = tf1.Neg %e {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("o")
  %m, %m_1 = tf1.Merge %o, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A NextIteration that is read in the next iteration, and waited for.
// CHECK:      node 'late' (Neg): found it in frame 'w' waiting for 'n' of the iteration before, expected only a Merge to read a NextIteration
// CHECK-NEXT: node 'z' (Exit): found it in frame 'w' waiting for 'n' of the iteration before, expected only a Merge to read a NextIteration
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1> loc("c")
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %a = tf1.AddV2 %t, %t {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n, %n_c = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("n")
  %late = tf1.Neg %n {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("late")
  %g, %h = tf1.Switch %late, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("g")
  %y = tf1.Exit %g {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %z = tf1.Exit %f, %n_c {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32> loc("z")
  tf1.fetch %y, %z : tensor<*xf32>, tensor<*xf32> {names = ["y", "z"]}
}

// -----

// What comes from outside leaves a loop that is not run: the other branch is alive then, too.
// CHECK:      node 'e' (Enter): found it alive if 'p', expected one predicate for all Enters of frame 'w'
// CHECK-NEXT: node 'l' (Enter): found it alive always, expected one predicate for all Enters of frame 'w'
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %no, %yes = tf1.Switch %x, %p {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("b")
  %e = tf1.Enter %yes {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32> loc("e")
  %l = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32> loc("l")
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  %mi, %mi_c = tf1.Identity %m {T = #tf1.dtype<float>} : (tensor<*xf32>) -> (tensor<*xf32>, !tf1.control) loc("mi")
  %never = tf1.Const %mi_c {dtype = #tf1.dtype<bool>, value = #core.blob<"0x00">} : (!tf1.control) -> tensor<i1> loc("never")
  %go = tf1.LoopCond %never : (tensor<i1>) -> tensor<*xi1> loc("go")
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>) loc("f")
  %n = tf1.NextIteration %t {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("y")
  %z = tf1.Exit %l {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("z")
  %both = tf1.AddV2 %y, %z {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("both")
  %r, %r_1 = tf1.Merge %no, %both {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("r")
  %w, %w_1 = tf1.Merge %no, %z {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("w")
  tf1.fetch %r, %w : tensor<*xf32>, tensor<*xf32> {names = ["r", "w"]}
}

// -----

// An iteration that no loop has.
// CHECK: node 'n' (NextIteration): found a NextIteration in no frame, expected it inside of a loop
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %a = tf1.Neg %x {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("a")
  %n = tf1.NextIteration %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32> loc("n")
  %m, %m_1 = tf1.Merge %x, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("m")
  tf1.fetch %m : tensor<*xf32> {names = ["m"]}
}
