// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=bufferize,lower-kernels,tile,vectorize-lanes,unroll-tiles,prefetch --split-input-file | filecheck %s

// F(2 x 2): four tiles of 16 values. Inputs are transformed in vectors of channels; a product for each
// of the values has tiles of two rows (the tiles of the image), and asks for the weights of the next
// value; four outputs of each tile are left after the transform back.
// CHECK-LABEL: buffer.func @two
// CHECK-NEXT:  ^bb0(%[[X:[0-9]+]]: {{.*}}, %[[W:[0-9]+]]: !buffer.ref<[4, 4, 1, 16, 16] x f32>, %[[Y:[0-9]+]]: {{.*}}, %[[V:[0-9]+]]: {{.*}}, %[[M:[0-9]+]]: {{.*}}):
// CHECK-COUNT-16: buffer.load %[[X]]{{.*}} -> vector<16xf32>
// CHECK-NOT:     buffer.load %[[X]]
// CHECK-COUNT-16: buffer.store {{.*}}, %[[V]]{{.*}} : vector<16xf32>
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:         buffer.for <[0, 16, 1]> carry %{{[0-9]+}}, %{{[0-9]+}} : vector<16xf32>
// CHECK:           buffer.prefetch %[[W]]
// CHECK-NEXT:      buffer.load %[[W]]({{.*}}) <[d0, d1, 0, d2, 0]> {{.*}} -> vector<16xf32>
// CHECK-COUNT-2:   math.fma {{.*}} : vector<16xf32>
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.store {{.*}}, %[[M]]{{.*}} : vector<16xf32>
// CHECK-COUNT-16: buffer.load %[[M]]{{.*}} -> vector<16xf32>
// CHECK-COUNT-4: buffer.store {{.*}}, %[[Y]]{{.*}} : vector<16xf32>
// CHECK-NOT:     buffer.store
func.func @main(%x: tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32> {
  %w = core.constant dense<0.5> : tensor<16x16x3x3xf32>
  %y = core.kernel @two(%x, %w) : (tensor<1x16x4x4xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x4x4xf32> {
  ^bb0(%0: tensor<1x16x4x4xf32>, %1: tensor<16x16x3x3xf32>):
    %2 = core.conv %0, %1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x4x4xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x4x4xf32>
    core.yield %2 : tensor<1x16x4x4xf32>
  } {schedule = #core.schedule<winograd, tile {tile = 2, oc = 1}, order [v0, v1, oc, tile], prefetch 1, size = 2, group = 4, parts = 1>, layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<2, 3, 0/16, 1, 0 mod 16 winograd 2>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x16x4x4xf32>
}

// -----

// F(4 x 4): two tiles of 36 values, and 16 outputs of each.
// CHECK-LABEL: buffer.func @four
// CHECK-NEXT:  ^bb0(%[[X:[0-9]+]]: {{.*}}, %[[W:[0-9]+]]: !buffer.ref<[6, 6, 1, 16, 16] x f32>, %[[Y:[0-9]+]]: {{.*}}, %[[V:[0-9]+]]: {{.*}}, %[[M:[0-9]+]]: {{.*}}):
// CHECK-COUNT-36: buffer.load %[[X]]{{.*}} -> vector<16xf32>
// CHECK-NOT:     buffer.load %[[X]]
// CHECK-COUNT-36: buffer.store {{.*}}, %[[V]]{{.*}} : vector<16xf32>
// CHECK:         buffer.for <[0, 6, 1]> {
// CHECK:         buffer.for <[0, 6, 1]> {
// CHECK:         buffer.for <[0, 16, 1]> carry %{{[0-9]+}}, %{{[0-9]+}} : vector<16xf32>
// CHECK:           buffer.prefetch %[[W]]
// CHECK-NEXT:      buffer.load %[[W]]({{.*}}) <[d0, d1, 0, d2, 0]> {{.*}} -> vector<16xf32>
// CHECK-COUNT-2:   math.fma {{.*}} : vector<16xf32>
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.store {{.*}}, %[[M]]{{.*}} : vector<16xf32>
// CHECK-COUNT-36: buffer.load %[[M]]{{.*}} -> vector<16xf32>
// CHECK-COUNT-16: buffer.store {{.*}}, %[[Y]]{{.*}} : vector<16xf32>
// CHECK-NOT:     buffer.store
func.func @main(%x: tensor<1x16x4x8xf32>) -> tensor<1x16x4x8xf32> {
  %w = core.constant dense<0.5> : tensor<16x16x3x3xf32>
  %y = core.kernel @four(%x, %w) : (tensor<1x16x4x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x4x8xf32> {
  ^bb0(%0: tensor<1x16x4x8xf32>, %1: tensor<16x16x3x3xf32>):
    %2 = core.conv %0, %1 strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x4x8xf32>, tensor<16x16x3x3xf32>) -> tensor<1x16x4x8xf32>
    core.yield %2 : tensor<1x16x4x8xf32>
  } {schedule = #core.schedule<winograd, tile {tile = 2, oc = 1}, order [v0, v1, oc, tile], prefetch 1, size = 4, group = 2, parts = 1>, layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<2, 3, 0/16, 1, 0 mod 16 winograd 4>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x16x4x8xf32>
}
