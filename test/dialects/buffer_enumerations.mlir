// RUN: opt-tool %s --parsing-diagnostics --split-input-file | filecheck %s

// A name that an enumeration does not have is an error where it stands.

// CHECK: Expected `lanes`, or `unroll`.
buffer.func @for {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    buffer.yield
  } by split {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: Expected `eq`, `ne`, `lt`, `le`, `gt`, or `ge`.
buffer.func @compare {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %m = buffer.compare above %v, %v : vector<8xf32> -> vector<8xi32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: Expected `add`, `mul`, `max`, `min`, `umax`, or `umin`.
buffer.func @reduce {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %s = buffer.reduce mean %v : vector<8xf32> -> f32
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: Expected `eq`, `le`, `broadcast`, or `index`.
buffer.func @require {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  buffer.require <[4]> less <[5]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}
