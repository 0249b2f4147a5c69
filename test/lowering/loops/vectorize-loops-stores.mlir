// RUN: opt-tool %s --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,expand-math,vectorize-loops{lanes=8}' --split-input-file | filecheck %s

// Terms of a sum that are stored, too: the last vector stores some of them again, and adds none of
// these. It reads its elements before others are stored, which may be in their place.
// CHECK-LABEL: buffer.func @softmax_0
// CHECK: ^bb0(%[[X:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK: %[[NEW:.*]] = buffer.compare ge %{{.*}}, %{{.*}} : vector<8xi32> -> vector<8xi32>
// CHECK-NEXT: buffer.load %[[X]](%{{.*}}) <[d0, 12]> {{.*}} -> vector<8xf32>
// CHECK-NOT: buffer.store
// CHECK: buffer.for <[0, 2, 1]> carry
// CHECK: buffer.store %{{.*}}, %[[Y]](%{{.*}}) <[d0, d1 * 8]> : vector<8xf32>
// CHECK: buffer.store %[[TERMS:[0-9]+]], %[[Y]](%{{.*}}) <[d0, 12]> : vector<8xf32>
// CHECK: %[[ADDED:.*]] = buffer.select %[[NEW]], %[[TERMS]], %{{.*}} : vector<8xi32>, vector<8xf32>
// CHECK-NEXT: %[[SUMS:.*]] = arith.addf %{{.*}}, %[[ADDED]]
// CHECK-NEXT: buffer.reduce add %[[SUMS]] : vector<8xf32> -> f32
func.func @main(%x: tensor<3x20xf32>) -> tensor<3x20xf32> {
  %y = core.softmax %x axis 1 : (tensor<3x20xf32>) -> tensor<3x20xf32>
  func.return %y : tensor<3x20xf32>
}
