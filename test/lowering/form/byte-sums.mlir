// RUN: opt-tool %s --for-target=cortex-m4 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies --split-input-file | filecheck %s --check-prefixes=CHECK,WORDS
// RUN: opt-tool %s --for-target=c99 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies --split-input-file | filecheck %s --check-prefixes=CHECK,PLAIN

// Channels lie innermost between convolutions; so do those of the weights, in words for a tile where
// these are whole. The result of the function is row-major.
// CHECK-LABEL: @main
// PLAIN-NOT:   byte_sums
// WORDS:       core.kernel @conv_0
// WORDS:       core.yield
// WORDS:       layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 2, 3, 1>, #core.layout<0, 2, 3, 1>], schedule = #core.schedule<byte_sums
// WORDS:       core.kernel @conv_1
// WORDS:       layouts = [#core.layout<0, 2, 3, 1>, #core.layout<0/2, 2, 3, 1/4, 0 mod 2, 1 mod 4>, #core.layout<0, 1, 2, 3>]
// CHECK:       func.return
func.func @main(%x: tensor<1x3x6x6xi8>) -> tensor<1x2x6x6xi8> {
  %w = core.constant dense<1> : tensor<8x3x3x3xi8>
  %v = core.constant dense<2> : tensor<2x8x1x1xi8>
  %z = core.constant dense<-5> : tensor<i8>
  %o = core.constant dense<0> : tensor<i8>
  %a = core.conv %x, %w, %z, %o strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 in i32 : (tensor<1x3x6x6xi8>, tensor<8x3x3x3xi8>, tensor<i8>, tensor<i8>) -> tensor<1x8x6x6xi32>
  %b = core.cast %a to i8 : (tensor<1x8x6x6xi32>) -> tensor<1x8x6x6xi8>
  %c = core.conv %b, %v, %z, %o strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x8x6x6xi8>, tensor<2x8x1x1xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2x6x6xi32>
  %y = core.cast %c to i8 : (tensor<1x2x6x6xi32>) -> tensor<1x2x6x6xi8>
  func.return %y : tensor<1x2x6x6xi8>
}

// -----

// Weights that a run gives are read as they are.
// CHECK-LABEL: @main
// CHECK-NOT:   layouts
// CHECK-NOT:   byte_sums
// CHECK:       func.return
func.func @main(%x: tensor<1x8x6x6xi8>, %w: tensor<2x8x1x1xi8>) -> tensor<1x2x6x6xi8> {
  %z = core.constant dense<-5> : tensor<i8>
  %c = core.conv %x, %w, %z, %z strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x8x6x6xi8>, tensor<2x8x1x1xi8>, tensor<i8>, tensor<i8>) -> tensor<1x2x6x6xi32>
  %y = core.cast %c to i8 : (tensor<1x2x6x6xi32>) -> tensor<1x2x6x6xi8>
  func.return %y : tensor<1x2x6x6xi8>
}

// -----

// A zero point for each of the terms of a sum, and 16 bits.
// CHECK-LABEL: @main
// CHECK-NOT:   layouts
// CHECK-NOT:   byte_sums
// CHECK:       func.return
func.func @main(%x: tensor<1x8x6x6xi8>, %i: tensor<1x8x6x6xi16>, %z: tensor<1x8x1x1xi8>) -> (tensor<1x2x6x6xi32>, tensor<1x2x6x6xi32>) {
  %w = core.constant dense<2> : tensor<2x8x1x1xi8>
  %o = core.constant dense<0> : tensor<i8>
  %k = core.constant dense<0> : tensor<i16>
  %y = core.conv %x, %w, %z, %o strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x8x6x6xi8>, tensor<2x8x1x1xi8>, tensor<1x8x1x1xi8>, tensor<i8>) -> tensor<1x2x6x6xi32>
  %u = core.conv %i, %w, %k, %o strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x8x6x6xi16>, tensor<2x8x1x1xi8>, tensor<i16>, tensor<i8>) -> tensor<1x2x6x6xi32>
  func.return %y, %u : tensor<1x2x6x6xi32>, tensor<1x2x6x6xi32>
}

// -----

