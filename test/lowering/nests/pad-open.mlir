// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=form-kernels,fuse-epilogue,choose-strategies,bufferize,lower-kernels --split-input-file | filecheck %s

// Rows on the input are copied between zeros, others are zeros; threads share the former.
// CHECK:       buffer.func @pad_0
// CHECK:         buffer.for <[0, 1, 1]> {
// CHECK-NEXT:    ^
// CHECK-NEXT:      buffer.for <[0, s0 + 3, 1]> {
// CHECK-NOT:         buffer.load
// CHECK:         } {parallel = false, label = "d0"}
// CHECK:         buffer.for <[0, s1, 1]> {
// CHECK:           buffer.for <[0, s0, 1]> {
// CHECK:             buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK:             buffer.store %{{.*}}(%{{.*}}) <[d0 + 1, d1]>
// CHECK:           buffer.for <[0, 3, 1]> {
// CHECK-NOT:         buffer.load
// CHECK:             buffer.store %{{.*}}(%{{.*}}) <[d0 + 1, d1 + s0]>
// CHECK:         } {parallel = true, label = "d0"}
func.func @main(%x: tensor<?x?xf32, #core.tensor<dims = [n, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n + 1, m + 3]>> {
  %y = core.pad constant %x [1, 0] [0, 3] : (tensor<?x?xf32, #core.tensor<dims = [n, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n + 1, m + 3]>>
  func.return %y : tensor<?x?xf32, #core.tensor<dims = [n + 1, m + 3]>>
}

// -----

// Other modes take an element of the input everywhere: only rows are cut.
// CHECK:       buffer.func @pad_0
// CHECK:         buffer.for <[0, s1 + 1, 1]> {
// CHECK:           buffer.for <[0, s0, 1]> {
// CHECK:             buffer.load %{{.*}}(%{{.*}}) <[min(max(0, d0 - 1), s1 - 1), d1]>
// CHECK:           buffer.for <[0, 3, 1]> {
// CHECK:             buffer.load %{{.*}} <[min(max(0, d0 - 1), s1 - 1), 
func.func @main(%x: tensor<?x?xf32, #core.tensor<dims = [n, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n + 1, m + 3]>> {
  %y = core.pad edge %x [1, 0] [0, 3] : (tensor<?x?xf32, #core.tensor<dims = [n, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n + 1, m + 3]>>
  func.return %y : tensor<?x?xf32, #core.tensor<dims = [n + 1, m + 3]>>
}

// -----

// Nearest miss: known sizes, which the loops are cut by later.
// CHECK:       buffer.func @pad_0
// CHECK:         buffer.for <[0, 5, 1]> {
// CHECK:           buffer.for <[0, 12, 1]> {
// CHECK:             scf.if
func.func @main(%x: tensor<4x9xf32>) -> tensor<5x12xf32> {
  %y = core.pad constant %x [1, 0] [0, 3] : (tensor<4x9xf32>) -> tensor<5x12xf32>
  func.return %y : tensor<5x12xf32>
}
