// RUN: opt-tool %s --pass-pipeline=hoist-invariants --split-input-file --check-each | filecheck %s

// What depends on values from outside only moves, with the constants and the slice that it reads.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[P:.+]] = core.slice %a [0, 0] [1, 3]
// CHECK-NEXT:    %[[T:.+]] = core.tanh %[[P]]
// CHECK-NEXT:    %[[C:.+]] = core.constant
// CHECK-NEXT:    %[[M:.+]] = core.mul %[[T]], %[[C]]
// CHECK:         core.loop
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      %[[V:.+]] = core.add %{{.+}}, %[[M]]
// CHECK-NEXT:      core.yield %[[V]]
func.func @main(%x : tensor<1x3xf32>, %a : tensor<2x3xf32>, %n : tensor<i64>) -> tensor<1x3xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x3xf32> -> tensor<1x3xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<1x3xf32>):
    %p = core.slice %a [0, 0] [1, 3] [1, 1] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %t = core.tanh %p : (tensor<1x3xf32>) -> tensor<1x3xf32>
    %c = core.constant dense<0.5> : tensor<f32>
    %m = core.mul %t, %c : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
    %w = core.add %v, %m : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    core.yield %w : tensor<1x3xf32>
  }
  func.return %r : tensor<1x3xf32>
}

// -----

// The nearest misses: an index that may be outside must not be used by a loop that does not run; a
// slice that moves alone would be a copy; a slice at the number of the iteration changes.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK-DAG:       core.gather %a, %k
// CHECK-DAG:       core.slice %a [0, 0]
// CHECK-DAG:       core.slice %a [j, 0]
func.func @main(%x : tensor<1x3xf32>, %a : tensor<4x3xf32>, %k : tensor<1xi64>)
    -> tensor<1x3xf32> {
  %n = core.constant dense<0> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<1x3xf32> -> tensor<1x3xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<1x3xf32>):
    %g = core.gather %a, %k axis 0 : (tensor<4x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
    %p = core.slice %a [0, 0] [1, 3] [1, 1] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %q = core.slice %a [j, 0] [1, 3] [1, 1] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %t = core.add %g, %v : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    %u = core.add %t, %p : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    %w = core.add %u, %q : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<1x3xf32>
    core.yield %w : tensor<1x3xf32>
  } {iteration = "j"}
  func.return %r : tensor<1x3xf32>
}

// -----

// What reads a gather stays with it, and so does what has sizes that are checked where it is.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           core.gather
// CHECK:           core.exp
// CHECK:           core.mul %b, %c
func.func @main(%x : tensor<3xf32>, %a : tensor<4x3xf32>, %k : tensor<i64>,
                %b : tensor<?xf32, #core.tensor<dims = [m]>>,
                %c : tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<3xf32> {
  %n = core.constant dense<0> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<3xf32> -> tensor<3xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xf32>):
    %g = core.gather %a, %k axis 0 : (tensor<4x3xf32>, tensor<i64>) -> tensor<3xf32>
    %e = core.exp %g : (tensor<3xf32>) -> tensor<3xf32>
    %p = core.mul %b, %c
        : (tensor<?xf32, #core.tensor<dims = [m]>>, tensor<?xf32, #core.tensor<dims = [n]>>)
        -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
    %s = core.reduce sum %p [0] : (tensor<?xf32, #core.tensor<dims = [max(m, n)]>>) -> tensor<f32>
    %t = core.add %e, %s : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
    %w = core.add %t, %v : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    core.yield %w : tensor<3xf32>
  }
  func.return %r : tensor<3xf32>
}

// -----

// Out of both loops, or of the inner one only. Integers divided by zero are zero, so this may move.
// CHECK-LABEL: func.func @main
// CHECK:         core.div %a, %b
// CHECK-NEXT:    core.loop
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      core.abs
// CHECK-NEXT:      core.loop
func.func @main(%x : tensor<3xi32>, %a : tensor<3xi32>, %b : tensor<3xi32>, %n : tensor<i64>)
    -> tensor<3xi32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<3xi32> -> tensor<3xi32> {
  ^bb0(%i : tensor<i64>, %v : tensor<3xi32>):
    %s = core.loop trip %n : tensor<i64> carry %v : tensor<3xi32> -> tensor<3xi32> {
    ^bb1(%j : tensor<i64>, %p : tensor<3xi32>):
      %d = core.div %a, %b : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
      %e = core.abs %v : (tensor<3xi32>) -> tensor<3xi32>
      %f = core.add %p, %d : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
      %g = core.add %f, %e : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
      core.yield %g : tensor<3xi32>
    }
    core.yield %s : tensor<3xi32>
  }
  func.return %r : tensor<3xi32>
}

