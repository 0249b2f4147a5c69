// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The first three elements become a heap with the worst of them at its top; each other element that
// is better takes its place and goes down. Then the worst goes to the end, one after the other.
// Values and indices are stored together.

// CHECK: buffer.func @top_k_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]> : f32
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]> : i64
// CHECK: buffer.for <[0, 1, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, min(2, d1 * 2 + 1)]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, min(2, d1 * 2 + 2)]>
// CHECK: arith.cmpf ogt, %{{.*}}
// CHECK-NEXT: arith.cmpf uno, %{{.*}}
// CHECK-NEXT: arith.cmpf ord, %{{.*}}
// CHECK: arith.cmpi slt, %{{.*}}
// CHECK: scf.if
// CHECK: buffer.for <[3, 9, 1]>
// CHECK: %[[WORST:[0-9]+]] = buffer.load %{{.*}}(%{{.*}}) <[d0, 0]> : !buffer.ref<[2, 3] x f32>
// CHECK: arith.cmpf ogt, %{{.*}}, %[[WORST]] : f32
// CHECK: scf.if
// CHECK: buffer.for <[0, 1, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.entry
// CHECK: buffer.call @top_k_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %v, %i = core.top_k %x [3] axis 1 : (tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}
