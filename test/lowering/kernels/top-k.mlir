// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize | filecheck %s

// The first elements make a heap in the results, with the worst of them in front. Every other one
// that is better goes there and down; sorting brings the best to the front.
// CHECK-LABEL: buffer.func @top_k_0
// CHECK:         buffer.for <[0, 2, 1]> {
// CHECK-NEXT:    ^bb0(%[[ROW:[0-9]+]]: index):
// CHECK-NEXT:      buffer.for <[0, 3, 1]> {
// CHECK:             buffer.load %0
// CHECK:             buffer.store %{{[0-9]+}}, %1
// CHECK-NEXT:        buffer.store %{{[0-9]+}}, %2
// CHECK:           buffer.for <[0, 1, 1]> {
// CHECK:             buffer.for <[0, 1, 1]> carry
// CHECK:               buffer.load %1({{.*}}) <[d0, min(2, d1 * 2 + 1)]>
// CHECK:               buffer.load %1({{.*}}) <[d0, min(2, d1 * 2 + 2)]>
// CHECK:               scf.if
// CHECK:           buffer.for <[3, 9, 1]> {
// CHECK-NEXT:      ^bb0(%[[AT:[0-9]+]]: index):
// CHECK-NEXT:        %[[X:[0-9]+]] = buffer.load %0(%[[ROW]], %[[AT]])
// CHECK:             %[[WORST:[0-9]+]] = buffer.load %1(%[[ROW]]) <[d0, 0]>
// CHECK-NEXT:        arith.cmpf ogt, %[[X]], %[[WORST]]
// CHECK-NEXT:        arith.cmpf uno, %[[X]], %[[X]]
// CHECK-NEXT:        arith.cmpf ord, %[[WORST]], %[[WORST]]
// CHECK:             scf.if
// CHECK:               buffer.for <[0, 1, 1]> carry
// CHECK:               buffer.store %[[X]], %1
// CHECK:           buffer.for <[0, 2, 1]> {
// CHECK:             buffer.load %1({{.*}}) <[d0, -d1 + 2]>
// CHECK:             %[[LEAST:[0-9]+]] = buffer.load %1(%[[ROW]]) <[d0, 0]>
// CHECK:             buffer.store %[[LEAST]], %1({{.*}}) <[d0, -d1 + 2]>
// CHECK:             buffer.for <[0, 1, 1]> carry
// CHECK:         buffer.return
// CHECK-LABEL: buffer.func @run
// CHECK:         buffer.call @top_k_0
func.func @main(%x: tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %v, %i = core.top_k %x {k = #core.dims<[3]>, axis = #builtin.int<1>, largest = true} : (tensor<2x9xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}
