// RUN: opt-tool --pass-pipeline=prefetch --split-input-file %s | filecheck %s

// A step reads 32 elements of a panel of 160; the loop over %t repeats that four times, so each of
// its iterations asks for a fourth of the next panel, 8 elements a step.
// CHECK-LABEL: buffer.func @turns
// CHECK:       ^bb0(%x: {{.*}}, %w: {{.*}}, %y: {{.*}}):
// CHECK:       buffer.for <[0, 3, 1]> {
// CHECK-NEXT:  ^bb0(%[[G:.*]]: index):
// CHECK-NEXT:    buffer.for <[0, 4, 1]> {
// CHECK-NEXT:    ^bb0(%[[T:.*]]: index):
// CHECK:           ^bb0(%[[K:.*]]: index, {{.*}}):
// CHECK-NEXT:        buffer.prefetch %w(%[[G]], %[[T]], %[[K]]) <[d0 * 160 + d1 * 40 + d2 * 8 + 160]>
// CHECK-NOT:         buffer.prefetch
buffer.func @turns {
^bb0(%x: !buffer.ref<[4, 5] x f32>, %w: !buffer.ref<[3, 5, 2, 16] x f32>, %y: !buffer.ref<[3, 4, 16] x f32>):
  %zero = arith.constant dense<0.0> : vector<16xf32>
  buffer.for <[0, 3, 1]> {
  ^bb1(%g: index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%t: index):
      %s, %r = buffer.for <[0, 5, 1]> carry %zero, %zero : vector<16xf32>, vector<16xf32> -> vector<16xf32>, vector<16xf32> {
      ^bb3(%k: index, %a: vector<16xf32>, %b: vector<16xf32>):
        %w0 = buffer.load %w(%g, %k) <[d0, d1, 0, 0]> : !buffer.ref<[3, 5, 2, 16] x f32> -> vector<16xf32>
        %w1 = buffer.load %w(%g, %k) <[d0, d1, 1, 0]> : !buffer.ref<[3, 5, 2, 16] x f32> -> vector<16xf32>
        %c = arith.addf %a, %w0 : vector<16xf32>
        %d = arith.addf %b, %w1 : vector<16xf32>
        buffer.yield %c, %d : vector<16xf32>, vector<16xf32>
      } {parallel = false}
      %sum = arith.addf %s, %r : vector<16xf32>
      buffer.store %sum, %y(%g, %t) <[d0, d1, 0]> : vector<16xf32>, !buffer.ref<[3, 4, 16] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = false, label = "panel"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, prefetch 1>}

// -----

// What remains behind the loop over tiles reads the same panel: three runs and one more are four.
// CHECK-LABEL: buffer.func @remainder
// CHECK:       buffer.for <[0, 3, 1]> {
// CHECK-NEXT:  ^bb0(%[[G:.*]]: index):
// CHECK-NEXT:    buffer.for <[0, 3, 1]> {
// CHECK-NEXT:    ^bb0(%[[T:.*]]: index):
// CHECK:           ^bb0(%[[K:.*]]: index, {{.*}}):
// CHECK-NEXT:        buffer.prefetch %w(%[[G]], %[[T]], %[[K]]) <[d0 * 64 + d1 * 16 + d2 * 4 + 64]>
// CHECK:         buffer.for <[0, 4, 1]> carry
// CHECK-NEXT:    ^bb0(%[[L:.*]]: index, {{.*}}):
// CHECK-NEXT:      buffer.prefetch %w(%[[G]], %[[L]]) <[d0 * 64 + d1 * 4 + 112]>
buffer.func @remainder {
^bb0(%w: !buffer.ref<[3, 4, 16] x f32>, %y: !buffer.ref<[3, 4, 16] x f32>):
  %zero = arith.constant dense<0.0> : vector<16xf32>
  buffer.for <[0, 3, 1]> {
  ^bb1(%g: index):
    buffer.for <[0, 3, 1]> {
    ^bb2(%t: index):
      %s = buffer.for <[0, 4, 1]> carry %zero : vector<16xf32> -> vector<16xf32> {
      ^bb3(%k: index, %a: vector<16xf32>):
        %w0 = buffer.load %w(%g, %k) <[d0, d1, 0]> : !buffer.ref<[3, 4, 16] x f32> -> vector<16xf32>
        %c = arith.addf %a, %w0 : vector<16xf32>
        buffer.yield %c : vector<16xf32>
      } {parallel = false}
      buffer.store %s, %y(%g, %t) <[d0, d1, 0]> : vector<16xf32>, !buffer.ref<[3, 4, 16] x f32>
      buffer.yield
    } {parallel = false, label = "tile"}
    %r = buffer.for <[0, 4, 1]> carry %zero : vector<16xf32> -> vector<16xf32> {
    ^bb4(%l: index, %b: vector<16xf32>):
      %w1 = buffer.load %w(%g, %l) <[d0, d1, 0]> : !buffer.ref<[3, 4, 16] x f32> -> vector<16xf32>
      %d = arith.addf %b, %w1 : vector<16xf32>
      buffer.yield %d : vector<16xf32>
    } {parallel = false}
    buffer.store %r, %y(%g) <[d0, 3, 0]> : vector<16xf32>, !buffer.ref<[3, 4, 16] x f32>
    buffer.yield
  } {parallel = false, label = "panel"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, prefetch 0>}

// -----

// Nothing repeats the panel, so a step asks for all that it reads: vectors of 32 bytes, two a line.
// The loop over %t does not repeat it, because another part is read each time.
// CHECK-LABEL: buffer.func @once
// CHECK:       ^bb0(%[[K:.*]]: index, {{.*}}):
// CHECK-NEXT:    buffer.prefetch %w(%[[T:.*]], %[[K]]) <[d0 * 80 + d1 * 16 + 80]>
// CHECK-NOT:     buffer.prefetch
buffer.func @once {
^bb0(%w: !buffer.ref<[3, 5, 2, 8] x f32>, %y: !buffer.ref<[3, 8] x f32>):
  %zero = arith.constant dense<0.0> : vector<8xf32>
  buffer.for <[0, 3, 1]> {
  ^bb1(%t: index):
    %s = buffer.for <[0, 5, 1]> carry %zero : vector<8xf32> -> vector<8xf32> {
    ^bb2(%k: index, %a: vector<8xf32>):
      %w0 = buffer.load %w(%t, %k) <[d0, d1, 0, 0]> : !buffer.ref<[3, 5, 2, 8] x f32> -> vector<8xf32>
      %w1 = buffer.load %w(%t, %k) <[d0, d1, 1, 0]> : !buffer.ref<[3, 5, 2, 8] x f32> -> vector<8xf32>
      %c = math.fma %w0, %w1, %a : vector<8xf32>
      buffer.yield %c : vector<8xf32>
    } {parallel = false}
    buffer.store %s, %y(%t) <[d0, 0]> : vector<8xf32>, !buffer.ref<[3, 8] x f32>
    buffer.yield
  } {parallel = false, label = "panel"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, prefetch 0>}

// -----

// The nearest miss: the schedule asks for another buffer, and scalars are no panel.
// CHECK-LABEL: buffer.func @scalars
// CHECK-NOT:   buffer.prefetch
buffer.func @scalars {
^bb0(%w: !buffer.ref<[16] x f32>, %v: !buffer.ref<[16] x f32>, %y: !buffer.ref<[1] x f32>):
  %zero = arith.constant 0.0 : f32
  %start = arith.constant dense<0.0> : vector<4xf32>
  %s, %r = buffer.for <[0, 4, 1]> carry %zero, %start : f32, vector<4xf32> -> f32, vector<4xf32> {
  ^bb1(%k: index, %a: f32, %b: vector<4xf32>):
    %w0 = buffer.load %w(%k) <[d0]> : !buffer.ref<[16] x f32> -> f32
    %c = arith.addf %w0, %a : f32
    %v0 = buffer.load %v(%k) <[4*d0]> : !buffer.ref<[16] x f32> -> vector<4xf32>
    %d = arith.addf %v0, %b : vector<4xf32>
    buffer.yield %c, %d : f32, vector<4xf32>
  } {parallel = false}
  buffer.store %s, %y <[0]> : f32, !buffer.ref<[1] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, prefetch 0>}
