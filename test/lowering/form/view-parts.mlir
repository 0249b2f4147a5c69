// RUN: opt-tool %s --pass-pipeline=form-kernels,view-parts,bufferize --split-input-file | filecheck %s

// What is joined is computed where it belongs, and a slice is read where it lies.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[X:[a-z0-9]+]]: !buffer.ref<[1, 4, 5] x f32>, %[[Y:[a-z0-9]+]]: !buffer.ref<[1, 8, 5] x f32>, %[[Z:[a-z0-9]+]]:
// CHECK-NEXT:    %[[C:.+]] = buffer.alloc {{.*}} : !buffer.ref<[1, 8, 5] x f32>
// CHECK-NEXT:    %[[A:.+]] = buffer.view %[[C]] {offset = #core.dims<[0]>}
// CHECK-NEXT:    buffer.call @softmax_0(%[[X]], %[[A]])
// CHECK-NEXT:    %[[B:.+]] = buffer.view %[[C]] {offset = #core.dims<[20]>}
// CHECK-NEXT:    buffer.call @softmax_1(%[[A]], %[[B]])
// CHECK-NEXT:    %[[S:.+]] = buffer.view %[[C]] {offset = #core.dims<[15]>} {{.*}} -> !buffer.ref<[1, 2, 5] x f32>
// CHECK-NEXT:    buffer.call @softmax_2(%[[C]], %[[Y]])
// CHECK-NEXT:    buffer.call @softmax_3(%[[S]], %[[Z]])
// CHECK-NEXT:    buffer.return
func.func @main(%x: tensor<1x4x5xf32>) -> (tensor<1x8x5xf32>, tensor<1x2x5xf32>) {
  %a = core.softmax %x axis 2 : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %b = core.softmax %a axis 1 : (tensor<1x4x5xf32>) -> tensor<1x4x5xf32>
  %c = core.concat %a, %b axis 1 : (tensor<1x4x5xf32>, tensor<1x4x5xf32>) -> tensor<1x8x5xf32>
  %s = core.slice %c [0, 3, 0] [1, 2, 5] [1, 1, 1] : (tensor<1x8x5xf32>) -> tensor<1x2x5xf32>
  %d = core.softmax %c axis 1 : (tensor<1x8x5xf32>) -> tensor<1x8x5xf32>
  %e = core.softmax %s axis 1 : (tensor<1x2x5xf32>) -> tensor<1x2x5xf32>
  func.return %d, %e : tensor<1x8x5xf32>, tensor<1x2x5xf32>
}

// -----

// Two rows of two: neither the parts nor the slice lie without gaps.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.view
// CHECK:         buffer.call @concat_0
// CHECK-NOT:     buffer.view
// CHECK:         buffer.call @slice_0
// CHECK-NOT:     buffer.view
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %a = core.softmax %x axis 0 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = core.softmax %a axis 1 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = core.concat %a, %b axis 1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %s = core.slice %c [0, 1] [2, 2] [1, 1] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %d = core.softmax %s axis 1 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %d : tensor<2x2xf32>
}

// -----

