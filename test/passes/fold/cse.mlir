// RUN: opt-tool %s --pass-pipeline=cse --split-input-file | filecheck %s

// Equal constants and equal ops of equal operands are one.
// CHECK-LABEL: @merge
// CHECK-COUNT-1: core.constant
// CHECK-COUNT-1: core.add
// CHECK-NOT:     core.add
// CHECK:         core.mul %[[A:.*]], %[[A]]
func.func @merge(%x : tensor<2xf32>) -> tensor<2xf32> {
  %c = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %d = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %a = core.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = core.add %x, %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %m = core.mul %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %m : tensor<2xf32>
}

// -----

// 0.0 and -0.0 are equal numbers, but not the same constant.
// CHECK-LABEL: @signed_zero
// CHECK-COUNT-2: core.constant
func.func @signed_zero(%x : tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %c = core.constant dense<0.0> : tensor<f32>
  %d = core.constant dense<-0.0> : tensor<f32>
  %a = core.add %x, %c : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %b = core.add %x, %d : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %a, %b : tensor<f32>, tensor<f32>
}

// -----

// Equal operands, different properties.
// CHECK-LABEL: @different_properties
// CHECK:         core.compare lt {{.*}}
// CHECK:         core.compare le {{.*}}
func.func @different_properties(%x : tensor<i64>, %y : tensor<i64>) -> (tensor<i1>, tensor<i1>) {
  %a = core.compare lt %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %b = core.compare le %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i1>
  func.return %a, %b : tensor<i1>, tensor<i1>
}

// -----

// Two symbols stay two, although they are bound to one value: types name both.
// CHECK-LABEL: @symbols
// CHECK-COUNT-2: core.bind_symbols
func.func @symbols(%n : tensor<i64>)
    -> (tensor<?xi64, #core.tensor<dims = [u]>>, tensor<?xi64, #core.tensor<dims = [v]>>) {
  core.bind_symbols %n ["u"] : tensor<i64>
  core.bind_symbols %n ["v"] : tensor<i64>
  %a = core.iota [u] axis 0 : tensor<?xi64, #core.tensor<dims = [u]>>
  %b = core.iota [v] axis 0 : tensor<?xi64, #core.tensor<dims = [v]>>
  func.return %a, %b : tensor<?xi64, #core.tensor<dims = [u]>>, tensor<?xi64, #core.tensor<dims = [v]>>
}

// -----

// A branch uses what was computed before the if; what one branch computes is not visible in the
// other, nor after the if.
// CHECK-LABEL: @scopes
// CHECK:         core.exp %x
// CHECK:         core.if
// CHECK-NOT:       core.exp
// CHECK:           core.tanh %x
// CHECK:         } else {
// CHECK:           core.tanh %x
// CHECK:         }
// CHECK:         core.tanh %x
func.func @scopes(%c : tensor<i1>, %x : tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %e = core.exp %x : (tensor<f32>) -> tensor<f32>
  %r = core.if %c : tensor<i1> -> tensor<f32> {
    %f = core.exp %x : (tensor<f32>) -> tensor<f32>
    %t = core.tanh %x : (tensor<f32>) -> tensor<f32>
    %s = core.add %f, %t : (tensor<f32>, tensor<f32>) -> tensor<f32>
    core.yield %s : tensor<f32>
  } else {
    %t = core.tanh %x : (tensor<f32>) -> tensor<f32>
    core.yield %t : tensor<f32>
  }
  %t = core.tanh %x : (tensor<f32>) -> tensor<f32>
  func.return %e, %r, %t : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// Ifs on one condition: the first two do the same, the third has its branches the other way around.
// CHECK-LABEL: @regions
// CHECK:         %[[A:.*]] = core.if
// CHECK:         %[[C:.*]] = core.if
// CHECK-NOT:     core.if
// CHECK:         func.return %[[A]], %[[A]], %[[C]]
func.func @regions(%c : tensor<i1>, %x : tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %a = core.if %c : tensor<i1> -> tensor<f32> {
    %f = core.exp %x : (tensor<f32>) -> tensor<f32>
    core.yield %f : tensor<f32>
  } else {
    core.yield %x : tensor<f32>
  }
  %b = core.if %c : tensor<i1> -> tensor<f32> {
    %g = core.exp %x : (tensor<f32>) -> tensor<f32>
    core.yield %g : tensor<f32>
  } else {
    core.yield %x : tensor<f32>
  }
  %d = core.if %c : tensor<i1> -> tensor<f32> {
    core.yield %x : tensor<f32>
  } else {
    %f = core.exp %x : (tensor<f32>) -> tensor<f32>
    core.yield %f : tensor<f32>
  }
  func.return %a, %b, %d : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// A kernel sees nothing from outside.
// CHECK-LABEL: @isolated
// CHECK:       core.constant
// CHECK:       core.kernel
// CHECK:       core.constant
// CHECK:       core.yield
func.func @isolated(%x : tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %c = core.constant dense<2.0> : tensor<f32>
  %k = core.kernel @k (%x) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%y : tensor<f32>):
    %d = core.constant dense<2.0> : tensor<f32>
    %m = core.mul %y, %d : (tensor<f32>, tensor<f32>) -> tensor<f32>
    core.yield %m : tensor<f32>
  }
  func.return %c, %k : tensor<f32>, tensor<f32>
}

// -----

// In a loop, what is equal to an op before it is that one; what one iteration computes is not known
// after the loop.
// CHECK-LABEL: @loop
// CHECK:         %[[T:.*]] = core.tanh %x
// CHECK:         core.loop
// CHECK-NOT:       core.tanh
// CHECK:           core.add %{{.*}}, %[[T]]
// CHECK:           core.exp %x
// CHECK:         core.exp %x
func.func @loop(%x : tensor<f32>, %n : tensor<i64>) -> (tensor<f32>, tensor<f32>) {
  %t = core.tanh %x : (tensor<f32>) -> tensor<f32>
  %r = core.loop trip %n : tensor<i64> carry %t : tensor<f32> -> tensor<f32> {
  ^bb0(%i : tensor<i64>, %v : tensor<f32>):
    %u = core.tanh %x : (tensor<f32>) -> tensor<f32>
    %w = core.add %v, %u : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %e = core.exp %x : (tensor<f32>) -> tensor<f32>
    %z = core.add %w, %e : (tensor<f32>, tensor<f32>) -> tensor<f32>
    core.yield %z : tensor<f32>
  }
  %f = core.exp %x : (tensor<f32>) -> tensor<f32>
  func.return %r, %f : tensor<f32>, tensor<f32>
}
