// RUN: not env PYTHONPATH=%S/Inputs:%pythonpath opt-tool %s --load swapping_pass:SwappingPass --pass-pipeline=simplify,swapping,cse --check-each 2>&1 | filecheck %s
// RUN: env PYTHONPATH=%S/Inputs:%pythonpath opt-tool %s --load swapping_pass:SwappingPass --pass-pipeline=simplify,swapping,cse --check-each --skip-nodes=difference | filecheck %s --check-prefix=RIGHT

// The second of three rewrites is wrong: the pass, the pattern, and the source node are named.
// CHECK: the pass 'swapping' changes the results: output '0' differs in
// CHECK: first wrong rewrite: 2 swapping/swap-subtraction on core.sub: differences do not commute; from 'difference'

// RIGHT: core.max %y, %x

func.func @main(%x : tensor<4xf32>, %y : tensor<4xf32>) -> tensor<4xf32> {
  %a = core.max %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("first")
  %b = core.sub %a, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("difference")
  %c = core.max %b, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("last")
  func.return %c : tensor<4xf32>
}
