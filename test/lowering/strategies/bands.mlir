// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=bufferize,lower-kernels,tile --split-input-file | filecheck %s

// Three bands of two rows each, of which the last one has only one. What a band reads again of the
// one before is moved to the front, rows of padding are set to zero, the other rows are made, and all
// are read. Each part, for threads, has its own rows, and begins with nothing to move.
// CHECK-LABEL: buffer.func @k
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}, [[M:%[0-9]+]]: !buffer.ref<[2, 1, 4, 5, 4] x f32>):
// CHECK:         buffer.for <[0, 2, 1]>
// CHECK:         buffer.for({{.*}}) <[d0, (d0 + 1) floordiv 2 + d0 + 1, 1]>
// CHECK:           [[NUMBER:%[0-9]+]] = buffer.apply({{.*}}) <[-d0 + d1]>
// CHECK-NEXT:      [[KEPT:%[0-9]+]] = buffer.apply([[NUMBER]]) <[min(1, d0) * 2]>
// CHECK-NEXT:      buffer.for([[KEPT]]) <[0, d0, 1]>
// CHECK:             buffer.load [[M]]
// CHECK-NEXT:        buffer.store {{.*}}, [[M]]
// CHECK:           [[ABOVE:%[0-9]+]] = buffer.apply({{.*}}) <[max(-d0 * 2 + 1, 0)]>
// CHECK-NEXT:      [[END:%[0-9]+]] = buffer.apply({{.*}}) <[min(-d0 * 2 + 6, 4)]>
// CHECK-NEXT:      buffer.for([[ABOVE]]) <[0, d0, 1]>
// CHECK:           buffer.for([[END]]) <[d0, 4, 1]>
// CHECK:           [[FIRST:%[0-9]+]] = buffer.apply([[KEPT]], [[ABOVE]]) <[max(d0, d1)]>
// CHECK-NEXT:      buffer.for([[END]], [[FIRST]]) <[d1, d0, 1]>
// CHECK:             buffer.load %[[X0]]
// CHECK:             buffer.store {{.*}}, [[M]]
// CHECK:           [[LAST:%[0-9]+]] = buffer.apply({{.*}}) <[min(-d0 * 2 + 5, 2)]>
// CHECK-NEXT:      buffer.for([[LAST]]) <[0, d0, 1]>
// CHECK:             buffer.load [[M]]
// CHECK:             buffer.store {{.*}}, %[[Y]]
// CHECK:       } {parallel = true}
func.func @main(%x: tensor<1x4x5x3xf32>) -> tensor<1x4x5x3xf32> {
  %w = core.constant dense<1.0> : tensor<4x4x1x1xf32>
  %d = core.constant dense<1.0> : tensor<4x1x3x3xf32>
  %y = core.kernel @k(%x, %w, %d) : (tensor<1x4x5x3xf32>, tensor<4x4x1x1xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x5x3xf32> {
  ^bb0(%a: tensor<1x4x5x3xf32>, %f: tensor<4x4x1x1xf32>, %g: tensor<4x1x3x3xf32>):
    %e = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x5x3xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x3xf32>
    %c = core.conv %e, %g strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 4 : (tensor<1x4x5x3xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x5x3xf32>
    core.yield %c : tensor<1x4x5x3xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 3, 1 mod 4>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/4, 2, 3, 1 mod 4>], schedule = #core.schedule<bands, band = 2, parts = 2>}
  func.return %y : tensor<1x4x5x3xf32>
}

// -----

// One band of all rows, without padding: nothing is set to zero or moved.
// CHECK-LABEL: buffer.func @k
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}, [[M:%[0-9]+]]: !buffer.ref<[1, 1, 5, 3, 4] x f32>):
// CHECK-NOT:     arith.constant
// CHECK:         buffer.for <[0, 5, 1]>
// CHECK:           buffer.load %[[X0]]
// CHECK:           buffer.store {{.*}}, [[M]]
// CHECK:         buffer.for <[0, 2, 1]>
// CHECK:           buffer.load [[M]]
// CHECK:           buffer.store {{.*}}, %[[Y]]
func.func @main(%x: tensor<1x4x5x3xf32>) -> tensor<1x4x2x1xf32> {
  %w = core.constant dense<1.0> : tensor<4x4x1x1xf32>
  %d = core.constant dense<1.0> : tensor<4x1x3x3xf32>
  %y = core.kernel @k(%x, %w, %d) : (tensor<1x4x5x3xf32>, tensor<4x4x1x1xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x2x1xf32> {
  ^bb0(%a: tensor<1x4x5x3xf32>, %f: tensor<4x4x1x1xf32>, %g: tensor<4x1x3x3xf32>):
    %e = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x4x5x3xf32>, tensor<4x4x1x1xf32>) -> tensor<1x4x5x3xf32>
    %c = core.conv %e, %g strides [2, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 4 : (tensor<1x4x5x3xf32>, tensor<4x1x3x3xf32>) -> tensor<1x4x2x1xf32>
    core.yield %c : tensor<1x4x2x1xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 3, 1 mod 4>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/4, 2, 3, 1 mod 4>], schedule = #core.schedule<bands, band = 2, parts = 1>}
  func.return %y : tensor<1x4x2x1xf32>
}
