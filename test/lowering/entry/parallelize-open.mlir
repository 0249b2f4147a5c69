// RUN: opt-tool %s --pass-pipeline='parallelize{worth=0}' --split-input-file | filecheck %s

// There may be one image only: threads share the rows of all images.
// CHECK-LABEL: buffer.func @images
// CHECK:         buffer.for <[(s0 * s1 * s2) floordiv s3, (s0 * s1 * s2 + s0 * s1) floordiv s3, 1]> {
// CHECK-NEXT:    ^{{.*}}(%[[I:.*]]: index):
// CHECK-NEXT:      %[[N:.*]] = buffer.apply(%[[I]]) <[d0 floordiv s1]>
// CHECK-NEXT:      %[[H:.*]] = buffer.apply(%[[I]]) <[d0 mod s1]>
// CHECK-NEXT:      buffer.for <[0, 4, 1]> {
// CHECK-NEXT:      ^{{.*}}(%[[W:.*]]: index):
// CHECK-NEXT:        buffer.store %{{.*}}, %{{.*}}(%[[N]], %[[H]], %[[W]]) <[d0, d1, d2]>
buffer.func @images {
^bb0(%y : !buffer.ref<[s0, s1, 4] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, s0, 1]> {
  ^bb1(%n : index):
    buffer.for <[0, s1, 1]> {
    ^bb2(%h : index):
      buffer.for <[0, 4, 1]> {
      ^bb3(%w : index):
        buffer.store %zero, %y(%n, %h, %w) <[d0, d1, d2]> : f32, !buffer.ref<[s0, s1, 4] x f32>
        buffer.yield
      } {parallel = false, label = "w"}
      buffer.yield
    } {parallel = false, label = "h"}
    buffer.yield
  } {parallel = true, label = "n"}
  buffer.return
} {symbols = ["n", "h"], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[n, h, 4] x f32>):
  buffer.call @images(%y) <[n, h]> : (!buffer.ref<[n, h, 4] x f32>)
  buffer.return
}

// -----

// What is not labeled may depend on what came before; a length that is known is what it is; a row
// that depends on its image is no rectangle; and an image of which more is done is not a nest.
// CHECK-LABEL: buffer.func @others
// CHECK-NOT:     buffer.apply
// CHECK:       buffer.entry
buffer.func @others {
^bb0(%y : !buffer.ref<[s0, 9] x f32>, %z : !buffer.ref<[5, s0] x f32>, %t : !buffer.ref<[s0, s0] x f32>, %u : !buffer.ref<[s0, 9] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, s0, 1]> {
  ^bb1(%n : index):
    buffer.for <[0, 9, 1]> {
    ^bb2(%h : index):
      buffer.store %zero, %y(%n, %h) <[d0, d1]> : f32, !buffer.ref<[s0, 9] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true, label = "n"}
  buffer.for <[0, 5, 1]> {
  ^bb1(%n : index):
    buffer.for <[0, s0, 1]> {
    ^bb2(%h : index):
      buffer.store %zero, %z(%n, %h) <[d0, d1]> : f32, !buffer.ref<[5, s0] x f32>
      buffer.yield
    } {parallel = false, label = "h"}
    buffer.yield
  } {parallel = true, label = "n"}
  buffer.for <[0, s0, 1]> {
  ^bb1(%n : index):
    buffer.for(%n) <[0, d0, 1]> {
    ^bb2(%h : index):
      buffer.store %zero, %t(%n, %h) <[d0, d1]> : f32, !buffer.ref<[s0, s0] x f32>
      buffer.yield
    } {parallel = false, label = "h"}
    buffer.yield
  } {parallel = true, label = "n"}
  buffer.for <[0, s0, 1]> {
  ^bb1(%n : index):
    buffer.for <[1, 9, 1]> {
    ^bb2(%h : index):
      buffer.store %zero, %u(%n, %h) <[d0, d1]> : f32, !buffer.ref<[s0, 9] x f32>
      buffer.yield
    } {parallel = false, label = "h"}
    buffer.store %zero, %u(%n) <[d0, 0]> : f32, !buffer.ref<[s0, 9] x f32>
    buffer.yield
  } {parallel = true, label = "n"}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<4>}

buffer.entry [] -> ["y", "z", "t", "u"] {
^bb0(%y : !buffer.ref<[n, 9] x f32>, %z : !buffer.ref<[5, n] x f32>, %t : !buffer.ref<[n, n] x f32>, %u : !buffer.ref<[n, 9] x f32>):
  buffer.call @others(%y, %z, %t, %u) <[n]> : (!buffer.ref<[n, 9] x f32>, !buffer.ref<[5, n] x f32>, !buffer.ref<[n, n] x f32>, !buffer.ref<[n, 9] x f32>)
  buffer.return
}

// -----

// Nothing meets a border, wherever in the buffer other stores may go to.
// CHECK-LABEL: buffer.func @border
// CHECK:         buffer.for <[s1 floordiv s2, (s1 + 1) floordiv s2, 1]>
// CHECK:         buffer.for <[(s0 * s1 + s2 - 1) floordiv s2, (s0 * s1 + s0 + s2 - 1) floordiv s2, 1]>
// CHECK-LABEL: buffer.func @inside
// CHECK:         buffer.for <[0, 1, 1]>
// CHECK-NOT:     buffer.for
// CHECK-LABEL: buffer.func @inside_rest_2
// CHECK:         buffer.for <[(s0 * s1) floordiv s2, (s0 * s1 + s0) floordiv s2, 1]>
buffer.func @border {
^bb0(%y : !buffer.ref<[s0 + 2] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 1, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0]> : f32, !buffer.ref<[s0 + 2] x f32> {border}
    buffer.store %zero, %y(%i) <[d0 + s0 + 1]> : f32, !buffer.ref<[s0 + 2] x f32> {border}
    buffer.yield
  } {parallel = true}
  buffer.for <[0, s0, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[(d0 floordiv 4) * 4 + d0 mod 4 + 1]> : f32, !buffer.ref<[s0 + 2] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

buffer.func @inside {
^bb0(%y : !buffer.ref<[s0 + 2] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 1, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0]> : f32, !buffer.ref<[s0 + 2] x f32>
    buffer.store %zero, %y(%i) <[d0 + s0 + 1]> : f32, !buffer.ref<[s0 + 2] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[0, s0, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[(d0 floordiv 4) * 4 + d0 mod 4 + 1]> : f32, !buffer.ref<[s0 + 2] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[n + 2] x f32>):
  buffer.call @border(%y) <[n]> : (!buffer.ref<[n + 2] x f32>)
  buffer.call @inside(%y) <[n]> : (!buffer.ref<[n + 2] x f32>)
  buffer.return
}
