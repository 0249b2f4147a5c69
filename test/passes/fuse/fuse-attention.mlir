// RUN: opt-tool %s --pass-pipeline=fuse-attention,simplify,dce --split-input-file | filecheck %s

// Heads are split off and joined by reshapes around transposes: all four cancel. 1 / 8 is the scale.
// CHECK-LABEL: @heads
// CHECK-NEXT:    %[[Y:.*]] = core.attention %q, %k, %v, %m {scale = 1.250000e-01 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @heads(%q : tensor<1x5x3x2xf32>, %k : tensor<1x6x3x2xf32>, %v : tensor<1x6x3x4xf32>, %m : tensor<1x1x1x6xf32>) -> tensor<1x5x3x4xf32> {
  %c = core.constant dense<8.0> : tensor<f32>
  %0 = core.transpose %q [0, 2, 1, 3] : (tensor<1x5x3x2xf32>) -> tensor<1x3x5x2xf32>
  %1 = core.transpose %k [0, 2, 3, 1] : (tensor<1x6x3x2xf32>) -> tensor<1x3x2x6xf32>
  %2 = core.transpose %v [0, 2, 1, 3] : (tensor<1x6x3x4xf32>) -> tensor<1x3x6x4xf32>
  %3 = core.matmul %0, %1 : (tensor<1x3x5x2xf32>, tensor<1x3x2x6xf32>) -> tensor<1x3x5x6xf32>
  %4 = core.div %3, %c : (tensor<1x3x5x6xf32>, tensor<f32>) -> tensor<1x3x5x6xf32>
  %5 = core.add %m, %4 : (tensor<1x1x1x6xf32>, tensor<1x3x5x6xf32>) -> tensor<1x3x5x6xf32>
  %6 = core.softmax %5 axis 3 : (tensor<1x3x5x6xf32>) -> tensor<1x3x5x6xf32>
  %7 = core.matmul %6, %2 : (tensor<1x3x5x6xf32>, tensor<1x3x6x4xf32>) -> tensor<1x3x5x4xf32>
  %8 = core.transpose %7 [0, 2, 1, 3] : (tensor<1x3x5x4xf32>) -> tensor<1x5x3x4xf32>
  func.return %8 : tensor<1x5x3x4xf32>
}

// -----

