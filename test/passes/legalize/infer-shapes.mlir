// RUN: opt-tool %s --pass-pipeline=infer-shapes --split-input-file | filecheck %s

// CHECK-LABEL: @chain
// CHECK-SAME:    -> tensor<3x?xf32, #core.tensor<dims = [3, n]>>
// CHECK:         core.transpose {{.*}} -> tensor<3x?xf32, #core.tensor<dims = [3, n]>>
func.func @chain(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<*xf32> {
  %a = core.exp %x : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<*xf32>
  %b = core.transpose %a [1, 0] : (tensor<*xf32>) -> tensor<*xf32>
  func.return %b : tensor<*xf32>
}

// -----

// The carried value has the type of its initial value, the scan output the loop's count in front.
// CHECK-LABEL: @loop
// CHECK:         core.loop {{.*}} -> tensor<2xf32>, tensor<?x2xf32, #core.tensor<dims = [t, 2]>>
// CHECK:         ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<2xf32>)
func.func @loop(%n : tensor<i64>, %x : tensor<2xf32>) -> tensor<*xf32> {
  %e = core.exp %x : (tensor<2xf32>) -> tensor<*xf32>
  %a, %s = core.loop trip %n : tensor<i64> carry %e : tensor<*xf32> -> tensor<*xf32>, tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %p : tensor<*xf32>):
    %q = core.neg %p : (tensor<*xf32>) -> tensor<*xf32>
    core.yield %q, %q : tensor<*xf32>, tensor<*xf32>
  } {count = "t"}
  func.return %s : tensor<*xf32>
}

// -----

// Both branches yield what the result is; where they name it differently, a reshape agrees.
// CHECK-LABEL: @branches
// CHECK:         core.if {{.*}} -> tensor<2xf32>, tensor<?xf32, #core.tensor<dims = [n]>>
// CHECK:           core.yield
// CHECK:         } else {
// CHECK:           core.reshape %y [n]
func.func @branches(%c : tensor<i1>, %z : tensor<2xf32>, %x : tensor<?xf32, #core.tensor<dims = [n]>>, %y : tensor<?xf32, #core.tensor<dims = [m]>>) -> (tensor<*xf32>, tensor<?xf32, #core.tensor<dims = [n]>>) {
  %a, %b = core.if %c : tensor<i1> -> tensor<*xf32>, tensor<?xf32, #core.tensor<dims = [n]>> {
    %e = core.exp %z : (tensor<2xf32>) -> tensor<*xf32>
    core.yield %e, %x : tensor<*xf32>, tensor<?xf32, #core.tensor<dims = [n]>>
  } else {
    %e = core.neg %z : (tensor<2xf32>) -> tensor<*xf32>
    %f = core.reshape %y [n] : (tensor<?xf32, #core.tensor<dims = [m]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
    core.yield %e, %f : tensor<*xf32>, tensor<?xf32, #core.tensor<dims = [n]>>
  }
  func.return %a, %b : tensor<*xf32>, tensor<?xf32, #core.tensor<dims = [n]>>
}

// -----

// Sizes that are symbols of the op may be any in its regions, and are never reshaped.
// CHECK-LABEL: @sizes
// CHECK:         core.if {{.*}} -> tensor<?x3xf32, #core.tensor<dims = [r, 3]>> {
// CHECK-NEXT:      core.yield %x
// CHECK:         core.loop {{.*}} carry %x : tensor<2x3xf32> -> tensor<?x3xf32, #core.tensor<dims = [p, 3]>> {
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      core.concat {{.*}} -> tensor<?x3xf32, #core.tensor<dims = [s + 2, 3]>>
// CHECK-NEXT:      core.reshape
// CHECK-NEXT:      core.yield %{{.*}} : tensor<?x3xf32, #core.tensor<dims = [s + 2, 3]>>
func.func @sizes(%c : tensor<i1>, %n : tensor<i64>, %x : tensor<2x3xf32>, %y : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> (tensor<?x3xf32, #core.tensor<dims = [r, 3]>>, tensor<?x3xf32, #core.tensor<dims = [p, 3]>>) {
  %a = core.if %c : tensor<i1> -> tensor<?x3xf32, #core.tensor<dims = [r, 3]>> {
    core.yield %x : tensor<2x3xf32>
  } else {
    core.yield %y : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  } {result_symbols = ["r"]}
  %z = core.loop trip %n : tensor<i64> carry %x : tensor<2x3xf32> -> tensor<?x3xf32, #core.tensor<dims = [p, 3]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x3xf32, #core.tensor<dims = [s, 3]>>):
    %e = core.concat %v, %x axis 0 : (tensor<?x3xf32, #core.tensor<dims = [s, 3]>>, tensor<2x3xf32>) -> tensor<*xf32>
    %f = core.reshape %e [s + 2, 3] : (tensor<*xf32>) -> tensor<?x3xf32, #core.tensor<dims = [s + 2, 3]>>
    core.yield %f : tensor<?x3xf32, #core.tensor<dims = [s + 2, 3]>>
  } {carried_symbols = ["s"], result_symbols = ["p"]}
  func.return %a, %z : tensor<?x3xf32, #core.tensor<dims = [r, 3]>>, tensor<?x3xf32, #core.tensor<dims = [p, 3]>>
}
