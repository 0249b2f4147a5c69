// RUN: opt-tool --for-target x86-64-v4 --pass-pipeline=choose-strategies --split-input-file %s | filecheck %s --check-prefix=CHOICE
// RUN: opt-tool --for-target x86-64-v4 --pass-pipeline=choose-strategies,bufferize,lower-kernels,pack-weights --split-input-file %s | filecheck %s

// Tiles of 4 x 4 outputs; 14 rows make three tiles and a half, so the last row of tiles begins early
// and does not store what the one before has stored. All tiles are one group.
// CHOICE-LABEL: core.kernel @conv
// CHOICE:       #core.layout<2, 3, 0/32, 1, 0/16 mod 2, 0 mod 16 winograd 4>
// CHOICE-SAME:  schedule = #core.schedule<winograd, tile {tile = 8, oc = 2}, order [v0, v1, oc, tile], prefetch 1, size = 4, group = 16, parts = 1>

// Beside the result there are two buffers of 36 values of all tiles and channels; between two values
// lies an odd number of cache lines.
// CHECK-LABEL: buffer.func @conv
// CHECK-NEXT:  ^bb0(%[[X:[0-9a-z]+]]: !buffer.ref<[1, 2, 16, 18, 16] x f32>, %[[W:[0-9a-z]+]]: !buffer.ref<[6, 6, 1, 32, 2, 16] x f32>, %[[R:[0-9a-z]+]]: {{.*}}, %[[Y:[0-9a-z]+]]: !buffer.ref<[1, 2, 14, 16, 16] x f32>, %[[V:[0-9a-z]+]]: !buffer.ref<[1, 36, 528] x f32>, %[[M:[0-9a-z]+]]: !buffer.ref<[1, 36, 528] x f32>):
// The inputs of a tile are transformed.
// CHECK:         buffer.apply(%{{.*}}) <[min((d0 floordiv 4) * 4, 10)]>
// CHECK-COUNT-36: buffer.load %[[X]]
// CHECK-NOT:     buffer.load
// CHECK-COUNT-36: buffer.store %{{.*}}, %[[V]]
// A product for each of the values.
// CHECK:         buffer.for <[0, 6, 1]> {
// CHECK:         buffer.for <[0, 6, 1]> {
// CHECK:         buffer.load %[[V]]
// CHECK-NEXT:    buffer.load %[[W]]
// CHECK-NEXT:    math.fma
// CHECK:         buffer.store %{{.*}}, %[[M]]
// CHECK:       label = "tile"
// The outputs, with the residual.
// CHECK-COUNT-36: buffer.load %[[M]]
// CHECK:         scf.if
// CHECK:           buffer.load %[[R]]
// CHECK-NEXT:      arith.addf
// CHECK-NEXT:      buffer.store %{{.*}}, %[[Y]]
// CHECK-COUNT-15: buffer.store %{{.*}}, %[[Y]]
// CHECK-NOT:     buffer.store
// CHECK:       buffer.return
// CHECK:       %[[A:.*]] = buffer.alloc {{.*}}!buffer.ref<[1, 36, 528] x f32>
// CHECK-NEXT:  %[[B:.*]] = buffer.alloc {{.*}}!buffer.ref<[1, 36, 528] x f32>
// CHECK-NEXT:  buffer.call @conv({{.*}}, %[[A]], %[[B]])
func.func @main(%x: tensor<1x32x14x16xf32>, %r: tensor<1x32x14x16xf32>) -> tensor<1x32x14x16xf32> {
  %w = core.constant dense<0.5> : tensor<32x32x3x3xf32>
  %y = core.kernel @conv(%x, %w, %r) : (tensor<1x32x14x16xf32>, tensor<32x32x3x3xf32>, tensor<1x32x14x16xf32>) -> tensor<1x32x14x16xf32> {
  ^bb0(%0: tensor<1x32x14x16xf32>, %1: tensor<32x32x3x3xf32>, %2: tensor<1x32x14x16xf32>):
    %3 = core.conv %0, %1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x32x14x16xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x14x16xf32>
    %4 = core.add %3, %2 : (tensor<1x32x14x16xf32>, tensor<1x32x14x16xf32>) -> tensor<1x32x14x16xf32>
    core.yield %4 : tensor<1x32x14x16xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x32x14x16xf32>
}

// -----

// The nearest miss: a stride of two.
// CHOICE-LABEL: core.kernel @strided
// CHOICE-NOT:   winograd
// CHECK-LABEL: buffer.func @strided
// CHECK-NOT:   [1, 36,
func.func @main(%x: tensor<1x32x27x31xf32>) -> tensor<1x32x14x16xf32> {
  %w = core.constant dense<0.5> : tensor<32x32x3x3xf32>
  %y = core.kernel @strided(%x, %w) : (tensor<1x32x27x31xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x14x16xf32> {
  ^bb0(%0: tensor<1x32x27x31xf32>, %1: tensor<32x32x3x3xf32>):
    %3 = core.conv %0, %1 strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x32x27x31xf32>, tensor<32x32x3x3xf32>) -> tensor<1x32x14x16xf32>
    core.yield %3 : tensor<1x32x14x16xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x32x14x16xf32>
}
