// RUN: opt-tool %s --dim h=8 --dim batch=2 | filecheck %s
// RUN: not opt-tool %s --dim height=8 --dim k=1 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not opt-tool %s --dim h=8 --dim h=9 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not opt-tool %s --dim h=-1 2>&1 | filecheck %s --check-prefix=SIZE

// Everywhere where the name occurs; other dimensions stay open.
// CHECK:      func.func @main(%x: tensor<2x8x?xf32, #core.tensor<dims = [2, 8, w]>>
// CHECK-SAME: -> tensor<2x4x?xf32, #core.tensor<dims = [2, 4, w]>>
// CHECK-NEXT: core.slice %x [0, 0, 0] [2, 4, w]
// CHECK-SAME: -> tensor<2x4x?xf32, #core.tensor<dims = [2, 4, w]>>

// UNKNOWN: fixed-dims.mlir: --dim: there is no open dimension 'height'; those of the inputs are 'batch', 'h', 'w'
// UNKNOWN: fixed-dims.mlir: --dim: there is no open dimension 'k';
// TWICE: --dim h=9: 'h' is 8 already
// SIZE: --dim h=-1: expected NAME=N

func.func @main(%x : tensor<?x?x?xf32, #core.tensor<dims = [batch, h, w]>>) -> tensor<?x?x?xf32, #core.tensor<dims = [batch, h floordiv 2, w]>> {
  %y = core.slice %x [0, 0, 0] [batch, h floordiv 2, w] [1, 1, 1] : (tensor<?x?x?xf32, #core.tensor<dims = [batch, h, w]>>) -> tensor<?x?x?xf32, #core.tensor<dims = [batch, h floordiv 2, w]>>
  func.return %y : tensor<?x?x?xf32, #core.tensor<dims = [batch, h floordiv 2, w]>>
}
