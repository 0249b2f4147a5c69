// RUN: opt-tool %s -p 'builtin.module(fold,simplify,dce)' --print-ir-after=fold 2>&1 >/dev/null | filecheck %s --check-prefix AFTER
// RUN: opt-tool %s --pass-pipeline=fold,simplify,dce --print-ir-after=fold 2>&1 >/dev/null | filecheck %s --check-prefix AFTER
// RUN: opt-tool %s --pass-pipeline=fold,simplify,dce --print-ir-before=dce 2>&1 >/dev/null | filecheck %s --check-prefix BEFORE
// RUN: opt-tool %s --pass-pipeline=fold,simplify,dce --print-ir-diff 2>&1 >/dev/null | filecheck %s --check-prefix DIFF
// RUN: opt-tool %s --pass-pipeline=fold,simplify,dce --print-ir-diff --print-ir-after=dce 2>&1 >/dev/null | filecheck %s --check-prefix NONE --allow-empty
// RUN: opt-tool %s --pass-pipeline=dce --print-ir-after=dce --elide-above=12 2>&1 >/dev/null | filecheck %s --check-prefix ELIDED
// RUN: opt-tool %s --pass-pipeline=fold,simplify,dce --print-ir-after-change 2>&1 >/dev/null | filecheck %s --check-prefix CHANGE
// RUN: opt-tool %s --pass-pipeline=fold,dce --print-ir-before-all 2>&1 >/dev/null | filecheck %s --check-prefix ALL
// RUN: not opt-tool %s --pass-pipeline=fold --print-ir-after=fuld 2>&1 | filecheck %s --check-prefix UNKNOWN

func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = core.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %y = core.neg %x : (tensor<3xf32>) -> tensor<3xf32>
  %z = core.neg %y : (tensor<3xf32>) -> tensor<3xf32>
  %r = core.add %z, %c : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %r : tensor<3xf32>
}

// AFTER: IR after fold
// AFTER: core.neg
// AFTER-NOT: IR after

// BEFORE: IR before dce
// BEFORE-NOT: core.neg
// BEFORE-NOT: IR after

// CHANGE-NOT: after fold
// CHANGE: IR after simplify
// CHANGE-NOT: core.neg
// CHANGE-NOT: after dce

// ALL: IR before fold
// ALL: IR before dce
// ALL-NOT: IR after

// DIFF-NOT: after fold
// DIFF: --- before simplify
// DIFF-NEXT: +++ after simplify
// DIFF: -    %y = core.neg %x
// DIFF-NOT: after dce

// NONE-NOT: core

// ELIDED: core.constant dense<...> : tensor<3xf32>

// UNKNOWN: opt-tool: no pass 'fuld'; did you mean
