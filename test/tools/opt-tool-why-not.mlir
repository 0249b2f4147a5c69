// RUN: opt-tool %s -p simplify-arithmetic --why-not=move-constant-right,simplify-arithmetic/drop-neutral-operand,elsewhere 2>&1 | filecheck %s

// The line of the condition, also in a method that match calls; and what was made.
// CHECK-DAG: simplify-arithmetic/move-constant-right does not match {{.*}}why-not.mlir:{{[0-9]+}}:3: op 'core.mul': {{.*}}simplify_arithmetic.py:{{[0-9]+}}: if not isinstance(left.owner, ConstantOp)
// CHECK-DAG: simplify-arithmetic/drop-neutral-operand does not match {{.*}}why-not.mlir:{{[0-9]+}}:3: op 'core.mul': {{.*}}simplify_arithmetic.py:{{[0-9]+}}: for
// CHECK-DAG: 1 simplify-arithmetic/move-constant-right on core.add
// CHECK-DAG: opt-tool: --why-not: 'elsewhere' was tried at no op

func.func @main(%x : tensor<4xf32>, %y : tensor<4xf32>) -> tensor<4xf32> {
  %two = core.constant dense<2.0> : tensor<f32>
  %a = core.mul %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = core.add %two, %a : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %b : tensor<4xf32>
}
