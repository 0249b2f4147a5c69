// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @branches
// CHECK-NEXT:    %y, %z = core.if %c : tensor<i1> -> tensor<2xf32>, tensor<2xf32> {
// CHECK-NEXT:      %e = core.exp %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:      core.yield %e, %x : tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      core.yield %x, %x : tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    core.if %c : tensor<i1> {
// CHECK-NEXT:      core.yield
// CHECK-NEXT:    } else {
// CHECK-NEXT:      core.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @branches(%c : tensor<i1>, %x : tensor<2xf32>) {
  %y, %z = core.if %c : tensor<i1> -> tensor<2xf32>, tensor<2xf32> {
    %e = core.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    core.yield %e, %x : tensor<2xf32>, tensor<2xf32>
  } else {
    core.yield %x, %x : tensor<2xf32>, tensor<2xf32>
  }
  core.if %c : tensor<i1> {
    core.yield
  } else {
    core.yield
  }
  func.return
}

// CHECK-LABEL: func.func @loops
// CHECK-NEXT:    %a, %s = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %x : tensor<2xf32> -> tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>> {
// CHECK-NEXT:    ^bb0(%i: tensor<i64>, %v: tensor<2xf32>):
// CHECK-NEXT:      %d = core.from_dims [k] shape [] : tensor<i64>
// CHECK-NEXT:      core.yield %c, %v, %v : tensor<i1>, tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT:    } {iteration = "k", count = "t"}
// CHECK-NEXT:    %b = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32> {
// CHECK-NEXT:    ^bb0(%i_1: tensor<i64>, %v_1: tensor<2xf32>):
// CHECK-NEXT:      core.yield %v_1 : tensor<2xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    core.loop cond %c : tensor<i1> {
// CHECK-NEXT:    ^bb0(%i_2: tensor<i64>):
// CHECK-NEXT:      core.yield %c : tensor<i1>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @loops(%n : tensor<i64>, %c : tensor<i1>, %x : tensor<2xf32>) {
  %a, %s = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %x : tensor<2xf32> -> tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %d = core.from_dims [k] shape [] : tensor<i64>
    core.yield %c, %v, %v : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  } {iteration = "k", count = "t"}
  %b = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<2xf32> {
  ^bb1(%i : tensor<i64>, %v : tensor<2xf32>):
    core.yield %v : tensor<2xf32>
  }
  core.loop cond %c : tensor<i1> {
  ^bb2(%i : tensor<i64>):
    core.yield %c : tensor<i1>
  }
  func.return
}

// Sizes that differ between branches or iterations are symbols of the op.
// CHECK-LABEL: func.func @sizes
// CHECK-NEXT:    %y = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [r]>> {
// CHECK-NEXT:      core.yield %x : tensor<2xf32>
// CHECK-NEXT:    } else {
// CHECK-NEXT:      core.yield %z : tensor<?xf32, #core.tensor<dims = [n]>>
// CHECK-NEXT:    } {result_symbols = ["r"]}
// CHECK-NEXT:    %a, %b = core.loop trip %t : tensor<i64> carry %x, %y : {{.*}} -> tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>> {
// CHECK-NEXT:    ^bb0(%i: tensor<i64>, %v: tensor<?xf32, #core.tensor<dims = [s]>>, %w: tensor<?xf32, #core.tensor<dims = [u]>>):
// CHECK:           core.yield %w, %e
// CHECK-NEXT:    } {carried_symbols = ["s", "u"], result_symbols = ["p", "q"]}
func.func @sizes(%c : tensor<i1>, %t : tensor<i64>, %x : tensor<2xf32>, %z : tensor<?xf32, #core.tensor<dims = [n]>>) {
  %y = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [r]>> {
    core.yield %x : tensor<2xf32>
  } else {
    core.yield %z : tensor<?xf32, #core.tensor<dims = [n]>>
  } {result_symbols = ["r"]}
  %a, %b = core.loop trip %t : tensor<i64> carry %x, %y : tensor<2xf32>, tensor<?xf32, #core.tensor<dims = [r]>> -> tensor<?xf32, #core.tensor<dims = [p]>>, tensor<?xf32, #core.tensor<dims = [q]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [s]>>, %w : tensor<?xf32, #core.tensor<dims = [u]>>):
    %e = core.concat %v, %w axis 0 : (tensor<?xf32, #core.tensor<dims = [s]>>, tensor<?xf32, #core.tensor<dims = [u]>>) -> tensor<?xf32, #core.tensor<dims = [s + u]>>
    core.yield %w, %e : tensor<?xf32, #core.tensor<dims = [u]>>, tensor<?xf32, #core.tensor<dims = [s + u]>>
  } {carried_symbols = ["s", "u"], result_symbols = ["p", "q"]}
  func.return
}

// CHECK-LABEL: func.func @kernels
// CHECK-NEXT:    %y = core.kernel @first(%x) : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>> {
// CHECK-NEXT:    ^bb0(%v: tensor<?x4xf32, #core.tensor<dims = [n, 4]>>):
// CHECK-NEXT:      %e = core.exp %v : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:      core.yield %e : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @kernels(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) {
  %y = core.kernel @first (%x) : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>> {
  ^bb0(%v : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>):
    %e = core.exp %v : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
    core.yield %e : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  }
  func.return
}

// CHECK-LABEL: func.func @types
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @types(%a : tensor<2x!core.string>, %b : !core.sequence<tensor<*xf32>>, %c : !core.optional<tensor<2xf32>>) {
  func.return
}
