// RUN: opt-tool %s --pass-pipeline=bufferize --split-input-file | filecheck %s

// A kernel keeps its layouts and schedule, and knows which inputs are constants; these lie as it
// reads them, and the buffers have the dimensions of the layouts. Calls say what they compute.
// CHECK:       buffer.kernel @product {
// CHECK:       } {layouts = [#core.layout<0, 1>, #core.layout<1/2, 0, 1 mod 2>, #core.layout<0, 1>],
// CHECK-SAME:    schedule = #core.schedule<tiled_matmul>, symbols = ["n"], constants = array<i64: 1>}
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^bb0(%[[X:.*]]: !buffer.ref<[n, 2] x f32>, %[[Y:.*]]: !buffer.ref<[n, 3] x f32>):
// CHECK-NEXT:    %[[W:.*]] = buffer.weight {value = #core.blob<{{.*}}>, layout = #core.layout<1/2, 0, 1 mod 2>, dims = #core.dims<[2, 3]>} : !buffer.ref<[2, 2, 2] x f32>
// CHECK-NEXT:    buffer.call @product(%[[X]], %[[W]], %[[Y]]) <[n]> : {{.*}} {multiply_adds = #core.dims<[n * 6]>}
func.func @main(%x: tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {
  %w = core.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %y = core.kernel @product(%x, %w) : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<2x3xf32>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {
  ^bb0(%a: tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, %b: tensor<2x3xf32>):
    %c = core.matmul %a, %b : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<2x3xf32>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
    core.yield %c : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  } {layouts = [#core.layout<0, 1>, #core.layout<1/2, 0, 1 mod 2>, #core.layout<0, 1>], schedule = #core.schedule<tiled_matmul>}
  func.return %y : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
}

// -----

// Long sizes of a product have names in its kernel, the same as others', which calls give values:
// two kernels are one. A short size stays, and the calls still say what they compute.
// CHECK:       buffer.kernel @first {
// CHECK-NEXT:  ^bb0(%{{.*}}: tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %{{.*}}: tensor<8x?xf32, #core.tensor<dims = [8, size.2]>>):
// CHECK:         core.matmul {{.*}} -> tensor<?x?xf32, #core.tensor<dims = [n, size.2]>>
// CHECK:       } {{{.*}}symbols = ["n", "size.2"]
// CHECK-NOT:   buffer.kernel
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.call @first(%{{.*}}) <[n, {{.*}}h floordiv 3 - w floordiv 7 + 12345)]> : {{.*}} {multiply_adds
// CHECK:         buffer.call @first(%{{.*}}) <[n, {{.*}}h floordiv 2 - w floordiv 7 + 12345)]> : {{.*}} {multiply_adds
func.func @main(%x: tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %v: tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>, %u: tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>) -> (tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>, tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>) {
  %y = core.kernel @first(%x, %v) : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>> {
  ^bb0(%a: tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %b: tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>):
    %c = core.matmul %a, %b : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>
    core.yield %c : tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>
  }
  %z = core.kernel @second(%x, %u) : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>> {
  ^bb0(%a: tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %b: tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>):
    %c = core.matmul %a, %b : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8x?xf32, #core.tensor<dims = [8, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>
    core.yield %c : tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>
  }
  func.return %y, %z : tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 3 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>, tensor<?x?xf32, #core.tensor<dims = [n, max(h floordiv 2 - w floordiv 7 + 12345, 0) + max(w floordiv 5 - h floordiv 11 + 54321, 0)]>>
}
