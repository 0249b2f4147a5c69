// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,fuse-epilogue,choose-strategies,bufferize,lower-kernels,expand-math,vectorize-loops,tile,vectorize-lanes,unroll-tiles --split-input-file | filecheck %s

// Rows of 37: of the maximum and of the sum, two vectors and one that ends with the row and overlaps;
// what the lanes hold is combined, and what follows is vectors.
// CHECK-LABEL: buffer.func @softmax_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.maxf {{.*}} : vector<16xf32>
// CHECK:         buffer.load %[[X0]](%{{.*}}) <[d0, 21]> {{.*}} -> vector<16xf32>
// CHECK:         buffer.reduce max %{{.*}} : vector<16xf32> -> f32
// CHECK-NOT:     buffer.reduce max
// CHECK:         arith.bitcast {{.*}} : vector<16xf32> to vector<16xi32>
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, 21]> : vector<16xf32>
// CHECK:         buffer.reduce add %{{.*}} : vector<16xf32> -> f32
// CHECK-NOT:     buffer.reduce add
// CHECK:         buffer.store %{{.*}}, %[[Y]]{{.*}} : vector<16xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]]{{.*}} : vector<4xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]]{{.*}} : f32
func.func @main(%x: tensor<3x37xf32>) -> tensor<3x37xf32> {
  %y = core.softmax %x axis 1 : (tensor<3x37xf32>) -> tensor<3x37xf32>
  func.return %y : tensor<3x37xf32>
}

// -----

// Along the other dimension each lane is a column of its own: nothing is combined between lanes.
// CHECK-LABEL: buffer.func @softmax_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.maxf {{.*}} : vector<16xf32>
// CHECK-NOT:     buffer.reduce
// CHECK:         buffer.store %{{.*}}, %[[Y]]{{.*}} : vector<16xf32>
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<3x32xf32>) -> tensor<3x32xf32> {
  %y = core.softmax %x axis 0 : (tensor<3x32xf32>) -> tensor<3x32xf32>
  func.return %y : tensor<3x32xf32>
}

// -----

// Of f64 a vector holds half as many.
// CHECK-LABEL: buffer.func @softmax_0
// CHECK-NOT:     vector<16xf64>
// CHECK:         buffer.reduce max %{{.*}} : vector<8xf64> -> f64
// CHECK:         buffer.reduce add %{{.*}} : vector<8xf64> -> f64
// CHECK-NOT:     vector<16xf64>
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<3x37xf64>) -> tensor<3x37xf64> {
  %y = core.softmax %x axis 1 : (tensor<3x37xf64>) -> tensor<3x37xf64>
  func.return %y : tensor<3x37xf64>
}

// -----

// Sum and sum of squares in the lanes; the row is scaled and shifted in vectors.
// CHECK-LABEL: buffer.func @layer_norm_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.reduce add %{{.*}} : vector<16xf32> -> f32
// CHECK:         buffer.reduce add %{{.*}} : vector<16xf32> -> f32
// CHECK:         buffer.load %[[X1]]{{.*}} -> vector<16xf32>
// CHECK:         buffer.load %[[X2]]{{.*}} -> vector<16xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]]{{.*}} : vector<16xf32>
func.func @main(%x: tensor<3x32xf32>, %s: tensor<32xf32>, %b: tensor<32xf32>) -> tensor<3x32xf32> {
  %y = core.layer_norm %x, %s, %b axis 1 {epsilon = 1.0e-5 : f64} : (tensor<3x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<3x32xf32>
  func.return %y : tensor<3x32xf32>
}

// -----

// A map: the innermost dimension in lanes; what remains of 21 is a vector of four and one element.
// CHECK-LABEL: buffer.func @add_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.load %[[X0]](%[[R:[0-9]+]]) <[d0, 0]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:    buffer.load %[[X1]] <[0]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:    arith.addf {{.*}} : vector<16xf32>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]](%[[R]]) <[d0, 0]> : vector<16xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, 16]> : vector<4xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, 20]> : f32
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<3x21xf32>, %b: tensor<21xf32>) -> tensor<3x21xf32> {
  %y = core.add %x, %b : (tensor<3x21xf32>, tensor<21xf32>) -> tensor<3x21xf32>
  func.return %y : tensor<3x21xf32>
}

// -----

// Interpolation between rows: which ones is looked up, their elements are vectors.
// CHECK-LABEL: buffer.func @
// CHECK-NEXT:  ^bb0(%[[X:[0-9]+]]: {{[^%]*}}, %
// CHECK:         buffer.check_index
// CHECK:         buffer.load %[[X]]({{.*}} -> vector<16xf32>
// CHECK:         buffer.load %[[X]]({{.*}} -> vector<16xf32>
// CHECK:         buffer.store %{{.*}} : vector<16xf32>
func.func @main(%x: tensor<2x16xf32>) -> tensor<4x16xf32> {
  %i = core.constant dense<[0, 0, 0, 1]> : tensor<4xi64>
  %j = core.constant dense<[0, 1, 1, 1]> : tensor<4xi64>
  %w = core.constant dense<0.25> : tensor<4x1xf32>
  %a = core.gather %x, %i axis 0 : (tensor<2x16xf32>, tensor<4xi64>) -> tensor<4x16xf32>
  %b = core.gather %x, %j axis 0 : (tensor<2x16xf32>, tensor<4xi64>) -> tensor<4x16xf32>
  %c = core.sub %b, %a : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %d = core.mul %c, %w : (tensor<4x16xf32>, tensor<4x1xf32>) -> tensor<4x16xf32>
  %y = core.add %a, %d : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  func.return %y : tensor<4x16xf32>
}

// -----

// The nearest miss: along a row, neighbors lie where the indices say, and not side by side.
// CHECK-LABEL: buffer.func @
// CHECK-NOT:     !buffer.ref<[2, 8] x f32> -> vector
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x16xf32> {
  %i = core.constant dense<[0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7]> : tensor<16xi64>
  %w = core.constant dense<0.25> : tensor<16xf32>
  %a = core.gather %x, %i axis 1 : (tensor<2x8xf32>, tensor<16xi64>) -> tensor<2x16xf32>
  %y = core.mul %a, %w : (tensor<2x16xf32>, tensor<16xf32>) -> tensor<2x16xf32>
  func.return %y : tensor<2x16xf32>
}
