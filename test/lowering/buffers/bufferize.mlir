// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize --split-input-file | filecheck %s

// A reshape is a view, through which the kernel before it writes to the output; equal kernels are one,
// and its ops are as they were.
// CHECK:       buffer.kernel @neg_0 {
// CHECK-NEXT:  ^bb0(%[[X:.*]]: tensor<2x3xf32>):
// CHECK-NEXT:    %[[Y:.*]] = core.neg %[[X]] : (tensor<2x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT:    core.yield %[[Y]] : tensor<2x3xf32>
// CHECK-NEXT:  }
// CHECK-NEXT:  buffer.kernel @softmax_0 {
// CHECK-NOT:   buffer.kernel
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %a = core.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = core.softmax %a axis 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = core.softmax %e axis 1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = core.reshape %s [6] : (tensor<2x3xf32>) -> tensor<6xf32>
  // CHECK:      %[[V:.*]] = buffer.view {{.*}} : !buffer.ref<[6] x f32> -> !buffer.ref<[2, 3] x f32>
  // CHECK:      buffer.call @softmax_0
  // CHECK:      buffer.call @softmax_0(%{{.*}}, %[[V]])
  // CHECK-NEXT: buffer.return
  func.return %r : tensor<6xf32>
}

// -----

// The number of an iteration, which two loops ask for, is given by one kernel.
// CHECK:       buffer.kernel @iteration {
// CHECK:         core.from_dims [i] shape []
// CHECK:       } {symbols = ["i"]}
// CHECK-NOT:   buffer.kernel @iteration
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @iteration(%{{.*}}) <[i]>
// CHECK:         buffer.call @iteration(%{{.*}}) <[j]>
func.func @main(%n: tensor<i64>) -> (tensor<i64>, tensor<i64>) {
  %r = core.loop trip %n : tensor<i64> carry %n : tensor<i64> -> tensor<i64> {
  ^bb0(%k : tensor<i64>, %v : tensor<i64>):
    core.yield %k : tensor<i64>
  } {iteration = "i"}
  %s = core.loop trip %n : tensor<i64> carry %n : tensor<i64> -> tensor<i64> {
  ^bb0(%k : tensor<i64>, %v : tensor<i64>):
    core.yield %k : tensor<i64>
  } {iteration = "j"}
  func.return %r, %s : tensor<i64>, tensor<i64>
}

// -----

// The last kernel writes to the output at once.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:   buffer.alloc
// CHECK-NOT:   buffer.copy
// CHECK:       buffer.return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = core.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// Two slots for each carried value; the kernel writes to the next one.
// CHECK-LABEL: buffer.entry
// CHECK-COUNT-2: buffer.alloc
// CHECK:         buffer.loop trip
// CHECK-NEXT:    ^{{.*}}(%[[CURRENT:.*]]: !buffer.ref<[4] x f32>, %[[NEXT:.*]]: !buffer.ref<[4] x f32>)
// CHECK-NEXT:      buffer.call @neg_0(%[[CURRENT]], %[[NEXT]])
// CHECK-NEXT:      buffer.yield
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<4xf32>):
    %y = core.neg %v : (tensor<4xf32>) -> tensor<4xf32>
    core.yield %y : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// -----

