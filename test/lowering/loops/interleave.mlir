// RUN: opt-tool --pass-pipeline=interleave --split-input-file %s | filecheck %s

// A chain of ten ops: two iterations side by side, and the one that remains by itself.
// CHECK-LABEL: buffer.func @chain
// CHECK:       buffer.for <[0, 3, 1]> {
// CHECK-NEXT:  ^bb0(%[[I:.*]]: index):
// CHECK-NEXT:    %[[A:.*]] = buffer.load %x(%[[I]]) <[d0 * 8]>
// CHECK-NEXT:    %[[B:.*]] = buffer.load %x(%[[I]]) <[d0 * 8 + 4]>
// CHECK-NEXT:    %[[C:.*]] = arith.mulf %[[A]], %[[TWO:.*]] :
// CHECK-NEXT:    %[[D:.*]] = arith.mulf %[[B]], %[[TWO]] :
// CHECK-NEXT:    arith.mulf %[[C]], %[[TWO]] :
// CHECK-NEXT:    arith.mulf %[[D]], %[[TWO]] :
// CHECK:         buffer.store %{{.*}}, %y(%[[I]]) <[d0 * 8]>
// CHECK-NEXT:    buffer.store %{{.*}}, %y(%[[I]]) <[d0 * 8 + 4]>
// CHECK:       {parallel = true}
// CHECK-NEXT:  buffer.for <[6, 7, 1]> {
// CHECK-NEXT:  ^bb{{.*}}(%[[J:.*]]: index):
// CHECK-NEXT:    buffer.load %x(%[[J]]) <[d0 * 4]>
// CHECK-NOT:     buffer.load
// CHECK:       {parallel = true}
buffer.func @chain {
^bb0(%x: !buffer.ref<[28] x f32>, %y: !buffer.ref<[28] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 7, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[28] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    buffer.store %c9, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[28] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// A chain of nine is too short.
// CHECK-LABEL: buffer.func @short
// CHECK:       buffer.for <[0, 8, 1]> {
// CHECK-NOT:   buffer.for
buffer.func @short {
^bb0(%x: !buffer.ref<[32] x f32>, %y: !buffer.ref<[32] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 8, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[32] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    buffer.store %c8, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Three chains fill each other's gaps.
// CHECK-LABEL: buffer.func @chains
// CHECK:       buffer.for <[0, 8, 1]> {
// CHECK-NOT:   buffer.for
buffer.func @chains {
^bb0(%x: !buffer.ref<[3, 32] x f32>, %y: !buffer.ref<[3, 32] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 8, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[0, d0 * 4]> : !buffer.ref<[3, 32] x f32> -> vector<4xf32>
    %b = buffer.load %x(%i) <[1, d0 * 4]> : !buffer.ref<[3, 32] x f32> -> vector<4xf32>
    %d = buffer.load %x(%i) <[2, d0 * 4]> : !buffer.ref<[3, 32] x f32> -> vector<4xf32>
    %a_0 = arith.mulf %a, %two : vector<4xf32>
    %a_1 = arith.mulf %a_0, %two : vector<4xf32>
    %a_2 = arith.mulf %a_1, %two : vector<4xf32>
    %a_3 = arith.mulf %a_2, %two : vector<4xf32>
    %a_4 = arith.mulf %a_3, %two : vector<4xf32>
    %a_5 = arith.mulf %a_4, %two : vector<4xf32>
    %a_6 = arith.mulf %a_5, %two : vector<4xf32>
    %a_7 = arith.mulf %a_6, %two : vector<4xf32>
    %a_8 = arith.mulf %a_7, %two : vector<4xf32>
    %a_9 = arith.mulf %a_8, %two : vector<4xf32>
    buffer.store %a_9, %y(%i) <[0, d0 * 4]> : vector<4xf32>, !buffer.ref<[3, 32] x f32>
    %b_0 = arith.mulf %b, %two : vector<4xf32>
    %b_1 = arith.mulf %b_0, %two : vector<4xf32>
    %b_2 = arith.mulf %b_1, %two : vector<4xf32>
    %b_3 = arith.mulf %b_2, %two : vector<4xf32>
    %b_4 = arith.mulf %b_3, %two : vector<4xf32>
    %b_5 = arith.mulf %b_4, %two : vector<4xf32>
    %b_6 = arith.mulf %b_5, %two : vector<4xf32>
    %b_7 = arith.mulf %b_6, %two : vector<4xf32>
    %b_8 = arith.mulf %b_7, %two : vector<4xf32>
    %b_9 = arith.mulf %b_8, %two : vector<4xf32>
    buffer.store %b_9, %y(%i) <[1, d0 * 4]> : vector<4xf32>, !buffer.ref<[3, 32] x f32>
    %d_0 = arith.mulf %d, %two : vector<4xf32>
    %d_1 = arith.mulf %d_0, %two : vector<4xf32>
    %d_2 = arith.mulf %d_1, %two : vector<4xf32>
    %d_3 = arith.mulf %d_2, %two : vector<4xf32>
    %d_4 = arith.mulf %d_3, %two : vector<4xf32>
    %d_5 = arith.mulf %d_4, %two : vector<4xf32>
    %d_6 = arith.mulf %d_5, %two : vector<4xf32>
    %d_7 = arith.mulf %d_6, %two : vector<4xf32>
    %d_8 = arith.mulf %d_7, %two : vector<4xf32>
    %d_9 = arith.mulf %d_8, %two : vector<4xf32>
    buffer.store %d_9, %y(%i) <[2, d0 * 4]> : vector<4xf32>, !buffer.ref<[3, 32] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// What iterations carry comes last, in their order; of an open number of them, half are pairs.
// CHECK-LABEL: buffer.func @carried
// CHECK:       %[[P:.*]] = buffer.for <[0, s0 floordiv 2, 1]> carry %{{.*}} : {{.*}} {
// CHECK-NEXT:  ^bb0(%[[I:.*]]: index, %[[S:.*]]: vector<4xf32>):
// CHECK-NEXT:    buffer.load %x(%[[I]]) <[d0 * 2, 0]>
// CHECK-NEXT:    buffer.load %x(%[[I]]) <[d0 * 2 + 1, 0]>
// CHECK:         %[[T:.*]] = arith.addf %[[S]], %c9 :
// CHECK-NEXT:    %[[R:.*]] = arith.addf %[[T]], %c9_1 :
// CHECK-NEXT:    buffer.yield %[[R]]
// CHECK:       buffer.for <[(s0 floordiv 2) * 2, s0, 1]> carry %[[P]]
buffer.func @carried {
^bb0(%x: !buffer.ref<[s0, 4] x f32>, %y: !buffer.ref<[4] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %sum = buffer.for <[0, s0, 1]> carry %zero : vector<4xf32> -> vector<4xf32> {
  ^bb1(%i: index, %s: vector<4xf32>):
    %a = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[s0, 4] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    %t = arith.addf %s, %c9 : vector<4xf32>
    buffer.yield %t : vector<4xf32>
  } {parallel = false}
  buffer.store %sum, %y <[0]> : vector<4xf32>, !buffer.ref<[4] x f32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// A chain through all iterations gains nothing.
// CHECK-LABEL: buffer.func @waiting
// CHECK:       buffer.for <[0, 8, 1]> carry
// CHECK-NOT:   buffer.for
buffer.func @waiting {
^bb0(%y: !buffer.ref<[4] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  %end = buffer.for <[0, 8, 1]> carry %two : vector<4xf32> -> vector<4xf32> {
  ^bb1(%i: index, %s: vector<4xf32>):
    %c0 = arith.mulf %s, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    buffer.yield %c9 : vector<4xf32>
  } {parallel = false}
  buffer.store %end, %y <[0]> : vector<4xf32>, !buffer.ref<[4] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// A result over its operand is stored where it was loaded, by its own iteration alone.
// CHECK-LABEL: buffer.func @over
// CHECK:       buffer.for <[0, 4, 1]> {
// CHECK-NEXT:  ^bb0(%[[I:.*]]: index):
// CHECK-NEXT:    buffer.load %y(%[[I]]) <[d0 * 8]>
// CHECK-NEXT:    buffer.load %y(%[[I]]) <[d0 * 8 + 4]>
buffer.func @over {
^bb0(%y: !buffer.ref<[32] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 8, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %y(%i) <[d0 * 4]> : !buffer.ref<[32] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    buffer.store %c9, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// The next iteration loads what this one stores.
// CHECK-LABEL: buffer.func @next
// CHECK:       buffer.for <[0, 6, 1]> {
// CHECK-NOT:   buffer.for
buffer.func @next {
^bb0(%y: !buffer.ref<[32] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 6, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %y(%i) <[d0 * 4]> : !buffer.ref<[32] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    buffer.store %c9, %y(%i) <[d0 * 4 + 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// The next iteration loads some of what this one stores.
// CHECK-LABEL: buffer.func @within
// CHECK:       buffer.for <[0, 6, 1]> {
// CHECK-NOT:   buffer.for
buffer.func @within {
^bb0(%y: !buffer.ref<[32] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 6, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %y(%i) <[d0 * 2]> : !buffer.ref<[32] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    buffer.store %c9, %y(%i) <[d0 * 2]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// What is the same in all iterations is computed once for both; here the place is read from data.
// CHECK-LABEL: buffer.func @shared
// CHECK:       buffer.for <[0, 4, 1]> {
// CHECK-NEXT:  ^bb0(%[[I:.*]]: index):
// CHECK-NEXT:    %[[N:.*]] = buffer.load %k <[0]>
// CHECK-NEXT:    %[[P:.*]] = arith.index_cast %[[N]] : i64 to index
// CHECK-NEXT:    %[[F:.*]] = buffer.load %f(%[[P]]) <[d0]>
// CHECK-NEXT:    %[[G:.*]] = vector.broadcast %[[F]]
// CHECK-NEXT:    %[[A:.*]] = buffer.load %x(%[[I]], %[[P]]) <[d1, d0 * 8]>
// CHECK-NEXT:    %[[B:.*]] = buffer.load %x(%[[I]], %[[P]]) <[d1, d0 * 8 + 4]>
// CHECK-NEXT:    arith.mulf %[[A]], %[[G]] :
// CHECK-NEXT:    arith.mulf %[[B]], %[[G]] :
buffer.func @shared {
^bb0(%x: !buffer.ref<[3, 32] x f32>, %k: !buffer.ref<[1] x i64>, %f: !buffer.ref<[3] x f32>, %y: !buffer.ref<[32] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i: index):
    %n = buffer.load %k <[0]> : !buffer.ref<[1] x i64> -> i64
    %p = arith.index_cast %n : i64 to index
    %h = buffer.load %f(%p) <[d0]> : !buffer.ref<[3] x f32> -> f32
    %g = vector.broadcast %h : f32 to vector<4xf32>
    %a = buffer.load %x(%p, %i) <[d0, d1 * 4]> : !buffer.ref<[3, 32] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %g : vector<4xf32>
    %c1 = arith.mulf %c0, %g : vector<4xf32>
    %c2 = arith.mulf %c1, %g : vector<4xf32>
    %c3 = arith.mulf %c2, %g : vector<4xf32>
    %c4 = arith.mulf %c3, %g : vector<4xf32>
    %c5 = arith.mulf %c4, %g : vector<4xf32>
    %c6 = arith.mulf %c5, %g : vector<4xf32>
    %c7 = arith.mulf %c6, %g : vector<4xf32>
    %c8 = arith.mulf %c7, %g : vector<4xf32>
    %c9 = arith.mulf %c8, %g : vector<4xf32>
    buffer.store %c9, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// What is loaded depends on what has just been stored.
// CHECK-LABEL: buffer.func @again
// CHECK:       buffer.for <[0, 8, 1]> carry
// CHECK-NOT:   buffer.for
buffer.func @again {
^bb0(%x: !buffer.ref<[32] x f32>, %y: !buffer.ref<[32] x f32>, %z: !buffer.ref<[32] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  %end = buffer.for <[0, 8, 1]> carry %two : vector<4xf32> -> vector<4xf32> {
  ^bb1(%i: index, %s: vector<4xf32>):
    %v = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[32] x f32> -> vector<4xf32>
    %t = arith.addf %s, %v : vector<4xf32>
    buffer.store %t, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    %a = buffer.load %y(%i) <[d0 * 4]> : !buffer.ref<[32] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    buffer.store %c9, %z(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.yield %t : vector<4xf32>
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

// -----

// What an iteration stores second, the next one may store over.
// CHECK-LABEL: buffer.func @twice
// CHECK:       buffer.for <[0, 7, 1]> {
// CHECK-NOT:   buffer.for
buffer.func @twice {
^bb0(%x: !buffer.ref<[32] x f32>, %y: !buffer.ref<[32] x f32>):
  %two = arith.constant dense<2.0> : vector<4xf32>
  buffer.for <[0, 7, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 * 4]> : !buffer.ref<[32] x f32> -> vector<4xf32>
    %c0 = arith.mulf %a, %two : vector<4xf32>
    %c1 = arith.mulf %c0, %two : vector<4xf32>
    %c2 = arith.mulf %c1, %two : vector<4xf32>
    %c3 = arith.mulf %c2, %two : vector<4xf32>
    %c4 = arith.mulf %c3, %two : vector<4xf32>
    %c5 = arith.mulf %c4, %two : vector<4xf32>
    %c6 = arith.mulf %c5, %two : vector<4xf32>
    %c7 = arith.mulf %c6, %two : vector<4xf32>
    %c8 = arith.mulf %c7, %two : vector<4xf32>
    %c9 = arith.mulf %c8, %two : vector<4xf32>
    buffer.store %c9, %y(%i) <[d0 * 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.store %c8, %y(%i) <[d0 * 4 + 4]> : vector<4xf32>, !buffer.ref<[32] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
