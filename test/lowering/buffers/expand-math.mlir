// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels,expand-math --split-input-file | filecheck %s

// 2^n p(x - n ln 2): rounding by adding 1.5 * 2^23 and the bias of exponents, whose bits are 2^n.
// CHECK-LABEL: buffer.func @exp_0
// CHECK: buffer.for
// CHECK: %[[X:.*]] = buffer.load
// CHECK-NEXT: %[[C:.*]] = arith.maximumf %[[X]], %{{.*}} : f32
// CHECK-NEXT: %[[S:.*]] = math.fma %[[C]], %{{.*}}, %[[R:.*]] : f32
// CHECK-NEXT: %[[T:.*]] = arith.minimumf %[[S]], %{{.*}} : f32
// CHECK-NEXT: %[[N:.*]] = arith.subf %[[T]], %[[R]] : f32
// CHECK-COUNT-9: math.fma
// CHECK-NEXT: %[[B:.*]] = arith.bitcast %[[T]] : f32 to i32
// CHECK-NEXT: arith.shli %[[B]], %{{.*}} : i32
// CHECK-NEXT: arith.bitcast %{{.*}} : i32 to f32
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: buffer.store
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = core.exp %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// -----

// Of differences to a maximum, nothing overflows, and a shorter polynomial is enough.
// CHECK-LABEL: buffer.func @softmax_0
// CHECK: %[[D:.*]] = arith.subf
// CHECK-NEXT: %[[C:.*]] = arith.maximumf %[[D]], %{{.*}} : f32
// CHECK-NEXT: %[[S:.*]] = math.fma %[[C]], %{{.*}}, %[[R:.*]] : f32
// CHECK-NEXT: arith.subf %[[S]], %[[R]] : f32
// CHECK-COUNT-8: math.fma
// CHECK-NEXT: arith.bitcast %[[S]] : f32 to i32
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %y = core.softmax %x axis 1 : (tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// -----

// Constants are made once, at the beginning; half precision is f32 here.
// CHECK-LABEL: buffer.func @tanh_0
// CHECK: arith.constant 0x4B40007E : f32
// CHECK-NOT: 0x4B40007E
// CHECK: arith.extf
// CHECK-NOT: math.tanh
// CHECK: arith.divf
// CHECK-NEXT: arith.bitcast
// CHECK-NEXT: arith.ori
// CHECK: arith.bitcast
// CHECK-NEXT: arith.truncf
func.func @main(%x: tensor<8xf16>) -> tensor<8xf16> {
  %y = core.tanh %x : (tensor<8xf16>) -> tensor<8xf16>
  %z = core.tanh %y : (tensor<8xf16>) -> tensor<8xf16>
  func.return %z : tensor<8xf16>
}

// -----

// The sigmoid is a power of two by the sum of it, an exponential less one, and one.
// CHECK-LABEL: buffer.func @sigmoid_0
// CHECK: %[[X:.*]] = buffer.load
// CHECK-NEXT: %[[L:.*]] = arith.maximumf %[[X]], %{{.*}} : f32
// CHECK-NEXT: arith.minimumf %[[L]], %{{.*}} : f32
// CHECK-COUNT-3: math.fma
// CHECK-NEXT: arith.bitcast %{{.*}} : f32 to i32
// CHECK: %[[Q:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK-COUNT-5: math.fma
// CHECK-NEXT: %[[P:.*]] = math.fma %{{.*}}, %{{.*}}, %[[Q]] : f32
// CHECK-NEXT: %[[D:.*]] = arith.addf %[[P]], %{{.*}} : f32
// CHECK-NEXT: arith.divf %[[Q]], %[[D]] : f32
// CHECK-NEXT: buffer.store
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = core.sigmoid %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// -----

// Others of f32 are computed in f64, which nothing may make f32 of; large angles in another way.
// CHECK-LABEL: buffer.func @sin_0
// CHECK: arith.extf %{{.*}} {exact} : f32 to f64
// CHECK-NOT: math.sin
// CHECK: scf.if
// CHECK: arith.truncf %{{.*}} {exact} : f64 to f32
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = core.sin %x : (tensor<8xf32>) -> tensor<8xf32>
  func.return %y : tensor<8xf32>
}

// -----

// Of f64, the most frequent ones are expanded; others are left to the C library.
// CHECK-LABEL: buffer.func @
// CHECK-NOT: math.exp
// CHECK: math.erf %{{.*}} : f64
func.func @main(%x: tensor<8xf64>) -> tensor<8xf64> {
  %a = core.exp %x : (tensor<8xf64>) -> tensor<8xf64>
  %b = core.erf %a : (tensor<8xf64>) -> tensor<8xf64>
  func.return %b : tensor<8xf64>
}

// -----

// Remainders of f32 are exact in f64; where quotients are large, they are those of the C library.
// CHECK-LABEL: buffer.func @rem_0
// CHECK:       %[[Q:.*]] = arith.divf %{{.*}} {exact} : f64
// CHECK:       arith.cmpf oge, %[[Q]]
// CHECK:       %[[T:.*]] = math.floor %[[Q]] {exact} : f64
// CHECK:       math.fma
// CHECK:       math.copysign
// CHECK:       scf.if
// CHECK:         buffer.remf %{{.*}} : f32
// CHECK-NEXT:    scf.yield
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %z = core.rem %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  func.return %z : tensor<8xf32>
}

// -----

// The third power of f64 is two products, the fifth has too many for its digits.
// CHECK-LABEL: buffer.func @pow_0
// CHECK:       %[[S:.*]] = arith.mulf %[[X:.*]], %[[X]] {exact} : f64
// CHECK-NEXT:  arith.mulf %[[S]], %[[X]] {exact} : f64
// CHECK-NOT:   math.powf
// CHECK-LABEL: buffer.func @pow_1
// CHECK:       math.powf
func.func @main(%x: tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>) {
  %three = core.constant dense<3.0> : tensor<f64>
  %five = core.constant dense<5.0> : tensor<f64>
  %y = core.pow %x, %three : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
  %z = core.pow %x, %five : (tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
  func.return %y, %z : tensor<8xf64>, tensor<8xf64>
}
