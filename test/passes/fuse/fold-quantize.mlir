// RUN: opt-tool %s -p fold-quantize,dce --split-input-file | filecheck %s

// The shift is a number of steps of the scale; the activation is a limit; the zero point comes last.
// CHECK-LABEL: @sums
// CHECK:         %[[SHIFT:.+]] = core.constant dense<{{\[\[3\], \[-4\]\]}}> : tensor<2x1xi32>
// CHECK-NEXT:    %[[SUM:.+]] = core.add %sums, %[[SHIFT]]
// CHECK-NEXT:    %[[SCALE:.+]] = core.constant dense<{{\[\[0.5\], \[0.25\]\]}}> : tensor<2x1xf32>
// CHECK-NEXT:    %[[Y:.+]] = core.requantize even %[[SUM]], %[[SCALE]] zero -5 low -5 high 127 to i8
// CHECK-NEXT:    func.return %[[Y]]
func.func @sums(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>) -> tensor<2x4xi8> {
  %sums = core.matmul %x, %w in i32 : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  %0 = core.cast %sums to f32 : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %s = core.constant dense<[[0.5], [0.25]]> : tensor<2x1xf32>
  %t = core.constant dense<[[1.5], [-1.0]]> : tensor<2x1xf32>
  %1 = core.mul %0, %s : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %2 = core.add %1, %t : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %3 = core.rectify %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = core.round %3 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %z = core.constant dense<-5.0> : tensor<f32>
  %5 = core.add %4, %z : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %6 = core.cast %5 to i8 : (tensor<2x4xf32>) -> tensor<2x4xi8>
  func.return %6 : tensor<2x4xi8>
}

// -----

// A shift between two steps of the scale; sums of open size with a shift; more steps than f32 tells
// apart; a zero point that is no integer.
// CHECK-LABEL: @others
// CHECK-NOT:     core.requantize
func.func @others(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>, %any: tensor<2x4xi32>) -> (tensor<2x4xi8>, tensor<2x4xi8>, tensor<2x4xi16>, tensor<2x4xi8>) {
  %sums = core.matmul %x, %w in i32 : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  %0 = core.cast %sums to f32 : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %s = core.constant dense<0.5> : tensor<f32>
  %t = core.constant dense<0.75> : tensor<f32>
  %1 = core.mul %0, %s : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %2 = core.add %1, %t : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %3 = core.round %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = core.cast %3 to i8 : (tensor<2x4xf32>) -> tensor<2x4xi8>
  %5 = core.cast %any to f32 : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %one = core.constant dense<1.0> : tensor<f32>
  %6 = core.add %5, %one : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %7 = core.round %6 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %8 = core.cast %7 to i8 : (tensor<2x4xf32>) -> tensor<2x4xi8>
  %9 = core.round %1 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %10 = core.cast %9 to i16 : (tensor<2x4xf32>) -> tensor<2x4xi16>
  %11 = core.add %9, %t : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %12 = core.cast %11 to i8 : (tensor<2x4xf32>) -> tensor<2x4xi8>
  func.return %4, %8, %10, %12 : tensor<2x4xi8>, tensor<2x4xi8>, tensor<2x4xi16>, tensor<2x4xi8>
}

// -----

// Scales 1 and 1/2, and zero points: sums of multiples of one number.
// CHECK-LABEL: @add
// CHECK:         %[[M:.+]] = core.constant dense<{{[0-9]+}}> : tensor<i32>
// CHECK:         core.mul %{{.+}}, %[[M]]
// CHECK:         core.requantize even %{{.+}}, %{{.+}} zero 7 low 0 high 255 to ui8
// CHECK-NOT:     core.round
func.func @add(%x: tensor<4xui8>, %y: tensor<4xi8>) -> tensor<4xui8> {
  %0 = core.cast %x to f32 : (tensor<4xui8>) -> tensor<4xf32>
  %1 = core.cast %y to f32 : (tensor<4xi8>) -> tensor<4xf32>
  %half = core.constant dense<0.5> : tensor<f32>
  %2 = core.mul %1, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = core.sub %0, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = core.round %3 : (tensor<4xf32>) -> tensor<4xf32>
  %z = core.constant dense<7.0> : tensor<f32>
  %5 = core.add %4, %z : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = core.cast %5 to ui8 : (tensor<4xf32>) -> tensor<4xui8>
  func.return %6 : tensor<4xui8>
}

// -----

