// RUN: not opt-tool %s --pass-pipeline=legalize-tf1 2>&1 | filecheck %s

// CHECK:      node 'directions' (StridedSlice): found strides whose direction depends on data, expected known directions
// CHECK-NEXT: node 'axis' (ConcatV2): found the axis that depends on data, expected a constant
// CHECK-NEXT: node 'uneven' (Split): found 5 elements in 2 equal parts, expected a multiple
// CHECK-NEXT: node 'bits' (Bitcast): found the bits of f32 as i64, expected 2 of them side by side
// CHECK-NEXT: node 'shape' (EnsureShape): found a shape of [n, 5], expected [-1, 4]
// CHECK-NEXT: node 'policy' (GatherNd): found attributes without effect: bad_indices_policy, expected none that is not understood
// CHECK-NEXT: node 'many' (TopKV2): found the 6 best of 5 elements, expected no more than there are
// CHECK-NEXT: node 'truth' (ScatterNd): found a sum of truth values, expected numbers
// CHECK-NEXT: node 'fewer' (TopK): a dimension is -2, which is negative
func.func @refused(%x : tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, %y : tensor<2x5xf32>, %k : tensor<i32>, %one : tensor<1xi32>, %t : tensor<1xi1>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi64>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi1>) {
  %0 = tf1.Squeeze %x {T = #tf1.dtype<float>} : (tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) -> tensor<*xf32> loc("ones")
  %1 = tf1.StridedSlice %y, %one, %one, %one {T = #tf1.dtype<float>, Index = #tf1.dtype<int32>} : (tensor<2x5xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32> loc("directions")
  %2 = tf1.ConcatV2 %y, %y, %k {N = 2 : i64, T = #tf1.dtype<float>} : (tensor<2x5xf32>, tensor<2x5xf32>, tensor<i32>) -> tensor<*xf32> loc("axis")
  %c = core.constant dense<1> : tensor<i32>
  %3, %4 = tf1.Split %c, %y {num_split = 2 : i64, T = #tf1.dtype<float>} : (tensor<i32>, tensor<2x5xf32>) -> (tensor<*xf32>, tensor<*xf32>) loc("uneven")
  %5 = tf1.Bitcast %y {T = #tf1.dtype<float>, type = #tf1.dtype<int64>} : (tensor<2x5xf32>) -> tensor<*xi64> loc("bits")
  %6 = tf1.EnsureShape %x {T = #tf1.dtype<float>, shape = #tf1.shape<[?, 4]>} : (tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) -> tensor<*xf32> loc("shape")
  %7 = tf1.GatherNd %y, %one {Tparams = #tf1.dtype<float>, Tindices = #tf1.dtype<int32>, bad_indices_policy = "IGNORE"} : (tensor<2x5xf32>, tensor<1xi32>) -> tensor<*xf32> loc("policy")
  %six = core.constant dense<6> : tensor<i32>
  %8, %9 = tf1.TopKV2 %y, %six {T = #tf1.dtype<float>} : (tensor<2x5xf32>, tensor<i32>) -> (tensor<*xf32>, tensor<*xi32>) loc("many")
  %i = core.constant dense<[[0]]> : tensor<1x1xi32>
  %s = core.constant dense<[4]> : tensor<1xi32>
  %10 = tf1.ScatterNd %i, %t, %s {T = #tf1.dtype<bool>, Tindices = #tf1.dtype<int32>} : (tensor<1x1xi32>, tensor<1xi1>, tensor<1xi32>) -> tensor<*xi1> loc("truth")
  %11, %12 = tf1.TopK %y {T = #tf1.dtype<float>, k = -2 : i64} : (tensor<2x5xf32>) -> (tensor<*xf32>, tensor<*xi32>) loc("fewer")
  func.return %0, %1, %2, %3, %5, %6, %7, %8, %10 : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi64>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xi1>
}
