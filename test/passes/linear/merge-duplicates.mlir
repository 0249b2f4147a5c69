// RUN: opt-tool %s --pass-pipeline='merge-duplicates{everywhere=true},fold-constants,dce' --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=merge-duplicates,simplify,fold-constants,dce --split-input-file | filecheck %s --check-prefix=JOINED

// Filters one after the other, also if a constant stands behind the first convolution.
// CHECK-LABEL: @filters
// CHECK-DAG:     %[[W:.*]] = core.constant dense<[{{\[\[}}1.0]], {{\[\[}}2.0]], {{\[\[}}3.0]]]>
// CHECK-DAG:     %[[B:.*]] = core.constant dense<[4.0, 5.0, 6.0]>
// CHECK:         %[[C:.*]] = core.conv %x, %[[W]], %[[B]] strides [2]
// CHECK:         %[[M:.*]] = core.max %[[C]], %{{.*}}
// CHECK-NEXT:    %[[P:.*]], %[[Q:.*]] = core.split %[[M]] axis 1 sizes [1, 2]
// CHECK-NEXT:    func.return %[[P]], %[[Q]]
func.func @filters(%x : tensor<2x1x5xf32>) -> (tensor<2x1x3xf32>, tensor<2x2x3xf32>) {
  %v = core.constant dense<1.0> : tensor<1x1x1xf32>
  %b = core.constant dense<4.0> : tensor<1xf32>
  %0 = core.conv %x, %v, %b strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<2x1x5xf32>, tensor<1x1x1xf32>, tensor<1xf32>) -> tensor<2x1x3xf32>
  %w = core.constant dense<[[[2.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %c = core.constant dense<[5.0, 6.0]> : tensor<2xf32>
  %1 = core.conv %x, %w, %c strides [2] dilations [1] pads [0] [0] groups 1 : (tensor<2x1x5xf32>, tensor<2x1x1xf32>, tensor<2xf32>) -> tensor<2x2x3xf32>
  %zero = core.constant dense<0.0> : tensor<f32>
  %2 = core.max %0, %zero : (tensor<2x1x3xf32>, tensor<f32>) -> tensor<2x1x3xf32>
  %3 = core.max %1, %zero : (tensor<2x2x3xf32>, tensor<f32>) -> tensor<2x2x3xf32>
  func.return %2, %3 : tensor<2x1x3xf32>, tensor<2x2x3xf32>
}

// -----

// Columns of both products, with rows of either form; the last maps are different.
// CHECK-LABEL: @columns
// CHECK-DAG:     %[[W:.*]] = core.constant dense<[{{\[}}1.0, 3.0, 4.0], [2.0, 5.0, 6.0]]>
// CHECK-DAG:     %[[B:.*]] = core.constant dense<[7.0, 8.0, 9.0]>
// CHECK-DAG:     %[[P:.*]] = core.matmul %x, %[[W]]
// CHECK:         %[[S:.*]] = core.add %[[P]], %[[B]]
// CHECK-NEXT:    %[[T:.*]] = core.tanh %[[S]]
// CHECK-NEXT:    %[[Q:.*]], %[[R:.*]] = core.split %[[T]] axis 2 sizes [1, 2]
// CHECK-NEXT:    core.exp %[[Q]]
// CHECK-NEXT:    core.abs %[[R]]
func.func @columns(%x : tensor<3x4x2xf32>) -> (tensor<3x4x1xf32>, tensor<3x4x2xf32>) {
  %v = core.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %w = core.constant dense<[[3.0, 4.0], [5.0, 6.0]]> : tensor<2x2xf32>
  %b = core.constant dense<[7.0]> : tensor<1xf32>
  %c = core.constant dense<[[8.0, 9.0]]> : tensor<1x2xf32>
  %0 = core.matmul %x, %v : (tensor<3x4x2xf32>, tensor<2x1xf32>) -> tensor<3x4x1xf32>
  %1 = core.add %0, %b : (tensor<3x4x1xf32>, tensor<1xf32>) -> tensor<3x4x1xf32>
  %2 = core.tanh %1 : (tensor<3x4x1xf32>) -> tensor<3x4x1xf32>
  %3 = core.exp %2 : (tensor<3x4x1xf32>) -> tensor<3x4x1xf32>
  %4 = core.matmul %x, %w : (tensor<3x4x2xf32>, tensor<2x2xf32>) -> tensor<3x4x2xf32>
  %5 = core.add %4, %c : (tensor<3x4x2xf32>, tensor<1x2xf32>) -> tensor<3x4x2xf32>
  %6 = core.tanh %5 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  %7 = core.abs %6 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32>
  func.return %3, %7 : tensor<3x4x1xf32>, tensor<3x4x2xf32>
}

// -----

// Other windows, other inputs, an input that is the right matrix, a weight that is computed, a bias
// on one side only, and groups, whose filters would have to be shuffled.
// CHECK-LABEL: @windows
// CHECK-COUNT-2: core.conv
// CHECK-LABEL: @inputs
// CHECK-COUNT-2: core.matmul
// CHECK-LABEL: @right
// CHECK-COUNT-2: core.matmul
// CHECK-LABEL: @computed
// CHECK-COUNT-2: core.matmul
// CHECK-LABEL: @one_bias
// CHECK-COUNT-2: core.conv
// CHECK-LABEL: @groups
// CHECK-COUNT-2: core.conv
func.func @windows(%x : tensor<1x1x5xf32>) -> (tensor<1x1x5xf32>, tensor<1x1x5xf32>) {
  %w = core.constant dense<[[[2.0, 3.0]]]> : tensor<1x1x2xf32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [1] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x5xf32>
  %1 = core.conv %x, %w strides [1] dilations [1] pads [1] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x5xf32>
  func.return %0, %1 : tensor<1x1x5xf32>, tensor<1x1x5xf32>
}
func.func @inputs(%x : tensor<2x2xf32>, %y : tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = core.constant dense<[[1.0, 2.0], [2.0, 5.0]]> : tensor<2x2xf32>
  %0 = core.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = core.matmul %y, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}
func.func @right(%x : tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = core.constant dense<[[1.0, 2.0], [2.0, 5.0]]> : tensor<2x2xf32>
  %0 = core.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = core.matmul %w, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}
func.func @computed(%x : tensor<2x2xf32>, %v : tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = core.constant dense<[[1.0, 2.0], [2.0, 5.0]]> : tensor<2x2xf32>
  %0 = core.matmul %x, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = core.matmul %x, %v : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}
func.func @one_bias(%x : tensor<1x1x5xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  %w = core.constant dense<[[[2.0, 3.0]]]> : tensor<1x1x2xf32>
  %v = core.constant dense<[[[4.0, 3.0]]]> : tensor<1x1x2xf32>
  %b = core.constant dense<[2.0]> : tensor<1xf32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  %1 = core.conv %x, %v, %b strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<1x1x2xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  func.return %0, %1 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}
func.func @groups(%x : tensor<1x2x5xf32>) -> (tensor<1x2x5xf32>, tensor<1x2x5xf32>) {
  %w = core.constant dense<[[[2.0]], [[3.0]]]> : tensor<2x1x1xf32>
  %v = core.constant dense<[[[4.0]], [[5.0]]]> : tensor<2x1x1xf32>
  %0 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x2x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  %1 = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<1x2x5xf32>, tensor<2x1x1xf32>) -> tensor<1x2x5xf32>
  func.return %0, %1 : tensor<1x2x5xf32>, tensor<1x2x5xf32>
}

// -----

// One column: a number without dimensions is a row, too.
// CHECK-LABEL: @one_column
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<{{\[\[}}2.0, 4.0]]> : tensor<1x2xf32>
// CHECK-NEXT:    %[[P:.*]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[3.0, 5.0]> : tensor<2xf32>
// CHECK-NEXT:    %[[S:.*]] = core.add %[[P]], %[[B]]
// CHECK-NEXT:    core.split %[[S]] axis 1 sizes [1, 1]
func.func @one_column(%x : tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %w = core.constant dense<2.0> : tensor<1x1xf32>
  %v = core.constant dense<4.0> : tensor<1x1xf32>
  %b = core.constant dense<3.0> : tensor<1x1xf32>
  %c = core.constant dense<5.0> : tensor<f32>
  %0 = core.matmul %x, %w : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %1 = core.add %0, %b : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %2 = core.matmul %x, %v : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %3 = core.add %2, %c : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  func.return %1, %3 : tensor<2x1xf32>, tensor<2x1xf32>
}

// -----

// The first two are joined, with a pool behind them; the third is needed on its own, and the fourth
// is not next to them. Results that are not joined stay where they are.
// JOINED-LABEL: @joined
// JOINED:         %[[C:.*]] = core.conv %x, %{{.*}} -> tensor<1x5x4xf32>
// JOINED:         %[[M:.*]] = core.max %[[C]], %{{.*}}
// JOINED:         core.concat %[[M]], %x, %{{.*}} axis 1
// JOINED-LABEL: @not_joined
// JOINED-COUNT-2: core.matmul
func.func @joined(%x : tensor<1x2x4xf32>) -> (tensor<1x9x4xf32>, tensor<1x1x4xf32>) {
  %z = core.constant dense<0.0> : tensor<f32>
  %u = core.constant dense<1.0> : tensor<2x2x1xf32>
  %v = core.constant dense<2.0> : tensor<3x2x1xf32>
  %w = core.constant dense<3.0> : tensor<1x2x1xf32>
  %0 = core.conv %x, %u strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %1 = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<3x2x1xf32>) -> tensor<1x3x4xf32>
  %2 = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<1x2x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %x, %u strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<2x2x1xf32>) -> tensor<1x2x4xf32>
  %4 = core.max %0, %z : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
  %5 = core.max %1, %z : (tensor<1x3x4xf32>, tensor<f32>) -> tensor<1x3x4xf32>
  %6 = core.max %3, %z : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
  %7 = core.concat %4, %5, %x, %6 axis 1 : (tensor<1x2x4xf32>, tensor<1x3x4xf32>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x9x4xf32>
  func.return %7, %2 : tensor<1x9x4xf32>, tensor<1x1x4xf32>
}
func.func @not_joined(%x : tensor<4x2xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %v = core.constant dense<1.0> : tensor<2x3xf32>
  %w = core.constant dense<2.0> : tensor<2x3xf32>
  %0 = core.matmul %x, %v : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %1 = core.matmul %x, %w : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  func.return %0, %1 : tensor<4x3xf32>, tensor<4x3xf32>
}
