// RUN: opt-tool %s --pass-pipeline=dce --split-input-file | filecheck %s

// CHECK-LABEL: @chain
// CHECK-NEXT:    func.return %x
func.func @chain(%x : tensor<f32>) -> tensor<f32> {
  %a = core.exp %x : (tensor<f32>) -> tensor<f32>
  %b = core.add %a, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
  func.return %x : tensor<f32>
}

// -----

// %q only feeds itself and a scan output that is not used. %p decides the result.
// CHECK-LABEL: @loop
// CHECK:         core.loop trip %n : tensor<i64> carry %x : tensor<4xf32> -> tensor<4xf32> {
// CHECK-NOT:     core.mul
// CHECK:         core.yield %{{[a-z0-9]+}} : tensor<4xf32>
func.func @loop(%n : tensor<i64>, %x : tensor<4xf32>, %y : tensor<4xf32>) -> tensor<4xf32> {
  %a, %b, %s = core.loop trip %n : tensor<i64> carry %x, %y : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>, tensor<4xf32>, tensor<?x4xf32, #core.tensor<dims = [t, 4]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<4xf32>, %q : tensor<4xf32>):
    %p2 = core.add %p, %p : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %q2 = core.mul %q, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    core.yield %p2, %q2, %q2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } {count = "t"}
  func.return %a : tensor<4xf32>
}

// -----

// The result of %q is not used, but it decides when the loop ends.
// CHECK-LABEL: @condition
// CHECK:         core.loop cond %c : tensor<i1> carry %x, %y
// CHECK:           core.compare
func.func @condition(%c : tensor<i1>, %x : tensor<f32>, %y : tensor<f32>) -> tensor<f32> {
  %a, %b = core.loop cond %c : tensor<i1> carry %x, %y : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>, %q : tensor<f32>):
    %p2 = core.add %p, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %q2 = core.add %q, %q : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %d = core.compare lt %q2, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    core.yield %d, %p2, %q2 : tensor<i1>, tensor<f32>, tensor<f32>
  }
  func.return %a : tensor<f32>
}

// -----

// Dead through two levels: %q is carried by the inner loop for the outer one, and only that.
// CHECK-LABEL: @nested
// CHECK:         core.loop trip %n : tensor<i64> carry %x : tensor<f32>
// CHECK:           core.loop trip %n : tensor<i64> carry %{{.*}} : tensor<f32>
// CHECK-NOT:       core.exp
// CHECK:         func.return
func.func @nested(%n : tensor<i64>, %x : tensor<f32>, %y : tensor<f32>) -> tensor<f32> {
  %a, %b = core.loop trip %n : tensor<i64> carry %x, %y : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>, %q : tensor<f32>):
    %p2, %q2 = core.loop trip %n : tensor<i64> carry %p, %q : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> {
    ^bb1(%j : tensor<i64>, %r : tensor<f32>, %s : tensor<f32>):
      %r2 = core.add %r, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %s2 = core.exp %s : (tensor<f32>) -> tensor<f32>
      core.yield %r2, %s2 : tensor<f32>, tensor<f32>
    }
    core.yield %p2, %q2 : tensor<f32>, tensor<f32>
  }
  func.return %a : tensor<f32>
}

// -----

// CHECK-LABEL: @branches
// CHECK:         core.if %c : tensor<i1> -> tensor<f32> {
// CHECK-NOT:     core.exp
// CHECK:           core.tanh
func.func @branches(%c : tensor<i1>, %x : tensor<f32>) -> tensor<f32> {
  %a, %b = core.if %c : tensor<i1> -> tensor<f32>, tensor<f32> {
    %e = core.exp %x : (tensor<f32>) -> tensor<f32>
    %t = core.tanh %x : (tensor<f32>) -> tensor<f32>
    core.yield %e, %t : tensor<f32>, tensor<f32>
  } else {
    core.yield %x, %x : tensor<f32>, tensor<f32>
  }
  func.return %b : tensor<f32>
}

// -----

// The symbol u is named by the type of a live result, v by a dead one only.
// CHECK-LABEL: @symbols
// CHECK:         %[[E:.*]] = core.abs %n
// CHECK-NEXT:    core.bind_symbols %[[E]] ["u"]
// CHECK-NEXT:    core.iota
// CHECK-NEXT:    func.return
func.func @symbols(%n : tensor<i64>, %m : tensor<i64>) -> tensor<?xi64, #core.tensor<dims = [u]>> {
  %e = core.abs %n : (tensor<i64>) -> tensor<i64>
  %f = core.abs %m : (tensor<i64>) -> tensor<i64>
  core.bind_symbols %e ["u"] : tensor<i64>
  core.bind_symbols %f ["v"] : tensor<i64>
  %a = core.iota [u] axis 0 : tensor<?xi64, #core.tensor<dims = [u]>>
  %b = core.iota [v] axis 0 : tensor<?xi64, #core.tensor<dims = [v]>>
  func.return %a : tensor<?xi64, #core.tensor<dims = [u]>>
}