// -----

// Much out of little: 16 MB that would be kept for the whole loop.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
// CHECK:           core.add %a, %b
// CHECK:           core.exp
func.func @main(%x : tensor<2048x2048xf32>, %a : tensor<2048x1xf32>, %b : tensor<2048xf32>)
    -> tensor<2048x2048xf32> {
  %n = core.constant dense<0> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2048x2048xf32> -> tensor<2048x2048xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2048x2048xf32>):
    %s = core.add %a, %b : (tensor<2048x1xf32>, tensor<2048xf32>) -> tensor<2048x2048xf32>
    %e = core.exp %s : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    %w = core.add %v, %e
        : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
    core.yield %w : tensor<2048x2048xf32>
  }
  func.return %r : tensor<2048x2048xf32>
}

// -----

// Among no elements there is none that is the least: only a loop that runs may fail of it.
// CHECK-LABEL: func.func @main
// CHECK:         core.arg_reduce max %a axis 0
// CHECK:         core.loop
// CHECK-NOT:     axis 0
// CHECK:           core.arg_reduce min %a axis 1
func.func @main(%x : tensor<0xi64>, %y : tensor<2xi64>, %a : tensor<2x0xf32>)
    -> (tensor<0xi64>, tensor<2xi64>) {
  %n = core.constant dense<0> : tensor<i64>
  %r, %s = core.loop trip %n : tensor<i64> carry %x, %y : tensor<0xi64>, tensor<2xi64>
      -> tensor<0xi64>, tensor<2xi64> {
  ^bb0(%i : tensor<i64>, %v : tensor<0xi64>, %w : tensor<2xi64>):
    %p = core.arg_reduce max %a axis 0 : (tensor<2x0xf32>) -> tensor<0xi64>
    %q = core.arg_reduce min %a axis 1 : (tensor<2x0xf32>) -> tensor<2xi64>
    %t = core.add %v, %p : (tensor<0xi64>, tensor<0xi64>) -> tensor<0xi64>
    %u = core.add %w, %q : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
    core.yield %t, %u : tensor<0xi64>, tensor<2xi64>
  }
  func.return %r, %s : tensor<0xi64>, tensor<2xi64>
}

// -----

// Rows of an unknown number: equal sizes are not checked; a size that each iteration makes is not
// known before.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[W:.+]] = core.constant
// CHECK-NEXT:    %[[P:.+]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    core.loop
// CHECK:           core.add %{{.+}}, %[[P]]
// CHECK-NEXT:      core.bind_symbols
// CHECK:           core.exp
func.func @main(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, %b : tensor<1x1xf32>, %c : tensor<i64>)
    -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {
  %r = core.loop trip %c : tensor<i64> carry %x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>> -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>):
    %w = core.constant dense<0.5> : tensor<3x3xf32>
    %p = core.matmul %x, %w : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<3x3xf32>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
    %s = core.add %v, %p : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
    core.bind_symbols %i ["k"] : tensor<i64>
    %e = core.broadcast %b [k, 1] : (tensor<1x1xf32>) -> tensor<?x1xf32, #core.tensor<dims = [k, 1]>>
    %f = core.exp %e : (tensor<?x1xf32, #core.tensor<dims = [k, 1]>>) -> tensor<?x1xf32, #core.tensor<dims = [k, 1]>>
    %g = core.reduce sum %f [0, 1] : (tensor<?x1xf32, #core.tensor<dims = [k, 1]>>) -> tensor<f32>
    %z = core.add %s, %g : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<f32>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
    core.yield %z : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  }
  func.return %r : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
}
