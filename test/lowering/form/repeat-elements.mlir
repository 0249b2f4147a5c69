// RUN: opt-tool %s --for-target x86-64-v4 --pass-pipeline=form-kernels,repeat-elements --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target c99 --pass-pipeline=form-kernels,repeat-elements --split-input-file | filecheck %s --check-prefix=PLAIN

// PLAIN-NOT: core.broadcast

// Each element twice along the last dimension, and three times along another one, at once.
// CHECK-LABEL: @larger
// CHECK:      core.kernel
// CHECK:      core.reshape %{{.*}} [2, 1, 8, 1]
// CHECK-NEXT: core.broadcast %{{.*}} [2, 3, 8, 2]
// CHECK-NEXT: core.reshape %{{.*}} [6, 16]
// CHECK-NOT:  core.gather
func.func @larger(%x: tensor<2x8xf32>) -> tensor<6x16xf32> {
  %i = core.constant dense<[0, 0, 0, 1, 1, 1]> : tensor<6xi64>
  %j = core.constant dense<[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7]> : tensor<16xi64>
  %z = core.gather %x, %i axis 0 : (tensor<2x8xf32>, tensor<6xi64>) -> tensor<6x8xf32>
  %y = core.gather %z, %j axis 1 : (tensor<6x8xf32>, tensor<16xi64>) -> tensor<6x16xf32>
  func.return %y : tensor<6x16xf32>
}

// -----

// Rows are copied as they are, whoever else needs the ones before.
// CHECK-LABEL: @used_twice
// CHECK:      core.gather %{{.*}} axis 0
// CHECK:      core.broadcast %{{.*}} [4, 2, 2]
func.func @used_twice(%x: tensor<2x2xf32>) -> (tensor<4x4xf32>, tensor<4x2xf32>) {
  %i = core.constant dense<[0, 0, 1, 1]> : tensor<4xi64>
  %z = core.gather %x, %i axis 0 : (tensor<2x2xf32>, tensor<4xi64>) -> tensor<4x2xf32>
  %y = core.gather %z, %i axis 1 : (tensor<4x2xf32>, tensor<4xi64>) -> tensor<4x4xf32>
  func.return %y, %z : tensor<4x4xf32>, tensor<4x2xf32>
}

// -----

// Not all of them as often; not all of them; not in their order; another dimension than the last.
// CHECK-LABEL: @others
// CHECK-NOT: core.broadcast
func.func @others(%x: tensor<3x3xf32>) -> (tensor<3x6xf32>, tensor<3x4xf32>, tensor<3x6xf32>, tensor<6x3xf32>) {
  %i = core.constant dense<[0, 0, 1, 2, 2, 2]> : tensor<6xi64>
  %a = core.gather %x, %i axis 1 : (tensor<3x3xf32>, tensor<6xi64>) -> tensor<3x6xf32>
  %j = core.constant dense<[0, 0, 1, 1]> : tensor<4xi64>
  %b = core.gather %x, %j axis 1 : (tensor<3x3xf32>, tensor<4xi64>) -> tensor<3x4xf32>
  %k = core.constant dense<[0, 0, 2, 2, 1, 1]> : tensor<6xi64>
  %c = core.gather %x, %k axis 1 : (tensor<3x3xf32>, tensor<6xi64>) -> tensor<3x6xf32>
  %l = core.constant dense<[0, 0, 1, 1, 2, 2]> : tensor<6xi64>
  %d = core.gather %x, %l axis 0 : (tensor<3x3xf32>, tensor<6xi64>) -> tensor<6x3xf32>
  func.return %a, %b, %c, %d : tensor<3x6xf32>, tensor<3x4xf32>, tensor<3x6xf32>, tensor<6x3xf32>
}