// A swap is two copies, from the current slots to the next ones.
// CHECK-LABEL: buffer.entry
// CHECK:       buffer.loop trip
// CHECK-NEXT:  ^{{.*}}(%[[A:.*]]: !buffer.ref<[4] x f32>, %[[A2:.*]]: !buffer.ref<[4] x f32>, %[[B:.*]]: !buffer.ref<[4] x f32>, %[[B2:.*]]: !buffer.ref<[4] x f32>)
// CHECK-NEXT:    buffer.copy %[[B]], %[[A2]]
// CHECK-NEXT:    buffer.copy %[[A]], %[[B2]]
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r, %s = core.loop trip %n : tensor<i64> carry %x, %y : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>, tensor<4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<4xf32>, %w : tensor<4xf32>):
    core.yield %w, %v : tensor<4xf32>, tensor<4xf32>
  }
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// Both branches copy to the buffer of the result.
// CHECK-LABEL: buffer.entry
// CHECK:       buffer.if
// CHECK-NEXT:    buffer.copy
// CHECK:       else
// CHECK-NEXT:    buffer.copy
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
  %r = core.if %c : tensor<i1> -> tensor<4xf32> {
    core.yield %x : tensor<4xf32>
  } else {
    core.yield %y : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// -----

// What is not known to fit is required, once; what is known is not.
// CHECK-LABEL:   buffer.entry
// CHECK:         buffer.require <[m]> broadcast <[max(m, n)]>
// CHECK-NEXT:    buffer.require <[n]> broadcast <[max(m, n)]>
// CHECK-NOT:     buffer.require
func.func @main(%x: tensor<?xf32, #core.tensor<dims = [n]>>, %y: tensor<?xf32, #core.tensor<dims = [m]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>> {
  %a = core.add %y, %x : (tensor<?xf32, #core.tensor<dims = [m]>>, tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
  %b = core.mul %a, %x : (tensor<?xf32, #core.tensor<dims = [max(m, n)]>>, tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
  func.return %b : tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
}

// -----

// A size from data: bound, then allocated.
// CHECK-LABEL: buffer.entry
// CHECK:       buffer.bind {{.*}} {symbols = ["u"]}
// CHECK:       buffer.alloc {dynamic = true} : !buffer.ref<[1, u] x i64>
func.func @main(%x: tensor<4xf32>) -> tensor<1x?xi64, #core.tensor<dims = [1, u]>> {
  %c = core.count_nonzero %x : (tensor<4xf32>) -> tensor<i64>
  core.bind_symbols %c ["u"] : tensor<i64>
  %r = core.nonzero %x [u] : (tensor<4xf32>) -> tensor<1x?xi64, #core.tensor<dims = [1, u]>>
  func.return %r : tensor<1x?xi64, #core.tensor<dims = [1, u]>>
}

// -----

// A value that grows gets a new buffer in each iteration, to which the kernel writes; the initial
// one, which is an argument, is copied. Beside it, what keeps its size has two slots.
// CHECK-LABEL: buffer.entry
// CHECK-COUNT-2: buffer.alloc {dynamic = false} : !buffer.ref<[2] x f32>
// CHECK:         %[[FIRST:.*]] = buffer.alloc {dynamic = true} : !buffer.ref<[2] x f32>
// CHECK-NEXT:    buffer.copy %{{.*}}, %[[FIRST]]
// CHECK-NEXT:    buffer.loop {{.*}} swap {{.*}} own %[[FIRST]] : !buffer.ref<[2] x f32> -> !buffer.ref<[2] x f32>, !buffer.ref<[r] x f32> {
// CHECK-NEXT:    ^{{.*}}(%{{.*}}: !buffer.ref<[2] x f32>, %{{.*}}: !buffer.ref<[2] x f32>, %[[V:.*]]: !buffer.ref<[s] x f32>):
// CHECK-NEXT:      %[[NEXT:.*]] = buffer.alloc {dynamic = true} : !buffer.ref<[s + 2] x f32>
// CHECK-NEXT:      buffer.call @concat_0(%[[V]], %{{.*}}, %[[NEXT]])
// CHECK:           buffer.yield %[[NEXT]]
func.func @main(%x: tensor<2xf32>, %n: tensor<i64>) -> tensor<?xf32, #core.tensor<dims = [r]>> {
  %r, %f = core.loop trip %n : tensor<i64> carry %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<?xf32, #core.tensor<dims = [r]>>, tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [s]>>, %w : tensor<2xf32>):
    %e = core.concat %v, %w axis 0 : (tensor<?xf32, #core.tensor<dims = [s]>>, tensor<2xf32>) -> tensor<?xf32, #core.tensor<dims = [s + 2]>>
    core.yield %e, %w : tensor<?xf32, #core.tensor<dims = [s + 2]>>, tensor<2xf32>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return %r : tensor<?xf32, #core.tensor<dims = [r]>>
}

// -----

// A branch hands on the buffer of its value, or a copy of what is not its own.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.if %{{.*}} -> !buffer.ref<[r] x f32> {
// CHECK-NEXT:      %[[COPY:.*]] = buffer.alloc {dynamic = true} : !buffer.ref<[2] x f32>
// CHECK-NEXT:      buffer.copy %{{.*}}, %[[COPY]]
// CHECK-NEXT:      buffer.yield %[[COPY]]
// CHECK:         } {result_symbols = ["r"]}
func.func @main(%x: tensor<2xf32>, %y: tensor<?xf32, #core.tensor<dims = [n]>>, %c: tensor<i1>) -> tensor<?xf32, #core.tensor<dims = [r]>> {
  %r = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [r]>> {
    core.yield %x : tensor<2xf32>
  } else {
    core.yield %y : tensor<?xf32, #core.tensor<dims = [n]>>
  } {result_symbols = ["r"]}
  func.return %r : tensor<?xf32, #core.tensor<dims = [r]>>
}
