// RUN: opt-tool %s --pass-pipeline=fold-symbols --split-input-file | filecheck %s

// One symbol is a number, the other an expression of a dimension; both reach types and properties.
// CHECK-LABEL: @bound
// CHECK-SAME:    -> tensor<3x?xi64, #core.tensor<dims = [3, n + 1]>>
// CHECK-NOT:     core.bind_symbols
// CHECK:         core.iota [3, n + 1]
func.func @bound(%x : tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?x?xi64, #core.tensor<dims = [u, v]>> {
  %c = core.constant dense<3> : tensor<1xi32>
  %w = core.cast %c to i64 : (tensor<1xi32>) -> tensor<1xi64>
  %d = core.from_dims [n + 1] shape [1] : tensor<1xi64>
  %e = core.concat %w, %d axis 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  core.bind_symbols %e ["u", "v"] : tensor<2xi64>
  %a = core.iota [u, v] axis 0 : tensor<?x?xi64, #core.tensor<dims = [u, v]>>
  func.return %a : tensor<?x?xi64, #core.tensor<dims = [u, v]>>
}

// -----

// A cast to fewer bits may change the value.
// CHECK-LABEL: @narrow
// CHECK:         core.bind_symbols
func.func @narrow(%x : tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xi64, #core.tensor<dims = [u]>> {
  %d = core.from_dims [n] shape [1] : tensor<1xi64>
  %c = core.cast %d to i8 : (tensor<1xi64>) -> tensor<1xi8>
  core.bind_symbols %c ["u"] : tensor<1xi8>
  %a = core.iota [u] axis 0 : tensor<?xi64, #core.tensor<dims = [u]>>
  func.return %a : tensor<?xi64, #core.tensor<dims = [u]>>
}

// -----

// With u = 1 the broadcast of [n] and [u] is [n], not [max(n, 1)].
// CHECK-LABEL: @infers_again
// CHECK:         core.add {{.*}} -> tensor<?xf32, #core.tensor<dims = [n]>>
func.func @infers_again(%x : tensor<?xf32, #core.tensor<dims = [n]>>, %y : tensor<f32>) -> tensor<?xf32, #core.tensor<dims = [max(n, u)]>> {
  %c = core.constant dense<1> : tensor<i64>
  core.bind_symbols %c ["u"] : tensor<i64>
  %b = core.broadcast %y [u] : (tensor<f32>) -> tensor<?xf32, #core.tensor<dims = [u]>>
  %a = core.add %x, %b : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<?xf32, #core.tensor<dims = [u]>>) -> tensor<?xf32, #core.tensor<dims = [max(n, u)]>>
  func.return %a : tensor<?xf32, #core.tensor<dims = [max(n, u)]>>
}

// -----

// Without a condition the loop makes all its iterations.
// CHECK-LABEL: @count
// CHECK-SAME:    -> tensor<4xf32>
// CHECK:         core.loop {{.*}} -> tensor<f32>, tensor<4xf32>
func.func @count(%x : tensor<f32>) -> tensor<?xf32, #core.tensor<dims = [t]>> {
  %n = core.constant dense<4> : tensor<i64>
  %a, %s = core.loop trip %n : tensor<i64> carry %x : tensor<f32> -> tensor<f32>, tensor<?xf32, #core.tensor<dims = [t]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %q, %q : tensor<f32>, tensor<f32>
  } {count = "t"}
  func.return %s : tensor<?xf32, #core.tensor<dims = [t]>>
}

// -----

// With a condition it may make fewer.
// CHECK-LABEL: @may_stop
// CHECK:         #core.tensor<dims = [t]>
func.func @may_stop(%c : tensor<i1>, %x : tensor<f32>) -> tensor<?xf32, #core.tensor<dims = [t]>> {
  %n = core.constant dense<4> : tensor<i64>
  %a, %s = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %x : tensor<f32> -> tensor<f32>, tensor<?xf32, #core.tensor<dims = [t]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %c, %q, %q : tensor<i1>, tensor<f32>, tensor<f32>
  } {count = "t"}
  func.return %s : tensor<?xf32, #core.tensor<dims = [t]>>
}

// -----

// A negative trip count makes no iteration.
// CHECK-LABEL: @negative_count
// CHECK:       core.loop trip {{.*}} -> tensor<f32>, tensor<0xf32>
func.func @negative_count(%x : tensor<f32>) -> tensor<?xf32, #core.tensor<dims = [t]>> {
  %n = core.constant dense<-2> : tensor<i64>
  %a, %s = core.loop trip %n : tensor<i64> carry %x : tensor<f32> -> tensor<f32>, tensor<?xf32, #core.tensor<dims = [t]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %q, %q : tensor<f32>, tensor<f32>
  } {count = "t"}
  func.return %s : tensor<?xf32, #core.tensor<dims = [t]>>
}

// -----

