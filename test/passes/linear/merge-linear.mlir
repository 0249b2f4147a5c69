// RUN: opt-tool %s --pass-pipeline=merge-linear --split-input-file | filecheck %s

// ((x * 2 + 3) * 4 + 5) = x * 8 + 17
// CHECK-LABEL: @chain
// CHECK-NEXT:    %[[S:.*]] = core.constant dense<8.0>
// CHECK-NEXT:    %[[P:.*]] = core.mul %x, %[[S]]
// CHECK-NEXT:    %[[T:.*]] = core.constant dense<17.0>
// CHECK-NEXT:    %[[Y:.*]] = core.add %[[P]], %[[T]]
// CHECK-NEXT:    return %[[Y]]
func.func @chain(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<2.0> : tensor<f32>
  %b = core.constant dense<3.0> : tensor<f32>
  %c = core.constant dense<4.0> : tensor<f32>
  %d = core.constant dense<5.0> : tensor<f32>
  %0 = core.mul %x, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = core.add %0, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = core.mul %1, %c : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = core.add %2, %d : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %3 : tensor<2x3xf32>
}

// -----

// 10 - (-x / 4 - [1, 2, 3]) = x * 0.25 + [11, 12, 13]
// CHECK-LABEL: @every_form
// CHECK:         %[[S:.*]] = core.constant dense<0.25>
// CHECK-NEXT:    %[[P:.*]] = core.mul %x, %[[S]]
// CHECK-NEXT:    %[[T:.*]] = core.constant dense<[11.0, 12.0, 13.0]>
// CHECK-NEXT:    %[[Y:.*]] = core.add %[[P]], %[[T]]
// CHECK-NEXT:    return %[[Y]]
func.func @every_form(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<4.0> : tensor<f32>
  %b = core.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %c = core.constant dense<10.0> : tensor<f32>
  %0 = core.neg %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = core.div %0, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = core.sub %1, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %3 = core.sub %c, %2 : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %3 : tensor<2x3xf32>
}

// -----

// A product and a sum stay, in either order: there is nothing to gain.
// CHECK-LABEL: @two
// CHECK:         core.add
// CHECK:         core.mul
func.func @two(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<2.0> : tensor<f32>
  %0 = core.add %x, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = core.mul %0, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}

// -----

// Something else needs the value between.
// CHECK-LABEL: @used_between
// CHECK-COUNT-2: core.mul
func.func @used_between(%x : tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %a = core.constant dense<2.0> : tensor<f32>
  %0 = core.mul %x, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = core.mul %0, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// A normalization and a scale: s = [1, 4], t = [-1, -11.5], doubled.
// CHECK-LABEL: @normalization
// CHECK-DAG:     core.constant dense<[{{\[}}2.0], [8.0]]>
// CHECK-DAG:     core.constant dense<[{{\[}}-2.0], [-23.0]]>
// CHECK-NOT:     core.batch_norm
func.func @normalization(%x : tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.constant dense<2.0> : tensor<f32>
  %0 = core.batch_norm %x, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3xf32>
  %1 = core.mul %0, %c : (tensor<1x2x3xf32>, tensor<f32>) -> tensor<1x2x3xf32>
  func.return %1 : tensor<1x2x3xf32>
}

// -----

// This rounds to an integer.
// CHECK-LABEL: @rounds
// CHECK-COUNT-2: core.add
func.func @rounds(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<12582912.0> : tensor<f32>
  %b = core.constant dense<-12582912.0> : tensor<f32>
  %0 = core.add %x, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = core.add %0, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}

// -----

// So does this, to a multiple of 2^-15, in its first column; the second one cancels nothing.
// CHECK-LABEL: @rounds_scaled
// CHECK:         core.mul
// CHECK-COUNT-2: core.add
// CHECK:         core.mul
func.func @rounds_scaled(%x : tensor<3x2xf32>) -> tensor<3x2xf32> {
  %s = core.constant dense<0.1> : tensor<f32>
  %a = core.constant dense<[500.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[-500.0, 500.0]> : tensor<2xf32>
  %c = core.constant dense<10.0> : tensor<f32>
  %0 = core.mul %x, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %1 = core.add %0, %a : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %2 = core.add %1, %b : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  %3 = core.mul %2, %c : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  func.return %3 : tensor<3x2xf32>
}

// -----

// Seconds since an hour are exact; x * 0.5 would have lost them in its last digits.
// CHECK-LABEL: @exact_difference
// CHECK:         core.sub
// CHECK:         core.mul
// CHECK:         core.add
func.func @exact_difference(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<16000000.0> : tensor<f32>
  %b = core.constant dense<0.3> : tensor<f32>
  %c = core.constant dense<-1.0> : tensor<f32>
  %0 = core.sub %x, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = core.mul %0, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = core.add %1, %c : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %2 : tensor<2x3xf32>
}

// -----

// Above 340 the first product is infinite.
// CHECK-LABEL: @overflow
// CHECK-COUNT-2: core.mul
func.func @overflow(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<1.0e36> : tensor<f32>
  %b = core.constant dense<1.0e-36> : tensor<f32>
  %0 = core.mul %x, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = core.mul %0, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}

// -----

// A row and a column would be a matrix.
// CHECK-LABEL: @larger
// CHECK-COUNT-2: core.mul
func.func @larger(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a = core.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = core.constant dense<[[4.0], [5.0]]> : tensor<2x1xf32>
  %0 = core.mul %x, %a : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %1 = core.mul %0, %b : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}

// -----

// Integers wrap; that is another pass's.
// CHECK-LABEL: @integers
// CHECK-COUNT-2: core.mul
func.func @integers(%x : tensor<2x3xi32>) -> tensor<2x3xi32> {
  %a = core.constant dense<2> : tensor<i32>
  %0 = core.mul %x, %a : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  %1 = core.mul %0, %a : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi32>
  func.return %1 : tensor<2x3xi32>
}

// -----

// Outside of the loop a product is computed once.
// CHECK-LABEL: @loop
// CHECK:         core.mul %x
// CHECK:         core.loop
// CHECK:         core.add
// CHECK-NEXT:    core.mul
func.func @loop(%x : tensor<2x3xf32>, %n : tensor<i64>) -> tensor<2x3xf32> {
  %a = core.constant dense<2.0> : tensor<f32>
  %0 = core.mul %x, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = core.loop trip %n : tensor<i64> carry %x : tensor<2x3xf32> -> tensor<2x3xf32> {
  ^bb0(%i : tensor<i64>, %p : tensor<2x3xf32>):
    %2 = core.add %0, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %3 = core.mul %2, %a : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %4 = core.max %3, %p : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    core.yield %4 : tensor<2x3xf32>
  }
  func.return %1 : tensor<2x3xf32>
}
