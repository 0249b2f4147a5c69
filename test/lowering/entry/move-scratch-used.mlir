// RUN: opt-tool %s --pass-pipeline=move-scratch,plan-memory --split-input-file | filecheck %s

// Of a buffer that holds 128 rows at most, as many are reserved as the length of the input has use for.
// CHECK-LABEL: buffer.func @rows
// CHECK-NEXT: ^{{.*}}%{{[a-z0-9]+}}: !buffer.ref<[min(128, s0), 16] x f32>):
// CHECK-LABEL: buffer.entry
// CHECK: buffer.alloc {{.*}} : !buffer.ref<[min(128, n), 16] x f32>
// CHECK: workspace = #core.dims<[min(128, n) * 64]>
buffer.func @rows {
^bb0(%x : !buffer.ref<[s0] x f32>, %y : !buffer.ref<[s0] x f32>):
  %t = buffer.scratch {used = #core.dims<[min(128, s0)]>} : !buffer.ref<[128, 16] x f32>
  buffer.for <[0, min(128, s0), 1]> {
  ^bb1(%i : index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[s0] x f32> -> f32
    buffer.store %a, %t(%i) <[d0, 3]> : f32, !buffer.ref<[128, 16] x f32>
    %b = buffer.load %t(%i) <[d0, 3]> : !buffer.ref<[128, 16] x f32> -> f32
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[s0] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[n] x f32>, %y : !buffer.ref<[n] x f32>):
  buffer.call @rows(%x, %y) <[n]> : (!buffer.ref<[n] x f32>, !buffer.ref<[n] x f32>)
  buffer.return
}

// -----

// A length of which one call says that data decide it is unknown when memory is planned.
// CHECK-LABEL: buffer.func @rows
// CHECK-NEXT: ^{{.*}}%{{[a-z0-9]+}}: !buffer.ref<[128, 16] x f32>):
// CHECK-LABEL: buffer.entry
// CHECK: buffer.alloc {{.*}} : !buffer.ref<[128, 16] x f32>
// CHECK: buffer.alloc {{.*}} : !buffer.ref<[128, 16] x f32>
// CHECK: workspace = #core.dims<[8192]>
buffer.func @rows {
^bb0(%x : !buffer.ref<[300] x f32>, %y : !buffer.ref<[300] x f32>):
  %t = buffer.scratch {used = #core.dims<[min(128, s0)]>} : !buffer.ref<[128, 16] x f32>
  buffer.for <[0, min(128, s0), 1]> {
  ^bb1(%i : index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[300] x f32> -> f32
    buffer.store %a, %t(%i) <[d0, 3]> : f32, !buffer.ref<[128, 16] x f32>
    %b = buffer.load %t(%i) <[d0, 3]> : !buffer.ref<[128, 16] x f32> -> f32
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[300] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}
buffer.entry ["x", "k", "l"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[300] x f32>, %k : !buffer.ref<[1] x i64>, %l : !buffer.ref<[n] x f32>, %y : !buffer.ref<[300] x f32>, %z : !buffer.ref<[300] x f32>):
  buffer.call @rows(%x, %y) <[n]> : (!buffer.ref<[300] x f32>, !buffer.ref<[300] x f32>)
  buffer.bind %k {symbols = ["u"]} : !buffer.ref<[1] x i64>
  buffer.call @rows(%x, %z) <[u]> : (!buffer.ref<[300] x f32>, !buffer.ref<[300] x f32>)
  buffer.return
}