// What a pool and a map make of such bytes has its channels innermost, too; what something else
// than a kernel reads does not. An argument is copied once.
// CHECK-LABEL: @main
// WORDS:       core.kernel @layout_0
// WORDS:       layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 2, 3, 1>]
// WORDS:       core.kernel @conv_0
// WORDS:       layouts = [#core.layout<0, 2, 3, 1>, #core.layout<1, 2, 3, 0>,
// WORDS-SAME:  #core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2>, #core.layout<0, 2, 3, 1>]
// WORDS-SAME:  <byte_sums>
// WORDS:       core.kernel @pool_0
// WORDS:       layouts = [#core.layout<0, 2, 3, 1>, #core.layout<0, 2, 3, 1>]
// WORDS:       core.kernel @conv_1
// WORDS:       layouts = [#core.layout<0, 2, 3, 1>, #core.layout<1, 2, 3, 0>, #core.layout<0, 1, 2, 3>]
// CHECK:       func.return
func.func @main(%x: tensor<1x8x6x6xi8>, %m: tensor<1x8x1x1xi32>, %e: tensor<8x1x1xi32>) -> tensor<1x72xi32> {
  %w = core.constant dense<2> : tensor<8x1x3x3xi8>
  %o = core.constant dense<0> : tensor<i8>
  %a = core.conv %x, %w, %o, %o strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 8 in i32 : (tensor<1x8x6x6xi8>, tensor<8x1x3x3xi8>, tensor<i8>, tensor<i8>) -> tensor<1x8x6x6xi32>
  %b = core.requantize double %a, %m, %e zero 3 low -128 high 127 to i8 : (tensor<1x8x6x6xi32>, tensor<1x8x1x1xi32>, tensor<8x1x1xi32>) -> tensor<1x8x6x6xi8>
  %p = core.pool max %b kernel [2, 2] strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<1x8x6x6xi8>) -> tensor<1x8x3x3xi8>
  %q = core.conv %p, %w, %o, %o strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 8 in i32 : (tensor<1x8x3x3xi8>, tensor<8x1x3x3xi8>, tensor<i8>, tensor<i8>) -> tensor<1x8x3x3xi32>
  %y = core.reshape %q [1, 72] : (tensor<1x8x3x3xi32>) -> tensor<1x72xi32>
  func.return %y : tensor<1x72xi32>
}

// -----

// A product by a constant: the terms of a column lie in words for a tile of columns.
// CHECK-LABEL: @main
// PLAIN-NOT:   byte_products
// WORDS:       schedule = #core.schedule<byte_products
// WORDS-SAME:  layouts = [#core.layout<0, 1>, #core.layout<1/3, 0/4, 1 mod 3, 0 mod 4>
// CHECK:       func.return
func.func @main(%x: tensor<1x8xi8>) -> tensor<1x3xi32> {
  %w = core.constant dense<2> : tensor<8x3xi8>
  %z = core.constant dense<-5> : tensor<i8>
  %y = core.matmul %x, %w, %z, %z in i32 : (tensor<1x8xi8>, tensor<8x3xi8>, tensor<i8>, tensor<i8>) -> tensor<1x3xi32>
  func.return %y : tensor<1x3xi32>
}

// -----

// A matrix that a run gives, a zero point for each row, and terms that are no whole word.
// CHECK-LABEL: @main
// CHECK-NOT:   byte_products
// CHECK:       func.return
func.func @main(%x: tensor<2x8xi8>, %v: tensor<8x3xi8>, %s: tensor<2x3xi8>) -> (tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>) {
  %w = core.constant dense<2> : tensor<8x3xi8>
  %u = core.constant dense<2> : tensor<3x3xi8>
  %z = core.constant dense<-5> : tensor<i8>
  %r = core.constant dense<[[-5], [4]]> : tensor<2x1xi8>
  %a = core.matmul %x, %v, %z, %z in i32 : (tensor<2x8xi8>, tensor<8x3xi8>, tensor<i8>, tensor<i8>) -> tensor<2x3xi32>
  %b = core.matmul %x, %w, %r, %z in i32 : (tensor<2x8xi8>, tensor<8x3xi8>, tensor<2x1xi8>, tensor<i8>) -> tensor<2x3xi32>
  %c = core.matmul %s, %u, %z, %z in i32 : (tensor<2x3xi8>, tensor<3x3xi8>, tensor<i8>, tensor<i8>) -> tensor<2x3xi32>
  func.return %a, %b, %c : tensor<2x3xi32>, tensor<2x3xi32>, tensor<2x3xi32>
}
