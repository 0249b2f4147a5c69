// RUN: opt-tool %s --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels' | filecheck %s

// An element that is loaded in a loop is not known after it: it is loaded again.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK-NEXT:  ^bb0(%[[X:[0-9]+]]: {{.*}}, %[[S:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         %[[SUM:[0-9]+]] = buffer.for <[0, 5, 1]> carry
// CHECK:           buffer.load %[[S]](
// CHECK:           buffer.yield
// CHECK:         %[[AGAIN:[0-9]+]] = buffer.load %[[S]](
// CHECK:         arith.addf %{{.*}}, %[[AGAIN]]
func.func @main(%x: tensor<5x4xf32>, %s: tensor<4xf32>) -> tensor<4xf32> {
  %p = core.mul %x, %s : (tensor<5x4xf32>, tensor<4xf32>) -> tensor<5x4xf32>
  %r = core.reduce sum %p [0] : (tensor<5x4xf32>) -> tensor<4xf32>
  %y = core.add %r, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
