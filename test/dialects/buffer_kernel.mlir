// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: buffer.func @map
// CHECK-NEXT:  ^bb0(%x: !buffer.ref<[4, s0] x f32>, %i: !buffer.ref<[3] x ui8>, %f: !buffer.ref<[3] x i64>, %y: !buffer.ref<[4, s0] x f32, [1, 4]>):
// CHECK-NEXT:    buffer.for <[0, 4, 1]> {
// CHECK-NEXT:    ^bb0(%a: index):
// CHECK-NEXT:      buffer.for(%a) <[d0, s0 + 1, 2]> {
// CHECK-NEXT:      ^bb0(%b: index):
// CHECK-NEXT:        %v = buffer.load %x(%a, %b) <[d0, d1]> : !buffer.ref<[4, s0] x f32> -> f32
// CHECK-NEXT:        %w = buffer.remf %v, %v : f32
// CHECK-NEXT:        %q = buffer.sigmoid %w : f32
// CHECK-NEXT:        buffer.store %q, %y(%a, %b) <[d0, d1]> : f32, !buffer.ref<[4, s0] x f32, [1, 4]>
// CHECK-NEXT:        buffer.yield
// CHECK-NEXT:      } {parallel = false}
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    } {parallel = true}
// CHECK-NEXT:    %u = buffer.load %i <[2]> : !buffer.ref<[3] x ui8> -> i8
// CHECK-NEXT:    %r = buffer.for <[0, s0, 1]> carry %u : i8 -> i8 {
// CHECK-NEXT:    ^bb0(%c: index, %s: i8):
// CHECK-NEXT:      %d = buffer.apply(%c) <[min(d0, s0 - 1) floordiv 2]>
// CHECK-NEXT:      buffer.yield %s : i8
// CHECK-NEXT:    } {parallel = false}
// CHECK-NEXT:    buffer.store %r, %i <[0]> : i8, !buffer.ref<[3] x ui8>
// CHECK-NEXT:    %k = buffer.load %f <[1]> : !buffer.ref<[3] x i64> -> i64
// CHECK-NEXT:    %n = buffer.check_index %k <[s0]>
// CHECK-NEXT:    %z = buffer.apply <[s0 * 3]>
// CHECK-NEXT:    buffer.return
// CHECK-NEXT:  } {symbols = ["n"], outputs = #builtin.int<1>}
buffer.func @map {
^bb0(%x : !buffer.ref<[4, s0] x f32>, %i : !buffer.ref<[3] x ui8>, %f : !buffer.ref<[3] x i64>, %y : !buffer.ref<[4, s0] x f32, [1, 4]>):
  buffer.for <[0, 4, 1]> {
  ^bb1(%a : index):
    buffer.for (%a) <[d0, s0 + 1, 2]> {
    ^bb2(%b : index):
      %v = buffer.load %x(%a, %b) <[d0, d1]> : !buffer.ref<[4, s0] x f32> -> f32
      %w = buffer.remf %v, %v : f32
      %q = buffer.sigmoid %w : f32
      buffer.store %q, %y(%a, %b) <[d0, d1]> : f32, !buffer.ref<[4, s0] x f32, [1, 4]>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  %u = buffer.load %i <[2]> : !buffer.ref<[3] x ui8> -> i8
  %r = buffer.for <[0, s0, 1]> carry %u : i8 -> i8 {
  ^bb3(%c : index, %s : i8):
    %d = buffer.apply(%c) <[min(d0, s0 - 1) floordiv 2]>
    buffer.yield %s : i8
  } {parallel = false}
  buffer.store %r, %i <[0]> : i8, !buffer.ref<[3] x ui8>
  %k = buffer.load %f <[1]> : !buffer.ref<[3] x i64> -> i64
  %n = buffer.check_index %k <[s0]>
  %z = buffer.apply <[s0 * 3]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// CHECK-LABEL: buffer.kernel @without_loops
// CHECK-NEXT:  ^bb0(%x: tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %w: tensor<4xf32>):
// CHECK-NEXT:    %y = core.add %x, %w : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    core.yield %y : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:  } {symbols = ["n"], constants = array<i64: 1>, in_place = #builtin.int<0>, schedule = #core.schedule<row_maps, lanes {d1 = 4}>, layouts = [#core.layout<0, 1>, #core.layout<0>, #core.layout<0, 1>]}
buffer.kernel @without_loops {
^bb0(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %w : tensor<4xf32>):
  %y = core.add %x, %w : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  core.yield %y : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
} {symbols = ["n"], constants = array<i64: 1>, in_place = #builtin.int<0>, schedule = #core.schedule<row_maps, lanes {d1 = 4}>, layouts = [#core.layout<0, 1>, #core.layout<0>, #core.layout<0, 1>]}

// CHECK-LABEL: buffer.func @invoke
// CHECK:         buffer.invoke "com.acme.SoftClip"(%x) into(%y) {alpha = 5.000000e-01 : f64} : !buffer.ref<[s0, 3] x f32> -> !buffer.ref<[s0, 3] x f32>
// CHECK-NEXT:    buffer.invoke "com.acme.Split"(%x, %x) into(%y, %w) {} : !buffer.ref<[s0, 3] x f32>, !buffer.ref<[s0, 3] x f32> -> !buffer.ref<[s0, 3] x f32>, !buffer.ref<[8] x ui8>
buffer.func @invoke {
^bb0(%x : !buffer.ref<[s0, 3] x f32>, %y : !buffer.ref<[s0, 3] x f32>, %w : !buffer.ref<[8] x ui8>):
  buffer.invoke "com.acme.SoftClip"(%x) into(%y) {alpha = 0.5 : f64} : !buffer.ref<[s0, 3] x f32> -> !buffer.ref<[s0, 3] x f32>
  buffer.invoke "com.acme.Split"(%x, %x) into(%y, %w) {} : !buffer.ref<[s0, 3] x f32>, !buffer.ref<[s0, 3] x f32> -> !buffer.ref<[s0, 3] x f32>, !buffer.ref<[8] x ui8>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<2>}
