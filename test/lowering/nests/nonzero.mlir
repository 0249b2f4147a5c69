// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The column to write is carried, with the index found last, which is written again until there is
// another. Rows this short are not passed over in parts.

// CHECK: buffer.func @count_nonzero_0
// CHECK: buffer.for <[0, 3, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.for <[0, 4, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: arith.cmpf une, %{{.*}}
// CHECK: buffer.store %{{.*}} <[]>
// CHECK: buffer.func @nonzero_0
// CHECK: buffer.for <[0, 3, 1]> carry %{{.*}} : i64, i64, i64 -> i64, i64, i64
// CHECK-NOT: <[0, 16, 1]>
// CHECK: buffer.for <[0, min(1, s0) * 4, 1]> carry %{{.*}} : i64, i64, i64 -> i64, i64, i64
// CHECK-NEXT: ^bb0(%[[P:[0-9]+]]: index, %[[END:[0-9]+]]: i64, %[[ROW:[0-9]+]]: i64, %[[PLACE:[0-9]+]]: i64):
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: %[[FOUND:[0-9]+]] = arith.cmpf une, %{{.*}}
// CHECK: %[[ONE:[0-9]+]] = arith.extui %[[FOUND]]
// CHECK: %[[NEW:[0-9]+]] = arith.addi %[[END]], %[[ONE]]
// CHECK: arith.maxsi %[[NEW]], %{{.*}}
// CHECK: %[[A:[0-9]+]] = arith.select %[[FOUND]], %{{.*}}, %[[ROW]] : i64
// CHECK: %[[B:[0-9]+]] = arith.select %[[FOUND]], %{{.*}}, %[[PLACE]] : i64
// CHECK: buffer.store %[[A]], %{{.*}}(%{{.*}}) <[0, d0]>
// CHECK-NEXT: buffer.store %[[B]], %{{.*}}(%{{.*}}) <[1, d0]>
// CHECK-NEXT: buffer.yield %[[NEW]], %[[A]], %[[B]]
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
