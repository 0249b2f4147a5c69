// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The column to write is carried; each index found fills one.

// CHECK: buffer.func @count_nonzero_0
// CHECK: buffer.for <[0, 3, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.for <[0, 4, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: arith.cmpf une, %{{.*}}
// CHECK: buffer.store %{{.*}} <[]>
// CHECK: buffer.func @nonzero_0
// CHECK: buffer.for <[0, 3, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.for <[0, 4, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: arith.cmpf une, %{{.*}}
// CHECK-NEXT: scf.if %{{.*}}
// CHECK: buffer.apply(%{{.*}}) <[d0]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[0, d0]>
// CHECK-NEXT: buffer.apply(%{{.*}}) <[d0]>
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[1, d0]>
// CHECK: buffer.entry
// CHECK: buffer.call @count_nonzero_0(%{{.*}}) <[]>
// CHECK-NEXT: buffer.bind %{{.*}} {symbols = ["u"]}
// CHECK: buffer.call @nonzero_0(%{{.*}}) <[u]>
func.func @main(%x: tensor<3x4xf32>) -> tensor<2x?xi64, #core.tensor<dims = [2, u]>> {
  %c = core.count_nonzero %x : (tensor<3x4xf32>) -> tensor<i64>
  core.bind_symbols %c ["u"] : tensor<i64>
  %y = core.nonzero %x [u] : (tensor<3x4xf32>) -> tensor<2x?xi64, #core.tensor<dims = [2, u]>>
  func.return %y : tensor<2x?xi64, #core.tensor<dims = [2, u]>>
}
