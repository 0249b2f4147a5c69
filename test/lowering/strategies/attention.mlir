// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,choose-strategies,bufferize,lower-kernels,expand-math,pack-weights,tile,vectorize-lanes,unroll-tiles --split-input-file | filecheck %s

// A block of 16 queries. Queries are transposed, so that they are the lanes; scores of all keys by
// queries, their maximum and exponentials stay on the stack; the sums of values are divided at the
// end.
// CHECK-LABEL: buffer.func @attention_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK-DAG:     %[[Q:[0-9]+]] = buffer.scratch : !buffer.ref<[2, 16] x f32>
// CHECK-DAG:     %[[S:[0-9]+]] = buffer.scratch : !buffer.ref<[5, 16] x f32>
// CHECK-DAG:     %[[R:[0-9]+]] = buffer.scratch : !buffer.ref<[16] x f32>
// CHECK:         arith.mulf
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Q]](%{{.*}}) <[d1, d0]> : f32
// Scores: a tile of five keys by a vector of queries.
// CHECK:         buffer.for <[0, 2, 1]> carry {{(%[0-9]+, ){4}%[0-9]+}} : vector<16xf32>
// CHECK:           buffer.load %[[Q]](%{{.*}}) <[d0, 0]> {{.*}} -> vector<16xf32>
// CHECK-COUNT-5:   math.fma {{.*}} : vector<16xf32>
// CHECK-NEXT:      buffer.yield
// CHECK-COUNT-5: buffer.store %{{.*}}, %[[S]] <[{{[0-4]}}, 0]> : vector<16xf32>
// A maximum that keeps NaN.
// CHECK:         buffer.for <[0, 5, 1]> carry %{{[0-9]+}} : vector<16xf32>
// CHECK:           buffer.maxf keeps_nan
// Exponentials and their sum.
// CHECK:         buffer.for <[0, 5, 1]> carry %{{[0-9]+}} : vector<16xf32>
// CHECK:           arith.bitcast {{.*}} : vector<16xf32> to vector<16xi32>
// CHECK:           buffer.store %{{.*}}, %[[S]](%{{.*}}) <[d0, 0]> : vector<16xf32>
// CHECK:         arith.divf {{.*}} : vector<16xf32>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[R]] <[0]> : vector<16xf32>
// Values: a tile of 16 queries by a vector of columns.
// CHECK:         buffer.for <[0, 5, 1]> carry {{(%[0-9]+, ){15}%[0-9]+}} : vector<16xf32>
// CHECK:           buffer.load %[[X2]](%{{.*}}) <[0, d0, 0, 0]> {{.*}} -> vector<16xf32>
// CHECK-COUNT-16:  math.fma {{.*}} : vector<16xf32>
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.load %[[R]] <[0]> {{.*}} -> f32
// CHECK:         buffer.store %{{.*}}, %[[Y]] <[0, 0, 0, 0]> : vector<16xf32>
// CHECK:         buffer.store %{{.*}}, %[[Y]] <[0, 15, 0, 0]> : vector<16xf32>
func.func @main(%q: tensor<1x16x1x2xf32>, %k: tensor<1x5x1x2xf32>, %v: tensor<1x5x1x16xf32>) -> tensor<1x16x1x16xf32> {
  %y = core.attention %q, %k, %v {scale = 0.5 : f64} : (tensor<1x16x1x2xf32>, tensor<1x5x1x2xf32>, tensor<1x5x1x16xf32>) -> tensor<1x16x1x16xf32>
  func.return %y : tensor<1x16x1x16xf32>
}

// -----

// A constant mask that differs between queries is packed as scores lie: a vector a key.
// CHECK-LABEL: buffer.func @attention_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.load %[[X2]]{{.*}}!buffer.ref<[1, 5, 16] x f32> -> vector<16xf32>
// CHECK-NEXT:    arith.addf {{.*}} : vector<16xf32>
func.func @main(%q: tensor<1x16x1x2xf32>, %k: tensor<1x5x1x2xf32>) -> tensor<1x16x1x2xf32> {
  %m = core.constant dense<1.0> : tensor<16x5xf32>
  %y = core.attention %q, %k, %k, %m {scale = 1.0 : f64} : (tensor<1x16x1x2xf32>, tensor<1x5x1x2xf32>, tensor<1x5x1x2xf32>, tensor<16x5xf32>) -> tensor<1x16x1x2xf32>
  func.return %y : tensor<1x16x1x2xf32>
}

// -----

// Seventeen queries: a block of 32 whose lanes are not all in use stores the rows that there are.
// CHECK-LABEL: buffer.func @attention_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.store %{{.*}}, %[[Y]]{{.*}} <[0, 16, 0, {{.*}}]>
// CHECK-NOT:     <[0, 17, 0,
// CHECK-LABEL: buffer.entry
func.func @main(%q: tensor<1x17x1x2xf32>, %k: tensor<1x5x1x2xf32>) -> tensor<1x17x1x2xf32> {
  %y = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x17x1x2xf32>, tensor<1x5x1x2xf32>, tensor<1x5x1x2xf32>) -> tensor<1x17x1x2xf32>
  func.return %y : tensor<1x17x1x2xf32>
}

// -----

// The nearest miss: f64 keeps its plain loops.
// CHECK-LABEL: buffer.func @attention_0
// CHECK-NOT:     vector
// CHECK-LABEL: buffer.entry
func.func @main(%q: tensor<1x16x1x2xf64>, %k: tensor<1x5x1x2xf64>) -> tensor<1x16x1x2xf64> {
  %y = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x16x1x2xf64>, tensor<1x5x1x2xf64>, tensor<1x5x1x2xf64>) -> tensor<1x16x1x2xf64>
  func.return %y : tensor<1x16x1x2xf64>
}

// -----

// One query: the components of a key are the lanes of its product, and keys those of the maximum
// and of the sum of exponentials.
// CHECK-LABEL: buffer.func @attention_0
// CHECK:         buffer.for <[0, 128, 1]>
// CHECK:           math.fma {{.*}} : vector<16xf32>
// CHECK:           buffer.reduce add %{{.*}} : vector<16xf32> -> f32
// CHECK:         buffer.reduce max {{.*}} : vector<16xf32> -> f32
// CHECK:         arith.bitcast {{.*}} : vector<16xf32> to vector<16xi32>
// CHECK:         buffer.reduce add {{.*}} : vector<16xf32> -> f32
func.func @main(%q: tensor<1x1x1x64xf32>, %k: tensor<1x128x1x64xf32>) -> tensor<1x1x1x64xf32> {
  %y = core.attention %q, %k, %k {scale = 0.5 : f64} : (tensor<1x1x1x64xf32>, tensor<1x128x1x64xf32>, tensor<1x128x1x64xf32>) -> tensor<1x1x1x64xf32>
  func.return %y : tensor<1x1x1x64xf32>
}
