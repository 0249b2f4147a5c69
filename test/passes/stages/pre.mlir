// RUN: opt-tool %s --pass-pipeline=pre | filecheck %s
// RUN: opt-tool %s --pass-pipeline=pre --disable=cse | filecheck %s --check-prefix=TWICE
// RUN: opt-tool %s --pass-pipeline=pre --disable=pre | filecheck %s --check-prefix=KEPT
// RUN: opt-tool %s --pass-pipeline=pre --print-ir-after-all 2>&1 -o %t | filecheck %s --check-prefix=EACH

// A product by one goes, and equal exponentials are one; a normalization would stay (`opt`).
// CHECK-LABEL: @main
// CHECK-NEXT:    %[[E:.*]] = core.exp %x
// CHECK-NEXT:    %[[S:.*]] = core.add %[[E]], %[[E]]
// CHECK-NEXT:    func.return %[[S]]
// TWICE-LABEL: @main
// TWICE-COUNT-2: core.exp
// KEPT-LABEL:  @main
// KEPT:          core.mul
// KEPT-COUNT-2:  core.exp

// Each of its passes is seen by itself.
// EACH:     IR after fuse-quantized
// EACH:     IR after fold
// EACH:     IR after cse
// EACH:     IR after dce
// EACH-NOT: IR after pre
func.func @main(%x : tensor<4xf32>) -> tensor<4xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %a = core.mul %x, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = core.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %c = core.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %d = core.add %b, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}
