// RUN: opt-tool --for-target=x86-64-v3 --pass-pipeline=load-late --split-input-file %s | filecheck %s
// RUN: opt-tool --for-target=x86-64-v4 --pass-pipeline=load-late --split-input-file %s | filecheck %s --check-prefix=MORE

// 32 registers hold it all.
// MORE-NOT: volatile

// Eight sums, an input that is used again and another one, and six vectors that are the same for all
// tiles of a row fill 16 registers: biases and slopes are loaded where they stand. What the row
// itself decides is so already, and what is stored is loaded again in any case.
// CHECK-LABEL: buffer.func @full
// CHECK:         buffer.load %b({{.*}} {volatile}
// CHECK:         buffer.for <[0, 16, 1]>
// CHECK:           buffer.load %x({{.*}} -> vector<8xf32>{{$}}
// CHECK:         buffer.load %s({{.*}} {volatile}
// CHECK:         buffer.load %r({{.*}} -> vector<8xf32>{{$}}
// CHECK:         buffer.load %y({{.*}} -> vector<8xf32>{{$}}

// With one of them less there is a register for each.
// CHECK-LABEL: buffer.func @nearly
// CHECK-NOT:     volatile
buffer.func @full {
^bb0(%x: !buffer.ref<[25, 8] x f32>, %w: !buffer.ref<[16, 8] x f32>, %b: !buffer.ref<[4, 8] x f32>, %s: !buffer.ref<[4, 8] x f32>, %r: !buffer.ref<[9, 8] x f32>, %y: !buffer.ref<[4, 8] x f32>, %z: !buffer.ref<[9, 8] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 9, 1]> {
    ^bb2(%j: index):
      %bias = buffer.load %b(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
      %k0 = arith.constant dense<0.0> : vector<8xf32>
      %k1 = arith.constant dense<1.0> : vector<8xf32>
      %k2 = arith.constant dense<2.0> : vector<8xf32>
      %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7 = buffer.for <[0, 16, 1]> carry %bias, %bias, %bias, %bias, %bias, %bias, %bias, %bias : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32> -> vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32> {
      ^bb3(%t: index, %c0: vector<8xf32>, %c1: vector<8xf32>, %c2: vector<8xf32>, %c3: vector<8xf32>, %c4: vector<8xf32>, %c5: vector<8xf32>, %c6: vector<8xf32>, %c7: vector<8xf32>):
        %a = buffer.load %x(%t, %j) <[d0 + d1, 0]> : !buffer.ref<[25, 8] x f32> -> vector<8xf32>
        %w0 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p0 = arith.mulf %a, %w0 : vector<8xf32>
        %n0 = arith.addf %c0, %p0 : vector<8xf32>
        %w1 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p1 = arith.mulf %a, %w1 : vector<8xf32>
        %n1 = arith.addf %c1, %p1 : vector<8xf32>
        %w2 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p2 = arith.mulf %a, %w2 : vector<8xf32>
        %n2 = arith.addf %c2, %p2 : vector<8xf32>
        %w3 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p3 = arith.mulf %a, %w3 : vector<8xf32>
        %n3 = arith.addf %c3, %p3 : vector<8xf32>
        %w4 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p4 = arith.mulf %a, %w4 : vector<8xf32>
        %n4 = arith.addf %c4, %p4 : vector<8xf32>
        %w5 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p5 = arith.mulf %a, %w5 : vector<8xf32>
        %n5 = arith.addf %c5, %p5 : vector<8xf32>
        %w6 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p6 = arith.mulf %a, %w6 : vector<8xf32>
        %n6 = arith.addf %c6, %p6 : vector<8xf32>
        %w7 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p7 = arith.mulf %a, %w7 : vector<8xf32>
        %n7 = arith.addf %c7, %p7 : vector<8xf32>
        buffer.yield %n0, %n1, %n2, %n3, %n4, %n5, %n6, %n7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
      } {parallel = false}
      %slope = buffer.load %s(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
      %rest = buffer.load %r(%j) <[d0, 0]> : !buffer.ref<[9, 8] x f32> -> vector<8xf32>
      %old = buffer.load %y(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
      %e0 = arith.addf %old, %r0 : vector<8xf32>
      %e1 = arith.addf %e0, %r1 : vector<8xf32>
      %e2 = arith.addf %e1, %r2 : vector<8xf32>
      %e3 = arith.addf %e2, %r3 : vector<8xf32>
      %e4 = arith.addf %e3, %r4 : vector<8xf32>
      %e5 = arith.addf %e4, %r5 : vector<8xf32>
      %e6 = arith.addf %e5, %r6 : vector<8xf32>
      %e7 = arith.addf %e6, %r7 : vector<8xf32>
      %e8 = arith.addf %e7, %slope : vector<8xf32>
      %e9 = arith.addf %e8, %rest : vector<8xf32>
      %e10 = arith.addf %e9, %k0 : vector<8xf32>
      %e11 = arith.addf %e10, %k1 : vector<8xf32>
      %e12 = arith.addf %e11, %k2 : vector<8xf32>
      buffer.store %e12, %y(%i) <[d0, 0]> : vector<8xf32>, !buffer.ref<[4, 8] x f32>
      buffer.store %e12, %z(%j) <[d0, 0]> : vector<8xf32>, !buffer.ref<[9, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

buffer.func @nearly {
^bb0(%x: !buffer.ref<[25, 8] x f32>, %w: !buffer.ref<[16, 8] x f32>, %b: !buffer.ref<[4, 8] x f32>, %s: !buffer.ref<[4, 8] x f32>, %r: !buffer.ref<[9, 8] x f32>, %y: !buffer.ref<[4, 8] x f32>, %z: !buffer.ref<[9, 8] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 9, 1]> {
    ^bb2(%j: index):
      %bias = buffer.load %b(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
      %k0 = arith.constant dense<0.0> : vector<8xf32>
      %k1 = arith.constant dense<1.0> : vector<8xf32>
      %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7 = buffer.for <[0, 16, 1]> carry %bias, %bias, %bias, %bias, %bias, %bias, %bias, %bias : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32> -> vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32> {
      ^bb3(%t: index, %c0: vector<8xf32>, %c1: vector<8xf32>, %c2: vector<8xf32>, %c3: vector<8xf32>, %c4: vector<8xf32>, %c5: vector<8xf32>, %c6: vector<8xf32>, %c7: vector<8xf32>):
        %a = buffer.load %x(%t, %j) <[d0 + d1, 0]> : !buffer.ref<[25, 8] x f32> -> vector<8xf32>
        %w0 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p0 = arith.mulf %a, %w0 : vector<8xf32>
        %n0 = arith.addf %c0, %p0 : vector<8xf32>
        %w1 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p1 = arith.mulf %a, %w1 : vector<8xf32>
        %n1 = arith.addf %c1, %p1 : vector<8xf32>
        %w2 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p2 = arith.mulf %a, %w2 : vector<8xf32>
        %n2 = arith.addf %c2, %p2 : vector<8xf32>
        %w3 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p3 = arith.mulf %a, %w3 : vector<8xf32>
        %n3 = arith.addf %c3, %p3 : vector<8xf32>
        %w4 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p4 = arith.mulf %a, %w4 : vector<8xf32>
        %n4 = arith.addf %c4, %p4 : vector<8xf32>
        %w5 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p5 = arith.mulf %a, %w5 : vector<8xf32>
        %n5 = arith.addf %c5, %p5 : vector<8xf32>
        %w6 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p6 = arith.mulf %a, %w6 : vector<8xf32>
        %n6 = arith.addf %c6, %p6 : vector<8xf32>
        %w7 = buffer.load %w(%t) <[d0, 0]> : !buffer.ref<[16, 8] x f32> -> vector<8xf32>
        %p7 = arith.mulf %a, %w7 : vector<8xf32>
        %n7 = arith.addf %c7, %p7 : vector<8xf32>
        buffer.yield %n0, %n1, %n2, %n3, %n4, %n5, %n6, %n7 : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
      } {parallel = false}
      %slope = buffer.load %s(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
      %rest = buffer.load %r(%j) <[d0, 0]> : !buffer.ref<[9, 8] x f32> -> vector<8xf32>
      %old = buffer.load %y(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
      %e0 = arith.addf %old, %r0 : vector<8xf32>
      %e1 = arith.addf %e0, %r1 : vector<8xf32>
      %e2 = arith.addf %e1, %r2 : vector<8xf32>
      %e3 = arith.addf %e2, %r3 : vector<8xf32>
      %e4 = arith.addf %e3, %r4 : vector<8xf32>
      %e5 = arith.addf %e4, %r5 : vector<8xf32>
      %e6 = arith.addf %e5, %r6 : vector<8xf32>
      %e7 = arith.addf %e6, %r7 : vector<8xf32>
      %e8 = arith.addf %e7, %slope : vector<8xf32>
      %e9 = arith.addf %e8, %rest : vector<8xf32>
      %e10 = arith.addf %e9, %k0 : vector<8xf32>
      %e11 = arith.addf %e10, %k1 : vector<8xf32>
      buffer.store %e11, %y(%i) <[d0, 0]> : vector<8xf32>, !buffer.ref<[4, 8] x f32>
      buffer.store %e11, %z(%j) <[d0, 0]> : vector<8xf32>, !buffer.ref<[9, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}
