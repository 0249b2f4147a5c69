// RUN: opt-tool %s --pass-pipeline=form-kernels,bufferize --split-input-file | filecheck %s

// A reshape is a view, and equal kernels are one function.
// CHECK:       buffer.func @softmax_0
// CHECK-NOT:   buffer.func @softmax_1
// CHECK-LABEL: buffer.func @run
func.func @main(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  %a = core.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = core.softmax %a {axis = #builtin.int<1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %s = core.softmax %e {axis = #builtin.int<1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %r = core.reshape %s {dims = #core.dims<[6]>} : (tensor<2x3xf32>) -> tensor<6xf32>
  // CHECK: buffer.call @softmax_0
  // CHECK: buffer.call @softmax_0
  // CHECK: buffer.view {{.*}} -> !buffer.ref<[6] x f32>
  // CHECK: buffer.copy
  func.return %r : tensor<6xf32>
}

// -----

// The last kernel writes to the output at once.
// CHECK-LABEL: buffer.func @run
// CHECK-NOT:   buffer.alloc
// CHECK-NOT:   buffer.copy
// CHECK:       buffer.return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = core.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// Two slots for each carried value; the kernel writes to the next one.
// CHECK-LABEL: buffer.func @run
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
// CHECK-LABEL: buffer.func @run
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
// CHECK-LABEL: buffer.func @run
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
// CHECK-LABEL:   buffer.func @run
// CHECK:         buffer.require <[m]> "broadcast" <[max(m, n)]>
// CHECK-NEXT:    buffer.require <[n]> "broadcast" <[max(m, n)]>
// CHECK-NOT:     buffer.require
func.func @main(%x: tensor<?xf32, #core.tensor<dims = [n]>>, %y: tensor<?xf32, #core.tensor<dims = [m]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>> {
  %a = core.add %y, %x : (tensor<?xf32, #core.tensor<dims = [m]>>, tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
  %b = core.mul %a, %x : (tensor<?xf32, #core.tensor<dims = [max(m, n)]>>, tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
  func.return %b : tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
}

// -----

// A size from data: bound, then allocated.
// CHECK-LABEL: buffer.func @run
// CHECK:       buffer.bind {{.*}} {symbols = ["u"]}
// CHECK:       buffer.alloc {dynamic = true} : !buffer.ref<[1, u] x i64>
func.func @main(%x: tensor<4xf32>) -> tensor<1x?xi64, #core.tensor<dims = [1, u]>> {
  %c = core.count_nonzero %x : (tensor<4xf32>) -> tensor<i64>
  core.bind_symbols %c {symbols = ["u"]} : tensor<i64>
  %r = core.nonzero %x {count = #core.dims<[u]>} : (tensor<4xf32>) -> tensor<1x?xi64, #core.tensor<dims = [1, u]>>
  func.return %r : tensor<1x?xi64, #core.tensor<dims = [1, u]>>
}