// -----

// The loop's values are not used, but its count is a dimension of the result.
// CHECK-LABEL: @count
// CHECK:         core.loop trip %n
// CHECK:         {count = "t"}
func.func @count(%n : tensor<i64>, %x : tensor<f32>) -> tensor<?xi64, #core.tensor<dims = [t]>> {
  %a, %s = core.loop trip %n : tensor<i64> carry %x : tensor<f32> -> tensor<f32>, tensor<?xf32, #core.tensor<dims = [t]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %q, %q : tensor<f32>, tensor<f32>
  } {count = "t"}
  %r = core.iota [t] axis 0 : tensor<?xi64, #core.tensor<dims = [t]>>
  func.return %r : tensor<?xi64, #core.tensor<dims = [t]>>
}

// -----

// The loop yields its condition first; the second carried value is the dead one.
// CHECK-LABEL: @condition_first
// CHECK:       core.loop cond %{{.*}} carry %x : tensor<f32> -> tensor<f32> {
// CHECK:         %[[P:.*]] = core.add
// CHECK:         %[[D:.*]] = core.compare
// CHECK:         core.yield %[[D]], %[[P]] : tensor<i1>, tensor<f32>
func.func @condition_first(%c : tensor<i1>, %x : tensor<f32>, %y : tensor<f32>) -> tensor<f32> {
  %a, %b = core.loop cond %c : tensor<i1> carry %x, %y : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>, %q : tensor<f32>):
    %p2 = core.add %p, %p : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %q2 = core.exp %q : (tensor<f32>) -> tensor<f32>
    %d = core.compare lt %p2, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    core.yield %d, %p2, %q2 : tensor<i1>, tensor<f32>, tensor<f32>
  }
  func.return %a : tensor<f32>
}

// -----

// %a only feeds itself, so it is dropped with its symbols; the size of %b is used, so %b stays.
// CHECK-LABEL: @changing
// CHECK:         core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<?xf32, #core.tensor<dims = [q]>> {
// CHECK-NEXT:    ^bb0(%i: tensor<i64>, %w: tensor<?xf32, #core.tensor<dims = [u]>>):
// CHECK-NEXT:      core.concat %w, %x
// CHECK-NEXT:      core.yield
// CHECK-NEXT:    } {carried_symbols = ["u"], result_symbols = ["q"]}
// CHECK-NEXT:    core.from_dims [q]
func.func @changing(%n : tensor<i64>, %x : tensor<2xf32>) -> tensor<1xi64> {
  %a, %b = core.loop trip %n : tensor<i64> carry %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [s]>>, %w : tensor<?xf32, #core.tensor<dims = [u]>>):
    %e = core.concat %v, %x axis 0 : (tensor<?xf32, #core.tensor<dims = [s]>>, tensor<2xf32>) -> tensor<?xf32, #core.tensor<dims = [s + 2]>>
    %f = core.concat %w, %x axis 0 : (tensor<?xf32, #core.tensor<dims = [u]>>, tensor<2xf32>) -> tensor<?xf32, #core.tensor<dims = [u + 2]>>
    core.yield %e, %f : tensor<?xf32, #core.tensor<dims = [s + 2]>>, tensor<?xf32, #core.tensor<dims = [u + 2]>>
  } {carried_symbols = ["s", "u"], result_symbols = ["p", "q"]}
  %d = core.from_dims [q] shape [1] : tensor<1xi64>
  func.return %d : tensor<1xi64>
}

// -----

// The size of one result is used, and nothing of the other.
// CHECK-LABEL: @branches
// CHECK:         core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [r]>> {
// CHECK-NEXT:      core.yield %x : tensor<2xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      core.yield %y : tensor<3xf32>
// CHECK-NEXT:    } {result_symbols = ["r"]}
func.func @branches(%c : tensor<i1>, %x : tensor<2xf32>, %y : tensor<3xf32>) -> tensor<1xi64> {
  %a, %b = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [q]>>, tensor<?xf32, #core.tensor<dims = [r]>> {
    core.yield %y, %x : tensor<3xf32>, tensor<2xf32>
  } else {
    core.yield %x, %y : tensor<2xf32>, tensor<3xf32>
  } {result_symbols = ["q", "r"]}
  %d = core.from_dims [r] shape [1] : tensor<1xi64>
  func.return %d : tensor<1xi64>
}
