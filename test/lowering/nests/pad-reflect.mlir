// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The index is folded back at both borders, without a test.

// CHECK: buffer.func @pad_0
// CHECK: buffer.for <[0, 10, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[min((d0 + 5) mod 8, -(d0 + 5) mod 8 + 8)]>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.entry
// CHECK: buffer.call @pad_0(%{{.*}}) <[]>
func.func @main(%x: tensor<5xf32>) -> tensor<10xf32> {
  %y = core.pad reflect %x [3] [2] : (tensor<5xf32>) -> tensor<10xf32>
  func.return %y : tensor<10xf32>
}
