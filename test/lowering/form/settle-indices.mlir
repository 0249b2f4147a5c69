// RUN: opt-tool %s --pass-pipeline=settle-indices | filecheck %s

// Each index is in range; what counts from the end is resolved.
// CHECK-LABEL: @known
// CHECK-NEXT: %[[I:.*]] = core.constant dense<[3, 0, 2]> : tensor<3xi32>
// CHECK-NEXT: core.gather %{{.*}}, %[[I]] axis 1 {inside}
func.func @known(%x: tensor<2x4xf32>) -> tensor<2x3xf32> {
  %i = core.constant dense<[-1, 0, 2]> : tensor<3xi64>
  %y = core.gather %x, %i axis 1 : (tensor<2x4xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// Each component has its own dimension: 3 is inside of the second one only.
// CHECK-LABEL: @components
// CHECK: core.constant dense<[[1, 3], [0, 2]]> : tensor<2x2xi32>
// CHECK: core.gather_nd %{{.*}} {inside}
func.func @components(%x: tensor<2x4xf32>) -> tensor<2xf32> {
  %i = core.constant dense<[[1, 3], [-2, -2]]> : tensor<2x2xi64>
  %y = core.gather_nd %x, %i batch_dims 0 : (tensor<2x4xf32>, tensor<2x2xi64>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// CHECK-LABEL: @other_way_round
// CHECK-NOT: inside
func.func @other_way_round(%x: tensor<4x2xf32>) -> tensor<2xf32> {
  %i = core.constant dense<[[1, 3], [0, 2]]> : tensor<2x2xi64>
  %y = core.gather_nd %x, %i batch_dims 0 : (tensor<4x2xf32>, tensor<2x2xi64>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// An index out of range is an error of the run; of an open dimension nothing is known.
// CHECK-LABEL: @outside
// CHECK-NOT: inside
func.func @outside(%x: tensor<2x4xf32>, %z: tensor<?xf32, #core.tensor<dims = [n]>>) -> (tensor<2x3xf32>, tensor<3xf32>) {
  %i = core.constant dense<[0, 4, 2]> : tensor<3xi64>
  %y = core.gather %x, %i axis 1 : (tensor<2x4xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  %j = core.constant dense<[0, 1, 2]> : tensor<3xi64>
  %w = core.gather %z, %j axis 0 : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<3xi64>) -> tensor<3xf32>
  func.return %y, %w : tensor<2x3xf32>, tensor<3xf32>
}

// CHECK-LABEL: @scattered
// CHECK: core.scatter_elements none %{{.*}} {inside}
func.func @scattered(%x: tensor<4xf32>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %i = core.constant dense<[-1, 1]> : tensor<2xi64>
  %y = core.scatter_elements none %x, %i, %u axis 0 : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// A single number takes the dimension away.
// CHECK-LABEL: @number
// CHECK: %[[I:.*]] = core.constant dense<3> : tensor<i32>
// CHECK-NEXT: core.gather %{{.*}}, %[[I]] axis 1 {inside} : (tensor<2x4xf32>, tensor<i32>) -> tensor<2xf32>
func.func @number(%x: tensor<2x4xf32>) -> tensor<2xf32> {
  %i = core.constant dense<-1> : tensor<i64>
  %y = core.gather %x, %i axis 1 : (tensor<2x4xf32>, tensor<i64>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}
