// RUN: opt-tool --pass-pipeline='vectorize-loops{lanes=8}' %s | filecheck %s

// The loop over rows has no vectors of its own: those of its body are made later.
// CHECK-LABEL: buffer.func @fill
// CHECK:       buffer.for <[0, 20, 1]> {
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:           buffer.store %{{.*}}, %y(%{{.*}}, %{{.*}}) <[d0, d1]> : f32
// CHECK:         } by lanes
buffer.func @fill {
^bb0(%y: !buffer.ref<[20, 4] x f32>):
  buffer.for <[0, 20, 1]> {
  ^bb1(%r: index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%i: index):
      %zero = arith.constant 0.0 : f32
      buffer.store %zero, %y(%r, %i) <[d0, d1]> : f32, !buffer.ref<[20, 4] x f32>
      buffer.yield
    } by lanes {parallel = false, label = "i"}
    buffer.yield
  } {parallel = false, label = "r"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
