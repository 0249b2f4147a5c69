// RUN: opt-tool %s --pass-pipeline=merge-products,dce --split-input-file | filecheck %s

// q and k come from x, v does not. Two heads of k, three columns each, lie behind those of q.
// CHECK-LABEL: @two
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[}}1.0, 1.0, 1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0, 4.0, 5.0, 6.0{{\]}}]>
// CHECK-NEXT:    %[[M:.*]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]>
// CHECK-NEXT:    %[[S:.*]] = core.add %[[M]], %[[B]]
// CHECK-NEXT:    %[[R:.*]] = core.reshape %[[S]] [1, 5, 2, 3]
// CHECK-NEXT:    %[[Q:.*]], %[[K:.*]] = core.split %[[R]] axis 2 sizes [1, 1]
// CHECK-NEXT:    core.attention %[[Q]], %[[K]], %v {scale = 5.000000e-01 : f64}
func.func @two(%x : tensor<1x5x2xf32>, %v : tensor<1x5x1x4xf32>) -> tensor<1x5x1x4xf32> {
  %a = core.constant dense<1.0> : tensor<2x3xf32>
  %b = core.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %c = core.constant dense<[0.0, 1.0, 2.0]> : tensor<3xf32>
  %d = core.constant dense<[[[3.0, 4.0, 5.0]]]> : tensor<1x1x3xf32>
  %0 = core.matmul %x, %a : (tensor<1x5x2xf32>, tensor<2x3xf32>) -> tensor<1x5x3xf32>
  %1 = core.add %0, %c : (tensor<1x5x3xf32>, tensor<3xf32>) -> tensor<1x5x3xf32>
  %q = core.reshape %1 [1, 5, 1, 3] : (tensor<1x5x3xf32>) -> tensor<1x5x1x3xf32>
  %2 = core.matmul %x, %b : (tensor<1x5x2xf32>, tensor<2x3xf32>) -> tensor<1x5x3xf32>
  %3 = core.add %2, %d : (tensor<1x5x3xf32>, tensor<1x1x3xf32>) -> tensor<1x5x3xf32>
  %k = core.reshape %3 [1, 5, 1, 3] : (tensor<1x5x3xf32>) -> tensor<1x5x1x3xf32>
  %y = core.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<1x5x1x3xf32>, tensor<1x5x1x3xf32>, tensor<1x5x1x4xf32>) -> tensor<1x5x1x4xf32>
  func.return %y : tensor<1x5x1x4xf32>
}

// -----

