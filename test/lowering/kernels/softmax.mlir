// RUN: opt-tool %s --pass-pipeline=form-kernels,bufferize | filecheck %s

// Maximum, sum of exponentials in f64, quotients.

// CHECK: buffer.func @softmax_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 5, 1]> carry %{{.*}} : f32 -> f32
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.maximumf %{{.*}}
// CHECK: buffer.for <[0, 5, 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: math.exp %{{.*}}
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK: buffer.for <[0, 5, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: math.exp %{{.*}}
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK-NEXT: arith.divf %{{.*}}
// CHECK-NEXT: arith.truncf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.func @run
// CHECK: buffer.call @softmax_0(%{{.*}}) <[]>
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = core.softmax %x {axis = #builtin.int<1>} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}
