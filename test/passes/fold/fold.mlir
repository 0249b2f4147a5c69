// RUN: opt-tool %s --pass-pipeline=fold,dce | filecheck %s
// RUN: opt-tool %s --pass-pipeline=fold,dce --disable=fold-control-flow | filecheck %s --check-prefix=KEPT

// Each member feeds the next: the comparison is a constant, decides the branch, which binds a symbol
// to a constant, which makes the reshape the identity.
// CHECK-LABEL: @main
// CHECK-NEXT:    func.return %x
// KEPT-LABEL:  @main
// KEPT:          core.if
func.func @main(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<1> : tensor<i64>
  %b = core.constant dense<2> : tensor<i64>
  %c = core.compare lt %a, %b : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %s = core.if %c : tensor<i1> -> tensor<i64> {
    %t = core.add %a, %a : (tensor<i64>, tensor<i64>) -> tensor<i64>
    core.yield %t : tensor<i64>
  } else {
    core.yield %a : tensor<i64>
  }
  core.bind_symbols %s ["u"] : tensor<i64>
  %r = core.reshape %x [u, 3] : (tensor<2x3xf32>) -> tensor<?x3xf32, #core.tensor<dims = [u, 3]>>
  %q = core.reshape %r [2, 3] : (tensor<?x3xf32, #core.tensor<dims = [u, 3]>>) -> tensor<2x3xf32>
  func.return %q : tensor<2x3xf32>
}