// The first value keeps its size, the second one grows.
// CHECK-LABEL: @kept
// CHECK-SAME:    -> (tensor<2xf32>, tensor<?xf32, #core.tensor<dims = [q]>>)
// CHECK:         core.loop {{.*}} -> tensor<2xf32>, tensor<?xf32, #core.tensor<dims = [q]>> {
// CHECK:           core.neg {{.*}} (tensor<2xf32>) -> tensor<2xf32>
// CHECK:         } {carried_symbols = ["u"], result_symbols = ["q"]}
func.func @kept(%n : tensor<i64>, %x : tensor<2xf32>) -> (tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>>) {
  %a, %b = core.loop trip %n : tensor<i64> carry %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [s]>>, %w : tensor<?xf32, #core.tensor<dims = [u]>>):
    %e = core.neg %v : (tensor<?xf32, #core.tensor<dims = [s]>>) -> tensor<?xf32, #core.tensor<dims = [s]>>
    %f = core.concat %w, %x axis 0 : (tensor<?xf32, #core.tensor<dims = [u]>>, tensor<2xf32>) -> tensor<?xf32, #core.tensor<dims = [u + 2]>>
    core.yield %e, %f : tensor<?xf32, #core.tensor<dims = [s]>>, tensor<?xf32, #core.tensor<dims = [u + 2]>>
  } {carried_symbols = ["s", "u"], result_symbols = ["p", "q"]}
  func.return %a, %b : tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>>
}

// -----

// A value that takes the place of another one has its size, even if each keeps its own for now.
// CHECK-LABEL: @swapped
// CHECK:         {carried_symbols = ["s", "u"], result_symbols = ["p", "q"]}
func.func @swapped(%n : tensor<i64>, %x : tensor<2xf32>, %y : tensor<3xf32>) -> (tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>>) {
  %a, %b = core.loop trip %n : tensor<i64> carry %x, %y : tensor<2xf32>, tensor<3xf32> -> tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [s]>>, %w : tensor<?xf32, #core.tensor<dims = [u]>>):
    core.yield %w, %v : tensor<?xf32, #core.tensor<dims = [u]>>, tensor<?xf32, #core.tensor<dims = [s]>>
  } {carried_symbols = ["s", "u"], result_symbols = ["p", "q"]}
  func.return %a, %b : tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>>
}

// -----

// Both branches give the size m; each of the other sizes is known only in its branch.
// CHECK-LABEL: @equal
// CHECK-SAME:    -> (tensor<?xf32, #core.tensor<dims = [m]>>, tensor<?xf32, #core.tensor<dims = [r]>>)
// CHECK:         {result_symbols = ["r"]}
func.func @equal(%c : tensor<i1>, %x : tensor<?xf32, #core.tensor<dims = [m]>>, %n : tensor<i64>) -> (tensor<?xf32, #core.tensor<dims = [q]>>, tensor<?xf32, #core.tensor<dims = [r]>>) {
  %a, %b = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [q]>>, tensor<?xf32, #core.tensor<dims = [r]>> {
    core.bind_symbols %n ["t"] : tensor<i64>
    %e = core.broadcast %n [t] : (tensor<i64>) -> tensor<?xi64, #core.tensor<dims = [t]>>
    %f = core.cast %e to f32 : (tensor<?xi64, #core.tensor<dims = [t]>>) -> tensor<?xf32, #core.tensor<dims = [t]>>
    core.yield %x, %f : tensor<?xf32, #core.tensor<dims = [m]>>, tensor<?xf32, #core.tensor<dims = [t]>>
  } else {
    core.bind_symbols %n ["v"] : tensor<i64>
    %e = core.broadcast %n [v] : (tensor<i64>) -> tensor<?xi64, #core.tensor<dims = [v]>>
    %f = core.cast %e to f32 : (tensor<?xi64, #core.tensor<dims = [v]>>) -> tensor<?xf32, #core.tensor<dims = [v]>>
    core.yield %x, %f : tensor<?xf32, #core.tensor<dims = [m]>>, tensor<?xf32, #core.tensor<dims = [v]>>
  } {result_symbols = ["q", "r"]}
  func.return %a, %b : tensor<?xf32, #core.tensor<dims = [q]>>, tensor<?xf32, #core.tensor<dims = [r]>>
}

// -----

// No iterations, so that %s has no elements, which cannot be added to three: that branch is never
// taken, and the number of iterations stays a symbol. In the other one any number of them suits.
// CHECK-LABEL: @untaken
// CHECK:         core.loop
// CHECK:           core.add %s, %x : (tensor<?xf32, #core.tensor<dims = [t]>>, tensor<3xf32>)
// CHECK:         core.loop
// CHECK:           core.add %r, %x : (tensor<1xf32>, tensor<3xf32>)
func.func @untaken(%x : tensor<3xf32>, %y : tensor<f32>, %c : tensor<i1>)
    -> (tensor<3xf32>, tensor<3xf32>) {
  %none = core.constant dense<0> : tensor<i64>
  %s = core.loop trip %none : tensor<i64> -> tensor<?xf32, #core.tensor<dims = [t]>> {
  ^bb0(%i : tensor<i64>):
    core.yield %y : tensor<f32>
  } {count = "t"}
  %a = core.if %c : tensor<i1> -> tensor<3xf32> {
    %0 = core.add %s, %x : (tensor<?xf32, #core.tensor<dims = [t]>>, tensor<3xf32>) -> tensor<3xf32>
    core.yield %0 : tensor<3xf32>
  } else {
    core.yield %x : tensor<3xf32>
  }
  %one = core.constant dense<1> : tensor<i64>
  %r = core.loop trip %one : tensor<i64> -> tensor<?xf32, #core.tensor<dims = [u]>> {
  ^bb0(%j : tensor<i64>):
    core.yield %y : tensor<f32>
  } {count = "u"}
  %b = core.if %c : tensor<i1> -> tensor<3xf32> {
    %1 = core.add %r, %x : (tensor<?xf32, #core.tensor<dims = [u]>>, tensor<3xf32>) -> tensor<3xf32>
    core.yield %1 : tensor<3xf32>
  } else {
    core.yield %x : tensor<3xf32>
  }
  func.return %a, %b : tensor<3xf32>, tensor<3xf32>
}
