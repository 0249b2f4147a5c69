// RUN: not opt-tool %s -p bufferize 2>&1 | filecheck %s

// A pass that is for a later phase: the error names it, and what runs the passes before it.
// CHECK: opt-tool-unranked.mlir: pass 'bufferize': expected a ranked tensor, got tensor<*xf32>
// CHECK-SAME: --compile-to=buffer runs what comes before it

func.func @main(%x : tensor<*xf32>) -> tensor<*xf32> {
  func.return %x : tensor<*xf32>
}
