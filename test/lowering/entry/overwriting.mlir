// RUN: opt-tool %s --pass-pipeline=compute-in-place --split-input-file | filecheck %s

// A row is read twice, the second time for what replaces it.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[A:[0-9a-z]+]] = buffer.alloc
// CHECK:         buffer.call @rows(%[[A]]) <[]>
// CHECK-NEXT:    buffer.copy %[[A]]
buffer.func @rows {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      %c = math.absf %v : f32
      buffer.yield
    } {parallel = false}
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @rows(%a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// The nearest miss: the row above has been replaced in the iteration before.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @above(%{{[0-9a-z]+}}, %{{[0-9a-z]+}}) <[]>
buffer.func @above {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[max(d0 - 1, 0), d1]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @above(%a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// A transposition: later rows read what earlier ones have stored.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @transpose(%{{[0-9a-z]+}}, %{{[0-9a-z]+}}) <[]>
buffer.func @transpose {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d1, d0]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @transpose(%a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// Elements of a row from right to left.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @reverse(%{{[0-9a-z]+}}, %{{[0-9a-z]+}}) <[]>
buffer.func @reverse {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, -d1 + 7]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @reverse(%a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// What is loaded has been stored just before.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @late(%{{[0-9a-z]+}}, %{{[0-9a-z]+}}) <[]>
buffer.func @late {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %n = arith.constant 0.0 : f32
      buffer.store %n, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @late(%a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// The first loop stores rows that the second one reads; with threads, it may be the other way round.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @nests(%{{[0-9a-z]+}}, %{{[0-9a-z]+}}) <[]>
buffer.func @nests {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      %c = math.absf %v : f32
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @nests(%a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// Halves that never meet, and so may be in different loops.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[A:[0-9a-z]+]] = buffer.alloc
// CHECK:         buffer.call @halves(%[[A]]) <[]>
// CHECK-NEXT:    buffer.copy %[[A]]
buffer.func @halves {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[4, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @halves(%a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// The same buffer twice: the second operand would change, too.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @twice(%[[A:[0-9a-z]+]], %[[A]], %{{[0-9a-z]+}}) <[]>
buffer.func @twice {
^bb0(%x : !buffer.ref<[8, 8] x f32>, %z : !buffer.ref<[8, 8] x f32>, %y : !buffer.ref<[8, 8] x f32>):
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0, d1]> : !buffer.ref<[8, 8] x f32> -> f32
      %w = buffer.load %z(%i, %j) <[d1, d0]> : !buffer.ref<[8, 8] x f32> -> f32
      %s = arith.addf %v, %w : f32
      buffer.store %s, %y(%i, %j) <[d0, d1]> : f32, !buffer.ref<[8, 8] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[8, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @fill(%a) <[]> : (!buffer.ref<[8, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[8, 8] x f32>
  buffer.call @twice(%a, %a, %b) <[]> : (!buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[8, 8] x f32>, !buffer.ref<[8, 8] x f32>
  buffer.return
}

// -----

// Rows whose number is open, shared out among loops: each begins where the one before ends.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[A:[0-9a-z]+]] = buffer.alloc
// CHECK:         buffer.call @shared_out(%[[A]]) <[n]>
buffer.func @shared_out {
^bb0(%x : !buffer.ref<[s0, 8] x f32>, %y : !buffer.ref<[s0, 8] x f32>):
  buffer.for <[0, s0 floordiv 3, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0 * 3, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    %w = buffer.load %x(%i) <[d0 * 3 + 2, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    buffer.store %v, %y(%i) <[d0 * 3, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.store %w, %y(%i) <[d0 * 3 + 2, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[(s0 floordiv 3) * 3, (s0 floordiv 3) + ((s0 - (s0 floordiv 3)) floordiv 2) * 2, 2]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0 + 1, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    buffer.store %v, %y(%i) <[d0 + 1, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[(s0 floordiv 3) + ((s0 - (s0 floordiv 3)) floordiv 2) * 2, s0, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    buffer.store %v, %y(%i) <[d0, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[s0, 8] x f32>):
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[n, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[n, 8] x f32>
  buffer.call @fill(%a) <[n]> : (!buffer.ref<[n, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[n, 8] x f32>
  buffer.call @shared_out(%a, %b) <[n]> : (!buffer.ref<[n, 8] x f32>, !buffer.ref<[n, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[n, 8] x f32>, !buffer.ref<[n, 8] x f32>
  buffer.return
}

// -----

// The nearest miss: the last loop reads a row of the loop before.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @row_above(%{{[0-9a-z]+}}, %{{[0-9a-z]+}}) <[n]>
buffer.func @row_above {
^bb0(%x : !buffer.ref<[s0, 8] x f32>, %y : !buffer.ref<[s0, 8] x f32>):
  buffer.for <[0, s0 floordiv 3, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0 * 3, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    %w = buffer.load %x(%i) <[d0 * 3 + 2, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    buffer.store %v, %y(%i) <[d0 * 3, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.store %w, %y(%i) <[d0 * 3 + 2, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[(s0 floordiv 3) * 3, (s0 floordiv 3) + ((s0 - (s0 floordiv 3)) floordiv 2) * 2, 2]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0 + 1, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    buffer.store %v, %y(%i) <[d0 + 1, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[(s0 floordiv 3) + ((s0 - (s0 floordiv 3)) floordiv 2) * 2, s0, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0 - 1, 0]> : !buffer.ref<[s0, 8] x f32> -> f32
    buffer.store %v, %y(%i) <[d0, 0]> : f32, !buffer.ref<[s0, 8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

buffer.func @fill {
^bb0(%y : !buffer.ref<[s0, 8] x f32>):
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[n, 8] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[n, 8] x f32>
  buffer.call @fill(%a) <[n]> : (!buffer.ref<[n, 8] x f32>)
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[n, 8] x f32>
  buffer.call @row_above(%a, %b) <[n]> : (!buffer.ref<[n, 8] x f32>, !buffer.ref<[n, 8] x f32>)
  buffer.copy %b, %y : !buffer.ref<[n, 8] x f32>, !buffer.ref<[n, 8] x f32>
  buffer.return
}
