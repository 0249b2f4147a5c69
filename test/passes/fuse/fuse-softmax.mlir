// RUN: opt-tool %s --pass-pipeline=fuse-softmax,dce --split-input-file | filecheck %s

// Step by step; along any axis.
// CHECK-LABEL: @steps
// CHECK-NEXT:    %[[Y:.*]] = core.softmax %x axis 1
// CHECK-NEXT:    func.return %[[Y]]
func.func @steps(%x : tensor<2x20x3xf32>) -> tensor<2x20x3xf32> {
  %0 = core.reduce max %x [1] {keep_dims = true} : (tensor<2x20x3xf32>) -> tensor<2x1x3xf32>
  %1 = core.sub %x, %0 : (tensor<2x20x3xf32>, tensor<2x1x3xf32>) -> tensor<2x20x3xf32>
  %2 = core.exp %1 : (tensor<2x20x3xf32>) -> tensor<2x20x3xf32>
  %3 = core.reduce sum %2 [1] {keep_dims = true} : (tensor<2x20x3xf32>) -> tensor<2x1x3xf32>
  %4 = core.div %2, %3 : (tensor<2x20x3xf32>, tensor<2x1x3xf32>) -> tensor<2x20x3xf32>
  func.return %4 : tensor<2x20x3xf32>
}

// -----

// The logarithm, with NaN and infinities among the numbers of the vector.
// CHECK-LABEL: @logarithm
// CHECK-NEXT:    %[[Y:.*]] = core.softmax %x axis 0 {log = true}
// CHECK-NEXT:    func.return %[[Y]]
func.func @logarithm(%x : tensor<64xf64>) -> tensor<64xf64> {
  %0 = core.reduce max %x [0] {keep_dims = true} : (tensor<64xf64>) -> tensor<1xf64>
  %1 = core.sub %x, %0 : (tensor<64xf64>, tensor<1xf64>) -> tensor<64xf64>
  %2 = core.exp %1 : (tensor<64xf64>) -> tensor<64xf64>
  %3 = core.reduce sum %2 [0] {keep_dims = true} : (tensor<64xf64>) -> tensor<1xf64>
  %4 = core.log %3 : (tensor<1xf64>) -> tensor<1xf64>
  %5 = core.sub %1, %4 : (tensor<64xf64>, tensor<1xf64>) -> tensor<64xf64>
  func.return %5 : tensor<64xf64>
}

// -----

// The maximum once more in front of the op; the difference is a result, too.
// CHECK-LABEL: @twice
// CHECK:         %[[D:.*]] = core.sub %x
// CHECK-NEXT:    %[[Y:.*]] = core.softmax %x axis 1 {log = true}
// CHECK-NEXT:    func.return %[[Y]], %[[D]]
func.func @twice(%x : tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %0 = core.reduce max %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.sub %x, %0 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %2 = core.softmax %1 axis 1 {log = true} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %2, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}

// -----

// The sum is along another axis; the maximum is; it is a minimum; the sum is of all elements;
// the maximum is.
// CHECK-LABEL: @other_sum
// CHECK-NOT:     core.softmax
// CHECK-LABEL: @other_maximum
// CHECK:         core.softmax %{{[0-9]+}} axis 1
// CHECK-LABEL: @minimum
// CHECK:         core.softmax %{{[0-9]+}} axis 1
// CHECK-LABEL: @two_axes
// CHECK-NOT:     core.softmax
// CHECK-LABEL: @maximum_of_all
// CHECK:         core.softmax %{{[0-9]+}} axis 0
func.func @other_sum(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = core.reduce max %x [1] {keep_dims = true} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %1 = core.sub %x, %0 : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %2 = core.exp %1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = core.reduce sum %2 [0] {keep_dims = true} : (tensor<4x4xf32>) -> tensor<1x4xf32>
  %4 = core.div %2, %3 : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  func.return %4 : tensor<4x4xf32>
}
func.func @other_maximum(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = core.reduce max %x [0] {keep_dims = true} : (tensor<4x4xf32>) -> tensor<1x4xf32>
  %1 = core.sub %x, %0 : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %2 = core.softmax %1 axis 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}
