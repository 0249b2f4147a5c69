// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels --split-input-file | filecheck %s

// Maximum; exponentials, once, into the output, and their sum in f64; quotients.

// CHECK: buffer.func @softmax_0
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 5, 1]> carry %{{.*}} : f32 -> f32
// CHECK: buffer.load %[[X0]](%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.cmpf ogt
// CHECK-NEXT: arith.select
// CHECK: buffer.for <[0, 5, 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.load %[[X0]](%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.subf
// CHECK-NEXT: %[[E:.*]] = math.exp %{{.*}} {at_most_zero}
// CHECK-NEXT: buffer.store %[[E]], %[[Y]](%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.extf %[[E]]
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK: arith.truncf %{{.*}}
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.divf %{{.*}} : f32
// CHECK: buffer.for <[0, 5, 1]>
// CHECK: buffer.load %[[Y]](%{{.*}}) <[d0, d1]>
// CHECK-NEXT: arith.mulf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, d1]>
// CHECK: buffer.entry
// CHECK: buffer.call @softmax_0(%{{.*}}) <[]>
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = core.softmax %x axis 1 : (tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}

// -----

// The logarithm keeps no exponentials, and takes one logarithm a line.

// CHECK: buffer.func @softmax_0
// CHECK: math.exp
// CHECK-NOT: buffer.store
// CHECK: arith.truncf %{{.*}}
// CHECK-NEXT: %[[L:.*]] = math.log %{{.*}} : f32
// CHECK: buffer.for <[0, 5, 1]>
// CHECK: %[[D:.*]] = arith.subf
// CHECK-NEXT: %[[R:.*]] = arith.subf %[[D]], %[[L]] : f32
// CHECK-NEXT: buffer.store %[[R]]
func.func @main(%x: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %y = core.softmax %x axis 1 {log = true} : (tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}
