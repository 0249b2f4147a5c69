// RUN: opt-tool %s --pass-pipeline=bufferize,lower-kernels | filecheck %s

// Parts of a block of channels, read where they lie: each has as many channels as it has.
// CHECK-LABEL: buffer.func @parts
// CHECK:           buffer.for <[0, 6, 1]>
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        buffer.for <[0, 2, 1]>
// CHECK:               buffer.store %{{.*}} <[0, 0, d1, d0]>
// CHECK:           buffer.for <[0, 2, 1]>
// CHECK-NEXT:      ^bb0
// CHECK-NEXT:        buffer.for <[0, 2, 1]>
// CHECK:               buffer.store %{{.*}} <[0, 0, d1, d0 + 6]>
func.func @main(%x: tensor<1x8x3xf32>) -> tensor<1x8x2xf32> {
  %0 = core.kernel @parts(%x) : (tensor<1x8x3xf32>) -> tensor<1x8x2xf32> {
  ^bb0(%a: tensor<1x8x3xf32>):
    %p = core.slice %a [0, 0, 0] [1, 6, 2] [1, 1, 1] : (tensor<1x8x3xf32>) -> tensor<1x6x2xf32>
    %q = core.slice %a [0, 6, 1] [1, 2, 2] [1, 1, 1] : (tensor<1x8x3xf32>) -> tensor<1x2x2xf32>
    %c = core.concat %p, %q axis 1 : (tensor<1x6x2xf32>, tensor<1x2x2xf32>) -> tensor<1x8x2xf32>
    core.yield %c : tensor<1x8x2xf32>
  } {layouts = [#core.layout<0, 1/8, 2, 1 mod 8>, #core.layout<0, 1/8, 2, 1 mod 8>]}
  func.return %0 : tensor<1x8x2xf32>
}
