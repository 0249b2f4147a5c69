// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @constants
// CHECK-NEXT:    %f32 = core.constant dense<{{\[\[}}1.0, -2.5], [1.000000013351432e-10, 3.0000000054977558e+38]]> : tensor<2x2xf32>
// CHECK-NEXT:    %f64 = core.constant dense<0.1> : tensor<f64>
// CHECK-NEXT:    %i1 = core.constant dense<[true, false]> : tensor<2xi1>
// CHECK-NEXT:    %i8 = core.constant dense<[-128, 127]> : tensor<2xi8>
// CHECK-NEXT:    %ui64 = core.constant dense<18446744073709551615> : tensor<ui64>
// CHECK-NEXT:    %splat = core.constant dense<[7, 7, 7]> : tensor<3xi64>
// CHECK-NEXT:    %empty = core.constant #core.blob<"0x"> : tensor<0xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @constants() {
  %f32 = core.constant dense<[[1.0, -2.5], [1.0e-10, 3.0e+38]]> : tensor<2x2xf32>
  %f64 = core.constant dense<0.1> : tensor<f64>
  %i1 = core.constant dense<[true, false]> : tensor<2xi1>
  %i8 = core.constant dense<[-128, 127]> : tensor<2xi8>
  %ui64 = core.constant dense<18446744073709551615> : tensor<ui64>
  %splat = core.constant dense<7> : tensor<3xi64>
  %empty = core.constant #core.blob<"0x"> : tensor<0xf32>
  func.return
}

// Values without a decimal form that reads back, and element types without one, are bytes.
// CHECK-LABEL: func.func @bytes
// CHECK-NEXT:    %inf = core.constant #core.blob<"0x0000807F"> : tensor<f32>
// CHECK-NEXT:    %f16 = core.constant #core.blob<"0x003C"> : tensor<f16>
// CHECK-NEXT:    %f8 = core.constant #core.blob<"0x38"> : tensor<f8E4M3FN>
// CHECK-NEXT:    %uniform = core.constant #core.blob<uniform "0x0000803F", 4000> : tensor<1000xf32>
// CHECK-NEXT:    %elided = core.constant #core.blob<elided> : tensor<1000xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @bytes() {
  %inf = core.constant #core.blob<"0x0000807F"> : tensor<f32>
  %f16 = core.constant #core.blob<"0x003C"> : tensor<f16>
  %f8 = core.constant #core.blob<"0x38"> : tensor<f8E4M3FN>
  %uniform = core.constant #core.blob<uniform "0x0000803F", 4000> : tensor<1000xf32>
  %elided = core.constant #core.blob<elided> : tensor<1000xf32>
  func.return
}

// CHECK-LABEL: func.func @symbols
// CHECK-NEXT:    %a = core.from_dims [n, (n + 1) floordiv 2] shape [2] : tensor<2xi64>
// CHECK-NEXT:    %b = core.from_dims [n] shape [] : tensor<i64>
// CHECK-NEXT:    core.bind_symbols %s ["u0", "u1"] : tensor<2xi64>
// CHECK-NEXT:    %c = core.iota [u0, 2] axis 0 : tensor<?x2xi64, #core.tensor<dims = [u0, 2]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @symbols(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %s : tensor<2xi64>) {
  %a = core.from_dims [n, (n + 1) floordiv 2] shape [2] : tensor<2xi64>
  %b = core.from_dims [n] shape [] : tensor<i64>
  core.bind_symbols %s ["u0", "u1"] : tensor<2xi64>
  %c = core.iota [u0, 2] axis 0 : tensor<?x2xi64, #core.tensor<dims = [u0, 2]>>
  func.return
}
