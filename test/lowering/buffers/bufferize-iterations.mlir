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
