// RUN: opt-tool %s --pass-pipeline=raise-tf1-control-flow --split-input-file | filecheck %s

// An array that is written from its end: the handle is captured, the flow carried.
// CHECK-LABEL: func.func @main
// CHECK:         %h, %flow = tf1.TensorArrayV3 %three
// CHECK:         %mf, %m = core.loop cond %c : tensor<*xi1> carry %flow, %zero
// CHECK:           %w = tf1.TensorArrayWriteV3 %h, %at, %vx, %{{.*}} {
// CHECK:           core.yield %{{.*}}, %w, %i1
// CHECK:         %r0 = tf1.TensorArrayReadV3 %h, %zero, %mf
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %three = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x03000000">} : () -> tensor<i32>
  %h, %flow = tf1.TensorArrayV3 %three {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %e = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %ef = tf1.Enter %flow {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %eh = tf1.Enter %h {T = #tf1.dtype<resource>, frame_name = "w", is_constant = true} : (!tf1.resource) -> !tf1.resource
  %ex = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %e3 = tf1.Enter %three {T = #tf1.dtype<int32>, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %m, %m_1 = tf1.Merge %e, %nx {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %mf, %mf_1 = tf1.Merge %ef, %nf {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %e3 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %ff, %tf = tf1.Switch %mf, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %one = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %t1, %t1_c = tf1.Identity %t {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %i1 = tf1.AddV2 %t1, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %at = tf1.Sub %e3, %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32>
  %v = tf1.Cast %t1 {SrcT = #tf1.dtype<int32>, DstT = #tf1.dtype<float>} : (tensor<*xi32>) -> tensor<*xf32>
  %vx = tf1.Mul %v, %ex {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %w = tf1.TensorArrayWriteV3 %eh, %at, %vx, %tf {T = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %nx = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %nf = tf1.NextIteration %w {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %last = tf1.Exit %ff {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %r0 = tf1.TensorArrayReadV3 %h, %zero, %last {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  %r2 = tf1.TensorArrayReadV3 %h, %two, %last {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Sub %r0, %r2 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// Two arrays in a loop: one is read, and the other written where the predicate holds.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop cond %c
// CHECK:           %v = tf1.TensorArrayReadV3 %h,
// CHECK:           %mw = core.if %p : tensor<*xi1> -> tensor<*xf32> {
// CHECK-NEXT:        %w = tf1.TensorArrayWriteV3 %g,
// CHECK-NEXT:        core.yield %w
// CHECK:             %u = tf1.TensorArrayWriteV3 %g,
// CHECK-NEXT:        core.yield %u
// CHECK:           core.yield %{{.*}}, %mw
tf1.graph @main {
  %p = tf1.Placeholder {dtype = #tf1.dtype<bool>} : () -> tensor<*xi1> loc("p")
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %h, %flow = tf1.TensorArrayV3 %two {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %first = tf1.TensorArrayWriteV3 %h, %zero, %x, %flow {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %both = tf1.TensorArrayWriteV3 %h, %one, %x, %first {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %g, %into = tf1.TensorArrayV3 %two {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %ep = tf1.Enter %p {T = #tf1.dtype<bool>, frame_name = "w", is_constant = true} : (tensor<*xi1>) -> tensor<*xi1>
  %eh = tf1.Enter %h {T = #tf1.dtype<resource>, frame_name = "w", is_constant = true} : (!tf1.resource) -> !tf1.resource
  %eb = tf1.Enter %both {T = #tf1.dtype<float>, frame_name = "w", is_constant = true} : (tensor<*xf32>) -> tensor<*xf32>
  %eg = tf1.Enter %g {T = #tf1.dtype<resource>, frame_name = "w", is_constant = true} : (!tf1.resource) -> !tf1.resource
  %e2 = tf1.Enter %two {T = #tf1.dtype<int32>, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %e = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %ef = tf1.Enter %into {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %m, %m_1 = tf1.Merge %e, %nx {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %mf, %mf_1 = tf1.Merge %nf, %ef {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %e2 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %ff, %tf = tf1.Switch %mf, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %t1, %t1_c = tf1.Identity %t {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %one1 = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %i1 = tf1.AddV2 %t1, %one1 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %v = tf1.TensorArrayReadV3 %eh, %t1, %eb {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32>
  %vv = tf1.AddV2 %v, %v {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %s0, %s1 = tf1.Switch %tf, %ep {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %a0, %a1 = tf1.Switch %t1, %ep {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %b0, %b1 = tf1.Switch %vv, %ep {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %h0, %h1 = tf1.Switch %eg, %ep {T = #tf1.dtype<resource>} : (!tf1.resource, tensor<*xi1>) -> (!tf1.resource, !tf1.resource)
  %w = tf1.TensorArrayWriteV3 %h1, %a1, %b1, %s1 {T = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %neg = tf1.Neg %b0 {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %u = tf1.TensorArrayWriteV3 %h0, %a0, %neg, %s0 {T = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %mw, %mw_1 = tf1.Merge %u, %w {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %nx = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %nf = tf1.NextIteration %mw {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %last = tf1.Exit %ff {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.TensorArrayReadV3 %g, %one, %last {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// An array that is read and written in one loop; its size is what it was made with.
// CHECK-LABEL: func.func @main
// CHECK:         %mf, %m = core.loop cond %c : tensor<*xi1> carry %start, %zero : tensor<*xf32>, tensor<i32> ->
// CHECK:         %y = tf1.TensorArrayReadV3 %h, %two, %mf
// CHECK-NEXT:    %n = tf1.TensorArraySizeV3 %h, %mf
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %three = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x03000000">} : () -> tensor<i32>
  %h, %flow = tf1.TensorArrayV3 %three {dtype = #tf1.dtype<float>, clear_after_read = false} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %start = tf1.TensorArrayWriteV3 %h, %zero, %x, %flow {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %e = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %ef = tf1.Enter %start {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %eh = tf1.Enter %h {T = #tf1.dtype<resource>, frame_name = "w", is_constant = true} : (!tf1.resource) -> !tf1.resource
  %mh, %mh_1 = tf1.Merge %eh2, %nh {T = #tf1.dtype<resource>, N = 2 : i64} : (!tf1.resource, !tf1.resource) -> (!tf1.resource, tensor<*xi32>)
  %eh2 = tf1.Enter %h {T = #tf1.dtype<resource>, frame_name = "w"} : (!tf1.resource) -> !tf1.resource
  %e2 = tf1.Enter %two {T = #tf1.dtype<int32>, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %m, %m_1 = tf1.Merge %e, %nx {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %mf, %mf_1 = tf1.Merge %ef, %nf {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %e2 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %ff, %tf = tf1.Switch %mf, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %fh, %th = tf1.Switch %mh, %go {T = #tf1.dtype<resource>} : (!tf1.resource, tensor<*xi1>) -> (!tf1.resource, !tf1.resource)
  %nh = tf1.NextIteration %th {T = #tf1.dtype<resource>} : (!tf1.resource) -> !tf1.resource
  %t1, %t1_c = tf1.Identity %t {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %one = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %i1 = tf1.AddV2 %t1, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %v = tf1.TensorArrayReadV3 %th, %t1, %tf {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>) -> tensor<*xf32>
  %vv = tf1.AddV2 %v, %v {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %w = tf1.TensorArrayWriteV3 %eh, %i1, %vv, %tf {T = #tf1.dtype<float>} : (!tf1.resource, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %nx = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %nf = tf1.NextIteration %w {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %last = tf1.Exit %ff {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %xh = tf1.Exit %fh {T = #tf1.dtype<resource>} : (!tf1.resource) -> !tf1.resource
  %y = tf1.TensorArrayReadV3 %xh, %two, %last {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.TensorArraySizeV3 %xh, %last : (!tf1.resource, tensor<*xf32>) -> tensor<*xi32>
  tf1.fetch %y, %n : tensor<*xf32>, tensor<*xi32> {names = ["y", "n"]}
}

// -----

// A carried value that grows.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop cond %c : tensor<*xi1> carry %start, %zero : tensor<*xf32>, tensor<i32> -> tensor<*xf32>, tensor<*xi32> {
// CHECK:           %w = tf1.ConcatV2
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %start = tf1.ExpandDims %x, %zero {T = #tf1.dtype<float>, Tdim = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<i32>) -> tensor<*xf32>
  %e = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %ef = tf1.Enter %start {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %el = tf1.Enter %two {T = #tf1.dtype<int32>, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %m, %m_1 = tf1.Merge %e, %nx {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %mf, %mf_1 = tf1.Merge %ef, %nf {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %el {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %ff, %tf = tf1.Switch %mf, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %t1, %t1_c = tf1.Identity %t {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %one1 = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %axis = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : (!tf1.control) -> tensor<i32>
  %i1 = tf1.AddV2 %t1, %one1 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %w = tf1.ConcatV2 %tf, %tf, %axis {T = #tf1.dtype<float>, N = 2, Tidx = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<*xf32>, tensor<i32>) -> tensor<*xf32>
  %nx = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %nf = tf1.NextIteration %w {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.Exit %ff {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// A read through the flow from before the write, which a control edge puts after it: it sees the
// element. A read that nothing orders keeps its flow.
// CHECK-LABEL: func.func @main
// CHECK:         %h, %flow = tf1.TensorArrayV3
// CHECK:         %first = tf1.TensorArrayWriteV3 %h, %zero, %x, %flow
// CHECK:         %second = tf1.TensorArrayWriteV3 %h, %one, %x2, %first
// CHECK:         %r1 = tf1.TensorArrayReadV3 %h, %one, %second
// CHECK:         %r0 = tf1.TensorArrayReadV3 %h, %zero, %first
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %h, %flow = tf1.TensorArrayV3 %two {dtype = #tf1.dtype<float>, element_shape = #tf1.shape<[]>, clear_after_read = false} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %first = tf1.TensorArrayWriteV3 %h, %zero, %x, %flow {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %x2 = tf1.AddV2 %x, %x {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %second, %done = tf1.TensorArrayWriteV3 %h, %one, %x2, %first {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  %r1 = tf1.TensorArrayReadV3 %h, %one, %flow, %done {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  %r0 = tf1.TensorArrayReadV3 %h, %zero, %first {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  %n = tf1.TensorArraySizeV3 %h, %second : (!tf1.resource, tensor<*xf32>) -> tensor<*xi32>
  %y = tf1.Sub %r1, %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y, %n : tensor<*xf32>, tensor<*xi32> {names = ["y", "n"]}
}

// -----

// What a write needs orders it, too: the second one must not forget the first.
// CHECK-LABEL: func.func @main
// CHECK:         %first = tf1.TensorArrayWriteV2 %h, %zero, %x, %flow
// CHECK:         %r0 = tf1.TensorArrayReadV2 %h, %zero, %first
// CHECK:         %second = tf1.TensorArrayWriteV2 %h, %at, %r0, %first
// CHECK:         %y = tf1.TensorArrayGatherV2 %h, %all, %second
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %h, %made = tf1.TensorArrayV2 %two {dtype = #tf1.dtype<float>, clear_after_read = false} : (tensor<i32>) -> (tensor<*x!core.string>, !tf1.control)
  %flow = tf1.Const %made {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : (!tf1.control) -> tensor<f32>
  %first = tf1.TensorArrayWriteV2 %h, %zero, %x, %flow {T = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<i32>, tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %r0 = tf1.TensorArrayReadV2 %h, %zero, %first {dtype = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  %rest = tf1.Mul %r0, %r0 {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %fraction = tf1.Cast %rest {SrcT = #tf1.dtype<float>, DstT = #tf1.dtype<int32>} : (tensor<*xf32>) -> tensor<*xi32>
  %at = tf1.AddV2 %fraction, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %second = tf1.TensorArrayWriteV2 %h, %at, %r0, %flow {T = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<*xi32>, tensor<*xf32>, tensor<f32>) -> tensor<*xf32>
  %all = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x0000000001000000">} : () -> tensor<2xi32>
  %y = tf1.TensorArrayGatherV2 %h, %all, %second {dtype = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<2xi32>, tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// Handles of the second version are strings; what waits for a write through one sees that.
// CHECK-LABEL: func.func @main
// CHECK:         %w = tf1.TensorArrayWriteV2 %h, %zero, %x, %flow
// CHECK-NEXT:    %r = tf1.TensorArrayReadV2 %h, %zero, %w
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %h = tf1.TensorArrayV2 %one {dtype = #tf1.dtype<float>} : (tensor<i32>) -> tensor<*x!core.string>
  %flow = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32>
  %w, %done = tf1.TensorArrayWriteV2 %h, %zero, %x, %flow {T = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<i32>, tensor<*xf32>, tensor<f32>) -> (tensor<*xf32>, !tf1.control) loc("write")
  %r = tf1.TensorArrayReadV2 %h, %zero, %flow, %done {dtype = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<i32>, tensor<f32>, !tf1.control) -> tensor<*xf32>
  tf1.fetch %r : tensor<*xf32> {names = ["r"]}
}

// -----

// A write that only others wait for, which do not read the array, is not needed.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %y = tf1.Neg %x
// CHECK-NEXT:    func.return %y
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %one = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %h, %flow = tf1.TensorArrayV3 %one {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %w, %done = tf1.TensorArrayWriteV3 %h, %zero, %x, %flow {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, !tf1.control)
  %y = tf1.Neg %x, %done {T = #tf1.dtype<float>} : (tensor<*xf32>, !tf1.control) -> tensor<*xf32>
  tf1.fetch %y : tensor<*xf32> {names = ["y"]}
}

// -----

// An array that each iteration makes for itself: what the one before wrote was another array.
// CHECK-LABEL: @main
// CHECK:       core.loop
// CHECK:         tf1.TensorArrayV3
// CHECK:         tf1.TensorArrayWriteV3
// CHECK:         tf1.TensorArrayReadV3
tf1.graph @main {
  %x = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")
  %zero = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %two = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %e = tf1.Enter %zero {T = #tf1.dtype<int32>, frame_name = "w"} : (tensor<i32>) -> tensor<*xi32>
  %ex = tf1.Enter %x {T = #tf1.dtype<float>, frame_name = "w"} : (tensor<*xf32>) -> tensor<*xf32>
  %e2 = tf1.Enter %two {T = #tf1.dtype<int32>, frame_name = "w", is_constant = true} : (tensor<i32>) -> tensor<*xi32>
  %m, %m_1 = tf1.Merge %e, %nx {T = #tf1.dtype<int32>, N = 2 : i64} : (tensor<*xi32>, tensor<*xi32>) -> (tensor<*xi32>, tensor<*xi32>)
  %mx, %mx_1 = tf1.Merge %ex, %nf {T = #tf1.dtype<float>, N = 2 : i64} : (tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  %c = tf1.Less %m, %e2 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1>
  %go = tf1.LoopCond %c : (tensor<*xi1>) -> tensor<*xi1>
  %f, %t = tf1.Switch %m, %go {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi1>) -> (tensor<*xi32>, tensor<*xi32>)
  %fx, %tx = tf1.Switch %mx, %go {T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)
  %t1, %t1_c = tf1.Identity %t {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> (tensor<*xi32>, !tf1.control)
  %one = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : (!tf1.control) -> tensor<i32>
  %at = tf1.Const %t1_c {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : (!tf1.control) -> tensor<i32>
  %i1 = tf1.AddV2 %t1, %one {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %h, %flow = tf1.TensorArrayV3 %one {dtype = #tf1.dtype<float>, clear_after_read = false} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %w = tf1.TensorArrayWriteV3 %h, %at, %tx, %flow {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %v = tf1.TensorArrayReadV3 %h, %at, %w {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  %nx = tf1.NextIteration %i1 {T = #tf1.dtype<int32>} : (tensor<*xi32>) -> tensor<*xi32>
  %nf = tf1.NextIteration %v {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  %last = tf1.Exit %fx {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
  tf1.fetch %last : tensor<*xf32> {names = ["y"]}
}
