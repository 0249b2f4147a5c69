// RUN: opt-tool %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: op 'buffer.func': 2 outputs of 1 buffers (C1)
buffer.func @func_c1_outputs {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %i = buffer.apply <[0]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<2>}

// -----

// CHECK: op 'buffer.func': expected a buffer, got f32 (C1)
buffer.func @func_c1_arguments {
^bb0(%x : f32):
  %i = buffer.apply <[0]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.func': buffer 2 of 1 is to be asked for ahead (C3)
buffer.func @func_c3 {
^bb0(%x: !buffer.ref<[4] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<0>, schedule = #core.schedule<direct, prefetch 2>}

// -----

// CHECK: op 'buffer.func': the function does not end with buffer.return (C2)
buffer.func @func_c2_return {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %i = buffer.apply <[0]>
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: a buffer has as many strides as dimensions
buffer.func @strides {
^bb0(%x : !buffer.ref<[4, s0] x f32, [1]>):
  %i = buffer.apply <[0]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.load': 1 indices for a buffer of rank 2 (C1)
buffer.func @load_c1_rank {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.load': a load from !buffer.ref<[4, s0] x f32> does not give f64 (C4)
buffer.func @load_c4_type {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f64
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.load': a scalar has neither stride nor axis (C5)
buffer.func @load_c5_scalar {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32 {stride = #builtin.int<2>}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.load': a stride is at least 2 (C5)
buffer.func @load_c5_stride {
^bb0(%x : !buffer.ref<[64] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[64] x f32> -> vector<4xf32> {stride = #builtin.int<1>}
  buffer.return
} {outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.load': the lanes do not lie a constant number of elements apart (C3)
buffer.func @load_c3_axis {
^bb0(%x : !buffer.ref<[8, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[8, s0] x f32> -> vector<4xf32> {axis = #builtin.int<0>}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.store': a scalar has neither stride nor axis (C5)
buffer.func @store_c5 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> f32
  buffer.store %v, %x <[1]> : f32, !buffer.ref<[8] x f32> {axis = #builtin.int<0>}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.from_lanes': the lanes of vector<4xf32> are others (C1)
buffer.func @from_lanes_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> f32
  %v = buffer.from_lanes %a, %a : (f32, f32) -> vector<4xf32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.lane_numbers': vector<4xf32> cannot hold numbers of lanes (C1)
buffer.func @lane_numbers_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.lane_numbers : vector<4xf32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.reduce': floats have signs (C2)
buffer.func @reduce_c2 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %r = buffer.reduce umax %v : vector<8xf32> -> f32
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.load': 'd0' has no operand (C2)
buffer.func @load_c2_operand {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, d0]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.load': 'n' is neither an operand dK nor a symbol sK (C2)
buffer.func @load_c2_symbol {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, n]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.store': 3 indices for a buffer of rank 2 (C1)
buffer.func @store_c1_rank {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.store %v, %x <[0, 0, 0]> : f32, !buffer.ref<[4, s0] x f32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.store': cannot store vector<4xi32> to !buffer.ref<[4] x i1> (C4)
buffer.func @store_c4_mask {
^bb0(%x : !buffer.ref<[4] x i32>, %y : !buffer.ref<[4] x i1>):
  %v = buffer.load %x <[0]> : !buffer.ref<[4] x i32> -> vector<4xi32>
  buffer.store %v, %y <[0]> : vector<4xi32>, !buffer.ref<[4] x i1>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.store': cannot store f32 to !buffer.ref<[1] x f64> (C4)
buffer.func @store_c4_type {
^bb0(%x : !buffer.ref<[4, s0] x f32>, %y : !buffer.ref<[1] x f64>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.store %v, %y <[0]> : f32, !buffer.ref<[1] x f64>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.apply': one expression is expected (C1)
buffer.func @apply_c1_count {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %i = buffer.apply <[0, 1]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.apply': 'd1' has no operand (C2)
buffer.func @apply_c2_operand {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %i = buffer.apply <[0]>
  %j = buffer.apply(%i) <[d0 + d1]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.for': the range is [lower, upper, step] (C1)
buffer.func @for_c1_range {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.for <[0, 4]> {
  ^bb1(%i : index):
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.for': the body does not end with buffer.yield (C3)
buffer.func @for_c3_yield {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    %j = buffer.apply <[0]>
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.for': carried values change their types (C3)
buffer.func @for_c3_carried {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  %r = buffer.for <[0, 4, 1]> carry %v : f32 -> f32 {
  ^bb1(%i : index, %w : f64):
    buffer.yield %v : f32
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.for': carried values change their types (C3)
buffer.func @for_c3_yielded {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  %r = buffer.for <[0, 4, 1]> carry %v : f32 -> f32 {
  ^bb1(%i : index, %w : f32):
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.for': a parallel loop carries no values (C4)
buffer.func @for_c4_parallel {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  %r = buffer.for <[0, 4, 1]> carry %v : f32 -> f32 {
  ^bb1(%i : index, %w : f32):
    buffer.yield %w : f32
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.check_index': 'd0' has no operand (C2)
buffer.func @check_index_c2 {
^bb0(%y : !buffer.ref<[1] x i64>):
  %k = buffer.load %y <[0]> : !buffer.ref<[1] x i64> -> i64
  %i = buffer.check_index %k <[d0]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.view': a view keeps the element type (C1)
buffer.func @view_c1 {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.view %x {offset = #core.dims<[0]>} : !buffer.ref<[4, s0] x f32> -> !buffer.ref<[4] x f64>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.loop': slots are pairs of buffers of one type (C1)
buffer.func @loop_c1_pairs {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[4] x f32>
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[5] x f32>
  %r = buffer.loop swap %a, %b : !buffer.ref<[4] x f32>, !buffer.ref<[5] x f32> -> !buffer.ref<[4] x f32> {
  ^bb1(%c : !buffer.ref<[4] x f32>, %d : !buffer.ref<[5] x f32>):
    buffer.yield
  }
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.loop': slots are pairs of buffers of one type (C1)
buffer.func @loop_c1_odd {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[4] x f32>
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[5] x f32>
  %r = buffer.loop swap %a : !buffer.ref<[4] x f32> -> !buffer.ref<[4] x f32> {
  ^bb1(%c : !buffer.ref<[4] x f32>):
    buffer.yield
  }
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.loop': the region has other arguments than slots (C2)
buffer.func @loop_c2_arguments {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[4] x f32>
  %b = buffer.alloc {dynamic = false} : !buffer.ref<[5] x f32>
  %r = buffer.loop swap %a, %a : !buffer.ref<[4] x f32>, !buffer.ref<[4] x f32> -> !buffer.ref<[4] x f32> {
  ^bb1(%c : !buffer.ref<[4] x f32>, %d : !buffer.ref<[5] x f32>):
    buffer.yield
  }
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.loop': the region's arguments: found !buffer.ref<[4] x f32>, expected !buffer.ref<[k + 1] x f32> (C4)
buffer.func @loop_c4_own_type {
^bb0(%t : !buffer.ref<[] x i64>):
  %a = buffer.alloc {dynamic = true} : !buffer.ref<[4] x f32>
  %s = buffer.loop trip %t : !buffer.ref<[] x i64> own %a : !buffer.ref<[4] x f32> -> !buffer.ref<[q] x f32> {
  ^bb1(%d : !buffer.ref<[k + 1] x f32>):
    %e = buffer.alloc {dynamic = true} : !buffer.ref<[k + 1] x f32>
    buffer.yield %e : !buffer.ref<[k + 1] x f32>
  } {carried_symbols = ["k"], result_symbols = ["q"]}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.loop': what the region yields: found !buffer.ref<[k, 1] x f32>, expected !buffer.ref<[k] x f32> (C5)
buffer.func @loop_c5_own_rank {
^bb0(%t : !buffer.ref<[] x i64>):
  %a = buffer.alloc {dynamic = true} : !buffer.ref<[4] x f32>
  %s = buffer.loop trip %t : !buffer.ref<[] x i64> own %a : !buffer.ref<[4] x f32> -> !buffer.ref<[q] x f32> {
  ^bb1(%d : !buffer.ref<[k] x f32>):
    %e = buffer.alloc {dynamic = true} : !buffer.ref<[k, 1] x f32>
    buffer.yield %e : !buffer.ref<[k, 1] x f32>
  } {carried_symbols = ["k"], result_symbols = ["q"]}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.loop': a buffer is yielded twice (C5)
buffer.func @loop_c5_own_twice {
^bb0(%t : !buffer.ref<[] x i64>):
  %a = buffer.alloc {dynamic = true} : !buffer.ref<[4] x f32>
  %s = buffer.loop trip %t : !buffer.ref<[] x i64> own %a : !buffer.ref<[4] x f32> -> !buffer.ref<[q] x f32> {
  ^bb1(%d : !buffer.ref<[k] x f32>):
    %e = buffer.alloc {dynamic = true} : !buffer.ref<[k + 1] x f32>
    buffer.yield %e, %e : !buffer.ref<[k + 1] x f32>, !buffer.ref<[k + 1] x f32>
  } {carried_symbols = ["k"], result_symbols = ["q"]}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.loop': the results are not the arguments with the result symbols (C6)
buffer.func @loop_c6_own_result {
^bb0(%t : !buffer.ref<[] x i64>):
  %a = buffer.alloc {dynamic = true} : !buffer.ref<[4] x f32>
  %s = buffer.loop trip %t : !buffer.ref<[] x i64> own %a : !buffer.ref<[4] x f32> -> !buffer.ref<[k] x f32> {
  ^bb1(%d : !buffer.ref<[k] x f32>):
    %e = buffer.alloc {dynamic = true} : !buffer.ref<[k + 1] x f32>
    buffer.yield %e : !buffer.ref<[k + 1] x f32>
  } {carried_symbols = ["k"], result_symbols = ["q"]}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.loop': carried symbols and result symbols are pairs (C3)
buffer.func @loop_c3_own_pairs {
^bb0(%t : !buffer.ref<[] x i64>):
  %a = buffer.alloc {dynamic = true} : !buffer.ref<[4] x f32>
  %s = buffer.loop trip %t : !buffer.ref<[] x i64> own %a : !buffer.ref<[4] x f32> -> !buffer.ref<[q] x f32> {
  ^bb1(%d : !buffer.ref<[k] x f32>):
    %e = buffer.alloc {dynamic = true} : !buffer.ref<[k + 1] x f32>
    buffer.yield %e : !buffer.ref<[k + 1] x f32>
  } {carried_symbols = ["k"]}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.if': what the region yields: found 0 buffers, expected 1 (C1)
buffer.func @if_c1_yields {
^bb0(%c : !buffer.ref<[] x i1>):
  %r = buffer.if %c : !buffer.ref<[] x i1> -> !buffer.ref<[p] x f32> {
    %a = buffer.alloc {dynamic = true} : !buffer.ref<[2] x f32>
    buffer.yield %a : !buffer.ref<[2] x f32>
  } else {
    buffer.yield
  } {result_symbols = ["p"]}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.transpose': !buffer.ref<[1, 8] x f32> is not dense, or has no rows (C1)
buffer.func @transpose_c1_of_one_row {
  %t = buffer.scratch : !buffer.ref<[1, 8] x f32>
  buffer.transpose %t : !buffer.ref<[1, 8] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.transpose': no vector has 6 lanes (C2)
buffer.func @transpose_c2_of_six {
  %t = buffer.scratch : !buffer.ref<[6, 6] x f32>
  buffer.transpose %t : !buffer.ref<[6, 6] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.section': the region has other arguments than the section (C1)
"buffer.func"() <{sym_name = "section", symbols = [], outputs = #builtin.int<0>}> ({
^bb0(%x : !buffer.ref<[4] x f32>):
  "buffer.section"(%x) ({
    "buffer.yield"() : () -> ()
  }) : (!buffer.ref<[4] x f32>) -> ()
  "buffer.return"() : () -> ()
}) : () -> ()

// -----

// CHECK: op 'buffer.section': what the region yields: found 0 buffers, expected 1 (C2)
"buffer.func"() <{sym_name = "section", symbols = [], outputs = #builtin.int<0>}> ({
^bb0(%x : !buffer.ref<[4] x f32>):
  %r = "buffer.section"(%x) ({
  ^bb0(%i : !buffer.ref<[4] x f32>):
    "buffer.yield"() : () -> ()
  }) : (!buffer.ref<[4] x f32>) -> !buffer.ref<[4] x f32>
  "buffer.return"() : () -> ()
}) : () -> ()

// -----

// CHECK: op 'buffer.weight': the blob has 4 bytes, but 8 are expected (C2)
buffer.func @weight_c2 {
^bb0(%x : !buffer.ref<[2] x f32>):
  %w = buffer.weight {value = #core.blob<"0x0000803F">} : !buffer.ref<[2] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.weight': the blob has 16 bytes, but 12 are expected (C2)
buffer.func @weight_c2 {
^bb0(%x : !buffer.ref<[2] x f32>):
  %w = buffer.weight {value = #core.blob<"0x0000803F0000803F0000803F0000803F">, layout = #core.layout<0/2, 0 mod 2>, dims = #core.dims<[3]>} : !buffer.ref<[2, 2] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.weight': #core.layout<0/2, 0 mod 2> makes no !buffer.ref<[3, 2] x f32> of the dimensions #core.dims<[3]> (C1)
buffer.func @weight_c1 {
^bb0(%x : !buffer.ref<[2] x f32>):
  %w = buffer.weight {value = #core.blob<"0x0000803F0000803F0000803F">, layout = #core.layout<0/2, 0 mod 2>, dims = #core.dims<[3]>} : !buffer.ref<[3, 2] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.weight': a constant to be packed needs a layout and dimensions (C1)
buffer.func @weight_c1 {
^bb0(%x : !buffer.ref<[2] x f32>):
  %w = buffer.weight {value = #core.blob<"0x0000803F0000803F0000803F">, dims = #core.dims<[3]>} : !buffer.ref<[3] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.for': 'd0' has no operand (C2)
buffer.func @for_c2 {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  buffer.for <[0, d0, 1]> {
  ^bb1(%i : index):
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.load': the elements of the last dimension do not lie side by side (C3)
buffer.func @load_c3 {
^bb0(%x : !buffer.ref<[4, 8] x f32, [1, 4]>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, 8] x f32, [1, 4]> -> vector<4xf32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.store': 'd0' has no operand (C2)
buffer.func @store_c2 {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %v = buffer.load %x <[0, 0]> : !buffer.ref<[4, s0] x f32> -> f32
  buffer.store %v, %x <[0, d0]> : f32, !buffer.ref<[4, s0] x f32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.store': the elements of the last dimension do not lie side by side (C3)
buffer.func @store_c3 {
^bb0(%x : !buffer.ref<[4, 8] x f32, [1, 4]>):
  %v = "test.op"() : () -> vector<4xf32>
  buffer.store %v, %x <[0, 0]> : vector<4xf32>, !buffer.ref<[4, 8] x f32, [1, 4]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.check_index': one expression is expected (C1)
buffer.func @check_index_c1 {
^bb0(%x : !buffer.ref<[1] x i64>):
  %k = buffer.load %x <[0]> : !buffer.ref<[1] x i64> -> i64
  %i = buffer.check_index %k <[4, 4]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.scratch': its size is not a number, or it is not dense (C1)
buffer.func @scratch_c1 {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %t = buffer.scratch : !buffer.ref<[s0] x f32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.scratch': its size is not a number, or it is not dense (C1)
buffer.func @scratch_c1_strides {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %t = buffer.scratch : !buffer.ref<[4, 8] x f32, [1, 4]>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.scratch': 'used' is one expression (C2)
buffer.func @scratch_c2 {
^bb0(%x : !buffer.ref<[4, s0] x f32>):
  %t = buffer.scratch {used = #core.dims<[s0, 8]>} : !buffer.ref<[4, 8] x f32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.compare': a comparison of vector<8xf32> does not give a mask (C1)
buffer.func @compare_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %m = buffer.compare lt %v, %v : vector<8xf32> -> vector<8xi1>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.convert': unsigned lanes of f32 as f64 (C2)
buffer.func @convert_c2 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %i = buffer.convert unsigned %v : vector<8xf32> -> vector<8xf64>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.compare': unsigned lanes of floats (C2)
buffer.func @compare_c2 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %m = buffer.compare unsigned lt %v, %v : vector<8xf32> -> vector<8xi32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.convert': a conversion keeps the lanes (C1)
buffer.func @convert_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %i = buffer.convert %v : vector<8xf32> -> vector<4xi32>
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.reduce': the result does not have the type of a lane (C1)
buffer.func @reduce_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %v = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %s = buffer.reduce add %v : vector<8xf32> -> f64
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.func': a part is not told by n (C4)
buffer.func @func_c4 {
^bb0(%x : !buffer.ref<[8] x f32>):
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<0>, parallel}

// -----

// CHECK: op 'buffer.call': multiply_adds is #core.dims<[1, 2]>, not one expression (C1)
buffer.func @call_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  buffer.call @k(%x) <[]> : (!buffer.ref<[8] x f32>) {multiply_adds = #core.dims<[1, 2]>}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.mark': 4 of 5 properties of a slot are missing (C1)
buffer.func @mark_c1 {
  buffer.mark {slot = #builtin.int<3>}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.mark': 5 of 5 properties of a slot are missing (C1)
buffer.func @mark_c1_without_slot {
  buffer.mark {schedule = ""}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.mark': bytes is #core.dims<[]>, not one expression (C2)
buffer.func @mark_c2 {
  buffer.mark {slot = #builtin.int<0>, kernel = "k", nodes = [], shapes = "", bytes = #core.dims<[]>}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.mark': a negative slot (C2)
buffer.func @mark_c2_slot {
  buffer.mark {slot = #builtin.int<-1>, kernel = "k", nodes = [], shapes = "", bytes = #core.dims<[8]>}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.entry': 3 names for 2 buffers (C1)
buffer.entry ["x"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[8] x f32>, %y : !buffer.ref<[8] x f32>):
  buffer.return
}

// -----

// CHECK: op 'buffer.entry': expected a buffer, got f32 (C1)
buffer.entry ["x"] -> [] {
^bb0(%x : f32):
  buffer.return
}

// -----

// CHECK: op 'buffer.entry': the function does not end with buffer.return (C2)
buffer.entry ["x"] -> [] {
^bb0(%x : !buffer.ref<[8] x f32>):
  buffer.barrier
}

// -----

// CHECK: op 'buffer.entry': the module has 2 entry functions (C3)
buffer.entry [] -> [] {
  buffer.return
}
buffer.entry [] -> [] {
  buffer.return
}

// -----

// CHECK: op 'buffer.entry': a workspace of #core.dims<[n * 64]> bytes (C4)
buffer.entry ["x"] -> [] {
^bb0(%x : !buffer.ref<[m] x f32>):
  buffer.return
} {workspace = #core.dims<[n * 64]>}

// -----

// CHECK: op 'buffer.entry': a workspace of #core.dims<[64, 64]> bytes (C4)
buffer.entry [] -> [] {
  buffer.return
} {workspace = #core.dims<[64, 64]>}

// -----

// CHECK: op 'buffer.entry': live is negative (C5)
buffer.entry [] -> [] {
  buffer.return
} {weights = #builtin.int<64>, live = #builtin.int<-1>}

// -----

// CHECK: op 'buffer.entry': threads share it, but it takes no pool (C6)
buffer.entry [] -> [] {
  buffer.return
} {parallel}

// -----

// CHECK: op 'buffer.entry': the slots are [0, 0], not numbers from 0 in order (C7)
buffer.entry [] -> [] {
  buffer.mark
  buffer.mark {slot = #builtin.int<0>, kernel = "k", nodes = [], shapes = "", bytes = #core.dims<[8]>}
  buffer.mark {slot = #builtin.int<0>, kernel = "k", nodes = [], shapes = "", bytes = #core.dims<[8]>}
  buffer.return
} {profile}

// -----

// CHECK: op 'buffer.entry': there are marks without a profile (C7)
buffer.entry [] -> [] {
  buffer.mark
  buffer.return
}

// -----

// CHECK: op 'buffer.entry': [('s', 't')] are no states (C8)
buffer.entry ["x"] -> ["t"] {
^bb0(%x : !buffer.ref<[4] x f32>, %t : !buffer.ref<[4] x f32>):
  buffer.return
} {states = [["s", "t", unit]]}

// -----

// CHECK: op 'buffer.entry': a state does not remain a !buffer.ref<[4] x f32> (C8)
buffer.entry ["s"] -> ["t"] {
^bb0(%s : !buffer.ref<[3] x f32>, %t : !buffer.ref<[4] x f32>):
  buffer.return
} {states = [["s", "t", unit]]}

// -----

// CHECK: op 'buffer.entry': 2 for 1 inputs (C9)
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[4] x f32>, %y : !buffer.ref<[4] x f32>):
  buffer.return
} {defaults = [unit, unit]}

// -----

// CHECK: op 'buffer.kernel': expected a tensor, got !buffer.ref<[4] x f32> (C1)
buffer.kernel @kernel_c1 {
^bb0(%x : !buffer.ref<[4] x f32>):
  %y = core.constant dense<1.0> : tensor<4xf32>
  core.yield %y : tensor<4xf32>
}

// -----

// CHECK: op 'buffer.kernel': expected a tensor, got tensor<*xf32> (C1)
buffer.kernel @kernel_c1_rank {
^bb0(%x : tensor<*xf32>):
  core.yield %x : tensor<*xf32>
}

// -----

// CHECK: op 'buffer.kernel': the region does not end with core.yield (C2)
buffer.kernel @kernel_c2_end {
^bb0(%x : tensor<4xf32>):
  buffer.return
}

// -----

// CHECK: op 'buffer.kernel': a kernel cannot yield f32 (C2)
buffer.kernel @kernel_c2_value {
  %y = arith.constant 1.0 : f32
  core.yield %y : f32
}

// -----

// CHECK: op 'buffer.kernel': layouts of ranks [2] for values of ranks [2, 2] (C3)
buffer.kernel @kernel_c3 {
^bb0(%x : tensor<4x4xf32>):
  core.yield %x : tensor<4x4xf32>
} {layouts = [#core.layout<1, 0>]}

// -----

// CHECK: op 'buffer.kernel': core.kernel has a region; a kernel is straight-line (C4)
buffer.kernel @kernel_c4 {
^bb0(%x : tensor<4xf32>):
  %y = core.kernel @inner (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a : tensor<4xf32>):
    core.yield %a : tensor<4xf32>
  }
  core.yield %y : tensor<4xf32>
}

// -----

// CHECK: op 'buffer.kernel': input 1 of 1 is to be asked for ahead (C5)
buffer.kernel @kernel_c5 {
^bb0(%x : tensor<4xf32>):
  core.yield %x : tensor<4xf32>
} {schedule = #core.schedule<direct, prefetch 1>}

// -----

// CHECK: op 'buffer.kernel': argument 1 of 1 is said to be constant (C6)
buffer.kernel @kernel_c6 {
^bb0(%x : tensor<4xf32>):
  core.yield %x : tensor<4xf32>
} {constants = array<i64: 0, 1>}

// -----

// CHECK: op 'buffer.kernel': input 1 has not the type of the only result (C7)
buffer.kernel @kernel_c7_number {
^bb0(%x : tensor<4xf32>):
  core.yield %x : tensor<4xf32>
} {in_place = #builtin.int<1>}

// -----

// CHECK: op 'buffer.kernel': input 0 has not the type of the only result (C7)
buffer.kernel @kernel_c7_type {
^bb0(%x : tensor<4xf32>):
  %y = core.cast %x to f64 : (tensor<4xf32>) -> tensor<4xf64>
  core.yield %y : tensor<4xf64>
} {in_place = #builtin.int<0>}

// -----

// CHECK: op 'buffer.kernel': #core.layout<1, 0> cannot take the place of #core.layout<0, 1> (C7)
buffer.kernel @kernel_c7_layout {
^bb0(%x : tensor<4x4xf32>):
  core.yield %x : tensor<4x4xf32>
} {layouts = [#core.layout<0, 1>, #core.layout<1, 0>], in_place = #builtin.int<0>}

// -----

// CHECK: op 'buffer.open_output': the buffer is no output of the entry function around the op (C1)
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[n] x f32>, %y : !buffer.ref<[n] x f32>):
  buffer.open_output %x : !buffer.ref<[n] x f32>
  buffer.return
}

// -----

// CHECK: op 'buffer.open_output': the buffer is no output of the entry function around the op (C1)
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[n] x f32>, %y : !buffer.ref<[n] x f32>):
  buffer.once {
    buffer.open_output %y : !buffer.ref<[n] x f32>
    buffer.yield
  }
  buffer.return
}

// -----

// CHECK: op 'buffer.dot_pairs': parts of f32 (C1)
buffer.func @dot_pairs_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %b = buffer.dot_pairs %a, %a, %a : vector<8xf32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: Expected attribute i32 but got vector<8xi32>
buffer.func @add_bytes_of_lanes {
^bb0(%x : !buffer.ref<[8] x i32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x i32> -> vector<8xi32>
  %b = "buffer.add_bytes"(%a, %a) : (vector<8xi32>, vector<8xi32>) -> vector<8xi32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.load': i32 as a word of i16 (C7)
buffer.func @word_c7 {
^bb0(%x : !buffer.ref<[8] x i16>):
  %a = buffer.load %x <[0]> word : !buffer.ref<[8] x i16> -> i32
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.load': vector<4xi32> as a word of i8 (C7)
buffer.func @repeated_c7 {
^bb0(%x : !buffer.ref<[8] x i8>):
  %a = buffer.load %x <[0]> word : !buffer.ref<[8] x i8> -> vector<4xi32> {repeat = #builtin.int<2>}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.load': the bytes of a word do not lie side by side (C7)
buffer.func @apart_c7 {
^bb0(%x : !buffer.ref<[8] x i8, [2]>):
  %a = buffer.load %x <[0]> word : !buffer.ref<[8] x i8, [2]> -> i32
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.dot_small_quads': parts of f32 (C1)
buffer.func @dot_small_quads_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %b = buffer.dot_small_quads %a, %a, %a : vector<8xf32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.dot_quads': parts of f32 (C1)
buffer.func @dot_quads_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %b = buffer.dot_quads %a, %a, %a : vector<8xf32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.widen_pairs': pairs of bytes of vector<8xi8> as vector<8xi32> (C1)
buffer.func @widen_pairs_c1 {
^bb0(%x : !buffer.ref<[8] x i8>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x i8> -> vector<8xi8>
  %b = buffer.widen_pairs %a : vector<8xi8> -> vector<8xi32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.multiply_high': a quotient of f32 (C1)
buffer.func @multiply_high_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %b = buffer.multiply_high %a, %a : vector<8xf32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.divide_by_power': a quotient of f32 (C1)
buffer.func @divide_by_power_c1 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32>
  %b = buffer.divide_by_power %a, %a : vector<8xf32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.divide_by_power': halves go up (C2)
buffer.func @divide_by_power_c2 {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xi32>
  %b = buffer.divide_by_power up %a, %a : vector<8xi32>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.look_up': !buffer.ref<[255] x i8> is no table of all bytes (C1)
buffer.func @look_up_c1 {
^bb0(%t : !buffer.ref<[255] x i8>):
  %a = buffer.load %t <[0]> : !buffer.ref<[255] x i8> -> vector<8xi8>
  %b = buffer.look_up %a, %t : vector<8xi8>, !buffer.ref<[255] x i8>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.look_up': !buffer.ref<[256] x f16> is no table of all bytes (C1)
buffer.func @look_up_c1_of_halves {
^bb0(%x : !buffer.ref<[8] x i8>, %t : !buffer.ref<[256] x f16>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x i8> -> vector<8xi8>
  %b = buffer.look_up %a, %t : vector<8xi8>, !buffer.ref<[256] x f16>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.look_up': vector<8xi32> is no vector of bytes (C2)
buffer.func @look_up_c2 {
^bb0(%x : !buffer.ref<[8] x i32>, %t : !buffer.ref<[256] x i8>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x i32> -> vector<8xi32>
  %b = buffer.look_up %a, %t : vector<8xi32>, !buffer.ref<[256] x i8>
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.load': 8 lanes do not repeat elements 3 times (C6)
buffer.func @load_c6_of_three {
^bb0(%x : !buffer.ref<[8] x f32>):
  %a = buffer.load %x <[0]> : !buffer.ref<[8] x f32> -> vector<8xf32> {repeat = #builtin.int<3>}
  buffer.return
} {symbols = [], outputs = #builtin.int<0>}

// -----

// CHECK: op 'buffer.dot_tiles': factors are no such words (C1)
buffer.func @dot_tiles_c1_of_floats {
^bb0(%x: !buffer.ref<[64, 48] x f32>, %w: !buffer.ref<[48, 8] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %x, %w, %t <[0, 0, 0, 0, 32, 8, 48]> packed unsigned_left : !buffer.ref<[64, 48] x f32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': factors are no such words (C1)
buffer.func @dot_tiles_c1_of_pairs {
^bb0(%x: !buffer.ref<[64, 48] x i32>, %w: !buffer.ref<[48, 8] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %x, %w, %t <[0, 0, 0, 0, 32, 8, 48]> packed pairs : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': 6 numbers for matrices of ranks [2, 2] (C2)
buffer.func @dot_tiles_c2 {
^bb0(%x: !buffer.ref<[64, 48] x i32>, %w: !buffer.ref<[48, 8] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %x, %w, %t <[0, 0, 0, 32, 8, 48]> packed unsigned_left : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': 'd0' has no operand (C3)
buffer.func @dot_tiles_c3 {
^bb0(%x: !buffer.ref<[64, 48] x i32>, %w: !buffer.ref<[48, 8] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %x, %w, %t <[d0, 0, 0, 0, 32, 8, 48]> packed unsigned_left : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': elements of a row lie apart (C4)
buffer.func @dot_tiles_c4 {
^bb0(%x: !buffer.ref<[64, 48] x i32>, %w: !buffer.ref<[48, 8] x i32, [1, 48]>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %x, %w, %t <[0, 0, 0, 0, 32, 8, 48]> packed unsigned_left : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32, [1, 48]>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': !buffer.ref<[32, 33] x i32> is no such buffer (C5)
buffer.func @dot_tiles_c5 {
^bb0(%x: !buffer.ref<[64, 48] x i32>, %w: !buffer.ref<[48, 8] x i32>, %t: !buffer.ref<[32, 33] x i32>):
  buffer.dot_tiles %x, %w, %t <[0, 0, 0, 0, 32, 8, 48]> packed unsigned_left : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 33] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': 34 words (C6)
buffer.func @dot_tiles_c6 {
^bb0(%x: !buffer.ref<[64, 48] x i32>, %w: !buffer.ref<[48, 8] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %x, %w, %t <[0, 0, 0, 0, 32, 8, 34]> packed unsigned_left : !buffer.ref<[64, 48] x i32>, !buffer.ref<[48, 8] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': !buffer.ref<[2, 2, 32, 12] x i32> is not in tiles (C7)
buffer.func @dot_tiles_c7 {
^bb0(%x: !buffer.ref<[2, 2, 32, 12] x i32>, %w: !buffer.ref<[32, 8] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %x, %w, %t <[0, 0, 0, 0, 0, 0, 32, 8, 32]> tiled packed unsigned_left : !buffer.ref<[2, 2, 32, 12] x i32>, !buffer.ref<[32, 8] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': places along 2 dimensions (C8)
buffer.func @dot_tiles_c8_places {
^bb0(%w: !buffer.ref<[32, 32] x i32>, %x: !buffer.ref<[16, 6, 20] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %w, %x, %t <[0, 0, 0, 0, 0, 32, 8, 32]> packed unsigned_right {axis = 0 : i64, taps = array<i64: 0, 0, 0, 1>, across = array<i64: 1>} : !buffer.ref<[32, 32] x i32>, !buffer.ref<[16, 6, 20] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': parts are not equal (C8)
buffer.func @dot_tiles_c8_parts {
^bb0(%w: !buffer.ref<[32, 32] x i32>, %x: !buffer.ref<[16, 6, 20] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %w, %x, %t <[0, 0, 0, 0, 0, 32, 8, 32]> packed unsigned_right {axis = 0 : i64, taps = array<i64: 0, 0, 0, 1, 0, 2>, across = array<i64: 1, 0>} : !buffer.ref<[32, 32] x i32>, !buffer.ref<[16, 6, 20] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.dot_tiles': parts are not equal (C8)
buffer.func @dot_tiles_c8_halves {
^bb0(%w: !buffer.ref<[32, 32] x i32>, %x: !buffer.ref<[16, 6, 20] x i32>, %t: !buffer.ref<[32, 32] x i32>):
  buffer.dot_tiles %w, %x, %t <[0, 0, 0, 0, 0, 32, 7, 32]> packed unsigned_right {axis = 0 : i64, taps = array<i64: 0, 0, 0, 1>, across = array<i64: 1, 0>} : !buffer.ref<[32, 32] x i32>, !buffer.ref<[16, 6, 20] x i32>, !buffer.ref<[32, 32] x i32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.invoke': !buffer.ref<[4, 8] x f32, [16, 1]> has gaps (C1)
buffer.func @invoke_c1 {
^bb0(%x : !buffer.ref<[4, 8] x f32, [16, 1]>, %y : !buffer.ref<[4, 8] x f32>):
  buffer.invoke "com.acme.SoftClip"(%x) into(%y) {alpha = 0.5 : f64} : !buffer.ref<[4, 8] x f32, [16, 1]> -> !buffer.ref<[4, 8] x f32>
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

// -----

// CHECK: op 'buffer.pair_halves': halves of vector<8xf32> as vector<4xi32> (C1)
func.func @pair_halves_c1(%x : vector<8xf32>) {
  %r = "buffer.pair_halves"(%x, %x) : (vector<8xf32>, vector<8xf32>) -> vector<4xi32>
  func.return
}

// -----

// CHECK: op 'buffer.dot_halves': halves of vector<8xi32> in vector<4xf32> (C1)
func.func @dot_halves_c1(%x : vector<8xi32>, %t : vector<4xf32>) {
  %r = buffer.dot_halves %x, %x, %t : vector<8xi32>, vector<4xf32>
  func.return
}
