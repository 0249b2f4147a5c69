// RUN: opt-tool --pass-pipeline=unroll-tiles --split-input-file %s | filecheck %s

// Two rows by two columns: one reduction carries all four sums. A weight is read once for both
// rows, an input once for both columns, and one row follows the other.
// CHECK-LABEL: buffer.func @tile
// CHECK:       buffer.for <[0, 5, 1]> carry %zero, %zero, %zero, %zero : f32, f32, f32, f32 -> f32, f32, f32, f32 {
// CHECK-NEXT:  ^bb0(%[[K:.*]]: index, %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32, %[[D:.*]]: f32):
// CHECK-DAG:     %[[W0:.*]] = buffer.load %w(%[[K]]) <[d0, 0]>
// CHECK-DAG:     %[[W1:.*]] = buffer.load %w(%[[K]]) <[d0, 1]>
// CHECK:         %[[X0:.*]] = buffer.load %x(%[[K]]) <[0, d0]>
// CHECK-NEXT:    math.fma %[[X0]], %[[W0]]
// CHECK-NEXT:    math.fma %[[X0]], %[[W1]]
// CHECK-NEXT:    %[[X1:.*]] = buffer.load %x(%[[K]]) <[1, d0]>
// CHECK-NEXT:    math.fma %[[X1]], %[[W0]]
// CHECK-NEXT:    math.fma %[[X1]], %[[W1]]
// CHECK-NEXT:    buffer.yield
// CHECK:       buffer.store %{{.*}}, %y <[0, 0]>
// CHECK-NEXT:  buffer.store %{{.*}}, %y <[0, 1]>
// CHECK-NEXT:  buffer.store %{{.*}}, %y <[1, 0]>
// CHECK-NEXT:  buffer.store %{{.*}}, %y <[1, 1]>
buffer.func @tile {
^bb0(%x: !buffer.ref<[2, 5] x f32>, %w: !buffer.ref<[5, 2] x f32>, %y: !buffer.ref<[2, 2] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 2, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 2, 1]> {
    ^bb2(%j: index):
      %sum = buffer.for <[0, 5, 1]> carry %zero : f32 -> f32 {
      ^bb3(%k: index, %s: f32):
        %a = buffer.load %x(%i, %k) <[d0, d1]> : !buffer.ref<[2, 5] x f32> -> f32
        %f = buffer.load %w(%k, %j) <[d0, d1]> : !buffer.ref<[5, 2] x f32> -> f32
        %t = math.fma %a, %f, %s : f32
        buffer.yield %t : f32
      } {parallel = false}
      buffer.store %sum, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[2, 2] x f32>
      buffer.yield
    } by unroll {parallel = false, label = "j"}
    buffer.yield
  } by unroll {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Loops whose bounds differ between the copies do not merge.
// CHECK-LABEL: buffer.func @triangle
// CHECK:       buffer.for <[0, 1, 1]> carry
// CHECK:       buffer.store %{{.*}}, %y <[0]>
// CHECK:       buffer.for <[0, 2, 1]> carry
// CHECK:       buffer.store %{{.*}}, %y <[1]>
buffer.func @triangle {
^bb0(%x: !buffer.ref<[5] x f32>, %y: !buffer.ref<[2] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 2, 1]> {
  ^bb1(%i: index):
    %sum = buffer.for (%i) <[0, d0 + 1, 1]> carry %zero : f32 -> f32 {
    ^bb3(%k: index, %s: f32):
      %a = buffer.load %x(%k) <[d0]> : !buffer.ref<[5] x f32> -> f32
      %t = arith.addf %a, %s : f32
      buffer.yield %t : f32
    } {parallel = false}
    buffer.store %sum, %y(%i) <[d0]> : f32, !buffer.ref<[2] x f32>
    buffer.yield
  } by unroll {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// What all copies share but reads memory that they write stays behind the copies before it.
// CHECK-LABEL: buffer.func @order
// CHECK:       buffer.store %{{.*}}, %y <[0]>
// CHECK-NEXT:  %{{.*}} = buffer.load %x <[1]>
// CHECK-NEXT:  buffer.store %{{.*}}, %y <[1]>
// CHECK-NEXT:  %[[S:.*]] = buffer.load %y <[0]>
// CHECK-NEXT:  buffer.store %[[S]], %z <[0]>
// CHECK-NEXT:  buffer.store %[[S]], %z <[1]>
buffer.func @order {
^bb0(%x: !buffer.ref<[2] x f32>, %y: !buffer.ref<[2] x f32>, %z: !buffer.ref<[2] x f32>):
  buffer.for <[0, 2, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[2] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[2] x f32>
    %b = buffer.load %y <[0]> : !buffer.ref<[2] x f32> -> f32
    buffer.store %b, %z(%i) <[d0]> : f32, !buffer.ref<[2] x f32>
    buffer.yield
  } by unroll {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

// -----

// What an iteration writes into scratch and reads at a fixed place differs between iterations: each
// copy has scratch of its own.
// CHECK-LABEL: buffer.func @own_scratch
// CHECK:       %[[S0:.*]] = buffer.scratch
// CHECK-NEXT:  buffer.store %{{.*}}, %[[S0]] <[0]>
// CHECK-NEXT:  %[[A:.*]] = buffer.load %[[S0]] <[0]>
// CHECK-NEXT:  buffer.store %[[A]], %y <[0]>
// CHECK:       %[[S1:.*]] = buffer.scratch
// CHECK-NEXT:  buffer.store %{{.*}}, %[[S1]] <[0]>
// CHECK-NEXT:  %[[B:.*]] = buffer.load %[[S1]] <[0]>
// CHECK-NEXT:  buffer.store %[[B]], %y <[1]>
buffer.func @own_scratch {
^bb0(%x: !buffer.ref<[2] x f32>, %y: !buffer.ref<[2] x f32>):
  buffer.for <[0, 2, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[2] x f32> -> f32
    %t = buffer.scratch : !buffer.ref<[1] x f32>
    buffer.store %a, %t <[0]> : f32, !buffer.ref<[1] x f32>
    %b = buffer.load %t <[0]> : !buffer.ref<[1] x f32> -> f32
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[2] x f32>
    buffer.yield
  } by unroll {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Scratch with the same for all iterations is one.
// CHECK-LABEL: buffer.func @one_scratch
// CHECK:       buffer.scratch
// CHECK-NOT:   buffer.scratch
buffer.func @one_scratch {
^bb0(%x: !buffer.ref<[2] x f32>, %y: !buffer.ref<[2] x f32>):
  buffer.for <[0, 2, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x <[0]> : !buffer.ref<[2] x f32> -> f32
    %t = buffer.scratch : !buffer.ref<[1] x f32>
    buffer.store %a, %t <[0]> : f32, !buffer.ref<[1] x f32>
    %b = buffer.load %t <[0]> : !buffer.ref<[1] x f32> -> f32
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[2] x f32>
    buffer.yield
  } by unroll {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
