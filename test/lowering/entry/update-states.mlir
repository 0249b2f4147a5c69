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
