// RUN: opt-tool %s --pass-pipeline=lower-kernels --split-input-file | filecheck %s

// Maps are one nest over the result; dimensions that are known only at run time are symbols of the
// function.
// CHECK:       buffer.func @maps {
// CHECK-NEXT:  ^bb0(%[[X:.*]]: !buffer.ref<[s0, 3] x f32>, %[[B:.*]]: !buffer.ref<[3] x f32>, %[[Y:.*]]: !buffer.ref<[s0, 3] x f32>):
// CHECK-NEXT:    buffer.for <[0, s0, 1]> {
// CHECK-NEXT:    ^bb0(%[[I:.*]]: index):
// CHECK-NEXT:      buffer.for <[0, 3, 1]> {
// CHECK-NEXT:      ^bb0(%[[J:.*]]: index):
// CHECK-NEXT:        %[[U:.*]] = buffer.load %[[X]](%[[I]], %[[J]]) <[d0, d1]>
// CHECK-NEXT:        %[[V:.*]] = buffer.load %[[B]](%[[J]]) <[d0]>
// CHECK-NEXT:        %[[W:.*]] = arith.addf %[[U]], %[[V]] : f32
// CHECK-NEXT:        %[[N:.*]] = arith.negf %[[W]] : f32
// CHECK-NEXT:        buffer.store %[[N]], %[[Y]](%[[I]], %[[J]]) <[d0, d1]>
// CHECK:         buffer.return
// CHECK-NEXT:  } {symbols = ["n"], outputs = #builtin.int<1>}
buffer.kernel @maps {
^bb0(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, %b : tensor<3xf32>):
  %s = core.add %x, %b : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<3xf32>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %y = core.neg %s : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  core.yield %y : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
} {symbols = ["n"]}

// -----

