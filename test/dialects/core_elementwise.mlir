// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @float_unary
// CHECK-NEXT:    %exp = core.exp %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %log = core.log %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %sqrt = core.sqrt %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %floor = core.floor %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %ceil = core.ceil %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %round = core.round %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %erf = core.erf %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %short_erf = core.short_erf %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %sin = core.sin %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %cos = core.cos %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %tan = core.tan %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %asin = core.asin %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %acos = core.acos %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %atan = core.atan %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %sinh = core.sinh %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %cosh = core.cosh %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %tanh = core.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %asinh = core.asinh %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %acosh = core.acosh %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %atanh = core.atanh %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %sigmoid = core.sigmoid %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %rectify = core.rectify %x : (tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @float_unary(%x : tensor<2xf32>) {
  %exp = core.exp %x : (tensor<2xf32>) -> tensor<2xf32>
  %log = core.log %x : (tensor<2xf32>) -> tensor<2xf32>
  %sqrt = core.sqrt %x : (tensor<2xf32>) -> tensor<2xf32>
  %floor = core.floor %x : (tensor<2xf32>) -> tensor<2xf32>
  %ceil = core.ceil %x : (tensor<2xf32>) -> tensor<2xf32>
  %round = core.round %x : (tensor<2xf32>) -> tensor<2xf32>
  %erf = core.erf %x : (tensor<2xf32>) -> tensor<2xf32>
  %short_erf = core.short_erf %x : (tensor<2xf32>) -> tensor<2xf32>
  %sin = core.sin %x : (tensor<2xf32>) -> tensor<2xf32>
  %cos = core.cos %x : (tensor<2xf32>) -> tensor<2xf32>
  %tan = core.tan %x : (tensor<2xf32>) -> tensor<2xf32>
  %asin = core.asin %x : (tensor<2xf32>) -> tensor<2xf32>
  %acos = core.acos %x : (tensor<2xf32>) -> tensor<2xf32>
  %atan = core.atan %x : (tensor<2xf32>) -> tensor<2xf32>
  %sinh = core.sinh %x : (tensor<2xf32>) -> tensor<2xf32>
  %cosh = core.cosh %x : (tensor<2xf32>) -> tensor<2xf32>
  %tanh = core.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  %asinh = core.asinh %x : (tensor<2xf32>) -> tensor<2xf32>
  %acosh = core.acosh %x : (tensor<2xf32>) -> tensor<2xf32>
  %atanh = core.atanh %x : (tensor<2xf32>) -> tensor<2xf32>
  %sigmoid = core.sigmoid %x : (tensor<2xf32>) -> tensor<2xf32>
  %rectify = core.rectify %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// CHECK-LABEL: func.func @unary
// CHECK-NEXT:    %a = core.neg %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %b = core.abs %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %c = core.sign %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %d = core.not %i : (tensor<2xi8>) -> tensor<2xi8>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @unary(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %i : tensor<2xi8>) {
  %a = core.neg %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %b = core.abs %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %c = core.sign %x : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %d = core.not %i : (tensor<2xi8>) -> tensor<2xi8>
  func.return
}

// CHECK-LABEL: func.func @binary
// CHECK-NEXT:    %add = core.add %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %sub = core.sub %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %mul = core.mul %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %div = core.div %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %rem = core.rem %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %mod = core.mod %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %pow = core.pow %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %max = core.max %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %min = core.min %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %and = core.and %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %or = core.or %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %xor = core.xor %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @binary(%x : tensor<2x1xi32>, %y : tensor<3xi32>) {
  %add = core.add %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %sub = core.sub %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %mul = core.mul %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %div = core.div %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %rem = core.rem %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %mod = core.mod %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %pow = core.pow %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %max = core.max %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %min = core.min %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %and = core.and %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %or = core.or %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  %xor = core.xor %x, %y : (tensor<2x1xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  func.return
}

// CHECK-LABEL: func.func @shifts
// CHECK-NEXT:    %shl = core.shl %x, %x : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
// CHECK-NEXT:    %shr = core.shr %x, %x : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @shifts(%x : tensor<2xui8>) {
  %shl = core.shl %x, %x : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  %shr = core.shr %x, %x : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  func.return
}

// Two dimensions that are not known to be one give their maximum.
// CHECK-LABEL: func.func @broadcast
// CHECK-NEXT:    %a = core.add %x, %y : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x1xf32, #core.tensor<dims = [m, 1]>>) -> tensor<?x4xf32, #core.tensor<dims = [max(m, n), 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @broadcast(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %y : tensor<?x1xf32, #core.tensor<dims = [m, 1]>>) {
  %a = core.add %x, %y : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x1xf32, #core.tensor<dims = [m, 1]>>) -> tensor<?x4xf32, #core.tensor<dims = [max(m, n), 4]>>
  func.return
}

// CHECK-LABEL: func.func @compare
// CHECK-NEXT:    %eq = core.compare eq %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
// CHECK-NEXT:    %ne = core.compare ne %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
// CHECK-NEXT:    %lt = core.compare lt %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
// CHECK-NEXT:    %le = core.compare le %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
// CHECK-NEXT:    %gt = core.compare gt %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
// CHECK-NEXT:    %ge = core.compare ge %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @compare(%x : tensor<2xf32>, %y : tensor<1xf32>) {
  %eq = core.compare eq %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
  %ne = core.compare ne %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
  %lt = core.compare lt %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
  %le = core.compare le %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
  %gt = core.compare gt %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
  %ge = core.compare ge %x, %y : (tensor<2xf32>, tensor<1xf32>) -> tensor<2xi1>
  func.return
}

