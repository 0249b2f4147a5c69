// RUN: opt-tool %s --pass-pipeline=fuse-mish,dce --split-input-file | filecheck %s

// Softplus of x, which is above 20 where x is.
// CHECK-LABEL: @tanh_of_softplus
// CHECK-NEXT:    %[[LARGE:.*]] = core.constant dense<20.0> : tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = core.min %x, %[[LARGE]]
// CHECK-NEXT:    %[[E:.*]] = core.exp %[[A]]
// CHECK-NEXT:    %[[TWO:.*]] = core.constant dense<2.0> : tensor<f32>
// CHECK-NEXT:    %[[P:.*]] = core.add %[[E]], %[[TWO]]
// CHECK-NEXT:    %[[N:.*]] = core.mul %[[E]], %[[P]]
// CHECK-NEXT:    %[[M:.*]] = core.add %[[N]], %[[TWO]]
// CHECK-NEXT:    %[[Y:.*]] = core.div %[[N]], %[[M]]
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @one_minus_quotient
// CHECK:         core.min
// CHECK:         core.exp
// CHECK-NOT:     core.sub
func.func @tanh_of_softplus(%x : tensor<8xf32>) -> tensor<8xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.add %0, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = core.log %1 : (tensor<8xf32>) -> tensor<8xf32>
  %3 = core.tanh %2 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %3 : tensor<8xf32>
}
func.func @one_minus_quotient(%x : tensor<8xf32>) -> tensor<8xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %two = core.constant dense<2.0> : tensor<f32>
  %0 = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.add %0, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = core.mul %1, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = core.add %2, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %4 = core.div %two, %3 : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %5 = core.sub %one, %4 : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %5 : tensor<8xf32>
}

// -----

// They are NaN where squares overflow, and stay so; the second is what the first becomes.
// CHECK-LABEL: @quotient
// CHECK-NOT:     core.min
// CHECK:         %[[E:.*]] = core.exp %x
// CHECK-NEXT:    %[[TWO:.*]] = core.constant dense<2.0> : tensor<f32>
// CHECK-NEXT:    %[[P:.*]] = core.add %[[E]], %[[TWO]]
// CHECK-NEXT:    %[[N:.*]] = core.mul %[[E]], %[[P]]
// CHECK-NEXT:    %[[G:.*]] = core.mul %x, %[[N]]
// CHECK-NEXT:    %[[M:.*]] = core.add %[[N]], %[[TWO]]
// CHECK-NEXT:    %[[Y:.*]] = core.div %[[G]], %[[M]]
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @already
// CHECK-COUNT-6: = core.
// CHECK-NEXT:    func.return
func.func @quotient(%x : tensor<8xf32>) -> tensor<8xf32> {
  %two = core.constant dense<2.0> : tensor<f32>
  %0 = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.mul %0, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = core.mul %two, %0 : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = core.add %1, %2 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = core.mul %3, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %5 = core.add %two, %3 : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = core.div %4, %5 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %6 : tensor<8xf32>
}
func.func @already(%x : tensor<8xf32>) -> tensor<8xf32> {
  %two = core.constant dense<2.0> : tensor<f32>
  %0 = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.add %0, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = core.mul %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = core.add %2, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %4 = core.div %2, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %4 : tensor<8xf32>
}

// -----

// The logarithm of 2 + exp(x); a polynomial of another exponential; half precision.
// CHECK-LABEL: @log_of_more
// CHECK:         core.tanh
// CHECK-LABEL: @two_exponentials
// CHECK:         %[[Q:.*]] = core.mul %{{.*}}, %{{.*}}
// CHECK:         core.div %[[Q]]
// CHECK-LABEL: @half
// CHECK:         core.tanh
func.func @log_of_more(%x : tensor<8xf32>) -> tensor<8xf32> {
  %two = core.constant dense<2.0> : tensor<f32>
  %0 = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.add %0, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = core.log %1 : (tensor<8xf32>) -> tensor<8xf32>
  %3 = core.tanh %2 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %3 : tensor<8xf32>
}
func.func @two_exponentials(%x : tensor<8xf32>, %z : tensor<8xf32>) -> tensor<8xf32> {
  %two = core.constant dense<2.0> : tensor<f32>
  %0 = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  %e = core.exp %z : (tensor<8xf32>) -> tensor<8xf32>
  %p = core.add %e, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %n = core.mul %e, %p : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = core.add %0, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = core.mul %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = core.add %2, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %4 = core.div %n, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %4 : tensor<8xf32>
}
func.func @half(%x : tensor<8xf16>) -> tensor<8xf16> {
  %one = core.constant dense<1.0> : tensor<f16>
  %0 = core.exp %x : (tensor<8xf16>) -> tensor<8xf16>
  %1 = core.add %0, %one : (tensor<8xf16>, tensor<f16>) -> tensor<8xf16>
  %2 = core.log %1 : (tensor<8xf16>) -> tensor<8xf16>
  %3 = core.tanh %2 : (tensor<8xf16>) -> tensor<8xf16>
  func.return %3 : tensor<8xf16>
}