// All three, without biases, and as many rows as there are at run time.
// CHECK-LABEL: @three
// CHECK-COUNT-1: core.matmul
// CHECK-NOT:     core.matmul
// CHECK:         %[[Q:.*]], %[[K:.*]], %[[V:.*]] = core.split {{.*}} axis 1 sizes [2, 2, 2]
// CHECK-NEXT:    core.attention %[[Q]], %[[K]], %[[V]]
func.func @three(%x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>> {
  %a = core.constant dense<[[1.0, 2.0, 3.0, 1.5], [4.0, 5.0, 6.0, 0.5]]> : tensor<2x4xf32>
  %b = core.constant dense<[[1.0, 2.0, -3.0, -1.5], [4.0, -5.0, 6.0, 0.25]]> : tensor<2x4xf32>
  %c = core.constant dense<[[0.0, 1.0, 2.0, 0.5], [1.0, 0.0, -2.0, 4.5]]> : tensor<2x4xf32>
  %0 = core.matmul %x, %a : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<2x4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %q = core.reshape %0 [n, 2, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>
  %1 = core.matmul %x, %b : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<2x4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %k = core.reshape %1 [n, 2, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>
  %2 = core.matmul %x, %c : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<2x4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %v = core.reshape %2 [n, 2, 2] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>
  %y = core.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>, tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>, tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>) -> tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>
  func.return %y : tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>
}

// -----

// Rows of different values; and one weight that is not known.
// CHECK-LABEL: @other_rows
// CHECK-COUNT-2: core.matmul
// CHECK-LABEL: @unknown_weight
// CHECK-COUNT-2: core.matmul
func.func @other_rows(%x : tensor<5x2xf32>, %z : tensor<5x2xf32>) -> tensor<5x2x2xf32> {
  %a = core.constant dense<[[1.0, 2.0, 3.0, 1.5], [4.0, 5.0, 6.0, 0.5]]> : tensor<2x4xf32>
  %0 = core.matmul %x, %a : (tensor<5x2xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
  %q = core.reshape %0 [5, 2, 2] : (tensor<5x4xf32>) -> tensor<5x2x2xf32>
  %1 = core.matmul %z, %a : (tensor<5x2xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
  %k = core.reshape %1 [5, 2, 2] : (tensor<5x4xf32>) -> tensor<5x2x2xf32>
  %y = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<5x2x2xf32>, tensor<5x2x2xf32>, tensor<5x2x2xf32>) -> tensor<5x2x2xf32>
  func.return %y : tensor<5x2x2xf32>
}
func.func @unknown_weight(%x : tensor<5x2xf32>, %a : tensor<2x4xf32>, %v : tensor<5x2x2xf32>) -> tensor<5x2x2xf32> {
  %b = core.constant dense<[[1.0, 2.0, 3.0, 1.5], [4.0, 5.0, 6.0, 0.5]]> : tensor<2x4xf32>
  %0 = core.matmul %x, %a : (tensor<5x2xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
  %q = core.reshape %0 [5, 2, 2] : (tensor<5x4xf32>) -> tensor<5x2x2xf32>
  %1 = core.matmul %x, %b : (tensor<5x2xf32>, tensor<2x4xf32>) -> tensor<5x4xf32>
  %k = core.reshape %1 [5, 2, 2] : (tensor<5x4xf32>) -> tensor<5x2x2xf32>
  %y = core.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<5x2x2xf32>, tensor<5x2x2xf32>, tensor<5x2x2xf32>) -> tensor<5x2x2xf32>
  func.return %y : tensor<5x2x2xf32>
}

// -----

// What is added differs from row to row; and heads that are no part of the columns.
// CHECK-LABEL: @positions
// CHECK-COUNT-2: core.matmul
// CHECK-LABEL: @mixed_rows
// CHECK-COUNT-2: core.matmul
func.func @positions(%x : tensor<4x2xf32>, %v : tensor<4x2x2xf32>) -> tensor<4x2x2xf32> {
  %a = core.constant dense<[[1.0, 2.0, 3.0, 1.5], [4.0, 5.0, 6.0, 0.5]]> : tensor<2x4xf32>
  %b = core.constant dense<[[1.0, 2.0, -3.0, -1.5], [4.0, -5.0, 6.0, 0.25]]> : tensor<2x4xf32>
  %c = core.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %0 = core.matmul %x, %a : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = core.add %0, %c : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %q = core.reshape %1 [4, 2, 2] : (tensor<4x4xf32>) -> tensor<4x2x2xf32>
  %2 = core.matmul %x, %b : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %3 = core.add %2, %c : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %k = core.reshape %3 [4, 2, 2] : (tensor<4x4xf32>) -> tensor<4x2x2xf32>
  %y = core.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<4x2x2xf32>, tensor<4x2x2xf32>, tensor<4x2x2xf32>) -> tensor<4x2x2xf32>
  func.return %y : tensor<4x2x2xf32>
}
func.func @mixed_rows(%x : tensor<4x2xf32>, %v : tensor<2x4x2xf32>) -> tensor<2x4x2xf32> {
  %a = core.constant dense<[[1.0, 2.0, 3.0, 1.5], [4.0, 5.0, 6.0, 0.5]]> : tensor<2x4xf32>
  %b = core.constant dense<[[1.0, 2.0, -3.0, -1.5], [4.0, -5.0, 6.0, 0.25]]> : tensor<2x4xf32>
  %0 = core.matmul %x, %a : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %q = core.reshape %0 [2, 4, 2] : (tensor<4x4xf32>) -> tensor<2x4x2xf32>
  %1 = core.matmul %x, %b : (tensor<4x2xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %k = core.reshape %1 [2, 4, 2] : (tensor<4x4xf32>) -> tensor<2x4x2xf32>
  %y = core.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<2x4x2xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  func.return %y : tensor<2x4x2xf32>
}

// -----

// The rows are those of two sequences.
// CHECK-LABEL: @sequences
// CHECK:         core.reshape {{.*}} [2, 3, 4, 2]
// CHECK-NEXT:    core.split {{.*}} axis 2 sizes [2, 2]
func.func @sequences(%x : tensor<6x2xf32>, %v : tensor<2x3x2x2xf32>) -> tensor<2x3x2x2xf32> {
  %a = core.constant dense<[[1.0, 2.0, 3.0, 1.5], [4.0, 5.0, 6.0, 0.5]]> : tensor<2x4xf32>
  %b = core.constant dense<[[1.0, 2.0, -3.0, -1.5], [4.0, -5.0, 6.0, 0.25]]> : tensor<2x4xf32>
  %0 = core.matmul %x, %a : (tensor<6x2xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %q = core.reshape %0 [2, 3, 2, 2] : (tensor<6x4xf32>) -> tensor<2x3x2x2xf32>
  %1 = core.matmul %x, %b : (tensor<6x2xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %k = core.reshape %1 [2, 3, 2, 2] : (tensor<6x4xf32>) -> tensor<2x3x2x2xf32>
  %y = core.attention %q, %k, %v {scale = 1.0 : f64} : (tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>) -> tensor<2x3x2x2xf32>
  func.return %y : tensor<2x3x2x2xf32>
}