// Every second element, and the elements backward, are no views; one row of many is.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @slice_0
// CHECK:         buffer.call @slice_1
// CHECK:         %[[S:.+]] = buffer.view %{{.*}} {offset = #core.dims<[9]>} {{.*}} -> !buffer.ref<[1, 2] x f32>
// CHECK-NEXT:    buffer.call @softmax_0(%[[S]]
func.func @main(%x: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<4x4xf32>, tensor<1x2xf32>) {
  %a = core.slice %x [0, 0] [2, 4] [2, 1] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %b = core.slice %x [3, 0] [4, 4] [-1, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = core.slice %x [2, 1] [1, 2] [1, 1] : (tensor<4x4xf32>) -> tensor<1x2xf32>
  %d = core.softmax %c axis 1 : (tensor<1x2xf32>) -> tensor<1x2xf32>
  func.return %a, %b, %d : tensor<2x4xf32>, tensor<4x4xf32>, tensor<1x2xf32>
}

// -----

// A chain in which each concatenation is the beginning of the next one: nothing is copied, and all
// of it is one buffer.
// CHECK-LABEL: buffer.entry
// CHECK-COUNT-1: buffer.alloc {dynamic = false} : !buffer.ref<[8] x f32>
// CHECK-NOT:     buffer.alloc
// CHECK-NOT:     @concat
// CHECK-NOT:     @part
// CHECK:         buffer.return
func.func @main(%x: tensor<2xf32>) -> tensor<8xf32> {
  %a = core.softmax %x axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %b = core.softmax %a axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %ab = core.concat %a, %b axis 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %c = core.softmax %ab axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %abc = core.concat %a, %b, %c axis 0 : (tensor<2xf32>, tensor<2xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = core.softmax %abc axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %d : tensor<8xf32>
}

// -----

// The same, each made of the one before: a buffer within a buffer.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[ABC:.+]] = buffer.alloc {dynamic = false} : !buffer.ref<[8] x f32>
// CHECK-NEXT:    %[[AB:.+]] = buffer.view %[[ABC]] {offset = #core.dims<[4]>}
// CHECK-NEXT:    %[[A:.+]] = buffer.view %[[AB]] {offset = #core.dims<[0]>}
// CHECK-NEXT:    buffer.call @softmax_0(%{{.*}}, %[[A]])
// CHECK-NEXT:    %[[B:.+]] = buffer.view %[[AB]] {offset = #core.dims<[2]>}
// CHECK-NEXT:    buffer.call @softmax_0(%[[A]], %[[B]])
// CHECK-NEXT:    %[[C:.+]] = buffer.view %[[ABC]] {offset = #core.dims<[0]>}
// CHECK-NEXT:    buffer.call @softmax_{{.*}}(%[[AB]], %[[C]])
// CHECK-NEXT:    buffer.call @softmax_{{.*}}(%[[ABC]],
// CHECK-NEXT:    buffer.return
func.func @main(%x: tensor<2xf32>) -> tensor<8xf32> {
  %a = core.softmax %x axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %b = core.softmax %a axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %ab = core.concat %a, %b axis 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %c = core.softmax %ab axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %abc = core.concat %c, %ab axis 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %d = core.softmax %abc axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %d : tensor<8xf32>
}

// -----

// An argument, a value that is joined elsewhere, and one that is a result: those are copied.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[X:[a-z0-9]+]]: !buffer.ref<[2] x f32>, %[[Y:[a-z0-9]+]]: !buffer.ref<[8] x f32>, %[[A:[a-z0-9]+]]:
// CHECK-NEXT:    buffer.call @softmax_0(%[[X]], %[[A]])
// CHECK:         %[[J2:.+]] = buffer.alloc {{.*}} : !buffer.ref<[4] x f32>
// CHECK-NEXT:    %[[B2:.+]] = buffer.view %[[J2]] {offset = #core.dims<[0]>}
// CHECK-NEXT:    buffer.call @softmax_0(%[[A]], %[[B2]])
// CHECK-NEXT:    %[[J:.+]] = buffer.alloc {{.*}} : !buffer.ref<[8] x f32>
// CHECK-NEXT:    %[[C:.+]] = buffer.view %[[J]] {offset = #core.dims<[6]>}
// CHECK-NEXT:    buffer.call @exp_0(%[[B2]], %[[C]])
// CHECK-COUNT-3: buffer.call @part_{{.*}}(
// CHECK:         buffer.call @softmax_{{.*}}(%[[J]],
// CHECK:         buffer.call @part_{{.*}}(
// CHECK-NEXT:    buffer.call @softmax_{{.*}}(%[[J2]],
func.func @main(%x: tensor<2xf32>) -> (tensor<8xf32>, tensor<2xf32>, tensor<4xf32>) {
  %a = core.softmax %x axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %b = core.softmax %a axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %c = core.exp %b : (tensor<2xf32>) -> tensor<2xf32>
  %j = core.concat %x, %b, %a, %c axis 0 : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<8xf32>
  %d = core.softmax %j axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %k = core.concat %b, %x axis 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %e = core.softmax %k axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d, %a, %e : tensor<8xf32>, tensor<2xf32>, tensor<4xf32>
}

// -----

// The result of the program is the buffer that is joined.
// CHECK-LABEL: buffer.entry
// CHECK:         %[[X:[a-z0-9]+]]: !buffer.ref<[2] x f32>, %[[Y:[a-z0-9]+]]: !buffer.ref<[4] x f32>):
// CHECK-NEXT:    %[[A:.+]] = buffer.view %[[Y]] {offset = #core.dims<[0]>}
// CHECK-NEXT:    buffer.call @softmax_0(%[[X]], %[[A]])
// CHECK-NEXT:    %[[B:.+]] = buffer.view %[[Y]] {offset = #core.dims<[2]>}
// CHECK-NEXT:    buffer.call @softmax_0(%[[A]], %[[B]])
// CHECK-NEXT:    buffer.return
func.func @main(%x: tensor<2xf32>) -> tensor<4xf32> {
  %a = core.softmax %x axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %b = core.softmax %a axis 0 : (tensor<2xf32>) -> tensor<2xf32>
  %c = core.concat %a, %b axis 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  func.return %c : tensor<4xf32>
}

// -----

// Of a known height, a half and two quarters lie in what joins them.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     @concat
// CHECK:         buffer.return
func.func @main(%x: tensor<1x2x8xf32>) -> (tensor<1x4x4xf32>, tensor<1x4x8xf32>) {
  %a_x = core.slice %x [0, 0, 0] [1, 2, 4] [1, 1, 1] : (tensor<1x2x8xf32>) -> tensor<1x2x4xf32>
  %a = core.softmax %a_x axis 1 : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %b_x = core.slice %x [0, 0, 0] [1, 2, 4] [1, 1, 1] : (tensor<1x2x8xf32>) -> tensor<1x2x4xf32>
  %b = core.softmax %b_x axis 1 : (tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %c = core.concat %a, %b axis 1 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x4x4xf32>
  %d = core.softmax %c axis 1 : (tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  %e = core.softmax %x axis 1 : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %f_x = core.slice %x [0, 0, 0] [1, 2, 8] [1, 1, 1] : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %f = core.softmax %f_x axis 1 : (tensor<1x2x8xf32>) -> tensor<1x2x8xf32>
  %g = core.concat %e, %f axis 1 : (tensor<1x2x8xf32>, tensor<1x2x8xf32>) -> tensor<1x4x8xf32>
  %h = core.softmax %g axis 1 : (tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
  func.return %d, %h : tensor<1x4x4xf32>, tensor<1x4x8xf32>
}

// -----

// So they do where the height has to be a multiple of 4, which is checked first.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.call
// CHECK:         buffer.require <[(h floordiv 4) * 4]> eq <[h]>
// CHECK-NOT:     @concat
// CHECK-NOT:     > eq <
// CHECK:         buffer.return
func.func @main(%x: tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>, tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h]>>) {
  %a_x = core.slice %x [0, 0, 0] [1, 2, h floordiv 2] [1, 1, 1] : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>
  %a = core.softmax %a_x axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>
  %b_x = core.slice %x [0, 0, 0] [1, 2, (h floordiv 4) * 2] [1, 1, 1] : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>
  %b = core.softmax %b_x axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>
  %c = core.concat %a, %b axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>, tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>) -> tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>
  %d = core.softmax %c axis 1 : (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>) -> tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>
  %e = core.softmax %x axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>
  %f_x = core.slice %x [0, 0, 0] [1, 2, (h floordiv 4) * 4] [1, 1, 1] : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 4]>>
  %f = core.softmax %f_x axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 4]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 4]>>
  %g = core.concat %e, %f axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>, tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 4]>>) -> tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h]>>
  %h = core.softmax %g axis 1 : (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h]>>) -> tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h]>>
  func.return %d, %h : tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>, tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h]>>
}

// -----

// A half and two quarters that have to be equal say nothing of the height: 5 will do.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.require <[(h floordiv 4) * 2]> eq <[h floordiv 2]>
// CHECK:         buffer.call @concat_0
func.func @main(%x: tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>) {
  %a_x = core.slice %x [0, 0, 0] [1, 2, h floordiv 2] [1, 1, 1] : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>
  %a = core.softmax %a_x axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>
  %b_x = core.slice %x [0, 0, 0] [1, 2, (h floordiv 4) * 2] [1, 1, 1] : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>
  %b = core.softmax %b_x axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>) -> tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>
  %c = core.concat %a, %b axis 1 : (tensor<1x2x?xf32, #core.tensor<dims = [1, 2, h floordiv 2]>>, tensor<1x2x?xf32, #core.tensor<dims = [1, 2, (h floordiv 4) * 2]>>) -> tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>
  %d = core.softmax %c axis 1 : (tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>) -> tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>
  func.return %d : tensor<1x4x?xf32, #core.tensor<dims = [1, 4, h floordiv 2]>>
}
