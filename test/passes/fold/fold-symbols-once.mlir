// RUN: opt-tool %s --pass-pipeline=fold-symbols,fold-symbols --rewrite-log 2>&1 | filecheck %s

// The name for the iterations stays, for what is collected; it is no size any more, and found once.
// CHECK:         1 fold-symbols/fold-symbol on core.loop: t is 4
// CHECK-NOT:     fold-symbols/
// CHECK:         count = "t"
func.func @main(%x : tensor<f32>) -> tensor<?xf32, #core.tensor<dims = [t]>> {
  %n = core.constant dense<4> : tensor<i64>
  %a, %s = core.loop trip %n : tensor<i64> carry %x : tensor<f32> -> tensor<f32>, tensor<?xf32, #core.tensor<dims = [t]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %q, %q : tensor<f32>, tensor<f32>
  } {count = "t"}
  func.return %s : tensor<?xf32, #core.tensor<dims = [t]>>
}
