// RUN: opt-tool %s --pass-pipeline='vectorize-loops{lanes=4}' --split-input-file | filecheck %s

// Each element is read and written by its own iteration.
// CHECK-LABEL: buffer.func @own
// CHECK: buffer.load %y(%{{.*}}) <[d0 * 4 + 1]> {{.*}} -> vector<4xf32>
// CHECK: buffer.store {{.*}} vector<4xf32>
buffer.func @own {
^bb0(%x: !buffer.ref<[16] x f32>, %y: !buffer.ref<[20] x f32>):
  buffer.for <[0, 16, 1]> {
  ^bb0(%i: index):
    %a = buffer.load %y(%i) <[d0 + 1]> : !buffer.ref<[20] x f32> -> f32
    %b = arith.addf %a, %a : f32
    buffer.store %b, %y(%i) <[d0 + 1]> : f32, !buffer.ref<[20] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// The next iteration reads what this one writes.
// CHECK-LABEL: buffer.func @next
// CHECK-NOT: vector
buffer.func @next {
^bb0(%x: !buffer.ref<[16] x f32>, %y: !buffer.ref<[20] x f32>):
  buffer.for <[0, 16, 1]> {
  ^bb0(%i: index):
    %a = buffer.load %y(%i) <[d0]> : !buffer.ref<[20] x f32> -> f32
    %b = arith.addf %a, %a : f32
    buffer.store %b, %y(%i) <[d0 + 1]> : f32, !buffer.ref<[20] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// All iterations of one loop write what others write in another iteration of the inner one.
// CHECK-LABEL: buffer.func @overlapping
// CHECK: buffer.for <[0, 16, 1]>
// CHECK-NEXT: ^bb0
// CHECK-NEXT: buffer.for <[0, 3, 1]>
// CHECK-NOT: vector
buffer.func @overlapping {
^bb0(%x: !buffer.ref<[16] x f32>, %y: !buffer.ref<[20] x f32>):
  buffer.for <[0, 16, 1]> {
  ^bb0(%i: index):
    buffer.for <[0, 3, 1]> {
    ^bb1(%k: index):
      %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[16] x f32> -> f32
      buffer.store %a, %y(%i, %k) <[d0 + d1]> : f32, !buffer.ref<[20] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Every other element, and one that all iterations write.
// CHECK-LABEL: buffer.func @apart
// CHECK-NOT: vector
// CHECK-LABEL: buffer.func @same
// CHECK-NOT: vector
buffer.func @apart {
^bb0(%x: !buffer.ref<[32] x f32>, %y: !buffer.ref<[20] x f32>):
  buffer.for <[0, 16, 1]> {
  ^bb0(%i: index):
    %a = buffer.load %x(%i) <[d0 * 2]> : !buffer.ref<[32] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[20] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
buffer.func @same {
^bb0(%x: !buffer.ref<[32] x f32>, %y: !buffer.ref<[20] x f32>):
  buffer.for <[0, 16, 1]> {
  ^bb0(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[32] x f32> -> f32
    buffer.store %a, %y <[0]> : f32, !buffer.ref<[20] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
