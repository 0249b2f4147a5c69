// RUN: opt-tool %s --pass-pipeline=fuse-norm,dce --split-input-file | filecheck %s

// As PyTorch exported it before there was an operator.
// CHECK-LABEL: @quotient
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %s, %b axis 1 {epsilon = 6.250000e-02 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @quotient(%x : tensor<3x4xf32>, %s : tensor<4xf32>, %b : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.mul %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.reduce sum %3 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = core.div %4, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.add %5, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.sqrt %6 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %8 = core.div %2, %7 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %9 = core.mul %8, %s : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %10 = core.add %b, %9 : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %10 : tensor<3x4xf32>
}

// -----

// A reciprocal root, a mean by product, two dimensions, and nothing behind: the scale is one.
// CHECK-LABEL: @reciprocal
// CHECK:         %[[S:.*]] = core.constant {{.*}} : tensor<2x4xf32>
// CHECK-NEXT:    %[[Y:.*]] = core.layer_norm %x, %[[S]] axis 1 {epsilon = 6.250000e-02 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @reciprocal(%x : tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>> {
  %n = core.constant dense<0.125> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.reduce sum %x [1, 2] {keep_dims = true} : (tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>) -> tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>
  %1 = core.mul %0, %n : (tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>, tensor<f32>) -> tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>
  %2 = core.sub %x, %1 : (tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>, tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
  %3 = core.mul %2, %2 : (tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>, tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
  %4 = core.reduce sum %3 [1, 2] {keep_dims = true} : (tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>) -> tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>
  %5 = core.mul %4, %n : (tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>, tensor<f32>) -> tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>
  %6 = core.add %5, %e : (tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>, tensor<f32>) -> tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>
  %7 = core.sqrt %6 : (tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>) -> tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>
  %8 = core.div %one, %7 : (tensor<f32>, tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>) -> tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>
  %9 = core.mul %8, %2 : (tensor<?x1x1xf32, #core.tensor<dims = [n, 1, 1]>>, tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
  func.return %9 : tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
}

// -----

// As TensorFlow factors it.
// CHECK-LABEL: @factored
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %s, %b axis 1 {epsilon = 6.250000e-02 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @factored(%x : tensor<3x4xf32>, %s : tensor<4xf32>, %b : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.mul %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.reduce sum %3 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = core.div %4, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.add %5, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.sqrt %6 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %8 = core.div %one, %7 : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %9 = core.mul %8, %s : (tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %10 = core.mul %x, %9 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %11 = core.mul %1, %9 : (tensor<3x1xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %12 = core.sub %b, %11 : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %13 = core.add %10, %12 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %13 : tensor<3x4xf32>
}

// -----

// An unbiased variance (a divisor of 3), and the normalized values of something else, whose
// difference is divided by its root mean square.
// CHECK-LABEL: @unbiased
// CHECK:         core.sqrt
// CHECK-LABEL: @of_another
// CHECK:         %[[D:.*]] = core.sub %y
// CHECK:         core.layer_norm %[[D]], %{{.*}} axis 1 {epsilon = 6.250000e-02 : f64, uncentered}
func.func @unbiased(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %m = core.constant dense<3.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.mul %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.reduce sum %3 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = core.div %4, %m : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.add %5, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.sqrt %6 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %8 = core.div %2, %7 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %8 : tensor<3x4xf32>
}
func.func @of_another(%x : tensor<3x4xf32>, %y : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %y, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.mul %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.reduce sum %3 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = core.div %4, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.add %5, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.sqrt %6 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %8 = core.div %2, %7 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %8 : tensor<3x4xf32>
}

// -----

// Not the last dimension, which layer_norm would take too.
// CHECK-LABEL: @first_dimension
// CHECK:         core.sqrt
func.func @first_dimension(%x : tensor<4x3xf32>) -> tensor<4x3xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %0 = core.reduce sum %x [0] {keep_dims = true} : (tensor<4x3xf32>) -> tensor<1x3xf32>
  %1 = core.div %0, %n : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
  %2 = core.sub %x, %1 : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  %3 = core.mul %2, %2 : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %4 = core.reduce sum %3 [0] {keep_dims = true} : (tensor<4x3xf32>) -> tensor<1x3xf32>
  %5 = core.div %4, %n : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
  %6 = core.add %5, %e : (tensor<1x3xf32>, tensor<f32>) -> tensor<1x3xf32>
  %7 = core.sqrt %6 : (tensor<1x3xf32>) -> tensor<1x3xf32>
  %8 = core.div %2, %7 : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  func.return %8 : tensor<4x3xf32>
}

// -----

// What is added is another tensor, not a bias; what is multiplied meets a scale, or comes after
// the bias.
// CHECK-LABEL: @residual
// CHECK:         core.layer_norm
// CHECK-NEXT:    core.add
// CHECK-LABEL: @scaled_twice
// CHECK:         core.layer_norm
// CHECK-NEXT:    core.mul
// CHECK-LABEL: @scaled_late
// CHECK:         core.layer_norm
// CHECK-NEXT:    core.mul
func.func @residual(%x : tensor<3x4xf32>, %s : tensor<4xf32>, %y : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = core.layer_norm %x, %s axis 1 {epsilon = 0.1 : f64} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = core.add %0, %y : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %1 : tensor<3x4xf32>
}
func.func @scaled_twice(%x : tensor<3x4xf32>, %s : tensor<4xf32>, %t : tensor<4xf32>) -> tensor<3x4xf32> {
  %0 = core.layer_norm %x, %s axis 1 {epsilon = 0.1 : f64} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = core.mul %0, %t : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  func.return %1 : tensor<3x4xf32>
}
func.func @scaled_late(%x : tensor<3x4xf32>, %b : tensor<4xf32>, %t : tensor<4xf32>) -> tensor<3x4xf32> {
  %s = core.constant dense<1.0> : tensor<4xf32>
  %0 = core.layer_norm %x, %s, %b axis 1 {epsilon = 0.1 : f64} : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %1 = core.mul %0, %t : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  func.return %1 : tensor<3x4xf32>
}

// -----

// Powers of -1 / 2, the scale on the reciprocal, and the square of mean - x.
// CHECK-LABEL: @power
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %s axis 1 {epsilon = 6.250000e-02 : f64}
// CHECK-NEXT:    func.return %[[Y]]
func.func @power(%x : tensor<3x4xf32>, %s : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %p = core.constant dense<-0.5> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.sub %1, %x : (tensor<3x1xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.mul %3, %3 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %5 = core.reduce sum %4 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %6 = core.div %5, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.add %6, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %8 = core.pow %7, %p : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %9 = core.mul %8, %s : (tensor<3x1xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %10 = core.mul %2, %9 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %10 : tensor<3x4xf32>
}

// -----

// The scale before the division, a root as a power, and the square of an absolute value.
// CHECK-LABEL: @scale_first
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %s axis 1 {epsilon = 6.250000e-02 : f64}
// CHECK-NEXT:    func.return %[[Y]]
// mean - x in front has the other sign; a power of 2; a scale as large as x.
// CHECK-LABEL: @negative
// CHECK:         core.pow
// CHECK-LABEL: @not_a_root
// CHECK:         core.pow
// CHECK-LABEL: @large_scale
// CHECK:         core.pow
func.func @scale_first(%x : tensor<3x4xf32>, %s : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %p = core.constant dense<0.5> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.abs %2 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.mul %3, %3 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %5 = core.reduce sum %4 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %6 = core.div %5, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.add %6, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %8 = core.pow %7, %p : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %9 = core.mul %s, %2 : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %10 = core.div %9, %8 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %10 : tensor<3x4xf32>
}
func.func @negative(%x : tensor<3x4xf32>, %s : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %p = core.constant dense<0.5> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %1, %x : (tensor<3x1xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %3 = core.mul %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.reduce sum %3 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = core.div %4, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.add %5, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.pow %6, %p : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %8 = core.mul %s, %2 : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %9 = core.div %8, %7 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %9 : tensor<3x4xf32>
}
func.func @not_a_root(%x : tensor<3x4xf32>, %s : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %p = core.constant dense<2.0> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.mul %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.reduce sum %3 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = core.div %4, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.add %5, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.pow %6, %p : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %8 = core.mul %s, %2 : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %9 = core.div %8, %7 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %9 : tensor<3x4xf32>
}
func.func @large_scale(%x : tensor<3x4xf32>, %s : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %p = core.constant dense<0.5> : tensor<f32>
  %0 = core.reduce sum %x [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = core.div %0, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %2 = core.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = core.mul %2, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = core.reduce sum %3 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = core.div %4, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.add %5, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %7 = core.pow %6, %p : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %8 = core.mul %s, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %9 = core.div %8, %7 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %9 : tensor<3x4xf32>
}

// -----

// Group normalization: two groups of two channels, each with its own numbers.
// CHECK-LABEL: @groups
// CHECK-DAG:     %[[S:.*]] = core.reshape %{{.*}} [2, 2, 1] : (tensor<4x1xf32>) -> tensor<2x2x1xf32>
// CHECK-DAG:     %[[B:.*]] = core.reshape %{{.*}} [2, 2, 1] : (tensor<4x1xf32>) -> tensor<2x2x1xf32>
// CHECK:         %[[Y:.*]] = core.layer_norm %{{.*}}, %[[S]], %[[B]] axis 2 {{.*}} -> tensor<2x2x2x5xf32>
// CHECK-NEXT:    %[[R:.*]] = core.reshape %[[Y]] [2, 4, 5]
// CHECK-NEXT:    func.return %[[R]]
func.func @groups(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %b = core.constant dense<[[5.0], [6.0], [7.0], [8.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  %1 = core.add %b, %0 : (tensor<4x1xf32>, tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  func.return %1 : tensor<2x4x5xf32>
}

// -----

// The normalization has a scale or a bias already; numbers for images, and not for channels; and the
// second dimension is not made of the groups.
// CHECK-LABEL: @scaled
// CHECK:         core.mul
// CHECK-LABEL: @shifted
// CHECK:         core.mul
// CHECK-LABEL: @images
// CHECK:         core.mul
// CHECK-LABEL: @other_split
// CHECK:         core.mul
func.func @scaled(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<2.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %b = core.constant dense<[[5.0], [6.0], [7.0], [8.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  %1 = core.add %b, %0 : (tensor<4x1xf32>, tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  func.return %1 : tensor<2x4x5xf32>
}
func.func @shifted(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<1.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %b = core.constant dense<[[5.0], [6.0], [7.0], [8.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  %1 = core.add %b, %0 : (tensor<4x1xf32>, tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  func.return %1 : tensor<2x4x5xf32>
}
func.func @images(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>
  %b = core.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<2x1x1xf32>) -> tensor<2x4x5xf32>
  %1 = core.add %b, %0 : (tensor<2x1x1xf32>, tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  func.return %1 : tensor<2x4x5xf32>
}
func.func @other_split(%x : tensor<2x4x5xf32>) -> tensor<2x5x4xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0], [5.0]]> : tensor<5x1xf32>
  %b = core.constant dense<[[1.0], [-2.0], [3.0], [4.0], [5.0]]> : tensor<5x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 5, 4] : (tensor<2x2x10xf32>) -> tensor<2x5x4xf32>
  %0 = core.mul %r, %s : (tensor<2x5x4xf32>, tensor<5x1xf32>) -> tensor<2x5x4xf32>
  %1 = core.add %b, %0 : (tensor<5x1xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  func.return %1 : tensor<2x5x4xf32>
}

// -----

// Instance normalization: constants for the channels, which are not normalized.
// CHECK-LABEL: @instances
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %s, %b axis 2 {{.*}}
// CHECK-NEXT:    func.return %[[Y]]
// They could be anything else if they were not constant.
// CHECK-LABEL: @computed
// CHECK:         core.mul
func.func @instances(%x : tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %one = core.constant dense<1.0> : tensor<4xf32>
  %s = core.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %b = core.constant dense<[[5.0], [6.0], [7.0]]> : tensor<3x1xf32>
  %0 = core.layer_norm %x, %one axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  %1 = core.mul %0, %s : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %2 = core.add %1, %b : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}
func.func @computed(%x : tensor<2x3x4xf32>, %s : tensor<3x1xf32>) -> tensor<2x3x4xf32> {
  %one = core.constant dense<1.0> : tensor<4xf32>
  %b = core.constant dense<[[5.0], [6.0], [7.0]]> : tensor<3x1xf32>
  %0 = core.layer_norm %x, %one axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>) -> tensor<2x3x4xf32>
  %1 = core.mul %0, %s : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %2 = core.add %1, %b : (tensor<2x3x4xf32>, tensor<3x1xf32>) -> tensor<2x3x4xf32>
  func.return %2 : tensor<2x3x4xf32>
}

// -----

// Zeros make 0 of -0, and times -2 that is -0. It shows where nothing or -0 is added next; where
// another bias meets it; and not where the zeros are negative themselves.
// CHECK-LABEL: @product_of_zeros
// CHECK:         core.mul
// CHECK-LABEL: @negative_zero_next
// CHECK:         core.mul
// CHECK-LABEL: @negative_zero_met
// CHECK:         core.add
// CHECK-LABEL: @negative_zeros
// CHECK:         core.layer_norm {{.*}} -> tensor<2x2x2x5xf32>
// CHECK-NOT:     core.mul
func.func @product_of_zeros(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  func.return %0 : tensor<2x4x5xf32>
}
func.func @negative_zero_next(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %b = core.constant dense<[[1.0], [-0.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  %1 = core.add %0, %b : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  func.return %1 : tensor<2x4x5xf32>
}
func.func @negative_zero_met(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %b = core.constant dense<[[1.0], [-0.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %1 = core.add %r, %b : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  func.return %1 : tensor<2x4x5xf32>
}
func.func @negative_zeros(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<-0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  func.return %0 : tensor<2x4x5xf32>
}

// -----

// The quotient by the product shows what 0 becomes; so is the normalization without
// parameters; and groups with a scale of two have no place for a bias of channels.
// CHECK-LABEL: @product_used
// CHECK:         core.mul
// CHECK-LABEL: @both_used
// CHECK:         core.mul
// CHECK-LABEL: @bias_after_scale
// CHECK:         core.add
func.func @product_used(%x : tensor<2x4x5xf32>) -> (tensor<2x4x5xf32>, tensor<2x4x5xf32>) {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %zero = core.constant dense<0.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %b = core.constant dense<[[1.0], [0.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one, %zero axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  %1 = core.div %x, %0 : (tensor<2x4x5xf32>, tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  %2 = core.add %0, %b : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  func.return %1, %2 : tensor<2x4x5xf32>, tensor<2x4x5xf32>
}
func.func @both_used(%x : tensor<2x4x5xf32>) -> (tensor<2x4x5xf32>, tensor<2x4x5xf32>) {
  %one = core.constant dense<1.0> : tensor<2x1xf32>
  %s = core.constant dense<[[1.0], [-2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %0 = core.mul %r, %s : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  func.return %0, %r : tensor<2x4x5xf32>, tensor<2x4x5xf32>
}
func.func @bias_after_scale(%x : tensor<2x4x5xf32>) -> tensor<2x4x5xf32> {
  %one = core.constant dense<2.0> : tensor<2x1xf32>
  %b = core.constant dense<[[1.0], [0.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %g = core.reshape %x [2, 2, 10] : (tensor<2x4x5xf32>) -> tensor<2x2x10xf32>
  %i = core.layer_norm %g, %one axis 2 {epsilon = 6.250000e-02 : f64} : (tensor<2x2x10xf32>, tensor<2x1xf32>) -> tensor<2x2x10xf32>
  %r = core.reshape %i [2, 4, 5] : (tensor<2x2x10xf32>) -> tensor<2x4x5xf32>
  %1 = core.add %r, %b : (tensor<2x4x5xf32>, tensor<4x1xf32>) -> tensor<2x4x5xf32>
  func.return %1 : tensor<2x4x5xf32>
}

// -----

// Divided by the root mean square, as T5 and Llama do: by its reciprocal with the scale on the
// values, by a power, and with numbers around the root of a sum.
// CHECK-LABEL: @root_mean_square
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %s axis 1 {epsilon = 6.250000e-02 : f64, uncentered}
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @power_of_mean_square
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %s axis 1 {epsilon = 6.250000e-02 : f64, uncentered}
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @norm_by_root_of_count
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %{{.*}} axis 1 {epsilon = 2.500000e-01 : f64, uncentered, late_epsilon}
// CHECK-NEXT:    func.return %[[Y]]
// CHECK-LABEL: @root_of_count_by_norm
// CHECK:         %[[Y:.*]] = core.layer_norm %x, %{{.*}} axis 1 {epsilon = 1.562500e-02 : f64, uncentered}
// CHECK-NEXT:    func.return %[[Y]]
func.func @root_mean_square(%x : tensor<3x4xf32>, %s : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %one = core.constant dense<1.0> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %2 = core.div %1, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = core.add %2, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = core.sqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = core.div %one, %4 : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %6 = core.mul %x, %s : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %7 = core.mul %6, %5 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %7 : tensor<3x4xf32>
}
func.func @power_of_mean_square(%x : tensor<3x4xf32>, %s : tensor<4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<0.25> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %p = core.constant dense<-0.5> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = false} : (tensor<3x4xf32>) -> tensor<3xf32>
  %k = core.reshape %1 [3, 1] : (tensor<3xf32>) -> tensor<3x1xf32>
  %2 = core.mul %k, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = core.add %2, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = core.pow %3, %p : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %5 = core.mul %4, %x : (tensor<3x1xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %6 = core.mul %s, %5 : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %6 : tensor<3x4xf32>
}
func.func @norm_by_root_of_count(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<2.0> : tensor<f32>
  %e = core.constant dense<0.25> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %2 = core.sqrt %1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %3 = core.div %2, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = core.add %e, %3 : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = core.div %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %5 : tensor<3x4xf32>
}
func.func @root_of_count_by_norm(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<2.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %a = core.abs %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %0 = core.mul %a, %a : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %3 = core.add %1, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = core.sqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = core.div %n, %4 : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %6 = core.mul %5, %x : (tensor<3x1xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %6 : tensor<3x4xf32>
}

// -----

// A norm of rows, whose sum is no mean; two epsilons; the squares of another value; a negative root.
// CHECK-LABEL: @norm
// CHECK-NOT:     layer_norm
// CHECK-LABEL: @two_epsilons
// CHECK-NOT:     layer_norm
// CHECK-LABEL: @squares_of_another
// CHECK-NOT:     layer_norm
// CHECK-LABEL: @negative_root
// CHECK-NOT:     layer_norm
func.func @norm(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %e = core.constant dense<0.0625> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %3 = core.add %1, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = core.sqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = core.div %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %5 : tensor<3x4xf32>
}
func.func @two_epsilons(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %2 = core.div %1, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = core.add %2, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = core.sqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = core.add %4, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %6 = core.div %x, %5 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %6 : tensor<3x4xf32>
}
func.func @squares_of_another(%x : tensor<3x4xf32>, %y : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<4.0> : tensor<f32>
  %e = core.constant dense<0.0625> : tensor<f32>
  %0 = core.mul %y, %y : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %2 = core.div %1, %n : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = core.add %2, %e : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = core.sqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %6 = core.div %x, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %6 : tensor<3x4xf32>
}
func.func @negative_root(%x : tensor<3x4xf32>) -> tensor<3x4xf32> {
  %n = core.constant dense<-2.0> : tensor<f32>
  %0 = core.mul %x, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = core.reduce sum %0 [1] {keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %4 = core.sqrt %1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = core.div %n, %4 : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %6 = core.mul %x, %5 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  func.return %6 : tensor<3x4xf32>
}
