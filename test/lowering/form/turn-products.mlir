// RUN: opt-tool %s --for-target x86-64-v3 --pass-pipeline=turn-products --split-input-file | filecheck %s

// One query meets the keys where they lie: nothing moves.
// CHECK-LABEL: @one
// CHECK-NEXT:    %[[Q:.+]] = core.reshape %q [2, 8, 1]
// CHECK-NEXT:    %[[S:.+]] = core.matmul %k, %[[Q]] : (tensor<2x9x8xf32>, tensor<2x8x1xf32>) -> tensor<2x9x1xf32>
// CHECK-NEXT:    %[[Y:.+]] = core.reshape %[[S]] [2, 1, 9]
// CHECK-NEXT:    func.return %[[Y]]
func.func @one(%q: tensor<2x1x8xf32>, %k: tensor<2x9x8xf32>) -> tensor<2x1x9xf32> {
  %t = core.transpose %k [0, 2, 1] : (tensor<2x9x8xf32>) -> tensor<2x8x9xf32>
  %y = core.matmul %q, %t : (tensor<2x1x8xf32>, tensor<2x8x9xf32>) -> tensor<2x1x9xf32>
  func.return %y : tensor<2x1x9xf32>
}

// -----

// Of few queries, and of keys of an unknown number, less moves than the keys. The matrices of a
// batch are those of the result, whatever is added in front of them.
// CHECK-LABEL: @few
// CHECK:         %[[Q:.+]] = core.transpose %q [0, 2, 1]
// CHECK-NEXT:    %[[S:.+]] = core.matmul %k, %[[Q]]
// CHECK-NEXT:    %[[Y:.+]] = core.transpose %[[S]] [0, 2, 1]
// CHECK-NEXT:    func.return %[[Y]]
func.func @few(%q: tensor<1x3x16xf32>, %k: tensor<?x16xf32, #core.tensor<dims = [n, 16]>>) -> tensor<1x3x?xf32, #core.tensor<dims = [1, 3, n]>> {
  %t = core.transpose %k [1, 0] : (tensor<?x16xf32, #core.tensor<dims = [n, 16]>>) -> tensor<16x?xf32, #core.tensor<dims = [16, n]>>
  %y = core.matmul %q, %t : (tensor<1x3x16xf32>, tensor<16x?xf32, #core.tensor<dims = [16, n]>>) -> tensor<1x3x?xf32, #core.tensor<dims = [1, 3, n]>>
  func.return %y : tensor<1x3x?xf32, #core.tensor<dims = [1, 3, n]>>
}

// -----

// Sums that do not fill a vector, many queries, several that meet the same keys, another order, a
// transpose that is needed anyway, and a constant stay.
// CHECK-LABEL: @short
// CHECK:         core.matmul %q, %{{.+}} : (tensor<1x7xf32>, tensor<7x9xf32>)
// CHECK-LABEL: @many
// CHECK:         core.matmul %q, %{{.+}} : (tensor<5x16xf32>, tensor<16x9xf32>)
// CHECK-LABEL: @shared
// CHECK:         core.matmul %q, %{{.+}} : (tensor<2x1x8xf32>, tensor<8x9xf32>)
// CHECK-LABEL: @other_order
// CHECK:         core.matmul %q, %{{.+}} : (tensor<2x1x8xf32>, tensor<2x8x9xf32>)
// CHECK-LABEL: @needed
// CHECK:         core.matmul %q, %{{.+}} : (tensor<1x8xf32>, tensor<8x9xf32>)
// CHECK-LABEL: @constant
// CHECK:         core.matmul %q, %{{.+}} : (tensor<1x8xf32>, tensor<8x9xf32>)
// CHECK-LABEL: @integers
// CHECK:         core.matmul %q, %{{.+}} : (tensor<1x8xi32>, tensor<8x9xi32>)
func.func @short(%q: tensor<1x7xf32>, %k: tensor<9x7xf32>) -> tensor<1x9xf32> {
  %t = core.transpose %k [1, 0] : (tensor<9x7xf32>) -> tensor<7x9xf32>
  %y = core.matmul %q, %t : (tensor<1x7xf32>, tensor<7x9xf32>) -> tensor<1x9xf32>
  func.return %y : tensor<1x9xf32>
}
func.func @many(%q: tensor<5x16xf32>, %k: tensor<9x16xf32>) -> tensor<5x9xf32> {
  %t = core.transpose %k [1, 0] : (tensor<9x16xf32>) -> tensor<16x9xf32>
  %y = core.matmul %q, %t : (tensor<5x16xf32>, tensor<16x9xf32>) -> tensor<5x9xf32>
  func.return %y : tensor<5x9xf32>
}
func.func @shared(%q: tensor<2x1x8xf32>, %k: tensor<9x8xf32>) -> tensor<2x1x9xf32> {
  %t = core.transpose %k [1, 0] : (tensor<9x8xf32>) -> tensor<8x9xf32>
  %y = core.matmul %q, %t : (tensor<2x1x8xf32>, tensor<8x9xf32>) -> tensor<2x1x9xf32>
  func.return %y : tensor<2x1x9xf32>
}
func.func @other_order(%q: tensor<2x1x8xf32>, %k: tensor<9x2x8xf32>) -> tensor<2x1x9xf32> {
  %t = core.transpose %k [1, 2, 0] : (tensor<9x2x8xf32>) -> tensor<2x8x9xf32>
  %y = core.matmul %q, %t : (tensor<2x1x8xf32>, tensor<2x8x9xf32>) -> tensor<2x1x9xf32>
  func.return %y : tensor<2x1x9xf32>
}
func.func @needed(%q: tensor<1x8xf32>, %k: tensor<9x8xf32>) -> (tensor<1x9xf32>, tensor<8x9xf32>) {
  %t = core.transpose %k [1, 0] : (tensor<9x8xf32>) -> tensor<8x9xf32>
  %y = core.matmul %q, %t : (tensor<1x8xf32>, tensor<8x9xf32>) -> tensor<1x9xf32>
  func.return %y, %t : tensor<1x9xf32>, tensor<8x9xf32>
}
func.func @constant(%q: tensor<1x8xf32>) -> tensor<1x9xf32> {
  %k = core.constant dense<1.0> : tensor<9x8xf32>
  %t = core.transpose %k [1, 0] : (tensor<9x8xf32>) -> tensor<8x9xf32>
  %y = core.matmul %q, %t : (tensor<1x8xf32>, tensor<8x9xf32>) -> tensor<1x9xf32>
  func.return %y : tensor<1x9xf32>
}
func.func @integers(%q: tensor<1x8xi32>, %k: tensor<9x8xi32>) -> tensor<1x9xi32> {
  %t = core.transpose %k [1, 0] : (tensor<9x8xi32>) -> tensor<8x9xi32>
  %y = core.matmul %q, %t : (tensor<1x8xi32>, tensor<8x9xi32>) -> tensor<1x9xi32>
  func.return %y : tensor<1x9xi32>
}