func.func @minimum(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = core.reduce min %x [1] {keep_dims = true} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %1 = core.sub %x, %0 : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %2 = core.softmax %1 axis 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}
func.func @two_axes(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = core.reduce max %x [0, 1] {keep_dims = true} : (tensor<4x4xf32>) -> tensor<1x1xf32>
  %1 = core.sub %x, %0 : (tensor<4x4xf32>, tensor<1x1xf32>) -> tensor<4x4xf32>
  %2 = core.exp %1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = core.reduce sum %2 [0, 1] {keep_dims = true} : (tensor<4x4xf32>) -> tensor<1x1xf32>
  %4 = core.div %2, %3 : (tensor<4x4xf32>, tensor<1x1xf32>) -> tensor<4x4xf32>
  func.return %4 : tensor<4x4xf32>
}
func.func @maximum_of_all(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = core.reduce max %x [0, 1] {keep_dims = true} : (tensor<4x4xf32>) -> tensor<1x1xf32>
  %1 = core.sub %x, %0 : (tensor<4x4xf32>, tensor<1x1xf32>) -> tensor<4x4xf32>
  %2 = core.softmax %1 axis 0 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %2 : tensor<4x4xf32>
}

// -----

// The maximum is of another value; nothing is subtracted, so that numbers from 89 on overflow; half
// precision rounds at every step.
// CHECK-LABEL: @two_values
// CHECK-NOT:     core.softmax
// CHECK-LABEL: @no_maximum
// CHECK-NOT:     core.softmax
// CHECK-LABEL: @half_precision
// CHECK-NOT:     core.softmax
func.func @two_values(%x : tensor<3x4xf32>, %z : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = core.reduce max %z [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.sub %x, %0 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %2 = core.exp %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = core.reduce sum %2 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %4 = core.div %2, %3 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %4 : tensor<3x4xf32>
}
func.func @no_maximum(%x : tensor<64xf32>) -> tensor<64xf32> {
  %0 = core.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = core.reduce sum %0 [0] {keep_dims = true} : (tensor<64xf32>) -> tensor<1xf32>
  %2 = core.div %0, %1 : (tensor<64xf32>, tensor<1xf32>) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}
func.func @half_precision(%x : tensor<3x4xf16>) -> tensor<3x4xf16> {
  %0 = core.reduce max %x [1] {keep_dims = true} : (tensor<3x4xf16>) -> tensor<3x1xf16>
  %1 = core.sub %x, %0 : (tensor<3x4xf16>, tensor<3x1xf16>) -> tensor<3x4xf16>
  %2 = core.exp %1 : (tensor<3x4xf16>) -> tensor<3x4xf16>
  %3 = core.reduce sum %2 [1] {keep_dims = true} : (tensor<3x4xf16>) -> tensor<3x1xf16>
  %4 = core.div %2, %3 : (tensor<3x4xf16>, tensor<3x1xf16>) -> tensor<3x4xf16>
  func.return %4 : tensor<3x4xf16>
}

// -----

// Something else is divided by the sum; the difference lacks where the logarithm is subtracted; the
// reductions lose their dimension, so that columns meet the numbers of rows.
// CHECK-LABEL: @other_numerator
// CHECK-NOT:     core.softmax
// CHECK-LABEL: @not_shifted
// CHECK-NOT:     core.softmax
// CHECK-LABEL: @no_ones
// CHECK-NOT:     core.softmax
func.func @other_numerator(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = core.reduce max %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.sub %x, %0 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %2 = core.exp %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = core.reduce sum %2 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %4 = core.div %1, %3 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %4 : tensor<3x4xf32>
}
func.func @not_shifted(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = core.reduce max %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.sub %x, %0 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %2 = core.exp %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = core.reduce sum %2 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %4 = core.log %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = core.sub %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %5 : tensor<3x4xf32>
}
func.func @no_ones(%x : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = core.reduce max %x [1] {keep_dims = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = core.sub %x, %0 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %2 = core.exp %1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = core.reduce sum %2 [1] {keep_dims = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %4 = core.div %2, %3 : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  func.return %4 : tensor<4x4xf32>
}
