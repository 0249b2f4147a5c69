// RUN: opt-tool --for-target=x86-64-v4 --pass-pipeline=vectorize-lanes --split-input-file %s | filecheck %s

// What is computed in f64 of sums of 32 bits does not make these shorter vectors.
// CHECK-LABEL: buffer.func @between
// CHECK:       %[[S:.*]] = buffer.for <[0, 3, 1]> carry %{{.*}} : vector<16xi32> -> vector<16xi32>
// CHECK:       %[[D:.*]] = buffer.convert %[[S]] : vector<16xi32> -> vector<16xf64>
// CHECK:       %[[R:.*]] = buffer.convert %{{.*}} : vector<16xf64> -> vector<16xi32>
// CHECK-NEXT:  buffer.store %[[R]], %y <[0]> : vector<16xi32>
buffer.func @between {
^bb0(%x: !buffer.ref<[3, 16] x i32>, %y: !buffer.ref<[16] x i32>):
  buffer.for <[0, 16, 1]> {
  ^bb1(%i: index):
    %zero = arith.constant 0 : i32
    %factor = arith.constant 0.3 : f64
    %s = buffer.for <[0, 3, 1]> carry %zero : i32 -> i32 {
    ^bb2(%k: index, %sum: i32):
      %w = buffer.load %x(%k, %i) <[d0, d1]> : !buffer.ref<[3, 16] x i32> -> i32
      %next = arith.addi %sum, %w : i32
      buffer.yield %next : i32
    } {parallel = false}
    %d = arith.sitofp %s : i32 to f64
    %p = arith.mulf %d, %factor : f64
    %r = "arith.fptosi"(%p) {fits} : (f64) -> i32
    buffer.store %r, %y(%i) <[d0]> : i32, !buffer.ref<[16] x i32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Sums in f64 do, and results in f64.
// CHECK-LABEL: buffer.func @sums
// CHECK:       carry %{{.*}} : vector<8xf64> -> vector<8xf64>
buffer.func @sums {
^bb0(%x: !buffer.ref<[3, 16] x f64>, %y: !buffer.ref<[16] x i32>):
  buffer.for <[0, 16, 1]> {
  ^bb1(%i: index):
    %zero = arith.constant 0.0 : f64
    %factor = arith.constant 0.3 : f64
    %s = buffer.for <[0, 3, 1]> carry %zero : f64 -> f64 {
    ^bb2(%k: index, %sum: f64):
      %w = buffer.load %x(%k, %i) <[d0, d1]> : !buffer.ref<[3, 16] x f64> -> f64
      %next = arith.addf %sum, %w : f64
      buffer.yield %next : f64
    } {parallel = false}
    %p = arith.mulf %s, %factor : f64
    %r = "arith.fptosi"(%p) {fits} : (f64) -> i32
    buffer.store %r, %y(%i) <[d0]> : i32, !buffer.ref<[16] x i32>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK-LABEL: buffer.func @results
// CHECK:       carry %{{.*}} : vector<8xi32> -> vector<8xi32>
buffer.func @results {
^bb0(%x: !buffer.ref<[3, 16] x i32>, %y: !buffer.ref<[16] x f64>):
  buffer.for <[0, 16, 1]> {
  ^bb1(%i: index):
    %zero = arith.constant 0 : i32
    %factor = arith.constant 0.3 : f64
    %s = buffer.for <[0, 3, 1]> carry %zero : i32 -> i32 {
    ^bb2(%k: index, %sum: i32):
      %w = buffer.load %x(%k, %i) <[d0, d1]> : !buffer.ref<[3, 16] x i32> -> i32
      %next = arith.addi %sum, %w : i32
      buffer.yield %next : i32
    } {parallel = false}
    %d = arith.sitofp %s : i32 to f64
    %p = arith.mulf %d, %factor : f64
    buffer.store %p, %y(%i) <[d0]> : f64, !buffer.ref<[16] x f64>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
