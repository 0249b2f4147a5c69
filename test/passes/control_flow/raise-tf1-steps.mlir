// RUN: opt-tool %s --pass-pipeline='raise-tf1-control-flow{show=frames}' 2>&1 | filecheck %s --check-prefix=FRAMES
// RUN: opt-tool %s --pass-pipeline='raise-tf1-control-flow{show=loops}' 2>&1 | filecheck %s --check-prefix=LOOPS
// RUN: opt-tool %s --pass-pipeline='raise-tf1-control-flow{show=choices}' 2>&1 | filecheck %s --check-prefix=CHOICES
// RUN: opt-tool %s --pass-pipeline='raise-tf1-control-flow{show=plans}' 2>&1 | filecheck %s --check-prefix=PLANS
// RUN: not opt-tool %s --pass-pipeline='raise-tf1-control-flow{show=plan}' 2>&1 | filecheck %s --check-prefix=UNKNOWN

// A loop around a branch, step by step.

// Which nodes make one loop: what goes in is in it, what comes out, too.
// FRAMES:      frames
// FRAMES-NEXT: frame 'w':
// FRAMES-DAG:    %[[E:[0-9]+]] = Enter(name w) %[[X:[0-9]+]]  // 'e'
// FRAMES-DAG:    %[[N:[0-9]+]] = NextIteration %{{[0-9]+}}  // 'n'
// FRAMES-DAG:    %[[M:[0-9]+]] = Merge %[[E]], %[[N]]  // 'm'
// FRAMES-DAG:    %[[F:[0-9]+]] = Switch %[[M]], %{{[0-9]+}}  // 'f'
// FRAMES-DAG:    Exit %[[F]]  // 'y'
// FRAMES:      no frame:
// FRAMES:        %[[X]] = Argument  // 'x'
// FRAMES-NOT:    Merge

// The frame is one node of what is around it; the Exit is there, and forwards what the loop gives.
// LOOPS:       loops
// LOOPS:       no frame:
// LOOPS:         %[[X:[0-9]+]] = Argument  // 'x'
// LOOPS:         %[[E:[0-9]+]] = Forward %[[X]]  // 'e'
// LOOPS:         %[[L:[0-9]+]] = RaisedLoop after %[[E]], %{{[0-9]+}}, %{{[0-9]+}}  // 'go'
// LOOPS-NEXT:    Forward %[[L]]  // 'y'

// When nodes are alive, within an iteration, and the choice that a Merge stands for.
// CHOICES:      choices
// CHOICES-NEXT: no frame, alive always:
// CHOICES:      frame 'w', alive always:
// CHOICES:        %[[A:[0-9]+]] = Neg %{{[0-9]+}}  // 'a': alive if 'c' and not 'p'
// CHOICES-NEXT:   %[[B:[0-9]+]] = Exp %{{[0-9]+}}:1  // 'b': alive if 'c' and 'p'
// CHOICES-NEXT:   %[[D:[0-9]+]] = Phi(output 0) %{{[0-9]+}}, %[[B]], %[[A]]  // 'd': made
// CHOICES:        %[[M:[0-9]+]] = Merge %[[A]], %[[B]]  // 'd': alive if 'c'
// CHOICES-NEXT:     %[[M]] is %[[D]]
// CHOICES:        Forward %{{[0-9]+}}  // 'y': alive if not 'c'

// What is computed in which region.
// PLANS:      plans
// PLANS-NEXT: frame 'w' as %[[LOOP:[0-9]+]]:
// PLANS-NEXT:   carries %[[M:[0-9]+]]  // 'm'
// PLANS-NEXT:   captures %[[L:[0-9]+]]  // 'l'
// PLANS-NEXT:   captures %[[Q:[0-9]+]]  // 'q'
// PLANS-NEXT:   goes on:
// PLANS-NEXT:     %[[C:[0-9]+]] = Less %[[M]], %[[L]]  // 'c'
// PLANS-NEXT:     gives %[[C]]
// PLANS-NEXT:   body:
// PLANS-NEXT:     %[[D:[0-9]+]] = if %[[Q]]
// PLANS-NEXT:       then:
// PLANS-NEXT:         %[[B:[0-9]+]] = Exp %[[M]]  // 'b'
// PLANS-NEXT:         gives %[[B]]
// PLANS-NEXT:       else:
// PLANS-NEXT:         %[[A:[0-9]+]] = Neg %[[M]]  // 'a'
// PLANS-NEXT:         gives %[[A]]
// PLANS-NEXT:     gives %[[D]]
// PLANS-NEXT:   after:
// PLANS-NEXT:     gives %[[M]]
// PLANS-NEXT: the function:
// PLANS-NEXT:   body:
// PLANS-NEXT:     %[[LOOP]] = RaisedLoop %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}  // 'go'
// PLANS-NEXT:     gives %[[LOOP]]

// UNKNOWN: found no steps plan, expected of frames, loops, choices, plans
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %limit = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("limit")
  %e = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %l = tf1.Enter %limit {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %q = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1>
  %m, %m_1 = tf1.Merge %e, %n {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %l {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %no, %yes = tf1.Switch %t, %q {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a = tf1.Neg %no {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %b = tf1.Exp %yes {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %d, %d_1 = tf1.Merge %a, %b {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %n = tf1.NextIteration %d {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %f {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}
