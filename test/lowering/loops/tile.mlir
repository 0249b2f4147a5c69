// RUN: opt-tool --pass-pipeline=tile --split-input-file %s | filecheck %s

// Tiles of two by three. What is left over at the end of a loop is done in smaller tiles, inside
// of the loops around it; a last tile of one element needs no loop but the one that threads share.
// CHECK-LABEL: buffer.func @remainders
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:  buffer.for <[0, 2, 1]> {
// CHECK:         buffer.for <[0, 2, 1]> {
// CHECK:           buffer.for <[0, 2, 1]> {
// CHECK:             buffer.for <[0, 3, 1]> {
// CHECK:               buffer.load %x(%{{.*}}) <[d0 * 2 + d2, d1 * 3 + d3]>
// CHECK:             } by unroll {parallel = false, label = "j"}
// CHECK:           } by unroll {parallel = false, label = "i"}
// CHECK:         } {parallel = false, label = "j"}
// CHECK:         buffer.for <[0, 2, 1]> {
// CHECK:           buffer.load %x(%{{.*}}) <[d0 * 2 + d1, 6]>
// CHECK:         } by unroll {parallel = false, label = "i"}
// CHECK:       } {parallel = true, label = "i"}
// CHECK:       buffer.for <[0, 2, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[4, d0 * 3 + d1]>
// CHECK:       } {parallel = true, label = "j"}
// CHECK:       buffer.for <[0, 1, 1]> {
// CHECK:         buffer.load %x <[4, 6]>
// CHECK:       } {parallel = true, label = "i"}
buffer.func @remainders {
^bb0(%x: !buffer.ref<[5, 7] x f32>, %y: !buffer.ref<[5, 7] x f32>):
  buffer.for <[0, 5, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 7, 1]> {
    ^bb2(%j: index):
      %a = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[5, 7] x f32> -> f32
      buffer.store %a, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[5, 7] x f32>
      buffer.yield
    } {label = "j", parallel = false}
    buffer.yield
  } {label = "i", parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, tile {i = 2, j = 3}>}

// -----

// The order of the loops changes, and lanes come to lie innermost: four of the seven columns, the
// other three one by one.
// CHECK-LABEL: buffer.func @lanes
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:  buffer.for <[0, 5, 1]> {
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:           buffer.load %x(%{{.*}}) <[d0, d1]>
// CHECK:         } by lanes {parallel = false, label = "j"}
// CHECK:       } {parallel = true, label = "i"}
// CHECK:       buffer.for <[0, 3, 1]> {
// CHECK:         buffer.for <[0, 5, 1]> {
// CHECK:           buffer.load %x(%{{.*}}) <[d1, d0 + 4]>
// CHECK:         } {parallel = false, label = "i"}
// CHECK:       } {parallel = true, label = "j"}
buffer.func @lanes {
^bb0(%x: !buffer.ref<[5, 7] x f32>, %y: !buffer.ref<[5, 7] x f32>):
  buffer.for <[0, 5, 1]> {
  ^bb1(%i: index):
    buffer.for <[0, 7, 1]> {
    ^bb2(%j: index):
      %a = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[5, 7] x f32> -> f32
      buffer.store %a, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[5, 7] x f32>
      buffer.yield
    } {label = "j", parallel = false}
    buffer.yield
  } {label = "i", parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, order [j, i], lanes {j = 4}>}

// -----

// A size that is known only at run time: whole tiles, then single steps.
// CHECK-LABEL: buffer.func @dynamic
// CHECK:       buffer.for <[0, s0 floordiv 4, 1]> {
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:           buffer.load %x(%{{.*}}) <[d0 * 4 + d1]>
// CHECK:       buffer.for <[0, s0 - (s0 floordiv 4) * 4, 1]> {
// CHECK:         buffer.load %x(%{{.*}}) <[d0 + (s0 floordiv 4) * 4]>
buffer.func @dynamic {
^bb0(%x: !buffer.ref<[s0] x f32>, %y: !buffer.ref<[s0] x f32>):
  buffer.for <[0, s0, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[s0] x f32> -> f32
    buffer.store %a, %y(%i) <[d0]> : f32, !buffer.ref<[s0] x f32>
    buffer.yield
  } {label = "i", parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>, schedule = #core.schedule<direct, tile {i = 4}>}

// -----

// The nest ends where a loop carries values: the reduction stays as it is.
// CHECK-LABEL: buffer.func @reduction
// CHECK:       buffer.for <[0, 2, 1]> {
// CHECK:         buffer.for <[0, 2, 1]> {
// CHECK:           buffer.for <[0, 6, 1]> carry
// CHECK:             buffer.load %x(%{{.*}}) <[d0 * 2 + d1, d2]>
// CHECK:         } by unroll {parallel = false, label = "i"}
buffer.func @reduction {
^bb0(%x: !buffer.ref<[4, 6] x f32>, %y: !buffer.ref<[4] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 4, 1]> {
  ^bb1(%i: index):
    %sum = buffer.for <[0, 6, 1]> carry %zero : f32 -> f32 {
    ^bb2(%k: index, %s: f32):
      %a = buffer.load %x(%i, %k) <[d0, d1]> : !buffer.ref<[4, 6] x f32> -> f32
      %t = arith.addf %s, %a : f32
      buffer.yield %t : f32
    } {label = "k", parallel = false}
    buffer.store %sum, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {label = "i", parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, tile {i = 2, k = 3}>}

// -----

// Loops that the order does not name stay where they are, around the others or in them.
// CHECK-LABEL: buffer.func @unnamed
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:  buffer.for <[0, 2, 1]> {
// CHECK:         buffer.for <[0, 5, 1]> {
// CHECK:           buffer.for <[0, 3, 1]> {
// CHECK:             buffer.for <[0, 7, 1]> {
// CHECK:               buffer.load %x(%{{.*}}) <[d0, d2, d1, d3]>
// CHECK:             } {parallel = false, label = "l"}
// CHECK:           } {parallel = false, label = "j"}
// CHECK:         } {parallel = false, label = "k"}
// CHECK:       } {parallel = true, label = "n"}
buffer.func @unnamed {
^bb0(%x: !buffer.ref<[2, 3, 5, 7] x f32>, %y: !buffer.ref<[2, 3, 5, 7] x f32>):
  buffer.for <[0, 2, 1]> {
  ^bb1(%n: index):
    buffer.for <[0, 3, 1]> {
    ^bb2(%j: index):
      buffer.for <[0, 5, 1]> {
      ^bb3(%k: index):
        buffer.for <[0, 7, 1]> {
        ^bb4(%l: index):
          %a = buffer.load %x(%n, %j, %k, %l) <[d0, d1, d2, d3]> : !buffer.ref<[2, 3, 5, 7] x f32> -> f32
          buffer.store %a, %y(%n, %j, %k, %l) <[d0, d1, d2, d3]> : f32, !buffer.ref<[2, 3, 5, 7] x f32>
          buffer.yield
        } {label = "l", parallel = false}
        buffer.yield
      } {label = "k", parallel = false}
      buffer.yield
    } {label = "j", parallel = false}
    buffer.yield
  } {label = "n", parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<direct, order [k, j]>}

// -----

// Of an open number of bytes, what whole vectors leave goes in vectors of a quarter, then of a
// quarter of that, and only then one by one.
// CHECK-LABEL: buffer.func @open
// CHECK:       buffer.for <[0, s0 floordiv 64, 1]> {
// CHECK:         buffer.for <[0, 64, 1]> {
// CHECK:         } by lanes
// CHECK:       buffer.for <[0, s0 floordiv 16 - (s0 floordiv 64) * 4, 1]> {
// CHECK:         buffer.for <[0, 16, 1]> {
// CHECK:         } by lanes
// CHECK:       buffer.for <[0, -(s0 floordiv 16) * 4 + s0 floordiv 4, 1]> {
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:         } by lanes
// CHECK:       buffer.for <[0, s0 - (s0 floordiv 4) * 4, 1]> {
// CHECK-NOT:     lanes
// CHECK:       buffer.return
buffer.func @open {
^bb0(%x: !buffer.ref<[s0] x i8>, %y: !buffer.ref<[s0] x i8>):
  buffer.for <[0, s0, 1]> {
  ^bb1(%i: index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[s0] x i8> -> i8
    buffer.store %a, %y(%i) <[d0]> : i8, !buffer.ref<[s0] x i8>
    buffer.yield
  } {label = "i", parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>, schedule = #core.schedule<row_maps, lanes {i = 64}>}
