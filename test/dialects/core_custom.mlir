// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP
// RUN: opt-tool %s --load %S/Inputs/soft_clip.py | filecheck %s

// Nobody needs to know the operator to read it.

// CHECK:      func.func @one
// CHECK-NEXT:   %y = core.custom "com.acme.SoftClip" %x {alpha = 5.000000e-01 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @one(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = core.custom "com.acme.SoftClip" %x {alpha = 0.5 : f64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// CHECK:      func.func @two
// CHECK-NEXT:   %y = core.custom "com.acme.SoftClip" %x, %b {alpha = 2.000000e+00 : f64} : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<1xf32>) -> tensor<?xf32, #core.tensor<dims = [n]>>
func.func @two(%x : tensor<?xf32, #core.tensor<dims = [n]>>, %b : tensor<1xf32>) -> tensor<?xf32, #core.tensor<dims = [n]>> {
  %y = core.custom "com.acme.SoftClip" %x, %b {alpha = 2.0 : f64} : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<1xf32>) -> tensor<?xf32, #core.tensor<dims = [n]>>
  func.return %y : tensor<?xf32, #core.tensor<dims = [n]>>
}
