// RUN: opt-tool %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK: op 'core.log': expected a floating-point tensor, got i32 (C1)
func.func @log_c1(%x : tensor<2xi32>) {
  %r = core.log %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.sqrt': expected a floating-point tensor, got i32 (C1)
func.func @sqrt_c1(%x : tensor<2xi32>) {
  %r = core.sqrt %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.floor': expected a floating-point tensor, got i32 (C1)
func.func @floor_c1(%x : tensor<2xi32>) {
  %r = core.floor %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.ceil': expected a floating-point tensor, got i32 (C1)
func.func @ceil_c1(%x : tensor<2xi32>) {
  %r = core.ceil %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.round': expected a floating-point tensor, got i32 (C1)
func.func @round_c1(%x : tensor<2xi32>) {
  %r = core.round %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.erf': expected a floating-point tensor, got i32 (C1)
func.func @erf_c1(%x : tensor<2xi32>) {
  %r = core.erf %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.sin': expected a floating-point tensor, got i32 (C1)
func.func @sin_c1(%x : tensor<2xi32>) {
  %r = core.sin %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.cos': expected a floating-point tensor, got i32 (C1)
func.func @cos_c1(%x : tensor<2xi32>) {
  %r = core.cos %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.tan': expected a floating-point tensor, got i32 (C1)
func.func @tan_c1(%x : tensor<2xi32>) {
  %r = core.tan %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.asin': expected a floating-point tensor, got i32 (C1)
func.func @asin_c1(%x : tensor<2xi32>) {
  %r = core.asin %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.acos': expected a floating-point tensor, got i32 (C1)
func.func @acos_c1(%x : tensor<2xi32>) {
  %r = core.acos %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.atan': expected a floating-point tensor, got i32 (C1)
func.func @atan_c1(%x : tensor<2xi32>) {
  %r = core.atan %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.sinh': expected a floating-point tensor, got i32 (C1)
func.func @sinh_c1(%x : tensor<2xi32>) {
  %r = core.sinh %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.cosh': expected a floating-point tensor, got i32 (C1)
func.func @cosh_c1(%x : tensor<2xi32>) {
  %r = core.cosh %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.tanh': expected a floating-point tensor, got i32 (C1)
func.func @tanh_c1(%x : tensor<2xi32>) {
  %r = core.tanh %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.asinh': expected a floating-point tensor, got i32 (C1)
func.func @asinh_c1(%x : tensor<2xi32>) {
  %r = core.asinh %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.acosh': expected a floating-point tensor, got i32 (C1)
func.func @acosh_c1(%x : tensor<2xi32>) {
  %r = core.acosh %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.atanh': expected a floating-point tensor, got i32 (C1)
func.func @atanh_c1(%x : tensor<2xi32>) {
  %r = core.atanh %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.short_erf': expected a floating-point tensor, got i32 (C1)
func.func @short_erf_c1(%x : tensor<2xi32>) {
  %r = core.short_erf %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.rectify': expected a floating-point tensor, got i32 (C1)
func.func @rectify_c1(%x : tensor<2xi32>) {
  %r = core.rectify %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.sigmoid': expected a floating-point tensor, got i32 (C1)
func.func @sigmoid_c1(%x : tensor<2xi32>) {
  %r = core.sigmoid %x : (tensor<2xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.sub': operands have different element types: f32, i64 (C1)
func.func @sub_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.sub %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.sub': cannot broadcast [2] with [3] (C2)
func.func @sub_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.sub %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.mul': operands have different element types: f32, i64 (C1)
func.func @mul_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.mul %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.mul': cannot broadcast [2] with [3] (C2)
func.func @mul_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.mul %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.div': operands have different element types: f32, i64 (C1)
func.func @div_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.div %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.div': cannot broadcast [2] with [3] (C2)
func.func @div_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.div %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.rem': operands have different element types: f32, i64 (C1)
func.func @rem_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.rem %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.rem': cannot broadcast [2] with [3] (C2)
func.func @rem_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.rem %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.mod': operands have different element types: f32, i64 (C1)
func.func @mod_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.mod %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.mod': cannot broadcast [2] with [3] (C2)
func.func @mod_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.mod %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.pow': operands have different element types: f32, i64 (C1)
func.func @pow_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.pow %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.pow': cannot broadcast [2] with [3] (C2)
func.func @pow_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.pow %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.max': operands have different element types: f32, i64 (C1)
func.func @max_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.max %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.max': cannot broadcast [2] with [3] (C2)
func.func @max_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.max %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.min': operands have different element types: f32, i64 (C1)
func.func @min_c1(%x : tensor<2xf32>, %y : tensor<2xi64>) {
  %r = core.min %x, %y : (tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.min': cannot broadcast [2] with [3] (C2)
func.func @min_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.min %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.and': operands have different element types: i32, i64 (C1)
func.func @and_c1(%x : tensor<2xi32>, %y : tensor<2xi64>) {
  %r = core.and %x, %y : (tensor<2xi32>, tensor<2xi64>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.and': cannot broadcast [2] with [3] (C2)
func.func @and_c2(%x : tensor<2xi32>, %y : tensor<3xi32>) {
  %r = core.and %x, %y : (tensor<2xi32>, tensor<3xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.or': operands have different element types: i32, i64 (C1)
func.func @or_c1(%x : tensor<2xi32>, %y : tensor<2xi64>) {
  %r = core.or %x, %y : (tensor<2xi32>, tensor<2xi64>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.or': cannot broadcast [2] with [3] (C2)
func.func @or_c2(%x : tensor<2xi32>, %y : tensor<3xi32>) {
  %r = core.or %x, %y : (tensor<2xi32>, tensor<3xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.or': expected integers or i1, got f32 (C3)
func.func @or_c3(%x : tensor<2xf32>, %y : tensor<2xf32>) {
  %r = core.or %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.xor': operands have different element types: i32, i64 (C1)
func.func @xor_c1(%x : tensor<2xi32>, %y : tensor<2xi64>) {
  %r = core.xor %x, %y : (tensor<2xi32>, tensor<2xi64>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.xor': cannot broadcast [2] with [3] (C2)
func.func @xor_c2(%x : tensor<2xi32>, %y : tensor<3xi32>) {
  %r = core.xor %x, %y : (tensor<2xi32>, tensor<3xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.xor': expected integers or i1, got f32 (C3)
func.func @xor_c3(%x : tensor<2xf32>, %y : tensor<2xf32>) {
  %r = core.xor %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.shl': operands have different element types: i32, i64 (C1)
func.func @shl_c1(%x : tensor<2xi32>, %y : tensor<2xi64>) {
  %r = core.shl %x, %y : (tensor<2xi32>, tensor<2xi64>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.shl': cannot broadcast [2] with [3] (C2)
func.func @shl_c2(%x : tensor<2xi32>, %y : tensor<3xi32>) {
  %r = core.shl %x, %y : (tensor<2xi32>, tensor<3xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.shl': expected integers or i1, got f32 (C3)
func.func @shl_c3(%x : tensor<2xf32>, %y : tensor<2xf32>) {
  %r = core.shl %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.shr': operands have different element types: i32, i64 (C1)
func.func @shr_c1(%x : tensor<2xi32>, %y : tensor<2xi64>) {
  %r = core.shr %x, %y : (tensor<2xi32>, tensor<2xi64>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.shr': cannot broadcast [2] with [3] (C2)
func.func @shr_c2(%x : tensor<2xi32>, %y : tensor<3xi32>) {
  %r = core.shr %x, %y : (tensor<2xi32>, tensor<3xi32>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.shr': expected integers or i1, got f32 (C3)
func.func @shr_c3(%x : tensor<2xf32>, %y : tensor<2xf32>) {
  %r = core.shr %x, %y : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

// CHECK: op 'core.requantize': double rounding of i64 (C1)
func.func @requantize_c1(%x : tensor<2xi32>, %w : tensor<2xi64>, %m : tensor<i32>, %f : tensor<f64>, %n : tensor<3xi32>) {
  %r = core.requantize double %w, %m, %m zero 0 low 0 high 1 to i8 : (tensor<2xi64>, tensor<i32>, tensor<i32>) -> tensor<2xi8>
  func.return
}

// -----

// CHECK: op 'core.requantize': a multiplier of type i32 for real rounding (C2)
func.func @requantize_c2(%x : tensor<2xi32>, %w : tensor<2xi64>, %m : tensor<i32>, %f : tensor<f64>, %n : tensor<3xi32>) {
  %r = core.requantize real %x, %m zero 0 low 0 high 1 to i8 : (tensor<2xi32>, tensor<i32>) -> tensor<2xi8>
  func.return
}

// -----

// CHECK: op 'core.requantize': -1 to 1 in ui8 (C3)
func.func @requantize_c3(%x : tensor<2xi32>, %w : tensor<2xi64>, %m : tensor<i32>, %f : tensor<f64>, %n : tensor<3xi32>) {
  %r = core.requantize real %x, %f zero 0 low -1 high 1 to ui8 : (tensor<2xi32>, tensor<f64>) -> tensor<2xui8>
  func.return
}

// -----

// CHECK: op 'core.requantize': single rounding is not right (C5)
func.func @requantize_c5(%x: tensor<2xi32>, %m: tensor<2xi32>) -> tensor<2xi8> {
  %y = core.requantize single right %x, %m, %m zero 0 low -128 high 127 to i8 : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi8>
  func.return %y : tensor<2xi8>
}

// -----

// CHECK: op 'core.requantize': cannot broadcast {{.*}} (C4)
func.func @requantize_c4(%x : tensor<2xi32>, %w : tensor<2xi64>, %m : tensor<i32>, %f : tensor<f64>, %n : tensor<3xi32>) {
  %r = core.requantize double %x, %n, %m zero 0 low 0 high 1 to i8 : (tensor<2xi32>, tensor<3xi32>, tensor<i32>) -> tensor<2xi8>
  func.return
}

// -----

// CHECK: op 'core.dequantize': codes of type i8, scales of f32, zero points of None (C1)
func.func @dequantize_c1(%q : tensor<2x3xi8>, %s : tensor<1x3xf32>) {
  %r = core.dequantize %q, %s axis 0 size 4 block 4 : (tensor<2x3xi8>, tensor<1x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

// CHECK: op 'core.dequantize': axis 2 is out of range for rank 2 (C2)
func.func @dequantize_c2_axis(%q : tensor<2x3xui8>, %s : tensor<1x3xf32>) {
  %r = core.dequantize %q, %s axis 2 size 4 block 4 : (tensor<2x3xui8>, tensor<1x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

// CHECK: op 'core.dequantize': size 4, block 0 (C2)
func.func @dequantize_c2_block(%q : tensor<2x3xui8>, %s : tensor<1x3xf32>) {
  %r = core.dequantize %q, %s axis 0 size 4 block 0 : (tensor<2x3xui8>, tensor<1x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

// CHECK: op 'core.dequantize': an operand of ['2', '3'], expected ['3', '3'] (C3)
func.func @dequantize_c3_codes(%q : tensor<2x3xui8>, %s : tensor<1x3xf32>) {
  %r = core.dequantize %q, %s axis 0 size 5 block 8 : (tensor<2x3xui8>, tensor<1x3xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

// CHECK: op 'core.dequantize': an operand of ['1', '3'], expected ['2', '3'] (C3)
func.func @dequantize_c3_zeros(%q : tensor<2x3xui8>, %s : tensor<2x3xf32>, %z : tensor<1x3xui8>) {
  %r = core.dequantize %q, %s, %z axis 0 size 4 block 3 : (tensor<2x3xui8>, tensor<2x3xf32>, tensor<1x3xui8>) -> tensor<4x3xf32>
  func.return
}

// -----

// CHECK: op 'core.pair_halves': halves of f32 and bf16 (C1)
func.func @pair_halves_c1(%x : tensor<2xf32>, %y : tensor<2xbf16>) {
  %r = core.pair_halves %x, %y : (tensor<2xf32>, tensor<2xbf16>) -> tensor<2xi32>
  func.return
}

// -----

// CHECK: op 'core.pair_halves': cannot broadcast {{.*}} (C2)
func.func @pair_halves_c2(%x : tensor<2xf32>, %y : tensor<3xf32>) {
  %r = core.pair_halves %x, %y : (tensor<2xf32>, tensor<3xf32>) -> tensor<3xi32>
  func.return
}

// -----

// CHECK: op 'core.bitcast': the bits of f32 as i64 (C1)
func.func @bitcast_c1(%x : tensor<2xf32>) {
  %r = core.bitcast %x to i64 : (tensor<2xf32>) -> tensor<2xi64>
  func.return
}

// -----

// CHECK: op 'core.bitcast': the bits of f16 as i16 (C1)
func.func @bitcast_c1_halves(%x : tensor<2xf16>) {
  %r = core.bitcast %x to i16 : (tensor<2xf16>) -> tensor<2xi16>
  func.return
}
