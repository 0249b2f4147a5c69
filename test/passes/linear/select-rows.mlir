// RUN: opt-tool %s --pass-pipeline=select-rows --split-input-file | filecheck %s

// An index outside of the matrix selects nothing; one that is no position is not moved to another.
// CHECK-LABEL: @embedding
// CHECK-NOT:     core.matmul
// CHECK:         %[[L:.*]] = core.min %i, %{{.*}}
// CHECK:         %[[I:.*]] = core.max %[[L]], %{{.*}}
// CHECK:         %[[F:.*]] = core.reshape %[[I]] [2, 3]
// CHECK-NEXT:    %[[R:.*]] = core.gather %w, %[[F]] axis 0 {inside}
// CHECK-NEXT:    %[[C:.*]] = core.compare eq %[[I]], %i
// CHECK:         %[[Y:.*]] = core.select %[[C]], %[[R]], %{{.*}}
// CHECK-NEXT:    func.return %[[Y]]
func.func @embedding(%i : tensor<2x3x1xi32>) -> tensor<2x3x2xf32> {
  %n = core.constant dense<[[[0, 1, 2, 3]]]> : tensor<1x1x4xi32>
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %e = core.compare eq %n, %i : (tensor<1x1x4xi32>, tensor<2x3x1xi32>) -> tensor<2x3x4xi1>
  %h = core.cast %e to f32 : (tensor<2x3x4xi1>) -> tensor<2x3x4xf32>
  %y = core.matmul %h, %w : (tensor<2x3x4xf32>, tensor<4x2xf32>) -> tensor<2x3x2xf32>
  func.return %y : tensor<2x3x2xf32>
}

// -----

// Spelled by numbers.
// CHECK-LABEL: @selected
// CHECK:         core.gather
func.func @selected(%i : tensor<3x1xi64>) -> tensor<3x2xf64> {
  %n = core.constant dense<[0, 1]> : tensor<2xi64>
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf64>
  %e = core.compare eq %i, %n : (tensor<3x1xi64>, tensor<2xi64>) -> tensor<3x2xi1>
  %1 = core.constant dense<1.0> : tensor<f64>
  %0 = core.constant dense<0.0> : tensor<f64>
  %h = core.select %e, %1, %0 : (tensor<3x2xi1>, tensor<f64>, tensor<f64>) -> tensor<3x2xf64>
  %y = core.matmul %h, %w : (tensor<3x2xf64>, tensor<2x2xf64>) -> tensor<3x2xf64>
  func.return %y : tensor<3x2xf64>
}

// -----

// The sum of zeros may be 0 where the row has -0.
// CHECK-LABEL: @negative_zero
// CHECK-NOT:     core.gather
func.func @negative_zero(%i : tensor<3x1xi64>) -> tensor<3x2xf32> {
  %n = core.constant dense<[0, 1]> : tensor<2xi64>
  %w = core.constant dense<[[1.0, -0.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %e = core.compare eq %i, %n : (tensor<3x1xi64>, tensor<2xi64>) -> tensor<3x2xi1>
  %h = core.cast %e to f32 : (tensor<3x2xi1>) -> tensor<3x2xf32>
  %y = core.matmul %h, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Two columns hold a one for the same index; a row has ones for all other indices.
// CHECK-LABEL: @others
// CHECK-NOT:     core.gather
func.func @others(%i : tensor<3x1xi64>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  %n = core.constant dense<[0, 0]> : tensor<2xi64>
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %e = core.compare eq %i, %n : (tensor<3x1xi64>, tensor<2xi64>) -> tensor<3x2xi1>
  %h = core.cast %e to f32 : (tensor<3x2xi1>) -> tensor<3x2xf32>
  %y = core.matmul %h, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %m = core.constant dense<[0, 1]> : tensor<2xi64>
  %f = core.compare ne %i, %m : (tensor<3x1xi64>, tensor<2xi64>) -> tensor<3x2xi1>
  %g = core.cast %f to f32 : (tensor<3x2xi1>) -> tensor<3x2xf32>
  %z = core.matmul %g, %w : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  func.return %y, %z : tensor<3x2xf32>, tensor<3x2xf32>
}
