// RUN: opt-tool %s --threads=2 --pass-pipeline='parallelize{worth=0}' --split-input-file | filecheck %s

// One of three bands would be left over: threads share the twelve groups in them.
// CHECK-LABEL: buffer.func @bands
// CHECK:         buffer.for <[(s0 * 12) floordiv s1, (s0 * 12 + 12) floordiv s1, 1]> {
// CHECK-NEXT:    ^{{.*}}(%[[I:.*]]: index):
// CHECK-NEXT:      %[[B:.*]] = buffer.apply(%[[I]]) <[d0 floordiv 4]>
// CHECK-NEXT:      %[[G:.*]] = buffer.apply(%[[I]]) <[d0 mod 4]>
// CHECK-NEXT:      buffer.for <[0, 8, 1]> {
buffer.func @bands {
^bb0(%y : !buffer.ref<[3, 4, 8] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 3, 1]> {
  ^bb1(%b : index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%g : index):
      buffer.for <[0, 8, 1]> {
      ^bb3(%w : index):
        buffer.store %zero, %y(%b, %g, %w) <[d0, d1, d2]> : f32, !buffer.ref<[3, 4, 8] x f32>
        buffer.yield
      } {parallel = false, label = "w"}
      buffer.yield
    } {parallel = false, label = "g"}
    buffer.yield
  } {parallel = true, label = "y"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[3, 4, 8] x f32>):
  buffer.call @bands(%y) <[]> : (!buffer.ref<[3, 4, 8] x f32>)
  buffer.return
}

// -----

// Four bands are two for each thread, and of seventeen the last one does not matter.
// CHECK-LABEL: buffer.func @even
// CHECK:         buffer.for <[(s0 * 4) floordiv s1, (s0 * 4 + 4) floordiv s1, 1]> {
// CHECK:         buffer.for <[(s0 * 17) floordiv s1, (s0 * 17 + 17) floordiv s1, 1]> {
buffer.func @even {
^bb0(%y : !buffer.ref<[4, 4, 8] x f32>, %z : !buffer.ref<[17, 4, 8] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 4, 1]> {
  ^bb1(%b : index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%g : index):
      buffer.for <[0, 8, 1]> {
      ^bb3(%w : index):
        buffer.store %zero, %y(%b, %g, %w) <[d0, d1, d2]> : f32, !buffer.ref<[4, 4, 8] x f32>
        buffer.yield
      } {parallel = false, label = "w"}
      buffer.yield
    } {parallel = false, label = "g"}
    buffer.yield
  } {parallel = true, label = "y"}
  buffer.for <[0, 17, 1]> {
  ^bb1(%b : index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%g : index):
      buffer.for <[0, 8, 1]> {
      ^bb3(%w : index):
        buffer.store %zero, %z(%b, %g, %w) <[d0, d1, d2]> : f32, !buffer.ref<[17, 4, 8] x f32>
        buffer.yield
      } {parallel = false, label = "w"}
      buffer.yield
    } {parallel = false, label = "g"}
    buffer.yield
  } {parallel = true, label = "y"}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[4, 4, 8] x f32>, %z : !buffer.ref<[17, 4, 8] x f32>):
  buffer.call @even(%y, %z) <[]> : (!buffer.ref<[4, 4, 8] x f32>, !buffer.ref<[17, 4, 8] x f32>)
  buffer.return
}

// -----

// Nor is a vector at a time worth a division: threads share each of three rows.
// CHECK-LABEL: buffer.func @flat
// CHECK:         buffer.for <[0, 3, 1]> {
// CHECK:           buffer.for <[(s0 * 8) floordiv s1, (s0 * 8 + 8) floordiv s1, 1]> {
buffer.func @flat {
^bb0(%y : !buffer.ref<[3, 8] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 3, 1]> {
  ^bb1(%b : index):
    buffer.for <[0, 8, 1]> {
    ^bb2(%w : index):
      buffer.store %zero, %y(%b, %w) <[d0, d1]> : f32, !buffer.ref<[3, 8] x f32>
      buffer.yield
    } {parallel = false, label = "w"}
    buffer.yield
  } {parallel = true, label = "y"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[3, 8] x f32>):
  buffer.call @flat(%y) <[]> : (!buffer.ref<[3, 8] x f32>)
  buffer.return
}
