// RUN: opt-tool %s --for-target=x86-64-zen4 --threads=2 --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,parallelize{worth=0}' --split-input-file | filecheck %s

// Each thread has written some rows. It reads them again if threads share rows, and not channels.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK:       buffer.for <[(s0 * 26) floordiv s1, (s0 * 26 + 26) floordiv s1, 1]>
// CHECK-LABEL: buffer.func @add_0
// CHECK:       buffer.for <[0, 4, 1]> {
// CHECK:         buffer.for <[(s0 * 26) floordiv s1, (s0 * 26 + 26) floordiv s1, 1]>
func.func @main(%x: tensor<4x26x16xf32>, %z: tensor<4x26x16xf32>) -> tensor<4x26x16xf32> {
  %y = core.reduce sum %x [0] : (tensor<4x26x16xf32>) -> tensor<26x16xf32>
  %r = core.add %y, %z : (tensor<26x16xf32>, tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  func.return %r : tensor<4x26x16xf32>
}

// -----

// What was given to the network is as far from one thread as from the other.
// CHECK-LABEL: buffer.func @add_0
// CHECK:       buffer.for <[(s0 * 4) floordiv s1, (s0 * 4 + 4) floordiv s1, 1]> {
// CHECK:         buffer.for <[0, 26, 1]>
func.func @main(%x: tensor<4x26x16xf32>, %z: tensor<4x26x16xf32>) -> tensor<4x26x16xf32> {
  %r = core.add %x, %z : (tensor<4x26x16xf32>, tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  func.return %r : tensor<4x26x16xf32>
}

// -----

// Of two things that it reads the larger one counts, which was shared by channels.
// CHECK-LABEL: buffer.func @add_0
// CHECK:       buffer.for <[(s0 * 4) floordiv s1, (s0 * 4 + 4) floordiv s1, 1]> {
// CHECK:         buffer.for <[0, 26, 1]>
func.func @main(%x: tensor<4x26x16xf32>, %z: tensor<4x26x16xf32>) -> (tensor<4x26x16xf32>, tensor<4x26x16xf32>) {
  %y = core.reduce sum %x [0] : (tensor<4x26x16xf32>) -> tensor<26x16xf32>
  %s = core.softmax %z axis 2 : (tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  %r = core.add %y, %s : (tensor<26x16xf32>, tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  func.return %r, %s : tensor<4x26x16xf32>, tensor<4x26x16xf32>
}

// -----

// What is added next to the rows that a loop stores is stored by the thread that stores these, and
// not by the one that begins with the other channels.
// CHECK-LABEL: buffer.func @bordered
// CHECK:       buffer.for <[(s0 * 25) floordiv s1, (s0 * 25 + 25) floordiv s1, 1]>
// CHECK:       buffer.for <[0, 4, 1]> {
// CHECK:         buffer.for <[(s0 * 25 + s1 - 1) floordiv s1, (s0 * 25 + s1 + 24) floordiv s1, 1]>
buffer.func @bordered {
^bb0(%x : !buffer.ref<[25, 4, 48] x f32>, %y : !buffer.ref<[4, 25, 50] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 25, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%j : index):
      buffer.for <[0, 48, 1]> {
      ^bb3(%k : index):
        %v = buffer.load %x(%i, %j, %k) <[d0, d1, d2]> : !buffer.ref<[25, 4, 48] x f32> -> f32
        buffer.store %v, %y(%i, %j, %k) <[d1, d0, d2 + 1]> : f32, !buffer.ref<[4, 25, 50] x f32>
        buffer.yield
      } {parallel = false}
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 4, 1]> {
  ^bb1(%j : index):
    buffer.for <[0, 25, 1]> {
    ^bb2(%i : index):
      buffer.store %zero, %y(%i, %j) <[d1, d0, 0]> : f32, !buffer.ref<[4, 25, 50] x f32> {border}
      buffer.yield
    } {parallel = false, label = "rows"}
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[25, 4, 48] x f32>, %y : !buffer.ref<[4, 25, 50] x f32>):
  buffer.call @bordered(%x, %y) <[]> : (!buffer.ref<[25, 4, 48] x f32>, !buffer.ref<[4, 25, 50] x f32>)
  buffer.return
}

// -----

// The last columns of all rows are apart from the tiles before them, though not in a single index:
// both are parts of one kernel, which nobody waits in.
// CHECK-LABEL: buffer.func @columns
// CHECK:       buffer.for <[(s0 * 8) floordiv s1, (s0 * 8 + 8) floordiv s1, 1]>
// CHECK:       buffer.for <[(s0 * 2) floordiv s1, (s0 * 2 + 2) floordiv s1, 1]>
// CHECK-NOT:   buffer.func
buffer.func @columns {
^bb0(%y : !buffer.ref<[1000] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 2, 1]> {
    ^bb2(%j : index):
      buffer.store %zero, %y(%i, %j) <[d0 * 14 + d1 * 125]> : f32, !buffer.ref<[1000] x f32>
      buffer.store %zero, %y(%i, %j) <[d0 * 14 + d1 * 125 + 13]> : f32, !buffer.ref<[1000] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 2, 1]> {
  ^bb1(%j : index):
    buffer.store %zero, %y(%j) <[d0 * 125 + 112]> : f32, !buffer.ref<[1000] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[1000] x f32>):
  buffer.call @columns(%y) <[]> : (!buffer.ref<[1000] x f32>)
  buffer.return
}

// -----

// One column nearer, they meet.
// CHECK-LABEL: buffer.func @columns_that_meet
// CHECK:       buffer.func @columns_that_meet_rest_2
buffer.func @columns_that_meet {
^bb0(%y : !buffer.ref<[1000] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.for <[0, 2, 1]> {
    ^bb2(%j : index):
      buffer.store %zero, %y(%i, %j) <[d0 * 14 + d1 * 125]> : f32, !buffer.ref<[1000] x f32>
      buffer.store %zero, %y(%i, %j) <[d0 * 14 + d1 * 125 + 13]> : f32, !buffer.ref<[1000] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 2, 1]> {
  ^bb1(%j : index):
    buffer.store %zero, %y(%j) <[d0 * 125 + 111]> : f32, !buffer.ref<[1000] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[1000] x f32>):
  buffer.call @columns_that_meet(%y) <[]> : (!buffer.ref<[1000] x f32>)
  buffer.return
}
