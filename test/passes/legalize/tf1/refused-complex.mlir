// RUN: not opt-tool %s --pass-pipeline=legalize-tf1 2>&1 | filecheck %s

// A tensor of complex numbers is one of their parts: only what knows that gets to see it.
// CHECK:      node 'result' (Complex): found an output of complex numbers, expected real ones; make Real and Imag of it outputs
// CHECK-NEXT: node 'sign' (Sign): no legalization for Sign of complex numbers; compute with their real and imaginary parts
// CHECK-NEXT: node 'given' (Real): found complex numbers from outside, expected real and imaginary parts as two inputs
func.func @refused(%x : tensor<2xf32>, %g : tensor<2xcomplex<f32>>) -> (tensor<*xcomplex<f32>>, tensor<*xf32>, tensor<*xf32>) {
  %c = tf1.Complex %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<*xcomplex<f32>> loc("result")
  %e = tf1.Sign %c {T = #tf1.dtype<complex64>} : (tensor<*xcomplex<f32>>) -> tensor<*xcomplex<f32>> loc("sign")
  %n = tf1.Neg %e {T = #tf1.dtype<complex64>} : (tensor<*xcomplex<f32>>) -> tensor<*xcomplex<f32>>
  %r = tf1.Real %n : (tensor<*xcomplex<f32>>) -> tensor<*xf32>
  %s = tf1.Real %g : (tensor<2xcomplex<f32>>) -> tensor<*xf32> loc("given")
  func.return %c, %r, %s : tensor<*xcomplex<f32>>, tensor<*xf32>, tensor<*xf32>
}
