// RUN: opt-tool %s --pass-pipeline=form-kernels,bufferize --split-input-file | filecheck %s

// As many iterations as rows, from the first row or from the last: there is no doubt that each row
// is there.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.require
// CHECK:         {iteration = "k"
func.func @main(%x: tensor<4x2xf32>, %v: tensor<2xf32>) -> tensor<2xf32> {
  %n = core.constant dense<4> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %v : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %c : tensor<2xf32>):
    %row = core.slice %x [k, 0] [1, 2] [1, 1] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %flat = core.reshape %row [2] : (tensor<1x2xf32>) -> tensor<2xf32>
    %sum = core.add %c, %flat : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %sum : tensor<2xf32>
  } {iteration = "k"}
  func.return %r : tensor<2xf32>
}

// -----

// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.require
// CHECK:         {iteration = "k"
func.func @main(%x: tensor<4x2xf32>, %v: tensor<2xf32>) -> tensor<2xf32> {
  %n = core.constant dense<4> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %v : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %c : tensor<2xf32>):
    %row = core.slice %x [-k + 3, 0] [1, 2] [1, 1] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %flat = core.reshape %row [2] : (tensor<1x2xf32>) -> tensor<2xf32>
    %sum = core.add %c, %flat : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %sum : tensor<2xf32>
  } {iteration = "k"}
  func.return %r : tensor<2xf32>
}

// -----

// One iteration more, or any number of them: a row of the first one is there.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.require <[0]> le <[k]>
// CHECK:         buffer.require <[k]> le <[3]>
// CHECK:         {iteration = "k"
func.func @main(%x: tensor<4x2xf32>, %v: tensor<2xf32>) -> tensor<2xf32> {
  %n = core.constant dense<5> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %v : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %c : tensor<2xf32>):
    %row = core.slice %x [k, 0] [1, 2] [1, 1] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %flat = core.reshape %row [2] : (tensor<1x2xf32>) -> tensor<2xf32>
    %sum = core.add %c, %flat : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %sum : tensor<2xf32>
  } {iteration = "k"}
  func.return %r : tensor<2xf32>
}

// -----

// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.require <[0]> le <[k]>
// CHECK:         buffer.require <[k]> le <[3]>
// CHECK:         {iteration = "k"
func.func @main(%x: tensor<4x2xf32>, %v: tensor<2xf32>, %n: tensor<i64>) -> tensor<2xf32> {
  %r = core.loop trip %n : tensor<i64> carry %v : tensor<2xf32> -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %c : tensor<2xf32>):
    %row = core.slice %x [k, 0] [1, 2] [1, 1] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %flat = core.reshape %row [2] : (tensor<1x2xf32>) -> tensor<2xf32>
    %sum = core.add %c, %flat : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %sum : tensor<2xf32>
  } {iteration = "k"}
  func.return %r : tensor<2xf32>
}

// -----

// As many iterations as there are rows: each row is there, and the outputs of all iterations have
// room in the workspace.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.require
// CHECK:         buffer.alloc {dynamic = false} : !buffer.ref<[t, 2] x f32>
// CHECK-NOT:     dynamic = true
// CHECK-NOT:     buffer.require
func.func @main(%x: tensor<?x2xf32, #core.tensor<dims = [t, 2]>>, %v: tensor<2xf32>)
    -> tensor<2x?xf32, #core.tensor<dims = [2, t]>> {
  %n = core.from_dims [t] shape [] : tensor<i64>
  %r, %s = core.loop trip %n : tensor<i64> carry %v : tensor<2xf32>
      -> tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>> {
  ^bb0(%i : tensor<i64>, %c : tensor<2xf32>):
    %row = core.slice %x [k, 0] [1, 2] [1, 1]
        : (tensor<?x2xf32, #core.tensor<dims = [t, 2]>>) -> tensor<1x2xf32>
    %flat = core.reshape %row [2] : (tensor<1x2xf32>) -> tensor<2xf32>
    %sum = core.add %c, %flat : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %sum, %sum : tensor<2xf32>, tensor<2xf32>
  } {iteration = "k", count = "u"}
  %t = core.transpose %s [1, 0] : (tensor<?x2xf32, #core.tensor<dims = [t, 2]>>)
      -> tensor<2x?xf32, #core.tensor<dims = [2, t]>>
  func.return %t : tensor<2x?xf32, #core.tensor<dims = [2, t]>>
}

// -----

// The loop stops early, when no one knows: what is made of its outputs has room for all iterations.
// One more row than there are is a doubt that remains.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.alloc {dynamic = false} : !buffer.ref<[t + 1, 2] x f32>
// CHECK:         buffer.require <[k]> le <[t - 1]>
// CHECK:         buffer.alloc {dynamic = false} : !buffer.ref<[2, t + 1] x f32>
// CHECK-NEXT:    buffer.view {{.*}} : !buffer.ref<[2, t + 1] x f32> -> !buffer.ref<[2, u] x f32>
// CHECK-NOT:     dynamic = true
func.func @main(%x: tensor<?x2xf32, #core.tensor<dims = [t, 2]>>, %go: tensor<i1>)
    -> tensor<2x?xf32, #core.tensor<dims = [2, u]>> {
  %n = core.from_dims [t + 1] shape [] : tensor<i64>
  %s = core.loop trip %n : tensor<i64> cond %go : tensor<i1>
      -> tensor<?x2xf32, #core.tensor<dims = [u, 2]>> {
  ^bb0(%i : tensor<i64>):
    %row = core.slice %x [k, 0] [1, 2] [1, 1]
        : (tensor<?x2xf32, #core.tensor<dims = [t, 2]>>) -> tensor<1x2xf32>
    %flat = core.reshape %row [2] : (tensor<1x2xf32>) -> tensor<2xf32>
    %zero = core.constant dense<0.0> : tensor<2xf32>
    %less = core.compare lt %flat, %zero
        : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    %first = core.slice %less [0] [1] [1] : (tensor<2xi1>) -> tensor<1xi1>
    %on = core.reshape %first [] : (tensor<1xi1>) -> tensor<i1>
    core.yield %on, %flat : tensor<i1>, tensor<2xf32>
  } {iteration = "k", count = "u"}
  %t = core.transpose %s [1, 0] : (tensor<?x2xf32, #core.tensor<dims = [u, 2]>>)
      -> tensor<2x?xf32, #core.tensor<dims = [2, u]>>
  func.return %t : tensor<2x?xf32, #core.tensor<dims = [2, u]>>
}
