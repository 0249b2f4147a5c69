// RUN: opt-tool --for-target=x86-64-v3 --pass-pipeline=split-chains --split-input-file %s | filecheck %s
// RUN: opt-tool --for-target=x86-64-v4 --pass-pipeline=split-chains --split-input-file %s | filecheck %s --check-prefix=MORE

// 32 registers are enough for two iterations side by side.
// MORE-NOT: buffer.scratch

// Six of twelve products for sixteen iterations, then the others; what remains is not cut.
// CHECK-LABEL: buffer.func @chain
// CHECK:       buffer.for <[0, 2, 1]> {
// CHECK-NEXT:  ^bb{{.*}}(%[[P:.*]]: index):
// CHECK-NEXT:    %[[KEPT:.*]] = buffer.scratch : !buffer.ref<[16, 4] x f32>
// CHECK-NEXT:    buffer.for <[0, 16, 1]> {
// CHECK-NEXT:    ^bb{{.*}}(%[[I:.*]]: index):
// CHECK-NEXT:      buffer.load %x(%[[P]], %[[I]]) <[d0 * 64 + d1 * 4]>
// CHECK-COUNT-6:   arith.mulf
// CHECK-NEXT:      buffer.store %{{.*}}, %[[KEPT]](%[[I]]) <[d0, 0]>
// CHECK:         {parallel = false}
// CHECK-NEXT:    buffer.for <[0, 16, 1]> {
// CHECK-NEXT:    ^bb{{.*}}(%[[J:.*]]: index):
// CHECK-NEXT:      buffer.load %[[KEPT]](%[[J]]) <[d0, 0]>
// CHECK-COUNT-6:   arith.mulf
// CHECK-NEXT:      buffer.store %{{.*}}, %y(%[[P]], %[[J]]) <[d0 * 64 + d1 * 4]>
// CHECK:         {parallel = false}
// CHECK:       {parallel = true}
// CHECK-NEXT:  buffer.for <[32, 35, 1]> {
// CHECK-COUNT-12: arith.mulf
// CHECK:       {parallel = true}
buffer.func @chain {
^bb0(%x: !buffer.ref<[140] x f32>, %y: !buffer.ref<[140] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 35, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[140] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %s6 = arith.addf %a, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %s6 : vector<4xf32>
    %s7 = arith.addf %a, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %s7 : vector<4xf32>
    %s8 = arith.addf %a, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %s8 : vector<4xf32>
    %s9 = arith.addf %a, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %s9 : vector<4xf32>
    %s10 = arith.addf %a, %two : vector<4xf32>
    %c10 = arith.mulf %c9, %s10 : vector<4xf32>
    %s11 = arith.addf %a, %two : vector<4xf32>
    %c11 = arith.mulf %c10, %s11 : vector<4xf32>
    buffer.store %c11, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[140] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// A chain of eleven is too short.
// CHECK-LABEL: buffer.func @short
// CHECK-NOT:   buffer.scratch
buffer.func @short {
^bb0(%x: !buffer.ref<[140] x f32>, %y: !buffer.ref<[140] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 35, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[140] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %s6 = arith.addf %a, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %s6 : vector<4xf32>
    %s7 = arith.addf %a, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %s7 : vector<4xf32>
    %s8 = arith.addf %a, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %s8 : vector<4xf32>
    %s9 = arith.addf %a, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %s9 : vector<4xf32>
    %s10 = arith.addf %a, %two : vector<4xf32>
    %c10 = arith.mulf %c9, %s10 : vector<4xf32>
    buffer.store %c10, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[140] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// 31 iterations are too few.
// CHECK-LABEL: buffer.func @few
// CHECK-NOT:   buffer.scratch
buffer.func @few {
^bb0(%x: !buffer.ref<[124] x f32>, %y: !buffer.ref<[124] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 31, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[124] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %s6 = arith.addf %a, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %s6 : vector<4xf32>
    %s7 = arith.addf %a, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %s7 : vector<4xf32>
    %s8 = arith.addf %a, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %s8 : vector<4xf32>
    %s9 = arith.addf %a, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %s9 : vector<4xf32>
    %s10 = arith.addf %a, %two : vector<4xf32>
    %c10 = arith.mulf %c9, %s10 : vector<4xf32>
    %s11 = arith.addf %a, %two : vector<4xf32>
    %c11 = arith.mulf %c10, %s11 : vector<4xf32>
    buffer.store %c11, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[124] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// What is loaded, and the first op on it, are done again; a later one is kept, too.
// CHECK-LABEL: buffer.func @needed_later
// CHECK-COUNT-2: buffer.scratch
// CHECK-NOT:   buffer.scratch
// CHECK:       buffer.for <[0, 16, 1]> {
// CHECK-COUNT-2: buffer.store
// CHECK:       buffer.for <[0, 16, 1]> {
// CHECK:         %[[A:.*]] = buffer.load %x
// CHECK-NEXT:    %[[B:.*]] = arith.mulf %[[A]], %{{.*}} :
// CHECK:         arith.addf %{{.*}}, %[[B]] :
buffer.func @needed_later {
^bb0(%x: !buffer.ref<[128] x f32>, %y: !buffer.ref<[128] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[128] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %d = arith.addf %c5, %c5 : vector<4xf32>
    %r0 = arith.addf %a, %two : vector<4xf32>
    %e0 = arith.mulf %d, %r0 : vector<4xf32>
    %r1 = arith.addf %a, %two : vector<4xf32>
    %e1 = arith.mulf %e0, %r1 : vector<4xf32>
    %r2 = arith.addf %a, %two : vector<4xf32>
    %e2 = arith.mulf %e1, %r2 : vector<4xf32>
    %r3 = arith.addf %a, %two : vector<4xf32>
    %e3 = arith.mulf %e2, %r3 : vector<4xf32>
    %r4 = arith.addf %a, %two : vector<4xf32>
    %e4 = arith.mulf %e3, %r4 : vector<4xf32>
    %r5 = arith.addf %a, %two : vector<4xf32>
    %e5 = arith.mulf %e4, %r5 : vector<4xf32>
    %f = arith.addf %e5, %c0 : vector<4xf32>
    %g = arith.addf %f, %c2 : vector<4xf32>
    buffer.store %g, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[128] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Wherever it is cut, three values are needed later.
// CHECK-LABEL: buffer.func @many_needed
// CHECK-NOT:   buffer.scratch
buffer.func @many_needed {
^bb0(%x: !buffer.ref<[128] x f32>, %y: !buffer.ref<[128] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[128] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %d = arith.addf %c5, %c5 : vector<4xf32>
    %r0 = arith.addf %a, %two : vector<4xf32>
    %e0 = arith.mulf %d, %r0 : vector<4xf32>
    %r1 = arith.addf %a, %two : vector<4xf32>
    %e1 = arith.mulf %e0, %r1 : vector<4xf32>
    %r2 = arith.addf %a, %two : vector<4xf32>
    %e2 = arith.mulf %e1, %r2 : vector<4xf32>
    %r3 = arith.addf %a, %two : vector<4xf32>
    %e3 = arith.mulf %e2, %r3 : vector<4xf32>
    %r4 = arith.addf %a, %two : vector<4xf32>
    %e4 = arith.mulf %e3, %r4 : vector<4xf32>
    %r5 = arith.addf %a, %two : vector<4xf32>
    %e5 = arith.mulf %e4, %r5 : vector<4xf32>
    %f = arith.addf %e5, %c1 : vector<4xf32>
    %g = arith.addf %f, %c2 : vector<4xf32>
    buffer.store %g, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[128] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// A result over its operand: each element is read before it is written. An open number of parts.
// CHECK-LABEL: buffer.func @in_place
// CHECK:       buffer.for <[0, s0 floordiv 16, 1]> {
// CHECK:         buffer.scratch
// CHECK:       buffer.for <[(s0 floordiv 16) * 16, s0, 1]> {
buffer.func @in_place {
^bb0(%x: !buffer.ref<[s0, 4] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, s0, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[s0, 4] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %s6 = arith.addf %a, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %s6 : vector<4xf32>
    %s7 = arith.addf %a, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %s7 : vector<4xf32>
    %s8 = arith.addf %a, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %s8 : vector<4xf32>
    %s9 = arith.addf %a, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %s9 : vector<4xf32>
    %s10 = arith.addf %a, %two : vector<4xf32>
    %c10 = arith.mulf %c9, %s10 : vector<4xf32>
    %s11 = arith.addf %a, %two : vector<4xf32>
    %c11 = arith.mulf %c10, %s11 : vector<4xf32>
    buffer.store %c11, %x(%i) <[d0, 0]> : vector<4xf32>, !buffer.ref<[s0, 4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["s0"], outputs = #builtin.int<1>}

// -----

// An iteration reads what the one before has written.
// CHECK-LABEL: buffer.func @shifted
// CHECK-NOT:   buffer.scratch
buffer.func @shifted {
^bb0(%x: !buffer.ref<[36, 4] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[1, 36, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 - 1, 0]> : !buffer.ref<[36, 4] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %s6 = arith.addf %a, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %s6 : vector<4xf32>
    %s7 = arith.addf %a, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %s7 : vector<4xf32>
    %s8 = arith.addf %a, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %s8 : vector<4xf32>
    %s9 = arith.addf %a, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %s9 : vector<4xf32>
    %s10 = arith.addf %a, %two : vector<4xf32>
    %c10 = arith.mulf %c9, %s10 : vector<4xf32>
    %s11 = arith.addf %a, %two : vector<4xf32>
    %c11 = arith.mulf %c10, %s11 : vector<4xf32>
    buffer.store %c11, %x(%i) <[d0, 0]> : vector<4xf32>, !buffer.ref<[36, 4] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// A mask is kept like a number.
// CHECK-LABEL: buffer.func @mask
// CHECK:       buffer.scratch : !buffer.ref<[16, 4] x i32>
buffer.func @mask {
^bb0(%x: !buffer.ref<[128] x f32>, %y: !buffer.ref<[128] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[128] x f32> -> vector<4xf32>
    %b = arith.addf %a, %two : vector<4xf32>
    %b_2 = arith.addf %b, %two : vector<4xf32>
    %t = buffer.compare lt %b_2, %two : vector<4xf32> -> vector<4xi32>
    %c0 = arith.mulf %b, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %s6 = arith.addf %a, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %s6 : vector<4xf32>
    %s7 = arith.addf %a, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %s7 : vector<4xf32>
    %s8 = arith.addf %a, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %s8 : vector<4xf32>
    %s9 = arith.addf %a, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %s9 : vector<4xf32>
    %s10 = arith.addf %a, %two : vector<4xf32>
    %c10 = arith.mulf %c9, %s10 : vector<4xf32>
    %s11 = arith.addf %a, %two : vector<4xf32>
    %c11 = arith.mulf %c10, %s11 : vector<4xf32>
    %s = buffer.select %t, %c11, %a : vector<4xi32>, vector<4xf32>
    buffer.store %s, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[128] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// 17 ops for a chain of twelve: two iterations side by side do as well.
// CHECK-LABEL: buffer.func @thin
// CHECK-NOT:   buffer.scratch
buffer.func @thin {
^bb0(%x: !buffer.ref<[128] x f32>, %y: !buffer.ref<[128] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[128] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    %c10 = arith.mulf %c9, %two : vector<4xf32>
    %c11 = arith.mulf %c10, %two : vector<4xf32>
    buffer.store %c11, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[128] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// The first result lies over the operand, which the second one needs, too: it is loaded again before
// anything is stored.
// CHECK-LABEL: buffer.func @two_results
// CHECK:       buffer.scratch
// CHECK-NEXT:  buffer.for <[0, 16, 1]> {
// CHECK-NOT:   %x(
// CHECK:         buffer.load %x
// CHECK-NOT:   %x(
// CHECK:       buffer.for <[0, 16, 1]> {
// CHECK:         %[[A:.*]] = buffer.load %x
// CHECK:         buffer.store %{{.*}}, %x
// CHECK-NOT:   buffer.load
buffer.func @two_results {
^bb0(%x: !buffer.ref<[128] x f32>, %y: !buffer.ref<[128] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[128] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %s1 = arith.addf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %s1 : vector<4xf32>
    %s2 = arith.addf %a, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %s2 : vector<4xf32>
    %s3 = arith.addf %a, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %s3 : vector<4xf32>
    %s4 = arith.addf %a, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %s4 : vector<4xf32>
    %s5 = arith.addf %a, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %s5 : vector<4xf32>
    %s6 = arith.addf %a, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %s6 : vector<4xf32>
    buffer.store %c6, %x(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[128] x f32>
    %e0 = arith.mulf %a, %two : vector<4xf32>
    %e1 = arith.mulf %e0, %two : vector<4xf32>
    %e2 = arith.mulf %e1, %two : vector<4xf32>
    %e3 = arith.mulf %e2, %two : vector<4xf32>
    %e4 = arith.mulf %e3, %two : vector<4xf32>
    %e5 = arith.mulf %e4, %two : vector<4xf32>
    %e6 = arith.mulf %e5, %two : vector<4xf32>
    %e7 = arith.mulf %e6, %two : vector<4xf32>
    %e8 = arith.mulf %e7, %two : vector<4xf32>
    %e9 = arith.mulf %e8, %two : vector<4xf32>
    %e10 = arith.mulf %e9, %two : vector<4xf32>
    %e11 = arith.mulf %e10, %two : vector<4xf32>
    buffer.store %e11, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[128] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
