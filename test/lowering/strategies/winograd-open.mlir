// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=choose-strategies,bufferize,lower-kernels --split-input-file | filecheck %s

// Of an image of any size: groups of tiles of almost the same size, of which the places are
// computed once; a tile reads no row or column behind the border, and keeps what is in the image.
// CHECK-LABEL: buffer.func @any_size
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}, %{{[0-9]+}}: {{.*}}, %{{[0-9]+}}: {{.*}}):
// CHECK:         %[[EACH:.*]] = buffer.apply(%{{.*}}) <[max(1, {{.*}})]>
// CHECK:         %[[COUNT:.*]] = buffer.apply({{.*}}) <[min({{.*}})]>
// CHECK:         %[[PLACES:.*]] = buffer.scratch : !buffer.ref<[{{.*}}, 3] x i64>
// CHECK-NEXT:    buffer.for(%[[COUNT]]) <[0, d0, 1]>
// CHECK-COUNT-3:   buffer.store %{{.*}}, %[[PLACES]]
// CHECK:         buffer.for <[0, 2, 1]>
// CHECK:           buffer.apply(%{{.*}}) <[min(d0 + 3, s0 + 1)]>
// CHECK-NEXT:      buffer.apply(%{{.*}}) <[min(d0 + 4, s0 + 1)]>
// CHECK-NEXT:      buffer.apply(%{{.*}}) <[min(d0 + 5, s0 + 1)]>
// CHECK-NEXT:      buffer.for <[0, 16, 1]>
// CHECK:         label = "tile"
// CHECK:         buffer.store %{{.*}}, %[[Y]]({{.*}}) <[d1, d0, d2 + 1, d3 + 1, d4]>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]]({{.*}}) <[d1, d0, d2 + 1, d3 + 2, d4]>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]]({{.*}}) <[d1, d0, d2 + 1, d3 + 3, d4]>
// CHECK-NEXT:    buffer.store %{{.*}}, %[[Y]]({{.*}}) <[d1, d0, d2 + 1, d3 + 4, d4]>
// CHECK-NEXT:    buffer.apply(%{{.*}}) <[d0 - s0 + 1]>
// CHECK:         scf.if
// CHECK:         buffer.store {{.*}} {border}
// CHECK:         schedule = #core.schedule<winograd, tile {tile = {{.*}}, group =
func.func @main(%x: tensor<?x32x?x8xf32, #core.tensor<dims = [n, 32, h, 8]>>) -> tensor<?x64x?x8xf32, #core.tensor<dims = [n, 64, h, 8]>> {
  %w = core.constant dense<1.0> : tensor<64x32x3x3xf32>
  %y = core.kernel @any_size(%x, %w) : (tensor<?x32x?x8xf32, #core.tensor<dims = [n, 32, h, 8]>>, tensor<64x32x3x3xf32>) -> tensor<?x64x?x8xf32, #core.tensor<dims = [n, 64, h, 8]>> {
  ^bb0(%a: tensor<?x32x?x8xf32, #core.tensor<dims = [n, 32, h, 8]>>, %f: tensor<64x32x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<?x32x?x8xf32, #core.tensor<dims = [n, 32, h, 8]>>, tensor<64x32x3x3xf32>) -> tensor<?x64x?x8xf32, #core.tensor<dims = [n, 64, h, 8]>>
    core.yield %c : tensor<?x64x?x8xf32, #core.tensor<dims = [n, 64, h, 8]>>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>]}
  func.return %y : tensor<?x64x?x8xf32, #core.tensor<dims = [n, 64, h, 8]>>
}
