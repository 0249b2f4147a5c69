// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: buffer.func @lanes
// CHECK-NEXT:  ^bb0(%x: !buffer.ref<[4, 8] x f32>, %y: !buffer.ref<[4, 8] x f32>):
// CHECK-NEXT:    %t = buffer.scratch : !buffer.ref<[16] x f32>
// CHECK-NEXT:    buffer.for <[0, 4, 1]> {
// CHECK-NEXT:    ^bb0(%i: index):
// CHECK-NEXT:      %a = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
// CHECK-NEXT:      %s = buffer.reduce add %a : vector<8xf32> -> f32
// CHECK-NEXT:      %b = vector.broadcast %s : f32 to vector<8xf32>
// CHECK-NEXT:      %m = buffer.maxf %b, %a : vector<8xf32>
// CHECK-NEXT:      %n = buffer.minf keeps_nan %b, %m : vector<8xf32>
// CHECK-NEXT:      %c = buffer.compare lt %a, %n : vector<8xf32> -> vector<8xi32>
// CHECK-NEXT:      %d = buffer.any %c : vector<8xi32>
// CHECK-NEXT:      %h = buffer.lane_numbers : vector<8xi32>
// CHECK-NEXT:      %o = buffer.from_lanes %s, %s : (f32, f32) -> vector<2xf32>
// CHECK-NEXT:      %k = buffer.reduce umin %h : vector<8xi32> -> i32
// CHECK-NEXT:      %l = buffer.load %x(%i) <[0, d0]> : !buffer.ref<[4, 8] x f32> -> vector<4xf32> {axis = #builtin.int<0>}
// CHECK-NEXT:      buffer.store %l, %y(%i) <[0, d0]> : vector<4xf32>, !buffer.ref<[4, 8] x f32> {axis = #builtin.int<0>}
// CHECK-NEXT:      %e = buffer.compare unsigned gt %c, %c : vector<8xi32> -> vector<8xi32>
// CHECK-NEXT:      %g = buffer.convert unsigned %c : vector<8xi32> -> vector<8xf64>
// CHECK-NEXT:      %r = buffer.select %c, %m, %n : vector<8xi32>, vector<8xf32>
// CHECK-NEXT:      %f = buffer.convert %c : vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:      %q = arith.addf %r, %f : vector<8xf32>
// CHECK-NEXT:      buffer.prefetch %x(%i) <[d0 * 8 + 64]> : !buffer.ref<[4, 8] x f32>
// CHECK-NEXT:      buffer.store %q, %y(%i) <[d0, 0]> : vector<8xf32>, !buffer.ref<[4, 8] x f32>
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    } by unroll {parallel = true, label = "rows"}
// CHECK-NEXT:    buffer.return
// CHECK-NEXT:  } {symbols = [], outputs = #builtin.int<1>}
buffer.func @lanes {
^bb0(%x: !buffer.ref<[4, 8] x f32>, %y: !buffer.ref<[4, 8] x f32>):
  %t = buffer.scratch : !buffer.ref<[16] x f32>
  buffer.for <[0, 4, 1]> {
  ^bb0(%i: index):
    %a = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[4, 8] x f32> -> vector<8xf32>
    %s = buffer.reduce add %a : vector<8xf32> -> f32
    %b = vector.broadcast %s : f32 to vector<8xf32>
    %m = buffer.maxf %b, %a : vector<8xf32>
    %n = buffer.minf keeps_nan %b, %m : vector<8xf32>
    %c = buffer.compare lt %a, %n : vector<8xf32> -> vector<8xi32>
    %d = buffer.any %c : vector<8xi32>
    %h = buffer.lane_numbers : vector<8xi32>
    %o = buffer.from_lanes %s, %s : (f32, f32) -> vector<2xf32>
    %k = buffer.reduce umin %h : vector<8xi32> -> i32
    %l = buffer.load %x(%i) <[0, d0]> : !buffer.ref<[4, 8] x f32> -> vector<4xf32> {axis = #builtin.int<0>}
    buffer.store %l, %y(%i) <[0, d0]> : vector<4xf32>, !buffer.ref<[4, 8] x f32> {axis = #builtin.int<0>}
    %e = buffer.compare unsigned gt %c, %c : vector<8xi32> -> vector<8xi32>
    %g = buffer.convert unsigned %c : vector<8xi32> -> vector<8xf64>
    %r = buffer.select %c, %m, %n : vector<8xi32>, vector<8xf32>
    %f = buffer.convert %c : vector<8xi32> -> vector<8xf32>
    %q = arith.addf %r, %f : vector<8xf32>
    buffer.prefetch %x(%i) <[d0 * 8 + 64]> : !buffer.ref<[4, 8] x f32>
    buffer.store %q, %y(%i) <[d0, 0]> : vector<8xf32>, !buffer.ref<[4, 8] x f32>
    buffer.yield
  } by unroll {parallel = true, label = "rows"}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// CHECK-LABEL: buffer.func @widened
// CHECK:         %a = buffer.load %x <[0]> : !buffer.ref<[8] x ui8> -> vector<8xi8>
// CHECK-NEXT:    %b = buffer.convert unsigned %a : vector<8xi8> -> vector<8xi32>
// CHECK-NEXT:    %c = buffer.convert %a : vector<8xi8> -> vector<8xi32>
// CHECK-NEXT:    %d = buffer.dot_pairs %b, %c, %b : vector<8xi32>
// CHECK-NEXT:    %q = buffer.dot_quads %b, %c, %d : vector<8xi32>
// CHECK-NEXT:    %r = buffer.dot_small_quads %b, %c, %d : vector<8xi32>
// CHECK-NEXT:    %e = buffer.convert %q : vector<8xi32> -> vector<8xf32>
// CHECK-NEXT:    %g = buffer.dot_halves %b, %c, %e : vector<8xi32>, vector<8xf32>
// CHECK-NEXT:    %u = buffer.pair_halves %e, %g : vector<8xf32> -> vector<8xi32>
// CHECK-NEXT:    %h = buffer.multiply_high %q, %c : vector<8xi32>
// CHECK-NEXT:    %p = buffer.divide_by_power %h, %b : vector<8xi32>
// CHECK-NEXT:    %s = buffer.convert %a : vector<8xi8> -> vector<8xi16>
// CHECK-NEXT:    %w = buffer.widen_pairs %s : vector<8xi16> -> vector<8xi32>
buffer.func @widened {
^bb0(%x: !buffer.ref<[8] x ui8>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x ui8> -> vector<8xi8>
  %b = buffer.convert unsigned %a : vector<8xi8> -> vector<8xi32>
  %c = buffer.convert %a : vector<8xi8> -> vector<8xi32>
  %d = buffer.dot_pairs %b, %c, %b : vector<8xi32>
  %q = buffer.dot_quads %b, %c, %d : vector<8xi32>
  %r = buffer.dot_small_quads %b, %c, %d : vector<8xi32>
  %e = buffer.convert %q : vector<8xi32> -> vector<8xf32>
  %g = buffer.dot_halves %b, %c, %e : vector<8xi32>, vector<8xf32>
  %u = buffer.pair_halves %e, %g : vector<8xf32> -> vector<8xi32>
  %h = buffer.multiply_high %q, %c : vector<8xi32>
  %p = buffer.divide_by_power %h, %b : vector<8xi32>
  %s = buffer.convert %a : vector<8xi8> -> vector<8xi16>
  %w = buffer.widen_pairs %s : vector<8xi16> -> vector<8xi32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// CHECK-LABEL: buffer.func @words
// CHECK:         %w = buffer.load %x <[4]> word : !buffer.ref<[8] x i8> -> i32
// CHECK-NEXT:    %a = buffer.add_bytes %w, %w : i32
// CHECK-NEXT:    %b = buffer.add_bytes odd unsigned %w, %a : i32
// CHECK-NEXT:    %d = buffer.dot_pairs %a, %b, %w : i32
// CHECK-NEXT:    %e = buffer.divide_by_power positive %d, %a : i32
// CHECK-NEXT:    %o = buffer.divide_by_power positive up %d, %a : i32
// CHECK-NEXT:    %v = buffer.load %x <[0]> word : !buffer.ref<[8] x i8> -> vector<4xi32>
// CHECK-NEXT:    %u = buffer.load %y <[0, 0]> word : !buffer.ref<[4, 8] x ui8> -> vector<4xi32> {axis = #builtin.int<0>}
buffer.func @words {
^bb0(%x: !buffer.ref<[8] x i8>, %y: !buffer.ref<[4, 8] x ui8>):
  %w = buffer.load %x <[4]> word : !buffer.ref<[8] x i8> -> i32
  %a = buffer.add_bytes %w, %w : i32
  %b = buffer.add_bytes odd unsigned %w, %a : i32
  %d = buffer.dot_pairs %a, %b, %w : i32
  %e = buffer.divide_by_power positive %d, %a : i32
  %o = buffer.divide_by_power positive up %d, %a : i32
  %v = buffer.load %x <[0]> word : !buffer.ref<[8] x i8> -> vector<4xi32>
  %u = buffer.load %y <[0, 0]> word : !buffer.ref<[4, 8] x ui8> -> vector<4xi32> {axis = #builtin.int<0>}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// CHECK-LABEL: buffer.func @table
// CHECK:         %b = buffer.look_up %a, %t : vector<16xi8>, !buffer.ref<[256] x ui8>
buffer.func @table {
^bb0(%x: !buffer.ref<[16] x i8>, %t: !buffer.ref<[256] x ui8>):
  %a = buffer.load %x <[0]> : !buffer.ref<[16] x i8> -> vector<16xi8>
  %b = buffer.look_up %a, %t : vector<16xi8>, !buffer.ref<[256] x ui8>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// CHECK-LABEL: buffer.entry ["x"] -> ["y"] {
// CHECK-NEXT:  ^bb0(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x f32>):
// CHECK-NEXT:    buffer.mark {slot = #builtin.int<0>, kernel = "part", nodes = ["a", "b"], shapes = "4 -> 4", bytes = #core.dims<[n * 32]>, schedule = "", multiply_adds = #core.dims<[n * 4]>}
// CHECK-NEXT:    %w = buffer.weight {value = #core.blob<"0x0000803F0000803F">, layout = #core.layout<0/2, 0 mod 2 pad [1] [1]>, dims = #core.dims<[2]>} : !buffer.ref<[2, 2] x f32>
// CHECK-NEXT:    buffer.share {
// CHECK-NEXT:      buffer.call @part(%x, %y) <[part.number, part.count]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    buffer.return
// CHECK-NEXT:  } {profile}
buffer.entry ["x"] -> ["y"] {
^bb0(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x f32>):
  buffer.mark {slot = #builtin.int<0>, kernel = "part", nodes = ["a", "b"], shapes = "4 -> 4", bytes = #core.dims<[n * 32]>, schedule = "", multiply_adds = #core.dims<[n * 4]>}
  %w = buffer.weight {value = #core.blob<"0x0000803F0000803F">, layout = #core.layout<0/2, 0 mod 2 pad [1] [1]>, dims = #core.dims<[2]>} : !buffer.ref<[2, 2] x f32>
  buffer.share {
    buffer.call @part(%x, %y) <[part.number, part.count]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
    buffer.yield
  }
  buffer.return
} {profile}

// CHECK-LABEL: buffer.func @square
// CHECK-NEXT:    %t = buffer.scratch : !buffer.ref<[4, 4] x f32>
// CHECK-NEXT:    buffer.transpose %t : !buffer.ref<[4, 4] x f32>
// CHECK-NEXT:    %u = buffer.scratch : !buffer.ref<[3, 4] x f32>
// CHECK-NEXT:    buffer.transpose %u : !buffer.ref<[3, 4] x f32>
buffer.func @square {
  %t = buffer.scratch : !buffer.ref<[4, 4] x f32>
  buffer.transpose %t : !buffer.ref<[4, 4] x f32>
  %u = buffer.scratch : !buffer.ref<[3, 4] x f32>
  buffer.transpose %u : !buffer.ref<[3, 4] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// CHECK-LABEL: buffer.func @tiles
// CHECK:         buffer.dot_tiles %x, %w, %t(%i) <[d0 * 32, 0, 0, 0, 32, 8, 48]> packed unsigned_left : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
// CHECK-NEXT:    buffer.dot_tiles %x, %w, %t(%i) <[d0 * 32, 0, 0, 0, 32, 8, 5]> adds packed unsigned_right : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
// CHECK-NEXT:    buffer.dot_tiles %z, %w, %t(%i) <[d0, 0, 0, 0, 0, 0, 32, 8, 48]> adds tiled packed unsigned_left : !buffer.ref<[2, 3, 32, 16] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
// CHECK-NEXT:    buffer.dot_tiles %v, %y, %t(%i) <[0, 0, 0, d0 * 2, 0, 32, 8, 32]> packed unsigned_right {across = array<i64: 1, 0>, axis = 0 : i64, taps = array<i64: 0, 0, 0, 1, 1, 0, 1, 1>} : !buffer.ref<[48, 32] x i32>, !buffer.ref<[8, 6, 5] x i32>, !buffer.ref<[32, 32] x i32>
// CHECK:         buffer.release_tiles
buffer.func @tiles {
^bb0(%x: !buffer.ref<[64, 48] x i32>, %w: !buffer.ref<[48, 8] x i32>, %z: !buffer.ref<[2, 3, 32, 16] x i32>, %v: !buffer.ref<[48, 32] x i32>, %y: !buffer.ref<[8, 6, 5] x i32>):
  %t = buffer.scratch : !buffer.ref<[32, 32] x i32>
  buffer.for <[0, 2, 1]> {
  ^bb1(%i: index):
    buffer.dot_tiles %x, %w, %t(%i) <[d0 * 32, 0, 0, 0, 32, 8, 48]> packed unsigned_left : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
    buffer.dot_tiles %x, %w, %t(%i) <[d0 * 32, 0, 0, 0, 32, 8, 5]> adds packed unsigned_right : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
    buffer.dot_tiles %z, %w, %t(%i) <[d0, 0, 0, 0, 0, 0, 32, 8, 48]> adds tiled packed unsigned_left : !buffer.ref<[2, 3, 32, 16] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
    buffer.dot_tiles %v, %y, %t(%i) <[0, 0, 0, d0 * 2, 0, 32, 8, 32]> packed unsigned_right {across = array<i64: 1, 0>, axis = 0 : i64, taps = array<i64: 0, 0, 0, 1, 1, 0, 1, 1>} : !buffer.ref<[48, 32] x i32>, !buffer.ref<[8, 6, 5] x i32>, !buffer.ref<[32, 32] x i32>
    buffer.yield
  } {parallel = false}
  buffer.release_tiles
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}
