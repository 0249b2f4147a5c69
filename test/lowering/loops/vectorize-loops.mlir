// RUN: opt-tool %s --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,vectorize-loops{lanes=8}' --split-input-file | filecheck %s

// A sum in f64 has partial sums of f32 in the lanes of four chains; what is left is a shorter
// vector, then single elements, which are added in f64.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 2, 1]> carry %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>
// CHECK: buffer.load %[[X0]](%{{.*}}, %{{.*}}) <[d0, d1 * 32]> {{.*}} -> vector<8xf32>
// CHECK-NEXT: arith.addf
// CHECK-NEXT: buffer.load %[[X0]](%{{.*}}, %{{.*}}) <[d0, d1 * 32 + 8]> {{.*}} -> vector<8xf32>
// CHECK: buffer.yield
// CHECK: buffer.reduce add %{{.*}} : vector<8xf32> -> f32
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.addf %{{.*}} : f64
// CHECK: buffer.load %[[X0]](%{{.*}}) <[d0, 64]> {{.*}} -> vector<4xf32>
// CHECK: buffer.reduce add %{{.*}} : vector<4xf32> -> f32
// CHECK: buffer.for <[68, 70, 1]> carry %{{.*}} : f64 -> f64
// CHECK: arith.truncf
// CHECK: buffer.store
func.func @main(%x: tensor<3x70xf32>) -> tensor<3xf32> {
  %y = core.reduce sum %x [1] : (tensor<3x70xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// The innermost dimension stays: elements of it are the lanes, four vectors side by side, and the
// sums are of f32 without conversions.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK: buffer.for <[0, 4, 1]>
// CHECK-NEXT: ^bb0(%[[U:.*]]: index)
// CHECK: buffer.for <[0, 3, 1]> carry %{{.*}} : vector<8xf32> -> vector<8xf32>
// CHECK: buffer.load %[[X0]](%{{.*}}, %[[U]], %{{.*}}) <[d2, d0 * 32 + d1 * 8]> {{.*}} -> vector<8xf32>
// CHECK-NEXT: arith.addf
// CHECK-NEXT: buffer.yield
// CHECK-NEXT: } {parallel = false}
// CHECK-NEXT: buffer.store %{{.*}}, %[[Y]](%{{.*}}, %[[U]]) <[0, d0 * 32 + d1 * 8]> : vector<8xf32>
// CHECK: } by unroll {
// CHECK-NOT: arith.truncf
func.func @main(%x: tensor<3x32xf32>) -> tensor<1x32xf32> {
  %y = core.reduce sum %x [0] {keep_dims = true} : (tensor<3x32xf32>) -> tensor<1x32xf32>
  func.return %y : tensor<1x32xf32>
}

// -----

// A maximum keeps NaN: the lanes are compared with themselves.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: buffer.reduce max %[[P:.*]] : vector<8xf32> -> f32
// CHECK-NEXT: %[[N:.*]] = buffer.compare ne %[[P]], %[[P]]
// CHECK-NEXT: %[[ANY:.*]] = buffer.any %[[N]]
// CHECK: arith.select %[[ANY]]
// CHECK: arith.maximumf
func.func @main(%x: tensor<3x16xf32>) -> tensor<3xf32> {
  %y = core.reduce max %x [1] : (tensor<3x16xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// The last vector of an extremum ends with the row: elements that are seen twice change nothing.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: buffer.for <[0, 3, 1]> carry
// CHECK: buffer.load {{.*}}min({{.*}} -> vector<8xf32>
// CHECK-NOT: vector<4xf32>
// CHECK: buffer.entry
func.func @main(%x: tensor<3x20xf32>) -> tensor<3xf32> {
  %y = core.reduce min %x [1] : (tensor<3x20xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}

// -----

// What memory holds in f64 is added up in it, in half as many lanes.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK: arith.addf %{{.*}} : vector<4xf64>
// CHECK: buffer.reduce add %{{.*}} : vector<4xf64> -> f64
// CHECK-NOT: f32
// CHECK: buffer.entry
func.func @main(%x: tensor<3x16xf64>) -> tensor<3xf64> {
  %y = core.reduce sum %x [1] : (tensor<3x16xf64>) -> tensor<3xf64>
  func.return %y : tensor<3xf64>
}

// -----

// Running sums depend on each other, and so do not become vectors; neither do products in f64.
// CHECK-LABEL: buffer.func @cumulative_0
// CHECK-NOT: vector
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NOT: vector
// CHECK: buffer.entry
func.func @main(%x: tensor<3x16xf32>) -> (tensor<3x16xf32>, tensor<3xf32>) {
  %y = core.cumulative sum %x axis 1 : (tensor<3x16xf32>) -> tensor<3x16xf32>
  %z = core.reduce prod %x [1] : (tensor<3x16xf32>) -> tensor<3xf32>
  func.return %y, %z : tensor<3x16xf32>, tensor<3xf32>
}

// -----

// Fewer iterations than the shortest vector has lanes.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NOT: vector
func.func @main(%x: tensor<16x3xf32>) -> tensor<16xf32> {
  %y = core.reduce sum %x [1] : (tensor<16x3xf32>) -> tensor<16xf32>
  func.return %y : tensor<16xf32>
}