// The buffers have the dimensions of the layouts. The result has a border, which is set to zero.
// CHECK:       buffer.func @layouts {
// CHECK-NEXT:  ^bb0(%[[X:.*]]: !buffer.ref<[2, 3] x f32>, %[[Y:.*]]: !buffer.ref<[3, 4] x f32>):
// CHECK:         buffer.load %[[X]](%{{.*}}) <[d1, d0]>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, d1 + 1]>
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, d1]> : f32, !buffer.ref<[3, 4] x f32> {border}
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, d1 + 3]> : f32, !buffer.ref<[3, 4] x f32> {border}
buffer.kernel @layouts {
^bb0(%x : tensor<3x2xf32>):
  core.yield %x : tensor<3x2xf32>
} {layouts = [#core.layout<1, 0>, #core.layout<0, 1 pad [0, 1] [0, 1]>]}

// -----

// The strategy that the schedule names builds the loops; here each row is for one thread.
// CHECK:       buffer.func @scheduled {
// CHECK:         buffer.for <[0, 3, 1]> {
// CHECK:           buffer.for <[0, 16, 1]> {
// CHECK:           } {parallel = false, label = "d1"}
// CHECK:         } {parallel = true, label = "d0"}
// CHECK:       } {symbols = [], outputs = #builtin.int<1>, schedule = #core.schedule<row_maps, lanes {d1 = 16}>}
buffer.kernel @scheduled {
^bb0(%x : tensor<3x16xf32>):
  %y = core.neg %x : (tensor<3x16xf32>) -> tensor<3x16xf32>
  core.yield %y : tensor<3x16xf32>
} {schedule = #core.schedule<row_maps, lanes {d1 = 16}>}

// -----

// What changes an argument in place has no buffer for it, and copies nothing.
// CHECK:       buffer.func @in_place {
// CHECK-NEXT:  ^bb0(%[[AT:.*]]: !buffer.ref<[1] x i64>, %[[U:.*]]: !buffer.ref<[1] x f32>, %[[Y:.*]]: !buffer.ref<[8] x f32>):
// CHECK-NOT:     !buffer.ref<[8] x f32> -> f32
// CHECK:         buffer.check_index
// CHECK:         buffer.store %{{.*}}, %[[Y]]
// CHECK-NOT:     buffer.store
// CHECK-LABEL: buffer.func @copied {
// CHECK:         !buffer.ref<[8] x f32> -> f32
// CHECK-COUNT-2: buffer.store
buffer.kernel @in_place {
^bb0(%x : tensor<8xf32>, %at : tensor<1xi64>, %u : tensor<1xf32>):
  %y = core.scatter_elements none %x, %at, %u axis 0 : (tensor<8xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<8xf32>
  core.yield %y : tensor<8xf32>
} {in_place = #builtin.int<0>}
buffer.kernel @copied {
^bb0(%x : tensor<8xf32>, %at : tensor<1xi64>, %u : tensor<1xf32>):
  %y = core.scatter_elements none %x, %at, %u axis 0 : (tensor<8xf32>, tensor<1xi64>, tensor<1xf32>) -> tensor<8xf32>
  core.yield %y : tensor<8xf32>
}

// -----

// Equal loops are one function, whatever the symbols are called and in which order they are
// declared; each call gives its own sizes, in the order of the function.
// CHECK:       buffer.func @first {
// CHECK:       } {symbols = ["m", "n"],
// CHECK-NOT:   @second
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^bb0(%[[X:.*]]: !buffer.ref<[a, b] x f32>, %[[Y:.*]]: !buffer.ref<[a, b] x f32>):
// CHECK-NEXT:    %[[Z:.*]] = buffer.alloc
// CHECK-NEXT:    buffer.call @first(%[[X]], %[[Z]]) <[a, b]>
// CHECK-NEXT:    buffer.call @first(%[[Z]], %[[Y]]) <[a, b]> : {{.*}} {multiply_adds = #core.dims<[7]>}
buffer.kernel @first {
^bb0(%x : tensor<?x?xf32, #core.tensor<dims = [m, n]>>):
  %y = core.neg %x : (tensor<?x?xf32, #core.tensor<dims = [m, n]>>) -> tensor<?x?xf32, #core.tensor<dims = [m, n]>>
  core.yield %y : tensor<?x?xf32, #core.tensor<dims = [m, n]>>
} {symbols = ["n", "m"]}
buffer.kernel @second {
^bb0(%x : tensor<?x?xf32, #core.tensor<dims = [p, q]>>):
  %y = core.neg %x : (tensor<?x?xf32, #core.tensor<dims = [p, q]>>) -> tensor<?x?xf32, #core.tensor<dims = [p, q]>>
  core.yield %y : tensor<?x?xf32, #core.tensor<dims = [p, q]>>
} {symbols = ["p", "q"]}
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[a, b] x f32>, %y : !buffer.ref<[a, b] x f32>):
  %z = buffer.alloc {dynamic = false} : !buffer.ref<[a, b] x f32>
  buffer.call @first(%x, %z) <[b, a]> : (!buffer.ref<[a, b] x f32>, !buffer.ref<[a, b] x f32>)
  buffer.call @second(%z, %y) <[a, b]> : (!buffer.ref<[a, b] x f32>, !buffer.ref<[a, b] x f32>) {multiply_adds = #core.dims<[7]>}
  buffer.return
}

// -----

// The status is looked at after a kernel that reads at indices from data, in control flow, too; not
// after the nearest miss, whose indices are numbers.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.once {
// CHECK-NEXT:      buffer.call @gather
// CHECK-NEXT:      buffer.check_status
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.call @slice
// CHECK-NOT:     buffer.check_status
buffer.kernel @gather {
^bb0(%x : tensor<4xf32>, %at : tensor<2xi64>):
  %y = core.gather %x, %at axis 0 : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  core.yield %y : tensor<2xf32>
}
buffer.kernel @slice {
^bb0(%x : tensor<4xf32>):
  %y = core.slice %x [1] [2] [1] : (tensor<4xf32>) -> tensor<2xf32>
  core.yield %y : tensor<2xf32>
}
buffer.entry ["x", "at"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[4] x f32>, %at : !buffer.ref<[2] x i64>, %y : !buffer.ref<[2] x f32>, %z : !buffer.ref<[2] x f32>):
  buffer.once {
    buffer.call @gather(%x, %at, %y) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[2] x i64>, !buffer.ref<[2] x f32>)
    buffer.yield
  }
  buffer.call @slice(%x, %z) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[2] x f32>)
  buffer.return
}

// -----

// Functions that ask for workspace, here for transformed inputs and products, get it from each call.
// CHECK:       buffer.func @winograd {
// CHECK:       } {symbols = [], outputs = #builtin.int<3>,
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^bb0(%[[X:.*]]: !buffer.ref<[1, 1, 10, 10, 16] x f32>, %[[W:.*]]: !buffer.ref<[6, 6, 1, 16, 16] x f32>, %[[Y:.*]]: !buffer.ref<[1, 1, 8, 8, 16] x f32>):
// CHECK-NEXT:    %[[A:.*]] = buffer.alloc {dynamic = false}
// CHECK-NEXT:    %[[B:.*]] = buffer.alloc {dynamic = false}
// CHECK-NEXT:    buffer.call @winograd(%[[X]], %[[W]], %[[Y]], %[[A]], %[[B]]) <[]>
// CHECK-NEXT:    buffer.return
buffer.kernel @winograd {
^bb0(%x : tensor<1x16x8x8xf32>, %w : tensor<16x16x3x3xf32>):
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x8x8xf32>
  core.yield %y : tensor<1x16x8x8xf32>
} {constants = array<i64: 1>, layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<2, 3, 0/16, 1, 0 mod 16 winograd 4>, #core.layout<0, 1/16, 2, 3, 1 mod 16>], schedule = #core.schedule<winograd, tile {tile = 2, oc = 1}, order [v0, v1, oc, tile], prefetch 1, size = 4, group = 4, parts = 1>}
buffer.entry ["x", "w"] -> ["y"] {
^bb0(%x : !buffer.ref<[1, 1, 10, 10, 16] x f32>, %w : !buffer.ref<[6, 6, 1, 16, 16] x f32>, %y : !buffer.ref<[1, 1, 8, 8, 16] x f32>):
  buffer.call @winograd(%x, %w, %y) <[]> : (!buffer.ref<[1, 1, 10, 10, 16] x f32>, !buffer.ref<[6, 6, 1, 16, 16] x f32>, !buffer.ref<[1, 1, 8, 8, 16] x f32>)
  buffer.return
}
