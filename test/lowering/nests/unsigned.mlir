// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Unsigned elements are loaded as signless ones, and the op says how they are read.

// CHECK: buffer.func @cast_0
// CHECK: buffer.for <[0, 4, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[d0]>
// CHECK-NEXT: arith.divui %{{.*}}
// CHECK-NEXT: arith.uitofp %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.entry
// CHECK: buffer.call @cast_0(%{{.*}}) <[]>
func.func @main(%x: tensor<4xui8>, %z: tensor<4xui8>) -> tensor<4xf32> {
  %a = core.div %x, %z : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %y = core.cast %a to f32 : (tensor<4xui8>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
