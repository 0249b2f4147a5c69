// RUN: opt-tool %s --compile-to=optimized | filecheck %s --check-prefix=EXACT
// RUN: opt-tool %s --compile-to=optimized --fast-math --disable=fast-math | filecheck %s --check-prefix=EXACT
// RUN: opt-tool %s --compile-to=optimized --fast-math | filecheck %s --check-prefix=FAST
// RUN: opt-tool %s --compile-to=c --fast-math | filecheck %s --check-prefix=SOURCE

// The rule is for those who ask for it, and other passes clean up behind it: the dead root is gone.
// EXACT-LABEL: @main
// EXACT:         core.sqrt
// EXACT:         core.div
// FAST-LABEL: @main
// FAST-NOT:     core.sqrt
// FAST:         core.mul %x
// FAST-NEXT:    func.return
// SOURCE:      const float [[V:[a-z0-9_]+]] = v * 3.3333334e-1f;
// SOURCE-NEXT: y0[i] = [[V]];
func.func @main(%x : tensor<3xf32>) -> tensor<3xf32> {
  %r = core.sqrt %x : (tensor<3xf32>) -> tensor<3xf32>
  %s = core.mul %r, %r : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %c = core.constant dense<3.0> : tensor<f32>
  %y = core.div %s, %c : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}
