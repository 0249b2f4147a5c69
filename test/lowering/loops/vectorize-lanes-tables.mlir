// RUN: opt-tool --for-target=x86-64-zen4 --pass-pipeline=vectorize-lanes --split-input-file %s | filecheck %s
// RUN: opt-tool --for-target=x86-64-v4 --pass-pipeline=vectorize-lanes --split-input-file %s | filecheck %s --check-prefix=NONE

// Bytes are looked up in a table of 256 where the processor does that; the wide numbers of places
// are not computed, and do not make vectors shorter.
// NONE-NOT: buffer.look_up
// CHECK-LABEL: buffer.func @table
// CHECK:       %[[A:.*]] = buffer.load %x <[0]> : {{.*}} -> vector<32xi8>
// CHECK-NEXT:  %[[E:.*]] = buffer.look_up %[[A]], %t : vector<32xi8>, !buffer.ref<[256] x i8>
// CHECK-NEXT:  buffer.store %[[E]], %y <[0]> : vector<32xi8>
buffer.func @table {
^bb0(%x: !buffer.ref<[32] x i8>, %t: !buffer.ref<[256] x i8>, %y: !buffer.ref<[32] x i8>):
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[32] x i8> -> i8
    %w = arith.extui %a : i8 to i64
    %p = arith.index_cast %w : i64 to index
    %e = buffer.load %t(%p) <[d0]> : !buffer.ref<[256] x i8> -> i8
    buffer.store %e, %y(%i) <[d0]> : i8, !buffer.ref<[32] x i8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Numbers with signs, a place behind the number, a shorter table, and too few lanes.
// CHECK-LABEL: buffer.func @signed
// CHECK-NOT:   buffer.look_up
buffer.func @signed {
^bb0(%x: !buffer.ref<[32] x i8>, %t: !buffer.ref<[256] x i8>, %y: !buffer.ref<[32] x i8>):
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[32] x i8> -> i8
    %w = arith.extsi %a : i8 to i64
    %p = arith.index_cast %w : i64 to index
    %e = buffer.load %t(%p) <[d0]> : !buffer.ref<[256] x i8> -> i8
    buffer.store %e, %y(%i) <[d0]> : i8, !buffer.ref<[32] x i8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK-LABEL: buffer.func @behind
// CHECK-NOT:   buffer.look_up
buffer.func @behind {
^bb0(%x: !buffer.ref<[32] x i8>, %t: !buffer.ref<[256] x i8>, %y: !buffer.ref<[32] x i8>):
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[32] x i8> -> i8
    %w = arith.extui %a : i8 to i64
    %p = arith.index_cast %w : i64 to index
    %e = buffer.load %t(%p) <[d0 - 1]> : !buffer.ref<[256] x i8> -> i8
    buffer.store %e, %y(%i) <[d0]> : i8, !buffer.ref<[32] x i8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK-LABEL: buffer.func @short
// CHECK-NOT:   buffer.look_up
buffer.func @short {
^bb0(%x: !buffer.ref<[32] x i8>, %t: !buffer.ref<[255] x i8>, %y: !buffer.ref<[32] x i8>):
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[32] x i8> -> i8
    %w = arith.extui %a : i8 to i64
    %p = arith.index_cast %w : i64 to index
    %e = buffer.load %t(%p) <[d0]> : !buffer.ref<[255] x i8> -> i8
    buffer.store %e, %y(%i) <[d0]> : i8, !buffer.ref<[32] x i8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK-LABEL: buffer.func @few
// CHECK-NOT:   buffer.look_up
buffer.func @few {
^bb0(%x: !buffer.ref<[8] x i8>, %t: !buffer.ref<[256] x i8>, %y: !buffer.ref<[8] x i8>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[8] x i8> -> i8
    %w = arith.extui %a : i8 to i64
    %p = arith.index_cast %w : i64 to index
    %e = buffer.load %t(%p) <[d0]> : !buffer.ref<[256] x i8> -> i8
    buffer.store %e, %y(%i) <[d0]> : i8, !buffer.ref<[8] x i8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// The kernel writes into the table.
// CHECK-LABEL: buffer.func @written
// CHECK-NOT:   buffer.look_up
buffer.func @written {
^bb0(%x: !buffer.ref<[32] x i8>, %t: !buffer.ref<[256] x i8>):
  buffer.for <[0, 32, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[32] x i8> -> i8
    %w = arith.extui %a : i8 to i64
    %p = arith.index_cast %w : i64 to index
    %e = buffer.load %t(%p) <[d0]> : !buffer.ref<[256] x i8> -> i8
    buffer.store %e, %t(%i) <[d0]> : i8, !buffer.ref<[256] x i8>
    buffer.yield
  } by lanes {parallel = false, label = "i"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
