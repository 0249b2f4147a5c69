// RUN: opt-tool %s | opt-tool | filecheck %s
// RUN: opt-tool %s --print-op-generic | opt-tool | filecheck %s
// RUN: opt-tool %s --pass-pipeline=cse,dce | filecheck %s --check-prefix=PASSES
// RUN: opt-tool %s -p cse --time-passes 2>&1 >%t.out | filecheck %s --check-prefix=TIME
// RUN: opt-tool %s -p cse --pass-statistics 2>&1 >%t.out | filecheck %s --check-prefix=STATISTICS
// RUN: opt-tool %s -p cse --rewrite-log 2>&1 >%t.out | filecheck %s --check-prefix=LOG
// RUN: opt-tool %s -p cse,dce --print-ir-after-all 2>&1 >%t.out | filecheck %s --check-prefix=AFTER
// RUN: opt-tool %s -p cse --rewrite-limit=0 | filecheck %s
// RUN: opt-tool %s -p cse --disable=cse | filecheck %s
// RUN: opt-tool %s -p cse --skip-nodes=second | filecheck %s
// RUN: opt-tool %s -p cse --skip-nodes=no-such-node | filecheck %s --check-prefix=PASSES
// RUN: opt-tool %s -p cse,dce --check-each | filecheck %s --check-prefix=PASSES
// RUN: opt-tool %s --compile-to=optimized | filecheck %s --check-prefix=PASSES
// RUN: opt-tool %s --compile-to=c | filecheck %s --check-prefix=SOURCE

// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[A:.+]] = core.exp %x
// CHECK-NEXT: %[[B:.+]] = core.exp %x
// CHECK-NEXT: %[[C:.+]] = core.add %[[A]], %[[B]]
// CHECK-NEXT: func.return %[[C]]

// PASSES-LABEL: func.func @main
// PASSES-NEXT: %[[A:.+]] = core.exp %x
// PASSES-NEXT: %[[C:.+]] = core.add %[[A]], %[[A]]
// PASSES-NEXT: func.return %[[C]]

// TIME: {{[0-9.]+}} s  cse
// TIME: {{[0-9.]+}} s  in total

// STATISTICS: 1 rewrites 0 skipped  cse/
// STATISTICS: 1 rewrites in total

// LOG: 1 cse/{{.*}} on core.exp{{.*}}'second'

// AFTER: // -----// IR after cse //----- //
// AFTER: core.add
// AFTER: // -----// IR after dce //----- //
// AFTER: core.add

// SOURCE: int opt_tool_run(

func.func @main(%x : tensor<4xf32> {core.name = "x"}) -> (tensor<4xf32> {core.name = "y"}) {
  %a = core.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %b = core.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  %c = core.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}
