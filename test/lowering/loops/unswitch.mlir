// RUN: opt-tool --for-target x86-64-v3 --pass-pipeline=unswitch --split-input-file %s | filecheck %s

// Either operand may be broadcast: if both are as long as the result, nothing limits an index; if
// one has a single element, that is read for all.
// CHECK-LABEL: buffer.func @broadcast
// CHECK:       buffer.for <[0, 7, 1]> {
// CHECK:         %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT:    buffer.apply <[-max(s0, s1) + s0]>
// CHECK:         arith.cmpi sge, %{{.*}}, %[[ZERO]] : i64
// CHECK-NEXT:    buffer.apply <[-max(s0, s1) + s1]>
// CHECK:         %[[BOTH:.*]] = arith.andi %{{.*}}, %{{.*}} : i1
// CHECK:         scf.if %[[BOTH]] {
// CHECK:           buffer.for <[0, max(s0, s1), 1]> {
// CHECK:             buffer.load %x(%{{.*}}) <[d0, d1]>
// CHECK:             buffer.load %y(%{{.*}}) <[d0]>
// CHECK:         } else {
// CHECK:           %[[NONE:.*]] = arith.constant 0 : i64
// CHECK:           buffer.apply <[s0 - 1]>
// CHECK:           arith.cmpi eq, %{{.*}}, %[[NONE]] : i64
// CHECK-NEXT:      buffer.apply <[-max(s0, s1) + s1]>
// CHECK:           arith.cmpi sge, %{{.*}}, %[[NONE]] : i64
// CHECK:           %[[SINGLE:.*]] = arith.andi
// CHECK-NEXT:      scf.if %[[SINGLE]] {
// CHECK:             buffer.load %x(%{{.*}}) <[d0, 0]>
// CHECK:             buffer.load %y(%{{.*}}) <[d0]>
// CHECK:           } else {
// CHECK:             buffer.apply <[s1 - 1]>
// CHECK:             buffer.apply <[-max(s0, s1) + s0]>
// CHECK:             scf.if
// CHECK:               buffer.load %x(%{{.*}}) <[d0, d1]>
// CHECK:               buffer.load %y <[0]>
// CHECK:           buffer.for <[0, max(s0, s1), 1]> {
// CHECK:             buffer.load %x(%{{.*}}) <[d0, min(d1, s0 - 1)]>
// CHECK:             buffer.load %y(%{{.*}}) <[min(d0, s1 - 1)]>
buffer.func @broadcast {
^bb0(%x: !buffer.ref<[7, s0] x f32>, %y: !buffer.ref<[s1] x f32>, %z: !buffer.ref<[7, max(s0, s1)] x f32>):
  buffer.for <[0, 7, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, max(s0, s1), 1]> {
    ^bb2(%j: index):
      %a = buffer.load %x(%i, %j) <[d0, min(d1, s0 - 1)]> : !buffer.ref<[7, s0] x f32> -> f32
      %b = buffer.load %y(%j) <[min(d0, s1 - 1)]> : !buffer.ref<[s1] x f32> -> f32
      %c = arith.addf %a, %b : f32
      buffer.store %c, %z(%i, %j) <[d0, d1]> : f32, !buffer.ref<[7, max(s0, s1)] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["m", "n"], outputs = #builtin.int<1>}

// -----

// A value that the loop carries is the result of either arm.
// CHECK-LABEL: buffer.func @sum
// CHECK:         buffer.apply <[-s0 * 2 + s1]>
// CHECK:         %[[SUM:.*]] = scf.if
// CHECK:           %[[FAST:.*]] = buffer.for <[0, s0, 1]> carry
// CHECK:             buffer.load %x(%{{.*}}) <[d0 * 2 + 1]>
// CHECK:           scf.yield %[[FAST]] : f32
// CHECK:           %[[OTHER:.*]] = scf.if
// CHECK:             buffer.load %x <[0]>
// CHECK:           %[[SLOW:.*]] = buffer.for <[0, s0, 1]> carry
// CHECK:             buffer.load %x(%{{.*}}) <[min(d0 * 2 + 1, s1 - 1)]>
// CHECK:           scf.yield %[[SLOW]] : f32
// CHECK:           scf.yield %[[OTHER]] : f32
// CHECK:         buffer.store %[[SUM]], %y
buffer.func @sum {
^bb0(%x: !buffer.ref<[s1] x f32>, %y: !buffer.ref<[] x f32>):
  %zero = arith.constant 0.0 : f32
  %sum = buffer.for <[0, s0, 1]> carry %zero : f32 -> f32 {
  ^bb1(%i: index, %total: f32):
    %a = buffer.load %x(%i) <[min(d0 * 2 + 1, s1 - 1)]> : !buffer.ref<[s1] x f32> -> f32
    %more = arith.addf %total, %a : f32
    buffer.yield %more : f32
  } {parallel = false}
  buffer.store %sum, %y <[]> : f32, !buffer.ref<[] x f32>
  buffer.return
} {symbols = ["k", "n"], outputs = #builtin.int<1>}

// -----

// Not of what goes down while the loop goes up, not of two indices that both move, not of one that
// stands still, and not of numbers, of which nothing is open.
// CHECK-LABEL: buffer.func @others
// CHECK-NOT:     scf.if
buffer.func @others {
^bb0(%x: !buffer.ref<[s0] x f32>, %y: !buffer.ref<[s0] x f32>):
  buffer.for <[0, s0, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 9, 1]> {
    ^bb2(%j: index):
      %a = buffer.load %x(%j) <[min(-d0 + 8, s0 - 1)]> : !buffer.ref<[s0] x f32> -> f32
      %b = buffer.load %x(%i, %j) <[min(d1, d0 + d1 * 2)]> : !buffer.ref<[s0] x f32> -> f32
      %c = buffer.load %x(%i) <[min(d0, s0 - 1)]> : !buffer.ref<[s0] x f32> -> f32
      %f = buffer.load %x(%j) <[min(d0, 6)]> : !buffer.ref<[s0] x f32> -> f32
      %d = arith.addf %a, %b : f32
      %g = arith.addf %d, %f : f32
      %e = arith.addf %c, %g : f32
      buffer.store %e, %y(%i) <[d0]> : f32, !buffer.ref<[s0] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// Of more sizes than are worth a loop each, one is made for the case that none is 1.
// CHECK-LABEL: buffer.func @many
// CHECK:         scf.if
// CHECK-NOT:     scf.if
buffer.func @many {
^bb0(%x: !buffer.ref<[s0] x f32>, %y: !buffer.ref<[s1] x f32>, %z: !buffer.ref<[s2] x f32>, %w: !buffer.ref<[s3] x f32>, %o: !buffer.ref<[s4] x f32>):
  buffer.for <[0, s4, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[min(d0, s0 - 1)]> : !buffer.ref<[s0] x f32> -> f32
    %b = buffer.load %y(%i) <[min(d0, s1 - 1)]> : !buffer.ref<[s1] x f32> -> f32
    %c = buffer.load %z(%i) <[min(d0, s2 - 1)]> : !buffer.ref<[s2] x f32> -> f32
    %d = buffer.load %w(%i) <[min(d0, s3 - 1)]> : !buffer.ref<[s3] x f32> -> f32
    %ab = arith.addf %a, %b : f32
    %cd = arith.addf %c, %d : f32
    %e = arith.addf %ab, %cd : f32
    buffer.store %e, %o(%i) <[d0]> : f32, !buffer.ref<[s4] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = ["a", "b", "c", "d", "n"], outputs = #builtin.int<1>}
