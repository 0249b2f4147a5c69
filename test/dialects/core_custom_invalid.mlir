// RUN: opt-tool %s --verify-diagnostics --split-input-file --load %S/Inputs/soft_clip.py | filecheck %s

// CHECK: op 'core.custom': com.acme.SoftClip has 1 to 2 operands, not 3 (C1)
func.func @custom_c1(%x : tensor<2xf32>) {
  %r = core.custom "com.acme.SoftClip" %x, %x, %x {alpha = 0.5 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.custom': com.acme.SoftClip has ['alpha'], not ['beta'] (C2)
func.func @custom_c2_name(%x : tensor<2xf32>) {
  %r = core.custom "com.acme.SoftClip" %x {beta = 0.5 : f64} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.custom': parameter 'alpha' of com.acme.SoftClip is 1, which is no FLOAT (C2)
func.func @custom_c2_type(%x : tensor<2xf32>) {
  %r = core.custom "com.acme.SoftClip" %x {alpha = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.custom': com.acme.SoftClip: expected f32 (C3)
func.func @custom_c3(%x : tensor<2xf64>) {
  %r = core.custom "com.acme.SoftClip" %x {alpha = 0.5 : f64} : (tensor<2xf64>) -> tensor<2xf64>
  func.return
}

// -----

// CHECK: op 'core.custom': result 0 has type tensor<3xf32>, but its operands give tensor<2xf32> (T1)
func.func @custom_t1(%x : tensor<2xf32>) {
  %r = core.custom "com.acme.SoftClip" %x {alpha = 0.5 : f64} : (tensor<2xf32>) -> tensor<3xf32>
  func.return
}
