// RUN: opt-tool %s --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,parallelize{worth=0}' --split-input-file | filecheck %s

// Threads share the parts of the outermost loop, and nobody reads on before all have finished.
// There is nothing to wait for behind the last one.

// CHECK-LABEL: buffer.func @exp_0
// CHECK: buffer.for <[(s0 * 10) floordiv s1, (s0 * 10 + 10) floordiv s1, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: math.exp %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-LABEL: buffer.entry
// CHECK: buffer.share {
// CHECK-NEXT: buffer.call @exp_0(%{{.*}}) <[part.number, part.count]>
// CHECK-NEXT: buffer.yield
// CHECK-NEXT: }
// CHECK-NEXT: buffer.barrier
// CHECK: buffer.call @softmax_0(%{{.*}}) <[part.number, part.count]>
// CHECK-NOT: buffer.barrier
// CHECK: buffer.return
func.func @main(%x: tensor<10x3xf32>) -> tensor<10x3xf32> {
  %y = core.exp %x : (tensor<10x3xf32>) -> tensor<10x3xf32>
  %z = core.softmax %y axis 1 : (tensor<10x3xf32>) -> tensor<10x3xf32>
  func.return %z : tensor<10x3xf32>
}

// -----

// Two kernels that read the same and write different things need not wait for each other; the one
// that reads both of them does.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @softmax
// CHECK-NOT:     buffer.barrier
// CHECK:         buffer.call @softmax
// CHECK:         }
// CHECK-NEXT:    buffer.barrier
// CHECK:         buffer.call @matmul
// CHECK-NOT:     buffer.barrier
// CHECK:         buffer.return
func.func @main(%x: tensor<9x9xf32>) -> tensor<9x9xf32> {
  %a = core.softmax %x axis 0 : (tensor<9x9xf32>) -> tensor<9x9xf32>
  %b = core.softmax %x axis 1 : (tensor<9x9xf32>) -> tensor<9x9xf32>
  %c = core.matmul %a, %b : (tensor<9x9xf32>, tensor<9x9xf32>) -> tensor<9x9xf32>
  func.return %c : tensor<9x9xf32>
}

// -----

// The remainder of a tiled loop is a loop of its own: each is split, in whole steps, and where the
// one gives the last thread more, the other gives it to the first.
// CHECK-LABEL: buffer.func @tiled
// CHECK:         buffer.for <[((s0 * 3) floordiv s1) * 4, ((s0 * 3 + 3) floordiv s1) * 4, 4]>
// CHECK:         buffer.for <[(s0 + s1 - 1) floordiv s1 + 12, (s0 + s1) floordiv s1 + 12, 1]>
// CHECK:         {parallel
buffer.func @tiled {
^bb0(%x : !buffer.ref<[13] x f32>, %y : !buffer.ref<[13] x f32>):
  buffer.for <[0, 12, 4]> {
  ^bb1(%i : index):
    buffer.for <[0, 4, 1]> {
    ^bb2(%j : index):
      %v = buffer.load %x(%i, %j) <[d0 + d1]> : !buffer.ref<[13] x f32> -> f32
      buffer.store %v, %y(%i, %j) <[d0 + d1]> : f32, !buffer.ref<[13] x f32>
      buffer.yield
    } {parallel = false}
    buffer.yield
  } {parallel = true}
  buffer.for <[12, 13, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0]> : !buffer.ref<[13] x f32> -> f32
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[13] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[13] x f32>, %y : !buffer.ref<[13] x f32>):
  buffer.call @tiled(%x, %y) <[]> : (!buffer.ref<[13] x f32>, !buffer.ref<[13] x f32>)
  buffer.return
}

// -----

