// RUN: opt-tool %s --pass-pipeline=sink-reshape,fold-constants --split-input-file | filecheck %s

// A bias a channel, a number and a sum that is computed elsewhere: all of it behind the product.
// CHECK-LABEL: @linear
// CHECK-DAG:     %[[M:.*]] = core.matmul %x, %w
// CHECK:         %[[A:.*]] = core.add %[[M]], %{{.*}} : (tensor<6x4xf32>, tensor<1x4xf32>)
// CHECK:         %[[B:.*]] = core.max %[[A]], %{{.*}} : (tensor<6x4xf32>, tensor<f32>)
// CHECK:         %[[Z:.*]] = core.reshape %z [6, 4]
// CHECK:         %[[C:.*]] = core.add %[[B]], %[[Z]]
// CHECK:         %[[Y:.*]] = core.reshape %[[C]] [2, 3, 4]
// CHECK-NEXT:    func.return %[[Y]]
func.func @linear(%x : tensor<6x5xf32>, %w : tensor<5x4xf32>, %b : tensor<4xf32>, %z : tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %zero = core.constant dense<0.0> : tensor<1x1x1xf32>
  %0 = core.matmul %x, %w : (tensor<6x5xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  %1 = core.reshape %0 [2, 3, 4] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = core.add %1, %b : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  %3 = core.max %2, %zero : (tensor<2x3x4xf32>, tensor<1x1x1xf32>) -> tensor<2x3x4xf32>
  %4 = core.add %3, %z : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %4 : tensor<2x3x4xf32>
}

// -----

// Channels of an image whose rows are taken together, and the only element of a constant whose rank
// the value before the reshape does not have.
// CHECK-LABEL: @image
// CHECK:         %[[P:.*]] = core.pool
// CHECK:         %[[M:.*]] = core.mul %[[P]], %{{.*}} : (tensor<1x2x3x4xf32>, tensor<1x2x1x1xf32>)
// CHECK:         core.reshape %[[M]] [1, 2, 12]
// CHECK-LABEL: @rank
// CHECK:         core.add %{{.*}}, %{{.*}} : (tensor<6xf32>, tensor<f32>)
func.func @image(%x : tensor<1x2x3x4xf32>) -> tensor<1x2x12xf32> {
  %c = core.constant dense<[[2.0], [3.0]]> : tensor<2x1xf32>
  %0 = core.pool sum %x kernel [1, 1] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %1 = core.reshape %0 [1, 2, 12] : (tensor<1x2x3x4xf32>) -> tensor<1x2x12xf32>
  %2 = core.mul %1, %c : (tensor<1x2x12xf32>, tensor<2x1xf32>) -> tensor<1x2x12xf32>
  func.return %2 : tensor<1x2x12xf32>
}
func.func @rank(%x : tensor<6xf32>) -> tensor<2x3xf32> {
  %c = core.constant dense<2.0> : tensor<1x1xf32>
  %0 = core.exp %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = core.reshape %0 [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = core.add %1, %c : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}

// -----

// Two are one; a comparison of them is reshaped as i1.
// CHECK-LABEL: @both
// CHECK-NEXT:    %[[C:.*]] = core.compare lt %x, %y
// CHECK-NEXT:    core.reshape %[[C]] [3, 2] : (tensor<6xi1>) -> tensor<3x2xi1>
// CHECK-LABEL: @other_dims
// CHECK:         core.compare
func.func @both(%x : tensor<6xf32>, %y : tensor<6xf32>) -> tensor<3x2xi1> {
  %0 = core.reshape %x [3, 2] : (tensor<6xf32>) -> tensor<3x2xf32>
  %1 = core.reshape %y [3, 2] : (tensor<6xf32>) -> tensor<3x2xf32>
  %2 = core.compare lt %0, %1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xi1>
  func.return %2 : tensor<3x2xi1>
}
func.func @other_dims(%x : tensor<6xf32>, %y : tensor<2x3xf32>) -> tensor<3x2xi1> {
  %0 = core.reshape %x [3, 2] : (tensor<6xf32>) -> tensor<3x2xf32>
  %1 = core.reshape %y [3, 2] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = core.compare lt %0, %1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xi1>
  func.return %2 : tensor<3x2xi1>
}

// -----

// The sum is done with the product, not with the exponential, which another order would suit.
// CHECK-LABEL: @product_first
// CHECK-DAG:     %[[M:.*]] = core.matmul
// CHECK-DAG:     %[[E:.*]] = core.exp
// CHECK:         %[[F:.*]] = core.reshape %[[E]] [6, 4]
// CHECK:         %[[S:.*]] = core.add %[[M]], %[[F]]
// CHECK-LABEL: @map_and_product
// CHECK:         core.matmul
// CHECK:         core.reshape %{{.*}} [6, 4]
// CHECK:         core.add
// CHECK-NEXT:    func.return
func.func @product_first(%x : tensor<6x5xf32>, %w : tensor<5x4xf32>, %z : tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = core.matmul %x, %w : (tensor<6x5xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  %1 = core.reshape %0 [2, 3, 4] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %2 = core.exp %z : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = core.add %1, %2 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %3 : tensor<2x3x4xf32>
}
func.func @map_and_product(%x : tensor<6x5xf32>, %w : tensor<5x4xf32>, %z : tensor<2x3x4xf32>) -> tensor<6x4xf32> {
  %0 = core.matmul %x, %w : (tensor<6x5xf32>, tensor<5x4xf32>) -> tensor<6x4xf32>
  %1 = core.exp %z : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %2 = core.reshape %1 [6, 4] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %3 = core.add %0, %2 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
  func.return %3 : tensor<6x4xf32>
}

// -----

// Nothing is gained behind an argument, or for a value that is needed anyway; columns of a matrix
// that the reshape divides have no place before it; and what grows is not what was reshaped.
// CHECK-LABEL: @argument
// CHECK:         core.reshape %x
// CHECK-LABEL: @needed_too
// CHECK:         core.reshape
// CHECK-NEXT:    core.abs
// CHECK-LABEL: @divided
// CHECK:         core.reshape
// CHECK-NEXT:    core.add
// CHECK-LABEL: @grows
// CHECK:         core.reshape
// CHECK-NEXT:    core.add
func.func @argument(%x : tensor<6xf32>) -> tensor<2x3xf32> {
  %0 = core.reshape %x [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %1 = core.abs %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
func.func @needed_too(%x : tensor<6xf32>) -> (tensor<6xf32>, tensor<2x3xf32>) {
  %0 = core.exp %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = core.reshape %0 [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = core.abs %1 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0, %2 : tensor<6xf32>, tensor<2x3xf32>
}
func.func @divided(%x : tensor<6xf32>, %c : tensor<3xf32>) -> tensor<2x3xf32> {
  %0 = core.exp %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = core.reshape %0 [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = core.add %1, %c : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}
func.func @grows(%x : tensor<6xf32>, %c : tensor<5x2x3xf32>) -> tensor<5x2x3xf32> {
  %0 = core.exp %x : (tensor<6xf32>) -> tensor<6xf32>
  %1 = core.reshape %0 [2, 3] : (tensor<6xf32>) -> tensor<2x3xf32>
  %2 = core.add %1, %c : (tensor<2x3xf32>, tensor<5x2x3xf32>) -> tensor<5x2x3xf32>
  func.return %2 : tensor<5x2x3xf32>
}

// -----

// Rows of any number: the bias is one a column, which stays a dimension.
// CHECK-LABEL: @open
// CHECK:         %[[M:.*]] = core.matmul %x, %w
// CHECK:         core.add %[[M]], %{{.*}} -> tensor<?x4xf32, #core.tensor<dims = [n * 3, 4]>>
func.func @open(%x : tensor<?x5xf32, #core.tensor<dims = [n * 3, 5]>>, %w : tensor<5x4xf32>, %b : tensor<4xf32>) -> tensor<?x3x4xf32, #core.tensor<dims = [n, 3, 4]>> {
  %0 = core.matmul %x, %w : (tensor<?x5xf32, #core.tensor<dims = [n * 3, 5]>>, tensor<5x4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n * 3, 4]>>
  %1 = core.reshape %0 [n, 3, 4] : (tensor<?x4xf32, #core.tensor<dims = [n * 3, 4]>>) -> tensor<?x3x4xf32, #core.tensor<dims = [n, 3, 4]>>
  %2 = core.add %1, %b : (tensor<?x3x4xf32, #core.tensor<dims = [n, 3, 4]>>, tensor<4xf32>) -> tensor<?x3x4xf32, #core.tensor<dims = [n, 3, 4]>>
  func.return %2 : tensor<?x3x4xf32, #core.tensor<dims = [n, 3, 4]>>
}
