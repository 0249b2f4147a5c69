// RUN: opt-tool %s --pass-pipeline=post | filecheck %s
// RUN: not opt-tool %s --pass-pipeline=post --disable=post 2>&1 | filecheck %s --check-prefix=NEEDED
// RUN: not opt-tool %s --compile-to=optimized --disable=post 2>&1 | filecheck %s --check-prefix=NEEDED

// Ranks that are known by now reach the results.
// CHECK-LABEL: @main
// CHECK:         core.exp %{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
// NEEDED: 'post' cannot be disabled: the passes after it need its output
func.func @main(%x : tensor<4xf32>) -> tensor<*xf32> {
  %a = "core.exp"(%x) : (tensor<4xf32>) -> tensor<*xf32>
  func.return %a : tensor<*xf32>
}