// CHECK-LABEL: func.func @others
// CHECK-NEXT:    %a = core.select %c, %x, %x : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK-NEXT:    %b = core.cast %x to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
// CHECK-NEXT:    %d = core.cast %x to i32 {fits} : (tensor<2xf32>) -> tensor<2xi32>
// CHECK-NEXT:    %e = core.bitcast %x to i32 : (tensor<2xf32>) -> tensor<2xi32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @others(%c : tensor<i1>, %x : tensor<2xf32>) {
  %a = core.select %c, %x, %x : (tensor<i1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %b = core.cast %x to bf16 : (tensor<2xf32>) -> tensor<2xbf16>
  %d = core.cast %x to i32 {fits} : (tensor<2xf32>) -> tensor<2xi32>
  %e = core.bitcast %x to i32 : (tensor<2xf32>) -> tensor<2xi32>
  func.return
}

// CHECK-LABEL: func.func @quantized
// CHECK-NEXT:    %a = core.requantize double %x, %m, %e zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi8>
// CHECK-NEXT:    %b = core.requantize single %w, %m, %e zero 0 low 0 high 255 to ui8 : (tensor<2x3xi64>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xui8>
// CHECK-NEXT:    %c = core.requantize real %x, %f zero 0 low -5 high 127 to i16 : (tensor<2x3xi32>, tensor<f64>) -> tensor<2x3xi16>
func.func @quantized(%x : tensor<2x3xi32>, %w : tensor<2x3xi64>, %m : tensor<3xi32>, %e : tensor<3xi32>, %f : tensor<f64>) {
  %a = core.requantize double %x, %m, %e zero 3 low -128 high 127 to i8 : (tensor<2x3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xi8>
  %b = core.requantize single %w, %m, %e zero 0 low 0 high 255 to ui8 : (tensor<2x3xi64>, tensor<3xi32>, tensor<3xi32>) -> tensor<2x3xui8>
  %c = core.requantize real %x, %f zero 0 low -5 high 127 to i16 : (tensor<2x3xi32>, tensor<f64>) -> tensor<2x3xi16>
  func.return
}

// CHECK-LABEL: func.func @halves
// CHECK-NEXT:    %a = core.dequantize %q, %s axis 1 size 5 block 2 : (tensor<2x3xui8>, tensor<2x3xbf16>) -> tensor<2x5xf32>
// CHECK-NEXT:    %b = core.dequantize %q, %s, %z axis 0 size 4 block 2 : (tensor<2x3xui8>, tensor<2x3xbf16>, tensor<2x3xui8>) -> tensor<4x3xf32>
func.func @halves(%q : tensor<2x3xui8>, %s : tensor<2x3xbf16>, %z : tensor<2x3xui8>) {
  %a = core.dequantize %q, %s axis 1 size 5 block 2 : (tensor<2x3xui8>, tensor<2x3xbf16>) -> tensor<2x5xf32>
  %b = core.dequantize %q, %s, %z axis 0 size 4 block 2 : (tensor<2x3xui8>, tensor<2x3xbf16>, tensor<2x3xui8>) -> tensor<4x3xf32>
  func.return
}

// CHECK-LABEL: func.func @pairs
// CHECK-NEXT:    %a = core.pair_halves %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi32>
// CHECK-NEXT:    %b = core.matmul %a, %w packed halves in f32 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xf32>
func.func @pairs(%x : tensor<2x3xf32>, %y : tensor<3xf32>, %w : tensor<3x4xi32>) {
  %a = core.pair_halves %x, %y : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi32>
  %b = core.matmul %a, %w packed halves in f32 : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xf32>
  func.return
}

// CHECK-LABEL: func.func @windows
// CHECK-NEXT:    %y = core.windows %x taps [3, 2] strides [2, 1] dilations [1, 1] : (tensor<1x4x5x6xi32>) -> tensor<1x24x10xi32>
// CHECK-NEXT:    %z = core.windows %x taps [3, 2] strides [2, 1] dilations [1, 1] apart : (tensor<1x4x5x6xi32>) -> tensor<1x3x2x4x2x5xi32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @windows(%x : tensor<1x4x5x6xi32>) {
  %y = core.windows %x taps [3, 2] strides [2, 1] dilations [1, 1] : (tensor<1x4x5x6xi32>) -> tensor<1x24x10xi32>
  %z = core.windows %x taps [3, 2] strides [2, 1] dilations [1, 1] apart : (tensor<1x4x5x6xi32>) -> tensor<1x3x2x4x2x5xi32>
  func.return
}

// CHECK-LABEL: func.func @sparse_product
// CHECK-NEXT:    %y = core.sparse_product %x, %w, %r, %s axis 1 : (tensor<1x6x5x7xf32>, tensor<3x8xf32>, tensor<3xi32>, tensor<2x2xi32>) -> tensor<1x16x5x7xf32>
// CHECK-NEXT:    %z = core.sparse_product %x, %w, %r, %s, %b axis 3 : (tensor<1x6x5x7xf32>, tensor<3x8xf32>, tensor<3xi32>, tensor<2x2xi32>, tensor<16xf32>) -> tensor<1x6x5x16xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @sparse_product(%x : tensor<1x6x5x7xf32>, %w : tensor<3x8xf32>, %r : tensor<3xi32>, %s : tensor<2x2xi32>, %b : tensor<16xf32>) {
  %y = core.sparse_product %x, %w, %r, %s axis 1 : (tensor<1x6x5x7xf32>, tensor<3x8xf32>, tensor<3xi32>, tensor<2x2xi32>) -> tensor<1x16x5x7xf32>
  %z = core.sparse_product %x, %w, %r, %s, %b axis 3 : (tensor<1x6x5x7xf32>, tensor<3x8xf32>, tensor<3xi32>, tensor<2x2xi32>, tensor<16xf32>) -> tensor<1x6x5x16xf32>
  func.return
}
