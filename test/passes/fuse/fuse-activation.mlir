// RUN: opt-tool %s --pass-pipeline=fuse-activation,dce --split-input-file | filecheck %s

// As PyTorch exports it. The quotient becomes a product.
// CHECK-LABEL: @gelu
// CHECK-NEXT:    %[[H:.*]] = core.constant dense<0.5> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<0.70710{{[0-9]*}}> : tensor<f32>
// CHECK-NEXT:    %[[ONE:.*]] = core.constant dense<1.0> : tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = core.mul %x, %[[C]]
// CHECK-NEXT:    %[[E:.*]] = core.erf %[[A]]
// CHECK-NEXT:    %[[G:.*]] = core.add %[[E]], %[[ONE]]
// CHECK-NEXT:    %[[X:.*]] = core.mul %x, %[[H]]
// CHECK-NEXT:    %[[Y:.*]] = core.mul %[[X]], %[[G]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @gelu(%x : tensor<64xf32>) -> tensor<64xf32> {
  %root = core.constant dense<1.41421354> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.div %x, %root : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.erf %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %1, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %3, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}

// -----

// Nothing to save.
// CHECK-LABEL: @gelu_as_it_should_be
// CHECK:         core.mul %x, %root
// CHECK-NEXT:    core.erf
// CHECK-NEXT:    core.add
// CHECK-NEXT:    core.mul %x, %half
func.func @gelu_as_it_should_be(%x : tensor<64xf32>) -> tensor<64xf32> {
  %root = core.constant dense<0.70710678> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.mul %x, %root : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.erf %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %one, %1 : (tensor<f32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = core.mul %x, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %4 = core.mul %3, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}

// -----

// The other x is not the one in erf. 1 - erf(y) is 1 + erf(-y).
// CHECK-LABEL: @two_values
// CHECK:         core.div
// CHECK-LABEL: @complement
// CHECK:         core.constant dense<-0.70710{{[0-9]*}}> : tensor<f32>
// CHECK:         core.mul %x
// CHECK-NEXT:    core.erf
// CHECK-NEXT:    core.add
func.func @two_values(%x : tensor<64xf32>, %z : tensor<64xf32>) -> tensor<64xf32> {
  %root = core.constant dense<1.41421354> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.div %x, %root : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.erf %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %1, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %z, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %3 : tensor<64xf32>
}
func.func @complement(%x : tensor<64xf32>) -> tensor<64xf32> {
  %root = core.constant dense<1.41421354> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.div %x, %root : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.erf %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.sub %one, %1 : (tensor<f32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = core.mul %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %3 : tensor<64xf32>
}

// -----

// x + 0.125 x^3, times 2: the sigmoid gets twice that, 4 x + 0.5 x^3.
// CHECK-LABEL: @gelu_by_tanh
// CHECK-NEXT:    %[[A:.*]] = core.constant dense<4.0> : tensor<f32>
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<0.5> : tensor<f32>
// CHECK-NEXT:    %[[XX:.*]] = core.mul %x, %x
// CHECK-NEXT:    %[[P:.*]] = core.mul %[[XX]], %[[B]]
// CHECK-NEXT:    %[[Q:.*]] = core.add %[[P]], %[[A]]
// CHECK-NEXT:    %[[R:.*]] = core.mul %x, %[[Q]]
// CHECK-NEXT:    %[[S:.*]] = core.sigmoid %[[R]]
// CHECK-NEXT:    %[[Y:.*]] = core.mul %x, %[[S]]
// CHECK-NEXT:    func.return %[[Y]]
func.func @gelu_by_tanh(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %two = core.constant dense<2.0> : tensor<f32>
  %eighth = core.constant dense<0.125> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = core.mul %x, %0 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = core.mul %1, %eighth : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.add %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %3, %two : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %5 = core.tanh %4 : (tensor<64xf32>) -> tensor<64xf32>
  %6 = core.add %5, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %7 = core.mul %x, %6 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %8 = core.mul %7, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %8 : tensor<64xf32>
}

// -----

// The cube as a power, the factors first, a quotient: x / 2 * (1 + tanh(x * (1 + x^2 / 4))).
// CHECK-LABEL: @other_order
// CHECK-NEXT:    core.constant dense<2.0> : tensor<f32>
// CHECK-NEXT:    core.constant dense<0.5> : tensor<f32>
// CHECK:         core.sigmoid
// CHECK-NOT:     core.tanh
// CHECK-LABEL: @even
// CHECK:         core.tanh
// CHECK-LABEL: @not_half
// CHECK:         core.tanh
func.func @other_order(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<1xf32>
  %two = core.constant dense<2.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %four = core.constant dense<4.0> : tensor<f32>
  %0 = core.pow %x, %three : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.div %0, %four : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.add %1, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = core.tanh %2 : (tensor<64xf32>) -> tensor<64xf32>
  %4 = core.add %one, %3 : (tensor<1xf32>, tensor<64xf32>) -> tensor<64xf32>
  %5 = core.div %x, %two : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %6 = core.mul %4, %5 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %6 : tensor<64xf32>
}
// tanh(x^2) is not odd.
func.func @even(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = core.tanh %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %1, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %3, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}
func.func @not_half(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %half = core.constant dense<0.75> : tensor<f32>
  %1 = core.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %1, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %3, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}

// -----

// The gate is needed by itself; and half precision rounds at every step.
// CHECK-LABEL: @shared
// CHECK:         core.tanh
// CHECK-LABEL: @half_precision
// CHECK:         core.tanh
func.func @shared(%x : tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %one = core.constant dense<1.0> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %1 = core.tanh %x : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %1, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %3, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %4, %2 : tensor<64xf32>, tensor<64xf32>
}
func.func @half_precision(%x : tensor<64xf16>) -> tensor<64xf16> {
  %one = core.constant dense<1.0> : tensor<f16>
  %half = core.constant dense<0.5> : tensor<f16>
  %1 = core.tanh %x : (tensor<64xf16>) -> tensor<64xf16>
  %2 = core.add %1, %one : (tensor<64xf16>, tensor<f16>) -> tensor<64xf16>
  %3 = core.mul %x, %2 : (tensor<64xf16>, tensor<64xf16>) -> tensor<64xf16>
  %4 = core.mul %3, %half : (tensor<64xf16>, tensor<f16>) -> tensor<64xf16>
  func.return %4 : tensor<64xf16>
}

// -----

// The logistic function, and with another numerator the product with it.
// CHECK-LABEL: @sigmoid
// CHECK-NEXT:    %[[Y:.*]] = core.sigmoid %x
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @swish
// CHECK-NEXT:    %[[S:.*]] = core.sigmoid %x
// CHECK-NEXT:    %[[Y:.*]] = core.mul %x, %[[S]]
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @not_negated
// CHECK:         core.exp
func.func @sigmoid(%x : tensor<64xf64>) -> tensor<64xf64> {
  %one = core.constant dense<1.0> : tensor<f64>
  %0 = core.neg %x : (tensor<64xf64>) -> tensor<64xf64>
  %1 = core.exp %0 : (tensor<64xf64>) -> tensor<64xf64>
  %2 = core.add %one, %1 : (tensor<f64>, tensor<64xf64>) -> tensor<64xf64>
  %3 = core.div %one, %2 : (tensor<f64>, tensor<64xf64>) -> tensor<64xf64>
  func.return %3 : tensor<64xf64>
}
func.func @swish(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %minus = core.constant dense<-1.0> : tensor<f32>
  %0 = core.mul %x, %minus : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.exp %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %1, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.div %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %3 : tensor<64xf32>
}
func.func @not_negated(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.exp %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = core.add %0, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.div %one, %1 : (tensor<f32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}

// -----

// Hard swish: the division by 4 moves into the gate, whose numbers are all divided.
// CHECK-LABEL: @hard_swish
// CHECK-NEXT:    %[[K:.*]] = core.constant dense<0.25> : tensor<f32>
// CHECK-NEXT:    %[[C:.*]] = core.constant dense<0.75> : tensor<f32>
// CHECK-NEXT:    %[[L:.*]] = core.constant dense<0.0> : tensor<f32>
// CHECK-NEXT:    %[[U:.*]] = core.constant dense<1.5> : tensor<f32>
// CHECK-NEXT:    %[[A:.*]] = core.mul %x, %[[K]]
// CHECK-NEXT:    %[[B:.*]] = core.add %[[A]], %[[C]]
// CHECK-NEXT:    %[[D:.*]] = core.max %[[B]], %[[L]]
// CHECK-NEXT:    %[[G:.*]] = core.min %[[D]], %[[U]]
// CHECK-NEXT:    %[[Y:.*]] = core.mul %x, %[[G]]
// CHECK-NEXT:    func.return %[[Y]]
// A negative factor would exchange the bounds.
// CHECK-LABEL: @negative
// CHECK:         core.add %x
func.func @hard_swish(%x : tensor<64xf32>) -> tensor<64xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %four = core.constant dense<4.0> : tensor<f32>
  %six = core.constant dense<6.0> : tensor<f32>
  %0 = core.add %x, %three : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.max %0, %zero : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.min %1, %six : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.div %3, %four : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}
func.func @negative(%x : tensor<64xf32>) -> tensor<64xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %four = core.constant dense<-4.0> : tensor<f32>
  %six = core.constant dense<6.0> : tensor<f32>
  %0 = core.add %x, %three : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.max %0, %zero : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.min %1, %six : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.div %3, %four : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}

// -----

// A quotient is no product, unless it is one by a constant: x / (1 + erf(x)), 2 / (x * (1 + erf(x)))
// and x / clip(x + 3, 1, 6) * 0.5 stay.
// CHECK-LABEL: @quotient
// CHECK:         core.div %x, %{{.*}} : (tensor<64xf32>, tensor<64xf32>)
// CHECK-LABEL: @reciprocal
// CHECK:         core.div %{{.*}}, %{{.*}} : (tensor<f32>, tensor<64xf32>)
// CHECK-LABEL: @by_zero
// CHECK:         core.div
// CHECK-LABEL: @by_clipped
// CHECK:         core.div %x, %{{.*}} : (tensor<64xf32>, tensor<64xf32>)
func.func @quotient(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.erf %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = core.add %0, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.div %x, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %2 : tensor<64xf32>
}
func.func @reciprocal(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %two = core.constant dense<2.0> : tensor<f32>
  %0 = core.erf %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = core.add %0, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.mul %x, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = core.div %two, %2 : (tensor<f32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %3 : tensor<64xf32>
}
func.func @by_zero(%x : tensor<64xf32>) -> tensor<64xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.erf %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = core.add %0, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.mul %x, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %3 = core.div %2, %zero : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %3 : tensor<64xf32>
}
func.func @by_clipped(%x : tensor<64xf32>) -> tensor<64xf32> {
  %half = core.constant dense<0.5> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %six = core.constant dense<6.0> : tensor<f32>
  %0 = core.add %x, %three : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.max %0, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.min %1, %six : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.div %x, %2 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %3, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}

// -----

// At infinity 2 * x - x^3 is NaN, and x * (2 - x^2) is not.
// CHECK-LABEL: @opposite_signs
// CHECK:         core.tanh
func.func @opposite_signs(%x : tensor<64xf32>) -> tensor<64xf32> {
  %one = core.constant dense<1.0> : tensor<f32>
  %two = core.constant dense<2.0> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = core.mul %x, %0 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = core.mul %x, %two : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.sub %2, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.tanh %3 : (tensor<64xf32>) -> tensor<64xf32>
  %5 = core.add %4, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %6 = core.mul %x, %5 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %7 = core.mul %6, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  func.return %7 : tensor<64xf32>
}

// -----

// Each association and each place of the half is one form; 0.25 - 0.5 erf is none of them.
// CHECK-LABEL: @half_inside
// CHECK:         %[[H:.*]] = core.constant dense<0.5> : tensor<f32>
// CHECK:         %[[A:.*]] = core.mul %x
// CHECK-NEXT:    %[[E:.*]] = core.erf %[[A]]
// CHECK-NEXT:    %[[G:.*]] = core.add %[[E]]
// CHECK-NEXT:    %[[X:.*]] = core.mul %x, %[[H]]
// CHECK-NEXT:    core.mul %[[X]], %[[G]]
// CHECK-LABEL: @half_outside
// CHECK:         %[[H:.*]] = core.constant dense<0.5> : tensor<f32>
// CHECK:         %[[A:.*]] = core.mul %x
// CHECK-NEXT:    %[[E:.*]] = core.erf %[[A]]
// CHECK-NEXT:    %[[G:.*]] = core.add %[[E]]
// CHECK-NEXT:    %[[X:.*]] = core.mul %x, %[[H]]
// CHECK-NEXT:    core.mul %[[X]], %[[G]]
// CHECK-LABEL: @minus
// CHECK-NEXT:    core.constant dense<0.5> : tensor<f32>
// CHECK-NEXT:    core.constant dense<0.70710{{[0-9]*}}> : tensor<f32>
// CHECK:         core.erf
// CHECK-NEXT:    core.add
// CHECK-LABEL: @unequal
// CHECK:         core.neg
func.func @half_inside(%x : tensor<64xf32>) -> tensor<64xf32> {
  %root = core.constant dense<0.70710678> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.mul %x, %root : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.erf %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.mul %1, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.add %half, %2 : (tensor<f32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %x, %3 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}
func.func @half_outside(%x : tensor<64xf32>) -> tensor<64xf32> {
  %root = core.constant dense<0.70710678> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.mul %x, %root : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = core.erf %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.add %1, %one : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.mul %2, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %4 = core.mul %3, %x : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}
func.func @minus(%x : tensor<64xf32>) -> tensor<64xf32> {
  %root = core.constant dense<1.41421354> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.neg %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = core.div %0, %root : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = core.erf %1 : (tensor<64xf32>) -> tensor<64xf32>
  %3 = core.mul %2, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %4 = core.sub %half, %3 : (tensor<f32>, tensor<64xf32>) -> tensor<64xf32>
  %5 = core.mul %x, %4 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %5 : tensor<64xf32>
}
func.func @unequal(%x : tensor<64xf32>) -> tensor<64xf32> {
  %quarter = core.constant dense<0.25> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %0 = core.neg %x : (tensor<64xf32>) -> tensor<64xf32>
  %1 = core.erf %0 : (tensor<64xf32>) -> tensor<64xf32>
  %2 = core.mul %1, %half : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = core.sub %quarter, %2 : (tensor<f32>, tensor<64xf32>) -> tensor<64xf32>
  %4 = core.mul %x, %3 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  func.return %4 : tensor<64xf32>
}