// Factors on q, and on k in front of its transpose: 2 * 4 * 1 / 0.5. Dimensions may be symbols.
// CHECK-LABEL: @factors
// CHECK-NEXT:    %[[Y:.*]] = core.attention %q, %k, %v {scale = 1.600000e+01 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @factors(%q : tensor<?x3x2xf64, #core.tensor<dims = [n, 3, 2]>>, %k : tensor<?x3x2xf64, #core.tensor<dims = [m, 3, 2]>>, %v : tensor<?x3x4xf64, #core.tensor<dims = [m, 3, 4]>>) -> tensor<?x3x4xf64, #core.tensor<dims = [n, 3, 4]>> {
  %c = core.constant dense<2.0> : tensor<f64>
  %d = core.constant dense<4.0> : tensor<1x1x1xf64>
  %e = core.constant dense<0.5> : tensor<f64>
  %0 = core.transpose %q [1, 0, 2] : (tensor<?x3x2xf64, #core.tensor<dims = [n, 3, 2]>>) -> tensor<3x?x2xf64, #core.tensor<dims = [3, n, 2]>>
  %1 = core.mul %0, %c : (tensor<3x?x2xf64, #core.tensor<dims = [3, n, 2]>>, tensor<f64>) -> tensor<3x?x2xf64, #core.tensor<dims = [3, n, 2]>>
  %2 = core.mul %d, %k : (tensor<1x1x1xf64>, tensor<?x3x2xf64, #core.tensor<dims = [m, 3, 2]>>) -> tensor<?x3x2xf64, #core.tensor<dims = [m, 3, 2]>>
  %3 = core.transpose %2 [1, 2, 0] : (tensor<?x3x2xf64, #core.tensor<dims = [m, 3, 2]>>) -> tensor<3x2x?xf64, #core.tensor<dims = [3, 2, m]>>
  %4 = core.transpose %v [1, 0, 2] : (tensor<?x3x4xf64, #core.tensor<dims = [m, 3, 4]>>) -> tensor<3x?x4xf64, #core.tensor<dims = [3, m, 4]>>
  %5 = core.matmul %1, %3 : (tensor<3x?x2xf64, #core.tensor<dims = [3, n, 2]>>, tensor<3x2x?xf64, #core.tensor<dims = [3, 2, m]>>) -> tensor<3x?x?xf64, #core.tensor<dims = [3, n, m]>>
  %6 = core.div %5, %e : (tensor<3x?x?xf64, #core.tensor<dims = [3, n, m]>>, tensor<f64>) -> tensor<3x?x?xf64, #core.tensor<dims = [3, n, m]>>
  %7 = core.softmax %6 axis 2 : (tensor<3x?x?xf64, #core.tensor<dims = [3, n, m]>>) -> tensor<3x?x?xf64, #core.tensor<dims = [3, n, m]>>
  %8 = core.matmul %7, %4 : (tensor<3x?x?xf64, #core.tensor<dims = [3, n, m]>>, tensor<3x?x4xf64, #core.tensor<dims = [3, m, 4]>>) -> tensor<3x?x4xf64, #core.tensor<dims = [3, n, 4]>>
  %9 = core.transpose %8 [1, 0, 2] : (tensor<3x?x4xf64, #core.tensor<dims = [3, n, 4]>>) -> tensor<?x3x4xf64, #core.tensor<dims = [n, 3, 4]>>
  func.return %9 : tensor<?x3x4xf64, #core.tensor<dims = [n, 3, 4]>>
}

// -----

// No transposes to cancel: each head is alone, and the mask gets the dimension too. Only k, which
// is there as [D, S], needs a transpose.
// CHECK-LABEL: @alone
// CHECK-NEXT:    %[[K:.*]] = core.transpose %k [0, 2, 1] : (tensor<3x2x6xf32>) -> tensor<3x6x2xf32>
// CHECK-DAG:     %[[M:.*]] = core.reshape %m {{.*}} -> tensor<3x1x5x6xf32>
// CHECK-DAG:     %[[Q:.*]] = core.reshape %q {{.*}} -> tensor<3x5x1x2xf32>
// CHECK-DAG:     %[[R:.*]] = core.reshape %[[K]] {{.*}} -> tensor<3x6x1x2xf32>
// CHECK-DAG:     %[[V:.*]] = core.reshape %v {{.*}} -> tensor<3x6x1x4xf32>
// CHECK:         %[[A:.*]] = core.attention %[[Q]], %[[R]], %[[V]], %[[M]] {scale = 1.000000e+00 : f64}
// CHECK-NEXT:    %[[Y:.*]] = core.reshape %[[A]] {{.*}} -> tensor<3x5x4xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @alone(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>, %m : tensor<3x5x6xf32>) -> tensor<3x5x4xf32> {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.add %0, %m : (tensor<3x5x6xf32>, tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.softmax %1 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %3 = core.matmul %2, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %3 : tensor<3x5x4xf32>
}

// -----

// The softmax is not along the keys.
// CHECK-LABEL: @other_axis
// CHECK:         core.softmax
func.func @other_axis(%q : tensor<3x5x2xf32>, %k : tensor<3x2x5xf32>, %v : tensor<3x5x4xf32>) -> tensor<3x5x4xf32> {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %1 = core.softmax %0 axis 1 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %2 = core.matmul %1, %v : (tensor<3x5x5xf32>, tensor<3x5x4xf32>) -> tensor<3x5x4xf32>
  func.return %2 : tensor<3x5x4xf32>
}

// -----

// The weights are a result too.
// CHECK-LABEL: @shared
// CHECK:         core.softmax
func.func @shared(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>) -> (tensor<3x5x4xf32>, tensor<3x5x6xf32>) {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.softmax %0 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.matmul %1, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %2, %1 : tensor<3x5x4xf32>, tensor<3x5x6xf32>
}

// -----

// One key for all heads.
// CHECK-LABEL: @broadcast_key
// CHECK:         core.softmax
func.func @broadcast_key(%q : tensor<3x5x2xf32>, %k : tensor<2x6xf32>, %v : tensor<3x6x4xf32>) -> tensor<3x5x4xf32> {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.softmax %0 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.matmul %1, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %2 : tensor<3x5x4xf32>
}

// -----

// The mask makes three batches of one.
// CHECK-LABEL: @broadcast_scores
// CHECK:         core.softmax
func.func @broadcast_scores(%q : tensor<1x5x2xf32>, %k : tensor<1x2x6xf32>, %v : tensor<1x6x4xf32>, %m : tensor<3x5x6xf32>) -> tensor<3x5x4xf32> {
  %0 = core.matmul %q, %k : (tensor<1x5x2xf32>, tensor<1x2x6xf32>) -> tensor<1x5x6xf32>
  %1 = core.add %0, %m : (tensor<1x5x6xf32>, tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.softmax %1 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %3 = core.matmul %2, %v : (tensor<3x5x6xf32>, tensor<1x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %3 : tensor<3x5x4xf32>
}

// -----

// The factor comes after the mask: (q @ k + m) * 2 is q @ k * 2 + m * 2.
// CHECK-LABEL: @scaled_mask
// CHECK-DAG:     %[[M:.*]] = core.mul %m, %{{.*}} : (tensor<5x6xf32>, tensor<f32>)
// CHECK:         core.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]] {scale = 2.000000e+00 : f64}
func.func @scaled_mask(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>, %m : tensor<5x6xf32>) -> tensor<3x5x4xf32> {
  %c = core.constant dense<2.0> : tensor<f32>
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.add %0, %m : (tensor<3x5x6xf32>, tensor<5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.mul %1, %c : (tensor<3x5x6xf32>, tensor<f32>) -> tensor<3x5x6xf32>
  %3 = core.softmax %2 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %4 = core.matmul %3, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %4 : tensor<3x5x4xf32>
}

// -----

// A bias of each head, half of it, and hidden keys, subtracted: ((q @ k + b) / 2 - p) with the scale
// of q, which is not that of the masks.
// CHECK-LABEL: @two_masks
// CHECK-DAG:     %[[HALF:.*]] = core.constant dense<0.5> : tensor<f32>
// CHECK-DAG:     %[[MINUS:.*]] = core.constant dense<-1.0> : tensor<f32>
// CHECK-DAG:     %[[B:.*]] = core.mul %b, %[[HALF]]
// CHECK-DAG:     %[[P:.*]] = core.mul %p, %[[MINUS]]
// CHECK:         %[[M:.*]] = core.add %[[B]], %[[P]] : (tensor<3x5x6xf32>, tensor<1x6xf32>)
// CHECK:         core.attention {{.*}} {scale = 2.000000e+00 : f64}
func.func @two_masks(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>, %b : tensor<3x5x6xf32>, %p : tensor<1x6xf32>) -> tensor<3x5x4xf32> {
  %c = core.constant dense<2.0> : tensor<f32>
  %d = core.constant dense<4.0> : tensor<f32>
  %0 = core.mul %q, %d : (tensor<3x5x2xf32>, tensor<f32>) -> tensor<3x5x2xf32>
  %1 = core.matmul %0, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.add %b, %1 : (tensor<3x5x6xf32>, tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %3 = core.div %2, %c : (tensor<3x5x6xf32>, tensor<f32>) -> tensor<3x5x6xf32>
  %4 = core.sub %3, %p : (tensor<3x5x6xf32>, tensor<1x6xf32>) -> tensor<3x5x6xf32>
  %5 = core.softmax %4 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %6 = core.matmul %5, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %6 : tensor<3x5x4xf32>
}

// -----

// The scores are subtracted from the mask; and they are a result before it is added.
// CHECK-LABEL: @negative_scores
// CHECK:         core.softmax
// CHECK-LABEL: @shared_scores
// CHECK:         core.softmax
func.func @negative_scores(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>, %m : tensor<3x5x6xf32>) -> tensor<3x5x4xf32> {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.sub %m, %0 : (tensor<3x5x6xf32>, tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.softmax %1 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %3 = core.matmul %2, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %3 : tensor<3x5x4xf32>
}
func.func @shared_scores(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>, %m : tensor<5x6xf32>) -> (tensor<3x5x4xf32>, tensor<3x5x6xf32>) {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.add %0, %m : (tensor<3x5x6xf32>, tensor<5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.add %1, %m : (tensor<3x5x6xf32>, tensor<5x6xf32>) -> tensor<3x5x6xf32>
  %3 = core.softmax %2 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %4 = core.matmul %3, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %4, %1 : tensor<3x5x4xf32>, tensor<3x5x6xf32>
}

// -----

// c / (q @ k) is no factor, and half precision rounds between the steps.
// CHECK-LABEL: @quotient
// CHECK:         core.softmax
// CHECK-LABEL: @half
// CHECK:         core.softmax
func.func @quotient(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>) -> tensor<3x5x4xf32> {
  %c = core.constant dense<2.0> : tensor<f32>
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.div %c, %0 : (tensor<f32>, tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.softmax %1 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %3 = core.matmul %2, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %3 : tensor<3x5x4xf32>
}
func.func @half(%q : tensor<3x5x2xf16>, %k : tensor<3x2x6xf16>, %v : tensor<3x6x4xf16>) -> tensor<3x5x4xf16> {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf16>, tensor<3x2x6xf16>) -> tensor<3x5x6xf16>
  %1 = core.softmax %0 axis 2 : (tensor<3x5x6xf16>) -> tensor<3x5x6xf16>
  %2 = core.matmul %1, %v : (tensor<3x5x6xf16>, tensor<3x6x4xf16>) -> tensor<3x5x4xf16>
  func.return %2 : tensor<3x5x4xf16>
}

// -----

// Attention has one element type: these products have wider sums than factors.
// CHECK-LABEL: @wider_sums
// CHECK-COUNT-2: core.matmul {{.*}} in f32
// CHECK-NOT:     core.attention
func.func @wider_sums(%q : tensor<2x4x3xbf16>, %k : tensor<2x3x5xbf16>, %v : tensor<2x5x3xf32>) -> tensor<2x4x3xf32> {
  %0 = core.matmul %q, %k in f32 : (tensor<2x4x3xbf16>, tensor<2x3x5xbf16>) -> tensor<2x4x5xf32>
  %1 = core.softmax %0 axis 2 : (tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %2 = core.matmul %1, %v in f32 : (tensor<2x4x5xf32>, tensor<2x5x3xf32>) -> tensor<2x4x3xf32>
  func.return %2 : tensor<2x4x3xf32>
}

// -----

// Weights are no logarithms.
// CHECK-LABEL: @log
// CHECK-NOT:     core.attention
func.func @log(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>) -> tensor<3x5x4xf32> {
  %0 = core.matmul %q, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %1 = core.softmax %0 axis 2 {log = true} : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.matmul %1, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %2 : tensor<3x5x4xf32>
}

// -----

// The scale is 1e-20, but the mask would lose 1e-50, which is 0 in f32: 1e-30 and 1e-20 are two steps.
// CHECK-LABEL: @vanishing_mask
// CHECK:         core.softmax
func.func @vanishing_mask(%q : tensor<3x5x2xf32>, %k : tensor<3x2x6xf32>, %v : tensor<3x6x4xf32>, %m : tensor<5x6xf32>) -> tensor<3x5x4xf32> {
  %a = core.constant dense<1.0e30> : tensor<f32>
  %b = core.constant dense<1.0e-20> : tensor<f32>
  %c = core.constant dense<1.0e-30> : tensor<f32>
  %0 = core.mul %q, %a : (tensor<3x5x2xf32>, tensor<f32>) -> tensor<3x5x2xf32>
  %1 = core.matmul %0, %k : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %2 = core.add %1, %m : (tensor<3x5x6xf32>, tensor<5x6xf32>) -> tensor<3x5x6xf32>
  %3 = core.mul %2, %b : (tensor<3x5x6xf32>, tensor<f32>) -> tensor<3x5x6xf32>
  %4 = core.mul %3, %c : (tensor<3x5x6xf32>, tensor<f32>) -> tensor<3x5x6xf32>
  %5 = core.softmax %4 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %6 = core.matmul %5, %v : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  func.return %6 : tensor<3x5x4xf32>
}

// -----

// What is not kept is one number; a factor behind it is one of the mask and of the number, too.
// CHECK-LABEL: @kept
// CHECK:         %[[M:.*]] = core.mul %m,
// CHECK-NEXT:    %[[Y:.*]] = core.attention %q, %k, %v, %[[M]], %b {scale = 5.000000e-01 : f64, fill = -2.000000e+00 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @kept(%q : tensor<5x3x2xf32>, %k : tensor<6x3x2xf32>, %v : tensor<6x3x4xf32>, %m : tensor<6xf32>, %b : tensor<5x6xi1>) -> tensor<5x3x4xf32> {
  %c = core.constant dense<0.5> : tensor<f32>
  %f = core.constant dense<-4.0> : tensor<f32>
  %0 = core.transpose %q [1, 0, 2] : (tensor<5x3x2xf32>) -> tensor<3x5x2xf32>
  %1 = core.transpose %k [1, 2, 0] : (tensor<6x3x2xf32>) -> tensor<3x2x6xf32>
  %2 = core.transpose %v [1, 0, 2] : (tensor<6x3x4xf32>) -> tensor<3x6x4xf32>
  %3 = core.matmul %0, %1 : (tensor<3x5x2xf32>, tensor<3x2x6xf32>) -> tensor<3x5x6xf32>
  %4 = core.add %3, %m : (tensor<3x5x6xf32>, tensor<6xf32>) -> tensor<3x5x6xf32>
  %5 = core.select %b, %4, %f : (tensor<5x6xi1>, tensor<3x5x6xf32>, tensor<f32>) -> tensor<3x5x6xf32>
  %6 = core.mul %5, %c : (tensor<3x5x6xf32>, tensor<f32>) -> tensor<3x5x6xf32>
  %7 = core.softmax %6 axis 2 : (tensor<3x5x6xf32>) -> tensor<3x5x6xf32>
  %8 = core.matmul %7, %2 : (tensor<3x5x6xf32>, tensor<3x6x4xf32>) -> tensor<3x5x4xf32>
  %9 = core.transpose %8 [1, 0, 2] : (tensor<3x5x4xf32>) -> tensor<5x3x4xf32>
  func.return %9 : tensor<5x3x4xf32>
}

// -----

// Of two selections with one number both conditions hold, one of them turned around.
// CHECK-LABEL: @both
// CHECK-NEXT:    %[[N:.*]] = core.not %c
// CHECK-NEXT:    %[[K:.*]] = core.and %b, %[[N]]
// CHECK-NEXT:    core.attention %q, %q, %q, %[[K]] {scale = 1.000000e+00 : f64, fill = -1.000000e+09 : f64}
func.func @both(%q : tensor<5x3x2xf32>, %b : tensor<5x1xi1>, %c : tensor<5xi1>) -> tensor<5x3x2xf32> {
  %f = core.constant dense<-1.0e9> : tensor<f32>
  %0 = core.transpose %q [1, 0, 2] : (tensor<5x3x2xf32>) -> tensor<3x5x2xf32>
  %1 = core.transpose %q [1, 2, 0] : (tensor<5x3x2xf32>) -> tensor<3x2x5xf32>
  %3 = core.matmul %0, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %4 = core.select %b, %3, %f : (tensor<5x1xi1>, tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %5 = core.select %c, %f, %4 : (tensor<5xi1>, tensor<f32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %7 = core.softmax %5 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %8 = core.matmul %7, %0 : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  %9 = core.transpose %8 [1, 0, 2] : (tensor<3x5x2xf32>) -> tensor<5x3x2xf32>
  func.return %9 : tensor<5x3x2xf32>
}

// -----

// A mask behind the selection is added to its number, too.
// CHECK-LABEL: @behind
// CHECK-NOT:     core.attention
func.func @behind(%q : tensor<5x2xf32>, %b : tensor<5x5xi1>, %m : tensor<5xf32>) -> tensor<5x2xf32> {
  %f = core.constant dense<-1.0e9> : tensor<f32>
  %1 = core.transpose %q [1, 0] : (tensor<5x2xf32>) -> tensor<2x5xf32>
  %3 = core.matmul %q, %1 : (tensor<5x2xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
  %4 = core.select %b, %3, %f : (tensor<5x5xi1>, tensor<5x5xf32>, tensor<f32>) -> tensor<5x5xf32>
  %5 = core.add %4, %m : (tensor<5x5xf32>, tensor<5xf32>) -> tensor<5x5xf32>
  %7 = core.softmax %5 axis 1 : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %8 = core.matmul %7, %q : (tensor<5x5xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  func.return %8 : tensor<5x2xf32>
}

// -----

// No number stands for NaN, and none for two.
// CHECK-LABEL: @no_number
// CHECK-NOT:     core.attention
func.func @no_number(%q : tensor<5x2xf32>, %b : tensor<5x5xi1>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %f = core.constant #core.blob<"0x0000C07F"> : tensor<f32>
  %g = core.constant dense<[-1.0, -2.0, -1.0, -1.0, -1.0]> : tensor<5xf32>
  %1 = core.transpose %q [1, 0] : (tensor<5x2xf32>) -> tensor<2x5xf32>
  %3 = core.matmul %q, %1 : (tensor<5x2xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
  %4 = core.select %b, %3, %f : (tensor<5x5xi1>, tensor<5x5xf32>, tensor<f32>) -> tensor<5x5xf32>
  %5 = core.softmax %4 axis 1 : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %6 = core.matmul %5, %q : (tensor<5x5xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  %7 = core.matmul %q, %1 : (tensor<5x2xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
  %8 = core.select %b, %7, %g : (tensor<5x5xi1>, tensor<5x5xf32>, tensor<5xf32>) -> tensor<5x5xf32>
  %9 = core.softmax %8 axis 1 : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %10 = core.matmul %9, %q : (tensor<5x5xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  func.return %6, %10 : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// Weights that are no number become zero, whichever way the test is written.
// CHECK-LABEL: @zero_nan
// CHECK:         core.attention %{{.*}} {scale = 1.000000e+00 : f64, fill = 0xfff0000000000000 : f64, zero_nan}
// CHECK:         core.attention %{{.*}} {scale = 1.000000e+00 : f64, zero_nan}
// CHECK-NOT:     core.softmax
func.func @zero_nan(%q : tensor<3x5x2xf32>, %b : tensor<5x5xi1>) -> (tensor<3x5x2xf32>, tensor<3x5x2xf32>) {
  %f = core.constant #core.blob<"0x000080FF"> : tensor<f32>
  %z = core.constant dense<0.0> : tensor<f32>
  %1 = core.transpose %q [0, 2, 1] : (tensor<3x5x2xf32>) -> tensor<3x2x5xf32>
  %3 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %4 = core.select %b, %3, %f : (tensor<5x5xi1>, tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %5 = core.softmax %4 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %6 = core.compare ne %5, %5 : (tensor<3x5x5xf32>, tensor<3x5x5xf32>) -> tensor<3x5x5xi1>
  %7 = core.select %6, %z, %5 : (tensor<3x5x5xi1>, tensor<f32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %8 = core.matmul %7, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  %13 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %15 = core.softmax %13 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %16 = core.compare eq %15, %15 : (tensor<3x5x5xf32>, tensor<3x5x5xf32>) -> tensor<3x5x5xi1>
  %17 = core.select %16, %15, %z : (tensor<3x5x5xi1>, tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %18 = core.matmul %17, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  func.return %8, %18 : tensor<3x5x2xf32>, tensor<3x5x2xf32>
}

// -----

// One instead of zero; the test of other weights; weights that are read elsewhere, too.
// CHECK-LABEL: @other_guards
// CHECK-NOT:     core.attention
func.func @other_guards(%q : tensor<3x5x2xf32>) -> (tensor<3x5x2xf32>, tensor<3x5x2xf32>, tensor<3x5x2xf32>, tensor<3x5x5xf32>) {
  %o = core.constant dense<1.0> : tensor<f32>
  %z = core.constant dense<0.0> : tensor<f32>
  %1 = core.transpose %q [0, 2, 1] : (tensor<3x5x2xf32>) -> tensor<3x2x5xf32>
  %3 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %5 = core.softmax %3 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %6 = core.compare ne %5, %5 : (tensor<3x5x5xf32>, tensor<3x5x5xf32>) -> tensor<3x5x5xi1>
  %7 = core.select %6, %o, %5 : (tensor<3x5x5xi1>, tensor<f32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %8 = core.matmul %7, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  %13 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %15 = core.softmax %13 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %17 = core.select %6, %z, %15 : (tensor<3x5x5xi1>, tensor<f32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %18 = core.matmul %17, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  %23 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %25 = core.softmax %23 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %26 = core.compare ne %25, %25 : (tensor<3x5x5xf32>, tensor<3x5x5xf32>) -> tensor<3x5x5xi1>
  %27 = core.select %26, %z, %25 : (tensor<3x5x5xi1>, tensor<f32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %28 = core.matmul %27, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  func.return %8, %18, %28, %25 : tensor<3x5x2xf32>, tensor<3x5x2xf32>, tensor<3x5x2xf32>, tensor<3x5x5xf32>
}

// -----

// A triangle of ones and zeros multiplies the scores, then what hides the rest is subtracted.
// CHECK-LABEL: @factor
// CHECK:         core.attention %q, %q, %q, %t, %{{.*}} {scale = 5.000000e-01 : f64, has_factor}
// CHECK-NOT:     core.softmax
func.func @factor(%q : tensor<5x3x2xf32>, %t : tensor<5x5xf32>, %m : tensor<5x5xf32>) -> tensor<5x3x2xf32> {
  %h = core.constant dense<0.5> : tensor<f32>
  %0 = core.transpose %q [1, 0, 2] : (tensor<5x3x2xf32>) -> tensor<3x5x2xf32>
  %1 = core.transpose %q [1, 2, 0] : (tensor<5x3x2xf32>) -> tensor<3x2x5xf32>
  %2 = core.matmul %0, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %3 = core.mul %2, %h : (tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %4 = core.mul %3, %t : (tensor<3x5x5xf32>, tensor<5x5xf32>) -> tensor<3x5x5xf32>
  %5 = core.sub %4, %m : (tensor<3x5x5xf32>, tensor<5x5xf32>) -> tensor<3x5x5xf32>
  %6 = core.softmax %5 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %7 = core.matmul %6, %0 : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  %8 = core.transpose %7 [1, 0, 2] : (tensor<3x5x2xf32>) -> tensor<5x3x2xf32>
  func.return %8 : tensor<5x3x2xf32>
}

// -----

// Behind a mask, and twice, a factor has no place.
// CHECK-LABEL: @factor_behind
// CHECK-NOT:     core.attention
func.func @factor_behind(%q : tensor<5x2xf32>, %t : tensor<5x5xf32>, %m : tensor<5x5xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) {
  %1 = core.transpose %q [1, 0] : (tensor<5x2xf32>) -> tensor<2x5xf32>
  %2 = core.matmul %q, %1 : (tensor<5x2xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
  %3 = core.add %2, %m : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  %4 = core.mul %3, %t : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  %5 = core.softmax %4 axis 1 : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %6 = core.matmul %5, %q : (tensor<5x5xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  %12 = core.matmul %q, %1 : (tensor<5x2xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
  %13 = core.mul %12, %m : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  %14 = core.mul %13, %t : (tensor<5x5xf32>, tensor<5x5xf32>) -> tensor<5x5xf32>
  %15 = core.softmax %14 axis 1 : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %16 = core.matmul %15, %q : (tensor<5x5xf32>, tensor<5x2xf32>) -> tensor<5x2xf32>
  func.return %6, %16 : tensor<5x2xf32>, tensor<5x2xf32>
}

// -----

// Weights of what is hidden become zero: those of a query that keeps nothing, too.
// CHECK-LABEL: @zero_hidden
// CHECK:         core.attention %{{.*}}, %b {scale = 1.000000e+00 : f64, fill = -1.000000e+09 : f64, zero_hidden}
// CHECK-NOT:     core.softmax
func.func @zero_hidden(%q : tensor<3x5x2xf32>, %b : tensor<5x5xi1>) -> tensor<3x5x2xf32> {
  %f = core.constant dense<-1.0e9> : tensor<f32>
  %z = core.constant dense<0.0> : tensor<f32>
  %1 = core.transpose %q [0, 2, 1] : (tensor<3x5x2xf32>) -> tensor<3x2x5xf32>
  %3 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %4 = core.select %b, %3, %f : (tensor<5x5xi1>, tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %5 = core.softmax %4 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %7 = core.select %b, %5, %z : (tensor<5x5xi1>, tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %8 = core.matmul %7, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  func.return %8 : tensor<3x5x2xf32>
}

// -----

// What is hidden behind the softmax is not what was hidden before it.
// CHECK-LABEL: @hidden_otherwise
// CHECK-NOT:     core.attention
func.func @hidden_otherwise(%q : tensor<3x5x2xf32>, %b : tensor<5x5xi1>) -> (tensor<3x5x2xf32>, tensor<3x5x2xf32>) {
  %f = core.constant dense<-1.0e9> : tensor<f32>
  %z = core.constant dense<0.0> : tensor<f32>
  %1 = core.transpose %q [0, 2, 1] : (tensor<3x5x2xf32>) -> tensor<3x2x5xf32>
  %3 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %4 = core.select %b, %3, %f : (tensor<5x5xi1>, tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %5 = core.softmax %4 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %7 = core.select %b, %z, %5 : (tensor<5x5xi1>, tensor<f32>, tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %8 = core.matmul %7, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  %13 = core.matmul %q, %1 : (tensor<3x5x2xf32>, tensor<3x2x5xf32>) -> tensor<3x5x5xf32>
  %15 = core.softmax %13 axis 2 : (tensor<3x5x5xf32>) -> tensor<3x5x5xf32>
  %17 = core.select %b, %15, %z : (tensor<5x5xi1>, tensor<3x5x5xf32>, tensor<f32>) -> tensor<3x5x5xf32>
  %18 = core.matmul %17, %q : (tensor<3x5x5xf32>, tensor<3x5x2xf32>) -> tensor<3x5x2xf32>
  func.return %8, %18 : tensor<3x5x2xf32>, tensor<3x5x2xf32>
}
