// RUN: opt-tool %s --pass-pipeline=decompose-linear --split-input-file | filecheck %s

// CHECK-LABEL: @constant
// CHECK-NEXT:    %[[S:.*]] = core.constant dense<[{{\[}}1.0], [4.0]]> : tensor<2x1xf32>
// CHECK-NEXT:    %[[T:.*]] = core.constant dense<[{{\[}}-1.0], [-11.5]]> : tensor<2x1xf32>
// CHECK-NEXT:    %[[P:.*]] = core.mul %x, %[[S]]
// CHECK-NEXT:    core.add %[[P]], %[[T]]
func.func @constant(%x : tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %y = core.batch_norm %x, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3xf32>
  func.return %y : tensor<1x2x3xf32>
}

// -----

// The variance is an argument: x - mean, times scale / sqrt(variance + epsilon), plus bias.
// CHECK-LABEL: @computed
// CHECK:         %[[E:.*]] = core.constant dense<0.001
// CHECK:         %[[A:.*]] = core.add %v, %[[E]]
// CHECK:         %[[D:.*]] = core.sqrt %[[A]]
// CHECK:         core.div %{{.*}}, %[[D]]
// CHECK:         core.sub %x
// CHECK:         core.mul
// CHECK:         core.add
// CHECK-NOT:     core.batch_norm
func.func @computed(%x : tensor<1x2x3xf32>, %v : tensor<2xf32>) -> tensor<1x2x3xf32> {
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %y = core.batch_norm %x, %s, %b, %m, %v axis 1 {epsilon = 0.001 : f64} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3xf32>
  func.return %y : tensor<1x2x3xf32>
}

// -----

// The input names its channels by a symbol, the parameters by a number: the type stays.
// CHECK-LABEL: @symbol
// CHECK-SAME:    -> tensor<1x?xf32, #core.tensor<dims = [1, c]>>
// CHECK-NOT:     core.batch_norm
// CHECK:         %[[R:.*]] = core.reshape {{.*}} [1, c]
// CHECK-NEXT:    func.return %[[R]]
func.func @symbol(%x : tensor<1x?xf32, #core.tensor<dims = [1, c]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, c]>> {
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %y = core.batch_norm %x, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x?xf32, #core.tensor<dims = [1, c]>>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x?xf32, #core.tensor<dims = [1, c]>>
  func.return %y : tensor<1x?xf32, #core.tensor<dims = [1, c]>>
}