// The last vector overlaps the one before, so that one loop has to run after the other: there is a
// kernel for each, called in order, with the load that only the second one needs. A loop that
// threads do not share is one thread's. What the kernel computes is counted once.
// CHECK-LABEL: buffer.func @overlap
// CHECK-NOT:     buffer.load %{{.*}} <[3]>
// CHECK:         buffer.for <[((s0 * 4) floordiv s1) * 4, min(((s0 * 4 + 4) floordiv s1) * 4, 13), 4]>
// CHECK-NOT:     buffer.for
// CHECK:         {symbols = ["part.number", "part.count"], outputs = #builtin.int<1>, parallel}
// CHECK-LABEL: buffer.func @overlap_rest_2
// CHECK:         %[[V:.*]] = buffer.load %{{.*}} <[3]>
// CHECK-NEXT:    buffer.for <[(s0 * 2) floordiv s1 + 12, (s0 * 2 + 2) floordiv s1 + 12, 1]>
// CHECK:         buffer.store %[[V]]
// CHECK-NOT:     buffer.for
// CHECK-LABEL: buffer.func @overlap_rest_3
// CHECK-NOT:     buffer.load %{{.*}} <[3]>
// CHECK:         buffer.for <[14, 16, 1]>
// CHECK:         parallel = false
// CHECK:         {symbols = [], outputs = #builtin.int<1>}
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.share {
// CHECK-NEXT:      buffer.call @overlap(%{{.*}}, %{{.*}}) <[part.number, part.count]> {{.*}}multiply_adds
// CHECK:         buffer.barrier
// CHECK-NEXT:    buffer.share {
// CHECK-NEXT:      buffer.call @overlap_rest_2(%{{.*}}, %{{.*}}) <[part.number, part.count]>
// CHECK-NOT:       multiply_adds
// CHECK:         buffer.barrier
// CHECK-NEXT:    buffer.once {
// CHECK-NEXT:      buffer.call @overlap_rest_3(%{{.*}}, %{{.*}}) <[]>
// CHECK-NOT:     buffer.call
buffer.func @overlap {
^bb0(%x : !buffer.ref<[16] x f32>, %y : !buffer.ref<[16] x f32>):
  %last = buffer.load %x <[3]> : !buffer.ref<[16] x f32> -> f32
  buffer.for <[0, 13, 4]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0]> : !buffer.ref<[16] x f32> -> f32
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[16] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[12, 14, 1]> {
  ^bb1(%i : index):
    buffer.store %last, %y(%i) <[d0]> : f32, !buffer.ref<[16] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[14, 16, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0]> : !buffer.ref<[16] x f32> -> f32
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[16] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[16] x f32>, %y : !buffer.ref<[16] x f32>):
  buffer.call @overlap(%x, %y) <[]> : (!buffer.ref<[16] x f32>, !buffer.ref<[16] x f32>) {multiply_adds = #core.dims<[16]>}
  buffer.return
}

// -----

// What was loaded before the loops may be what the first of them overwrites: one thread does all.
// CHECK-LABEL: buffer.func @overwritten
// CHECK:         buffer.for <[0, 13, 4]>
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.once
// CHECK:         buffer.call @overwritten(%{{.*}}) <[]>
// CHECK-NOT:     parallel
// CHECK:         takes_pool
buffer.func @overwritten {
^bb0(%x : !buffer.ref<[16] x f32>, %y : !buffer.ref<[16] x f32>):
  %last = buffer.load %y <[3]> : !buffer.ref<[16] x f32> -> f32
  buffer.for <[0, 13, 4]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0]> : !buffer.ref<[16] x f32> -> f32
    buffer.store %v, %y(%i) <[d0]> : f32, !buffer.ref<[16] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[12, 14, 1]> {
  ^bb1(%i : index):
    buffer.store %last, %y(%i) <[d0]> : f32, !buffer.ref<[16] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[16] x f32>, %y : !buffer.ref<[16] x f32>):
  buffer.call @overwritten(%x, %y) <[]> : (!buffer.ref<[16] x f32>, !buffer.ref<[16] x f32>)
  buffer.return
}

// -----

