// RUN: opt-tool --pass-pipeline=peel --split-input-file %s | filecheck %s

// What is mirrored at both ends goes back, forth and back again.
// CHECK-LABEL: buffer.func @mirrored
// CHECK:       buffer.for <[0, 3, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[-d0 + 3]>
// CHECK:         buffer.store %{{.*}}, %y(%{{.*}}) <[d0]>
// CHECK:       buffer.for <[0, 9, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[d0]>
// CHECK:         buffer.store %{{.*}}, %y(%{{.*}}) <[d0 + 3]>
// CHECK:       buffer.for <[0, 2, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[-d0 + 7]>
// CHECK:         buffer.store %{{.*}}, %y(%{{.*}}) <[d0 + 12]>
// CHECK-NOT:   buffer.for
buffer.func @mirrored {
^bb0(%x: !buffer.ref<[9] x f32>, %y: !buffer.ref<[14] x f32>):
  buffer.for <[0, 14, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[min((d0 + 13) mod 16, -((d0 + 13) mod 16) + 16)]> : !buffer.ref<[9] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[14] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// Tests of indices that come out alike in all of a part are gone; so is a load that none needs.
// CHECK-LABEL: buffer.func @tested
// CHECK:       buffer.for <[0, 2, 1]> {
// CHECK-NOT:     scf.if
// CHECK-NOT:     buffer.load
// CHECK:         buffer.store %{{.*}}, %y(%{{.*}}) <[d0]>
// CHECK:       buffer.for <[0, 9, 1]> {
// CHECK-NOT:     scf.if
// CHECK:         %[[V:.*]] = buffer.load %x(%{{.*}}) <[d0]> : !buffer.ref<[9] x f32> -> f32
// CHECK:         buffer.store %[[V]], %y(%{{.*}}) <[d0 + 2]>
// CHECK-NOT:   buffer.for
buffer.func @tested {
^bb0(%x: !buffer.ref<[9] x f32>, %y: !buffer.ref<[11] x f32>):
  buffer.for <[0, 11, 1]> {
  ^bb1(%i: index):
    %p = buffer.apply(%i) <[d0 + -2]>
    %q = arith.index_cast %p : index to i64
    %zero = arith.constant 0 : i64
    %inside = arith.cmpi sge, %q, %zero : i64
    %a = scf.if %inside -> (f32) {
      %b = buffer.load %x(%i) <[d0 + -2]> : !buffer.ref<[9] x f32> -> f32 {volatile}
      scf.yield %b : f32
    } else {
      %c = arith.constant 1.0 : f32
      scf.yield %c : f32
    }
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[11] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// An index that turns again and again, and one of which the size is not known, stay as they are.
// CHECK-LABEL: buffer.func @turning
// CHECK:       buffer.for <[0, 40, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[d0 mod 3]>
// CHECK:       buffer.for <[0, s0, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[min(2, d0)]>
// CHECK-NOT:   buffer.for
buffer.func @turning {
^bb0(%x: !buffer.ref<[3] x f32>, %y: !buffer.ref<[40] x f32>, %z: !buffer.ref<[s0] x f32>):
  buffer.for <[0, 40, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 mod 3]> : !buffer.ref<[3] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[40] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[0, s0, 1]> {
  ^bb2(%j: index):
    %b = buffer.load %x(%j) <[min(2, d0)]> : !buffer.ref<[3] x f32> -> f32
    buffer.store %b, %z(%j) <[d0]> : f32, !buffer.ref<[s0] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<2>}

// -----

// Rows that lie in line are one straight line; rows with a gap between them are not.
// CHECK-LABEL: buffer.func @rows
// CHECK:       buffer.for <[0, 24, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[d0 floordiv 8, d0 - (d0 floordiv 8) * 8]>
// CHECK:       buffer.for <[0, 8, 1]> {
// CHECK:         buffer.load %z(%{{.*}}) <[0, d0]>
// CHECK:       buffer.for <[0, 8, 1]> {
// CHECK:         buffer.load %z(%{{.*}}) <[1, d0]>
// CHECK:       buffer.for <[0, 8, 1]> {
// CHECK:         buffer.load %z(%{{.*}}) <[2, d0]>
buffer.func @rows {
^bb0(%x: !buffer.ref<[3, 8] x f32>, %z: !buffer.ref<[3, 8] x f32, [9, 1]>, %y: !buffer.ref<[24] x f32>, %w: !buffer.ref<[24] x f32>):
  buffer.for <[0, 24, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 floordiv 8, d0 - (d0 floordiv 8) * 8]> : !buffer.ref<[3, 8] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[24] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 24, 1]> {
  ^bb2(%j: index):
    %b = buffer.load %z(%j) <[d0 floordiv 8, d0 - (d0 floordiv 8) * 8]> : !buffer.ref<[3, 8] x f32, [9, 1]> -> f32
    buffer.store %b, %w(%j) <[d0]> : f32, !buffer.ref<[24] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

// -----

// Tiles begin with every panel of what is packed for them, so that the loop stays whole; tiles of
// another size do not.
// CHECK-LABEL: buffer.func @panels
// CHECK:       buffer.for <[0, 24, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[d0 floordiv 8, 1, d0 - (d0 floordiv 8) * 8]>
// CHECK-NOT:   buffer.for
// CHECK-LABEL: buffer.func @others
// CHECK-COUNT-3: buffer.for <[0, 8, 1]> {
// CHECK-NOT:   buffer.for
buffer.func @panels {
^bb0(%x: !buffer.ref<[3, 2, 8] x f32>, %y: !buffer.ref<[24] x f32>):
  buffer.for <[0, 24, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 floordiv 8, 1, d0 - (d0 floordiv 8) * 8]> : !buffer.ref<[3, 2, 8] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[24] x f32>
    buffer.yield
  } {parallel = true, label = "n"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<tiled_matmul, tile {n = 2}, lanes {n = 4}>}

buffer.func @others {
^bb0(%x: !buffer.ref<[3, 2, 8] x f32>, %y: !buffer.ref<[24] x f32>):
  buffer.for <[0, 24, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0 floordiv 8, 1, d0 - (d0 floordiv 8) * 8]> : !buffer.ref<[3, 2, 8] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[24] x f32>
    buffer.yield
  } {parallel = true, label = "n"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<tiled_matmul, tile {n = 3}, lanes {n = 4}>}

// -----

// Of blocks of channels some lie on what is padded, some beside it, and one both: its lanes are cut,
// too. A window that moves by less than it is long decides nothing.
// CHECK-LABEL: buffer.func @blocks
// CHECK:       buffer.for <[0, 1, 1]> {
// CHECK:         buffer.for <[0, 16, 1]> {
// CHECK-NOT:       scf.if
// CHECK:           buffer.load %x(%{{.*}}, %{{.*}}) <[d0, d1]>
// CHECK:       buffer.for <[0, 1, 1]> {
// CHECK:         buffer.for <[0, 8, 1]> {
// CHECK-NOT:       scf.if
// CHECK:           buffer.load %x(%{{.*}}, %{{.*}}) <[d0 + 1, d1]>
// CHECK:         } by lanes
// CHECK:         buffer.for <[0, 8, 1]> {
// CHECK-NOT:       buffer.load
// CHECK:         } by lanes
// CHECK:       buffer.for <[0, 1, 1]> {
// CHECK:         buffer.for <[0, 16, 1]> {
// CHECK-NOT:       buffer.load
// CHECK-LABEL: buffer.func @window
// CHECK:       buffer.for <[0, 3, 1]> {
// CHECK:         buffer.for <[0, 16, 1]> {
// CHECK:           scf.if
// CHECK-NOT:   buffer.for
buffer.func @blocks {
^bb0(%x: !buffer.ref<[2, 16] x f32>, %y: !buffer.ref<[3, 16] x f32>):
  buffer.for <[0, 3, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 16, 1]> {
    ^bb2(%j: index):
      %p = buffer.apply(%i, %j) <[d0 * 16 + d1 + -24]>
      %q = arith.index_cast %p : index to i64
      %zero = arith.constant 0 : i64
      %inside = arith.cmpi slt, %q, %zero : i64
      %a = scf.if %inside -> (f32) {
        %b = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[2, 16] x f32> -> f32 {volatile}
        scf.yield %b : f32
      } else {
        %c = arith.constant 1.0 : f32
        scf.yield %c : f32
      }
      buffer.store %a, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[3, 16] x f32>
      buffer.yield
    } by lanes {parallel = true}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @window {
^bb0(%x: !buffer.ref<[18] x f32>, %y: !buffer.ref<[3, 16] x f32>):
  buffer.for <[0, 3, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 16, 1]> {
    ^bb2(%j: index):
      %p = buffer.apply(%i, %j) <[d0 + d1 + -9]>
      %q = arith.index_cast %p : index to i64
      %zero = arith.constant 0 : i64
      %inside = arith.cmpi slt, %q, %zero : i64
      %a = scf.if %inside -> (f32) {
        %b = buffer.load %x(%i, %j) <[d0 + d1]> : !buffer.ref<[18] x f32> -> f32 {volatile}
        scf.yield %b : f32
      } else {
        %c = arith.constant 1.0 : f32
        scf.yield %c : f32
      }
      buffer.store %a, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[3, 16] x f32>
      buffer.yield
    } {parallel = true}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