// Bytes that keep scale and zero point stay what they are, through what selects elements; the same
// in other limits, or of other signs, do not.
// CHECK-LABEL: @kept
// CHECK-NEXT:    %[[T:.+]] = core.transpose %x [1, 0] : (tensor<2x3xui8>) -> tensor<3x2xui8>
// CHECK:         %[[L:.+]] = core.requantize even {{.*}} zero 9 low 9 high 255 to ui8
// CHECK:         func.return %[[T]], %[[L]]
func.func @kept(%x: tensor<2x3xui8>) -> (tensor<3x2xui8>, tensor<3x2xui8>) {
  %0 = core.cast %x to f32 : (tensor<2x3xui8>) -> tensor<2x3xf32>
  %z = core.constant dense<9.0> : tensor<f32>
  %1 = core.sub %0, %z : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %s = core.constant dense<0.3> : tensor<f32>
  %2 = core.mul %1, %s : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = core.transpose %2 [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %4 = core.div %3, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %5 = core.round %4 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %6 = core.add %5, %z : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %7 = core.cast %6 to ui8 : (tensor<3x2xf32>) -> tensor<3x2xui8>
  %8 = core.rectify %3 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %9 = core.div %8, %s : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %10 = core.round %9 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %11 = core.add %10, %z : (tensor<3x2xf32>, tensor<f32>) -> tensor<3x2xf32>
  %12 = core.cast %11 to ui8 : (tensor<3x2xf32>) -> tensor<3x2xui8>
  func.return %7, %12 : tensor<3x2xui8>, tensor<3x2xui8>
}

// -----

// Parts with scales of their own become bytes of one scale before they are joined. Windows of
// padding alone have no maximum in bytes.
// CHECK-LABEL: @joined
// CHECK:         %[[B:.+]] = core.requantize even
// CHECK:         core.concat %a, %[[B]] axis 1
// CHECK:         core.pool max %{{.+}} kernel [1] {{.*}} -> tensor<1x4x4xf32>
func.func @joined(%a: tensor<1x2x2xui8>, %b: tensor<1x2x2xui8>) -> (tensor<1x4x2xui8>, tensor<1x4x4xui8>) {
  %0 = core.cast %a to f32 : (tensor<1x2x2xui8>) -> tensor<1x2x2xf32>
  %1 = core.cast %b to f32 : (tensor<1x2x2xui8>) -> tensor<1x2x2xf32>
  %s = core.constant dense<0.3> : tensor<f32>
  %2 = core.mul %1, %s : (tensor<1x2x2xf32>, tensor<f32>) -> tensor<1x2x2xf32>
  %3 = core.concat %0, %2 axis 1 : (tensor<1x2x2xf32>, tensor<1x2x2xf32>) -> tensor<1x4x2xf32>
  %4 = core.round %3 : (tensor<1x4x2xf32>) -> tensor<1x4x2xf32>
  %5 = core.cast %4 to ui8 : (tensor<1x4x2xf32>) -> tensor<1x4x2xui8>
  %6 = core.cast %5 to f32 : (tensor<1x4x2xui8>) -> tensor<1x4x2xf32>
  %7 = core.pool max %6 kernel [1] strides [1] dilations [1] pads [1] [1] overhang [0] : (tensor<1x4x2xf32>) -> tensor<1x4x4xf32>
  %8 = core.round %7 : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %9 = core.cast %8 to ui8 : (tensor<1x4x4xf32>) -> tensor<1x4x4xui8>
  func.return %5, %9 : tensor<1x4x2xui8>, tensor<1x4x4xui8>
}

// -----

// Bytes are moved, not floats, unless these are read, too.
// CHECK-LABEL: @layout
// CHECK:         %[[Q:.+]] = core.requantize even %sums, %{{.+}} zero 0 low -128 high 127 to i8 : (tensor<2x4xi32>, tensor<2x1xf32>) -> tensor<2x4xi8>
// CHECK-NEXT:    %[[R:.+]] = core.reshape %[[Q]] [2, 2, 2] : (tensor<2x4xi8>) -> tensor<2x2x2xi8>
// CHECK-NEXT:    %[[T:.+]] = core.transpose %[[R]] [1, 0, 2] : (tensor<2x2x2xi8>) -> tensor<2x2x2xi8>
// CHECK-NOT:     core.requantize
// CHECK:         func.return %[[T]],
func.func @layout(%x: tensor<2x3xi8>, %w: tensor<3x4xi8>, %v: tensor<3x4xi8>) -> (tensor<2x2x2xi8>, tensor<4x2xi8>, tensor<4x2xf32>) {
  %sums = core.matmul %x, %w in i32 : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  %0 = core.cast %sums to f32 : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %s = core.constant dense<[[0.5], [0.25]]> : tensor<2x1xf32>
  %1 = core.mul %0, %s : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %2 = core.reshape %1 [2, 2, 2] : (tensor<2x4xf32>) -> tensor<2x2x2xf32>
  %3 = core.transpose %2 [1, 0, 2] : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %4 = core.round %3 : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %5 = core.cast %4 to i8 : (tensor<2x2x2xf32>) -> tensor<2x2x2xi8>
  %others = core.matmul %x, %v in i32 : (tensor<2x3xi8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  %6 = core.cast %others to f32 : (tensor<2x4xi32>) -> tensor<2x4xf32>
  %7 = core.mul %6, %s : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %8 = core.transpose %7 [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %9 = core.round %8 : (tensor<4x2xf32>) -> tensor<4x2xf32>
  %10 = core.cast %9 to i8 : (tensor<4x2xf32>) -> tensor<4x2xi8>
  func.return %5, %10, %8 : tensor<2x2x2xi8>, tensor<4x2xi8>, tensor<4x2xf32>
}
