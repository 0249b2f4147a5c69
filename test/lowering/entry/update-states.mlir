// RUN: opt-tool %s --pass-pipeline=update-states --split-input-file | filecheck %s

// Read before it is written: one buffer, and no copy.

buffer.entry ["x", "past"] -> ["y", "present"] {
^bb0(%x : !buffer.ref<[4] x f32>, %past : !buffer.ref<[4] x f32>,
     %y : !buffer.ref<[4] x f32>, %present : !buffer.ref<[4] x f32>):
  %part = buffer.view %past {offset = #core.dims<[0]>} : !buffer.ref<[4] x f32> -> !buffer.ref<[2, 2] x f32>
  buffer.copy %past, %y : !buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>
  buffer.copy %x, %present : !buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>
  buffer.return
} {states = [["past", "present", unit]]}

// CHECK-LABEL: buffer.entry ["x", "past"] -> ["y", "present"] {
// CHECK-NEXT:  ^bb0({{.*}}):
// CHECK-NEXT:    buffer.view %present
// CHECK-NEXT:    buffer.copy %present, %y
// CHECK-NEXT:    buffer.copy %x, %present
// CHECK-NEXT:    buffer.return

// -----

// Read after that, or by the op that writes it: another buffer, and a copy at the end.

buffer.entry ["x", "past", "p"] -> ["y", "present", "q"] {
^bb0(%x : !buffer.ref<[4] x f32>, %past : !buffer.ref<[4] x f32>, %p : !buffer.ref<[2] x f32>,
     %y : !buffer.ref<[4] x f32>, %present : !buffer.ref<[4] x f32>, %q : !buffer.ref<[2] x f32>):
  buffer.copy %x, %present : !buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>
  buffer.copy %past, %y : !buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>
  buffer.copy %p, %q : !buffer.ref<[2] x f32>, !buffer.ref<[2] x f32>
  buffer.return
} {states = [["past", "present", unit], ["p", "q", unit]]}

// CHECK-LABEL: buffer.entry ["x", "past", "p"] -> ["y", "present", "q"] {
// CHECK:         %q_1 = buffer.alloc {dynamic = false} : !buffer.ref<[2] x f32>
// CHECK-NEXT:    %present_1 = buffer.alloc {dynamic = false} : !buffer.ref<[4] x f32>
// CHECK-NEXT:    buffer.copy %x, %present_1
// CHECK-NEXT:    buffer.copy %present, %y
// CHECK-NEXT:    buffer.copy %q, %q_1
// CHECK-NEXT:    buffer.copy %present_1, %present
// CHECK-NEXT:    buffer.copy %q_1, %q
// CHECK-NEXT:    buffer.return

// -----

// A kernel that moves what it reads to the front loads from where it stores, in order: its loops are
// not shared any more.

buffer.func @roll {
^bb0(%s : !buffer.ref<[6] x f32>, %x : !buffer.ref<[2] x f32>, %r : !buffer.ref<[8] x f32>):
  buffer.for <[0, 6, 1]> {
  ^bb0(%i : index):
    %a = buffer.load %s(%i) <[d0]> : !buffer.ref<[6] x f32> -> f32
    buffer.store %a, %r(%i) <[d0]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 2, 1]> {
  ^bb0(%i : index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[2] x f32> -> f32
    buffer.store %a, %r(%i) <[d0 + 6]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x", "past"] -> ["present"] {
^bb0(%x : !buffer.ref<[2] x f32>, %past : !buffer.ref<[4, 2] x f32>, %present : !buffer.ref<[4, 2] x f32>):
  %tail = buffer.view %past {offset = #core.dims<[2]>} : !buffer.ref<[4, 2] x f32> -> !buffer.ref<[6] x f32>
  %all = buffer.view %present {offset = #core.dims<[0]>} : !buffer.ref<[4, 2] x f32> -> !buffer.ref<[8] x f32>
  buffer.call @roll(%tail, %x, %all) <[]> : (!buffer.ref<[6] x f32>, !buffer.ref<[2] x f32>, !buffer.ref<[8] x f32>)
  buffer.return
} {states = [["past", "present", unit]]}

// CHECK-LABEL: buffer.func @roll {
// CHECK-NEXT:  ^bb0(%x: !buffer.ref<[2] x f32>, %{{.*}}: !buffer.ref<[8] x f32>):
// CHECK-NEXT:    buffer.for <[0, 6, 1]> {
// CHECK:           %a = buffer.load %{{.*}}(%i) <[d0 + 2]> : !buffer.ref<[8] x f32> -> f32
// CHECK-NEXT:      buffer.store %a, %{{.*}}(%i) <[d0]>
// CHECK:         } {parallel = false}
// CHECK-LABEL: buffer.entry ["x", "past"] -> ["present"] {
// CHECK-NOT:     buffer.alloc
// CHECK:         buffer.call @roll(%x, %{{.*}})
// CHECK-NEXT:    buffer.return

// -----

// To the back, an element would be overwritten before it is read; so it would by a store that comes
// before the load of another loop.

buffer.func @back {
^bb0(%s : !buffer.ref<[6] x f32>, %x : !buffer.ref<[2] x f32>, %r : !buffer.ref<[8] x f32>):
  buffer.for <[0, 6, 1]> {
  ^bb0(%i : index):
    %a = buffer.load %s(%i) <[d0]> : !buffer.ref<[6] x f32> -> f32
    buffer.store %a, %r(%i) <[d0 + 2]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @first {
^bb0(%s : !buffer.ref<[6] x f32>, %x : !buffer.ref<[2] x f32>, %r : !buffer.ref<[8] x f32>):
  buffer.for <[0, 2, 1]> {
  ^bb0(%i : index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[2] x f32> -> f32
    buffer.store %a, %r(%i) <[d0 + 6]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 6, 1]> {
  ^bb0(%i : index):
    %a = buffer.load %s(%i) <[d0]> : !buffer.ref<[6] x f32> -> f32
    buffer.store %a, %r(%i) <[d0]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x", "p", "q"] -> ["r", "s"] {
^bb0(%x : !buffer.ref<[2] x f32>, %p : !buffer.ref<[8] x f32>, %q : !buffer.ref<[8] x f32>,
     %r : !buffer.ref<[8] x f32>, %s : !buffer.ref<[8] x f32>):
  %head = buffer.view %p {offset = #core.dims<[0]>} : !buffer.ref<[8] x f32> -> !buffer.ref<[6] x f32>
  buffer.call @back(%head, %x, %r) <[]> : (!buffer.ref<[6] x f32>, !buffer.ref<[2] x f32>, !buffer.ref<[8] x f32>)
  %tail = buffer.view %q {offset = #core.dims<[2]>} : !buffer.ref<[8] x f32> -> !buffer.ref<[6] x f32>
  buffer.call @first(%tail, %x, %s) <[]> : (!buffer.ref<[6] x f32>, !buffer.ref<[2] x f32>, !buffer.ref<[8] x f32>)
  buffer.return
} {states = [["p", "r", unit], ["q", "s", unit]]}

// CHECK-LABEL: buffer.func @back {
// CHECK-NEXT:  ^bb0(%s: !buffer.ref<[6] x f32>
// CHECK:         } {parallel = true}
// CHECK-LABEL: buffer.func @first {
// CHECK-NEXT:  ^bb0(%s: !buffer.ref<[6] x f32>
// CHECK-LABEL: buffer.entry ["x", "p", "q"] -> ["r", "s"] {
// CHECK-COUNT-2: buffer.alloc
// CHECK:         buffer.call @back(%{{.*}}, %x, %r_1)
// CHECK:         buffer.call @first(%{{.*}}, %x, %s_1)
// CHECK:         buffer.copy %r_1, %r
// CHECK-NEXT:    buffer.copy %s_1, %s
