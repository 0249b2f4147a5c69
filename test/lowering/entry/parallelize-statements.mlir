// RUN: opt-tool %s --pass-pipeline='parallelize{worth=0}' --split-input-file | filecheck %s

// What needs no loop, as the last square of all, is one thread's; what only it needs comes along,
// and what others need, too, stays before it.
// CHECK-LABEL: buffer.func @square
// CHECK:         %[[TWO:.*]] = arith.constant 2.0
// CHECK:         buffer.for <[(s0 * 4) floordiv s1, (s0 * 4 + 4) floordiv s1, 1]> {
// CHECK:           buffer.store %[[TWO]]
// CHECK-NOT:     buffer.scratch
// CHECK:         parallel}
// CHECK-LABEL: buffer.func @square_rest_2
// CHECK:         %[[TWO:.*]] = arith.constant 2.0
// CHECK-NEXT:    %[[THREE:.*]] = arith.constant 3.0
// CHECK-NEXT:    buffer.for <[0, 1, 1]> {
// CHECK:           %[[S:.*]] = buffer.scratch
// CHECK-NEXT:      buffer.store %[[TWO]], %[[S]]
// CHECK-NEXT:      %[[V:.*]] = buffer.load %[[S]]
// CHECK-NEXT:      buffer.store %[[V]], %{{.*}} <[3]>
// CHECK-NEXT:      buffer.store %[[THREE]], %{{.*}} <[2]>
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    } {parallel = false}
// CHECK-NEXT:    buffer.return
// CHECK-LABEL: buffer.func @square_rest_3
// CHECK:         %[[THREE:.*]] = arith.constant 3.0
// CHECK-NEXT:    buffer.for <[(s0 * 2) floordiv s1, (s0 * 2 + 2) floordiv s1, 1]> {
// CHECK:           buffer.store %[[THREE]]
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.share {
// CHECK-NEXT:      buffer.call @square(%{{.*}}) <[part.number, part.count]>
// CHECK:         buffer.barrier
// CHECK-NEXT:    buffer.once {
// CHECK-NEXT:      buffer.call @square_rest_2(%{{.*}}) <[]>
// CHECK:         buffer.barrier
// CHECK-NEXT:    buffer.share {
// CHECK-NEXT:      buffer.call @square_rest_3(%{{.*}}) <[part.number, part.count]>
buffer.func @square {
^bb0(%y : !buffer.ref<[4] x f32>):
  %two = arith.constant 2.0 : f32
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    buffer.store %two, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  %s = buffer.scratch : !buffer.ref<[1] x f32>
  buffer.store %two, %s <[0]> : f32, !buffer.ref<[1] x f32>
  %v = buffer.load %s <[0]> : !buffer.ref<[1] x f32> -> f32
  buffer.store %v, %y <[3]> : f32, !buffer.ref<[4] x f32>
  %three = arith.constant 3.0 : f32
  buffer.store %three, %y <[2]> : f32, !buffer.ref<[4] x f32>
  buffer.for <[0, 2, 1]> {
  ^bb2(%j : index):
    buffer.store %three, %y(%j) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[4] x f32>):
  buffer.call @square(%y) <[]> : (!buffer.ref<[4] x f32>)
  buffer.return
}

// -----

// A loop needs what is stored before it in memory of the kernel's own: all is one thread's.
// CHECK-LABEL: buffer.func @needed
// CHECK-NOT:     s1
// CHECK:         {symbols = [], outputs = #builtin.int<1>}
// CHECK-NOT:   _rest_
buffer.func @needed {
^bb0(%y : !buffer.ref<[4] x f32>):
  %two = arith.constant 2.0 : f32
  %s = buffer.scratch : !buffer.ref<[1] x f32>
  buffer.store %two, %s <[0]> : f32, !buffer.ref<[1] x f32>
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %s <[0]> : !buffer.ref<[1] x f32> -> f32
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[4] x f32>):
  buffer.call @needed(%y) <[]> : (!buffer.ref<[4] x f32>)
  buffer.return
}

// -----

// So is what a loop uses that was loaded after a store to the same buffer.
// CHECK-LABEL: buffer.func @loaded
// CHECK-NOT:     buffer.for <[0, 1, 1]>
// CHECK:         buffer.store
// CHECK-NEXT:    buffer.load
// CHECK-NEXT:    buffer.store
// CHECK-NEXT:    buffer.for <[0, 4, 1]>
// CHECK:         {symbols = [], outputs = #builtin.int<2>}
// CHECK-NOT:   _rest_
buffer.func @loaded {
^bb0(%y : !buffer.ref<[4] x f32>, %z : !buffer.ref<[4] x f32>):
  %two = arith.constant 2.0 : f32
  buffer.store %two, %z <[0]> : f32, !buffer.ref<[4] x f32>
  %v = buffer.load %z <[0]> : !buffer.ref<[4] x f32> -> f32
  buffer.store %two, %z <[1]> : f32, !buffer.ref<[4] x f32>
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[4] x f32>, %z : !buffer.ref<[4] x f32>):
  buffer.call @loaded(%y, %z) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
  buffer.return
}

// -----

// Each thread says for itself that its tiles are free, after each of the loops.
// CHECK-LABEL: buffer.func @tiles
// CHECK:         buffer.for <[(s0 * 3) floordiv s1, (s0 * 3 + 3) floordiv s1, 1]> {
// CHECK:         buffer.release_tiles
// CHECK-NEXT:    buffer.return
// CHECK-LABEL: buffer.func @tiles_rest_2
// CHECK:         buffer.for <[(s0 * 2) floordiv s1 + 2, (s0 * 2 + 2) floordiv s1 + 2, 1]> {
// CHECK:         buffer.release_tiles
// CHECK-NEXT:    buffer.return
buffer.func @tiles {
^bb0(%y : !buffer.ref<[4] x f32>):
  %two = arith.constant 2.0 : f32
  buffer.for <[0, 3, 1]> {
  ^bb1(%i : index):
    buffer.store %two, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[2, 4, 1]> {
  ^bb1(%i : index):
    buffer.store %two, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.release_tiles
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[4] x f32>):
  buffer.call @tiles(%y) <[]> : (!buffer.ref<[4] x f32>)
  buffer.return
}

// -----

// Loops that threads do not share come along with the statements around them.
// CHECK-LABEL: buffer.func @rows
// CHECK:         parallel}
// CHECK-LABEL: buffer.func @rows_rest_2
// CHECK:         buffer.for <[0, 1, 1]> {
// CHECK:           %[[S:.*]] = buffer.scratch
// CHECK:           buffer.store %{{.*}}, %[[S]] <[0]>
// CHECK-NEXT:      buffer.for <[2, 4, 1]> {
// CHECK:             buffer.load %[[S]] <[0]>
// CHECK:         {symbols = [], outputs = #builtin.int<1>}
// CHECK-NOT:   _rest_3
buffer.func @rows {
^bb0(%y : !buffer.ref<[4] x f32>):
  %two = arith.constant 2.0 : f32
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    buffer.store %two, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  %s = buffer.scratch : !buffer.ref<[1] x f32>
  buffer.store %two, %s <[0]> : f32, !buffer.ref<[1] x f32>
  buffer.for <[2, 4, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %s <[0]> : !buffer.ref<[1] x f32> -> f32
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[4] x f32>):
  buffer.call @rows(%y) <[]> : (!buffer.ref<[4] x f32>)
  buffer.return
}