// A vector lies along the last dimension that is not 1: its lanes reach what the second loop stores.
// CHECK-LABEL: buffer.func @lanes
// CHECK:         buffer.for <[0, 1, 1]>
// CHECK-NOT:     buffer.for
// CHECK-LABEL: buffer.func @lanes_rest_2
// CHECK:         buffer.for <[(s0 * 4) floordiv s1 + 5, (s0 * 4 + 4) floordiv s1 + 5, 1]>
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.once {
// CHECK-NEXT:      buffer.call @lanes(
// CHECK:         buffer.barrier
// CHECK-NEXT:    buffer.share {
// CHECK-NEXT:      buffer.call @lanes_rest_2(
buffer.func @lanes {
^bb0(%x : !buffer.ref<[16, 1] x f32>, %y : !buffer.ref<[16, 1] x f32>):
  buffer.for <[0, 1, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[16, 1] x f32> -> vector<16xf32>
    buffer.store %v, %y(%i) <[d0, 0]> : vector<16xf32>, !buffer.ref<[16, 1] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[5, 9, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %x(%i) <[d0, 0]> : !buffer.ref<[16, 1] x f32> -> f32
    buffer.store %v, %y(%i) <[d0, 0]> : f32, !buffer.ref<[16, 1] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[16, 1] x f32>, %y : !buffer.ref<[16, 1] x f32>):
  buffer.call @lanes(%x, %y) <[]> : (!buffer.ref<[16, 1] x f32>, !buffer.ref<[16, 1] x f32>)
  buffer.return
}

// -----

// Rows of a halo and the rows between them, of any number.
// CHECK-LABEL: buffer.func @halo
// CHECK:         buffer.for <[(s0 * s1) floordiv s2 + 1, (s0 * s1 + s0) floordiv s2 + 1, 1]>
buffer.func @halo {
^bb0(%y : !buffer.ref<[s0 + 2, 4] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 4, 1]> {
  ^bb1(%j : index):
    buffer.store %zero, %y(%j) <[0, d0]> : f32, !buffer.ref<[s0 + 2, 4] x f32>
    buffer.store %zero, %y(%j) <[s0 + 1, d0]> : f32, !buffer.ref<[s0 + 2, 4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[1, s0 + 1, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0, 1]> : f32, !buffer.ref<[s0 + 2, 4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["n"], outputs = #builtin.int<1>}

buffer.entry [] -> ["y"] {
^bb0(%y : !buffer.ref<[n + 2, 4] x f32>):
  buffer.call @halo(%y) <[n]> : (!buffer.ref<[n + 2, 4] x f32>)
  buffer.return
}

// -----

// A loop that reads what another one writes runs after it.
// CHECK-LABEL: buffer.func @chain
// CHECK:         buffer.store {{.*}}%y(
// CHECK-NOT:     buffer.for
// CHECK-LABEL: buffer.func @chain_rest_2
// CHECK:         buffer.load %y(
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @chain(%{{.*}}) <[part.number, part.count]>
// CHECK:         buffer.barrier
// CHECK-NEXT:    buffer.share {
// CHECK-NEXT:      buffer.call @chain_rest_2(%{{.*}}) <[part.number, part.count]>
buffer.func @chain {
^bb0(%y : !buffer.ref<[4] x f32>, %z : !buffer.ref<[4] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 4, 1]> {
  ^bb1(%j : index):
    buffer.store %zero, %y(%j) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    %v = buffer.load %y(%i) <[-d0 + 3]> : !buffer.ref<[4] x f32> -> f32
    buffer.store %v, %z(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<2>}

buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[4] x f32>, %z : !buffer.ref<[4] x f32>):
  buffer.call @chain(%y, %z) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
  buffer.return
}

// -----

// A loop in which nothing is shared: the first thread runs all of it, and what follows and is not
// shared, together with the buffers that nobody else needs.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.share
// CHECK:         }
// CHECK-NEXT:    buffer.barrier
// CHECK-NEXT:    buffer.once {
// CHECK-NEXT:      %{{.*}} = buffer.alloc
// CHECK-NEXT:      %{{.*}} = buffer.alloc
// CHECK-NEXT:      buffer.copy
// CHECK-NEXT:      %{{.*}} = buffer.loop
// CHECK-NOT:       buffer.once
// CHECK:             buffer.copy
// CHECK-NEXT:        buffer.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      buffer.copy
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    buffer.return
func.func @main(%x: tensor<10xf32>, %trips: tensor<i64>) -> tensor<10xf32> {
  %y = core.exp %x : (tensor<10xf32>) -> tensor<10xf32>
  %z = core.loop trip %trips : tensor<i64> carry %y : tensor<10xf32> -> tensor<10xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<10xf32>):
    core.yield %v : tensor<10xf32>
  }
  func.return %z : tensor<10xf32>
}

// -----

// All threads need the number of iterations for what they share behind the loop.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.once
// CHECK-NEXT:      buffer.copy
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NOT:     buffer.once
// CHECK:         buffer.loop
// CHECK:           buffer.once
// CHECK-NEXT:        buffer.copy
// CHECK:           buffer.barrier
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.share
buffer.func @fill {
^bb0(%y : !buffer.ref<[8] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, s0, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = ["count"], outputs = #builtin.int<1>}

buffer.entry ["x", "trips"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[] x i1>, %trips : !buffer.ref<[] x i64>, %y : !buffer.ref<[] x i1>, %z : !buffer.ref<[8] x f32>):
  %w = buffer.alloc {dynamic = false} : !buffer.ref<[] x i1>
  buffer.copy %x, %w : !buffer.ref<[] x i1>, !buffer.ref<[] x i1>
  buffer.loop trip %trips : !buffer.ref<[] x i64> {
    buffer.copy %w, %y : !buffer.ref<[] x i1>, !buffer.ref<[] x i1>
    buffer.yield
  } {count = "n"}
  buffer.call @fill(%z) <[n]> : (!buffer.ref<[8] x f32>)
  buffer.return
}

// -----

// One thread would leave the entry function without the others.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.once
// CHECK:         buffer.loop
// CHECK-NOT:       buffer.once
// CHECK:           buffer.require
// CHECK-NEXT:      buffer.once
// CHECK-NEXT:        buffer.copy
// CHECK:         buffer.share
buffer.func @fill {
^bb0(%y : !buffer.ref<[8] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x", "trips"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[] x i1>, %trips : !buffer.ref<[] x i64>, %y : !buffer.ref<[] x i1>, %z : !buffer.ref<[8] x f32>):
  buffer.loop trip %trips : !buffer.ref<[] x i64> {
    buffer.require <[k]> le <[5]>
    buffer.copy %x, %y : !buffer.ref<[] x i1>, !buffer.ref<[] x i1>
    buffer.yield
  } {iteration = "k"}
  buffer.call @fill(%z) <[]> : (!buffer.ref<[8] x f32>)
  buffer.return
}

// -----

// All have read the condition before the first thread overwrites it, and it has done so before they
// read it again.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.loop
// CHECK:           buffer.barrier
// CHECK-NEXT:      buffer.once
// CHECK:           buffer.share
// CHECK:           buffer.barrier
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    buffer.return
buffer.func @fill {
^bb0(%y : !buffer.ref<[8] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 8, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0]> : f32, !buffer.ref<[8] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry ["x"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[] x i1>, %y : !buffer.ref<[] x i1>, %z : !buffer.ref<[8] x f32>):
  buffer.loop cond %y : !buffer.ref<[] x i1> {
    buffer.copy %x, %y : !buffer.ref<[] x i1>, !buffer.ref<[] x i1>
    buffer.call @fill(%z) <[]> : (!buffer.ref<[8] x f32>)
    buffer.yield
  }
  buffer.return
}

// -----

// Several tiles, each written out as a loop of one iteration: they are dealt out. A single one is not.
// CHECK-LABEL: buffer.func @tiles
// CHECK:         buffer.for <[s0 floordiv s1, (s0 + 1) floordiv s1, 1]>
// CHECK:         buffer.for <[(s0 + s1 - 1) floordiv s1, (s0 + s1) floordiv s1, 1]>
// CHECK-LABEL: buffer.func @tile
// CHECK:         buffer.for <[0, 1, 1]>
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @tiles({{.*}}) <[part.number, part.count]>
// CHECK:         buffer.call @tile({{.*}}) <[]>
buffer.func @tiles {
^bb0(%y : !buffer.ref<[2] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 1, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0]> : f32, !buffer.ref<[2] x f32>
    buffer.yield
  } {parallel = true}
  buffer.for <[0, 1, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0 + 1]> : f32, !buffer.ref<[2] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.func @tile {
^bb0(%y : !buffer.ref<[2] x f32>):
  %zero = arith.constant 0.0 : f32
  buffer.for <[0, 1, 1]> {
  ^bb1(%i : index):
    buffer.store %zero, %y(%i) <[d0]> : f32, !buffer.ref<[2] x f32>
    buffer.yield
  } {parallel = true}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}

buffer.entry [] -> ["y", "z"] {
^bb0(%y : !buffer.ref<[2] x f32>, %z : !buffer.ref<[2] x f32>):
  buffer.call @tiles(%y) <[]> : (!buffer.ref<[2] x f32>)
  buffer.call @tile(%z) <[]> : (!buffer.ref<[2] x f32>)
  buffer.return
}
