// RUN: opt-tool %s --precision=int8 --pass-pipeline=quantize-layers --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=quantize-layers --split-input-file | filecheck %s --check-prefix=NONE

// Rows of a model with a normalization of rows are tokens: each has a range of its own.
// CHECK-LABEL: @tokens
// CHECK:         %[[A:.*]] = core.abs %[[N:.*]] :
// CHECK-NEXT:    %[[M:.*]] = core.reduce max %[[A]] [1] {keep_dims = true}
// CHECK:         %[[L:.*]] = core.max %[[M]], %{{.*}}
// CHECK:         %[[R:.*]] = core.div %{{.*}}, %[[L]]
// CHECK-NEXT:    %[[X:.*]] = core.mul %[[N]], %[[R]]
// CHECK-NEXT:    core.round %[[X]]
// CHECK:         %[[Q:.*]] = core.cast %{{.*}} to i8
// CHECK:         core.constant {{.*}} : tensor<4x2xi8>
// CHECK-NEXT:    %[[T:.*]] = core.matmul %[[Q]], %{{.*}} in i32
// CHECK:         core.mul %{{.*}} (tensor<3x2xf32>, tensor<1x2xf32>)
// CHECK:         core.mul %[[L]], %{{.*}}
// CHECK:         core.mul %{{.*}} (tensor<3x2xf32>, tensor<3x1xf32>)
// NONE-NOT:      i8
func.func @tokens(%x : tensor<3x4xf32>) -> tensor<3x2xf32> {
  %s = core.constant dense<1.0> : tensor<4xf32>
  %n = core.layer_norm %x, %s axis 1 {epsilon = 1.0e-05 : f64} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %w = core.constant dense<0.5> : tensor<4x2xf32>
  %y = core.matmul %n, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Computed weights have no layer, so that no range is asked for.
// CHECK-LABEL: @others
// CHECK-NOT:     i8
func.func @others(%x : tensor<3x2xf32>, %v : tensor<2x5xf32>) -> tensor<3x5xf32> {
  %z = core.matmul %x, %v : (tensor<3x2xf32>, tensor<2x5xf32>) -> tensor<3x5xf32>
  func.return %z : tensor<3x5xf32>
}
