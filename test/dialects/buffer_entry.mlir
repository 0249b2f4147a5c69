// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: buffer.entry ["x", "c", "t"] -> ["y"] {
// CHECK-NEXT:  ^bb0(%x: !buffer.ref<[4, n] x f32>, %c: !buffer.ref<[] x i1>, %t: !buffer.ref<[] x i64>, %y: !buffer.ref<[n * 4] x f32>):
// CHECK-NEXT:    %w = buffer.weight {value = #core.blob<"0x0000803F">} : !buffer.ref<[1] x f32>
// CHECK-NEXT:    %v = buffer.weight {value = #core.blob<"0x0000803F">, offset = #core.dims<[64]>} : !buffer.ref<[1] x f32>
// CHECK-NEXT:    %a = buffer.alloc {dynamic = false} : !buffer.ref<[4, n] x f32>
// CHECK-NEXT:    %b = buffer.alloc {offset = #core.dims<[n * 64]>, dynamic = false} : !buffer.ref<[4, n] x f32>
// CHECK-NEXT:    %p = buffer.view %x {offset = #core.dims<[n]>} : !buffer.ref<[4, n] x f32> -> !buffer.ref<[n * 3] x f32>
// CHECK-NEXT:    buffer.call @map(%x, %w, %a) <[n]> : (!buffer.ref<[4, n] x f32>, !buffer.ref<[1] x f32>, !buffer.ref<[4, n] x f32>) {multiply_adds = #core.dims<[n * 4]>}
// CHECK-NEXT:    buffer.check_status
// CHECK-NEXT:    buffer.barrier
// CHECK-NEXT:    buffer.bind %t {symbols = ["u0"]} : !buffer.ref<[] x i64>
// CHECK-NEXT:    buffer.require <[u0]> le <[n + 1]>
// CHECK-NEXT:    %d = buffer.alloc {dynamic = true} : !buffer.ref<[u0] x f32>
// CHECK-NEXT:    buffer.once {
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %s = buffer.section(%d : !buffer.ref<[u0] x f32>) -> !buffer.ref<[u0] x f32> {
// CHECK-NEXT:    ^bb0(%i: !buffer.ref<[u0] x f32>):
// CHECK-NEXT:      %o = buffer.view %i {offset = #core.dims<[0]>} : !buffer.ref<[u0] x f32> -> !buffer.ref<[u0] x f32>
// CHECK-NEXT:      buffer.yield %o : !buffer.ref<[u0] x f32>
// CHECK-NEXT:    } {symbols = ["u0"]}
// CHECK-NEXT:    buffer.section {
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    buffer.if %c : !buffer.ref<[] x i1> {
// CHECK-NEXT:      buffer.copy %x, %a : !buffer.ref<[4, n] x f32>, !buffer.ref<[4, n] x f32>
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %r = buffer.loop trip %t : !buffer.ref<[] x i64> cond %c : !buffer.ref<[] x i1> swap %a, %b : !buffer.ref<[4, n] x f32>, !buffer.ref<[4, n] x f32> -> !buffer.ref<[4, n] x f32> {
// CHECK-NEXT:    ^bb0(%e: !buffer.ref<[4, n] x f32>, %f: !buffer.ref<[4, n] x f32>):
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    } {iteration = "k", count = "t"}
// CHECK-NEXT:    buffer.loop cond %c : !buffer.ref<[] x i1> {
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    %q = buffer.view %r {offset = #core.dims<[0]>} : !buffer.ref<[4, n] x f32> -> !buffer.ref<[n * 4] x f32>
// CHECK-NEXT:    buffer.open_output %y : !buffer.ref<[n * 4] x f32>
// CHECK-NEXT:    buffer.copy %q, %y : !buffer.ref<[n * 4] x f32>, !buffer.ref<[n * 4] x f32>
// CHECK-NEXT:    buffer.return
// CHECK-NEXT:  } {unused = ["z"], takes_pool, parallel, workspace = #core.dims<[n * 128]>, weights = #builtin.int<128>, live = #builtin.int<192>, row_major = #builtin.int<64>}
buffer.entry ["x", "c", "t"] -> ["y"] {
^bb0(%x : !buffer.ref<[4, n] x f32>, %c : !buffer.ref<[] x i1>, %t : !buffer.ref<[] x i64>, %y : !buffer.ref<[n * 4] x f32>):
  %w = buffer.weight {value = #core.blob<"0x0000803F">} : !buffer.ref<[1] x f32>
  %v = buffer.weight {value = #core.blob<"0x0000803F">, offset = #core.dims<[64]>} : !buffer.ref<[1] x f32>
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[4, n] x f32>
  %b = buffer.alloc {offset = #core.dims<[n * 64]>, dynamic = false} : !buffer.ref<[4, n] x f32>
  %p = buffer.view %x {offset = #core.dims<[n]>} : !buffer.ref<[4, n] x f32> -> !buffer.ref<[n * 3] x f32>
  buffer.call @map(%x, %w, %a) <[n]> : (!buffer.ref<[4, n] x f32>, !buffer.ref<[1] x f32>, !buffer.ref<[4, n] x f32>) {multiply_adds = #core.dims<[n * 4]>}
  buffer.check_status
  buffer.barrier
  buffer.bind %t {symbols = ["u0"]} : !buffer.ref<[] x i64>
  buffer.require <[u0]> le <[n + 1]>
  %d = buffer.alloc {dynamic = true} : !buffer.ref<[u0] x f32>
  buffer.once {
    buffer.yield
  }
  %s = buffer.section(%d : !buffer.ref<[u0] x f32>) -> !buffer.ref<[u0] x f32> {
  ^bb1(%i : !buffer.ref<[u0] x f32>):
    %o = buffer.view %i {offset = #core.dims<[0]>} : !buffer.ref<[u0] x f32> -> !buffer.ref<[u0] x f32>
    buffer.yield %o : !buffer.ref<[u0] x f32>
  } {symbols = ["u0"]}
  buffer.section {
    buffer.yield
  }
  buffer.if %c : !buffer.ref<[] x i1> {
    buffer.copy %x, %a : !buffer.ref<[4, n] x f32>, !buffer.ref<[4, n] x f32>
    buffer.yield
  } else {
    buffer.yield
  }
  %r = buffer.loop trip %t : !buffer.ref<[] x i64> cond %c : !buffer.ref<[] x i1> swap %a, %b : !buffer.ref<[4, n] x f32>, !buffer.ref<[4, n] x f32> -> !buffer.ref<[4, n] x f32> {
  ^bb1(%e : !buffer.ref<[4, n] x f32>, %f : !buffer.ref<[4, n] x f32>):
    buffer.yield
  } {iteration = "k", count = "t"}
  buffer.loop cond %c : !buffer.ref<[] x i1> {
    buffer.yield
  }
  %q = buffer.view %r {offset = #core.dims<[0]>} : !buffer.ref<[4, n] x f32> -> !buffer.ref<[n * 4] x f32>
  buffer.open_output %y : !buffer.ref<[n * 4] x f32>
  buffer.copy %q, %y : !buffer.ref<[n * 4] x f32>, !buffer.ref<[n * 4] x f32>
  buffer.return
} {unused = ["z"], takes_pool, parallel, workspace = #core.dims<[n * 128]>, weights = #builtin.int<128>, live = #builtin.int<192>, row_major = #builtin.int<64>}

// CHECK-LABEL: buffer.func @sizes
// CHECK:         %r = buffer.if %c : !buffer.ref<[] x i1> -> !buffer.ref<[p] x f32> {
// CHECK-NEXT:      %a = buffer.alloc
// CHECK-NEXT:      buffer.yield %a : !buffer.ref<[2] x f32>
// CHECK:         } {result_symbols = ["p"]}
// CHECK-NEXT:    %s = buffer.loop trip %t : !buffer.ref<[] x i64> own %r : !buffer.ref<[p] x f32> -> !buffer.ref<[q] x f32> {
// CHECK-NEXT:    ^bb0(%d: !buffer.ref<[k] x f32>):
// CHECK-NEXT:      %e = buffer.alloc {dynamic = true} : !buffer.ref<[k + 1] x f32>
// CHECK-NEXT:      buffer.yield %e : !buffer.ref<[k + 1] x f32>
// CHECK-NEXT:    } {carried_symbols = ["k"], result_symbols = ["q"]}
buffer.func @sizes {
^bb0(%c : !buffer.ref<[] x i1>, %t : !buffer.ref<[] x i64>):
  %r = buffer.if %c : !buffer.ref<[] x i1> -> !buffer.ref<[p] x f32> {
    %a = buffer.alloc {dynamic = true} : !buffer.ref<[2] x f32>
    buffer.yield %a : !buffer.ref<[2] x f32>
  } else {
    %b = buffer.alloc {dynamic = true} : !buffer.ref<[3] x f32>
    buffer.yield %b : !buffer.ref<[3] x f32>
  } {result_symbols = ["p"]}
  %s = buffer.loop trip %t : !buffer.ref<[] x i64> own %r : !buffer.ref<[p] x f32> -> !buffer.ref<[q] x f32> {
  ^bb1(%d : !buffer.ref<[k] x f32>):
    %e = buffer.alloc {dynamic = true} : !buffer.ref<[k + 1] x f32>
    buffer.yield %e : !buffer.ref<[k + 1] x f32>
  } {carried_symbols = ["k"], result_symbols = ["q"]}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}
