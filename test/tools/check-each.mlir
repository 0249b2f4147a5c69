// RUN: not env PYTHONPATH=%S/Inputs:%pythonpath opt-tool %s --load mirroring_pass:MirroringPass --pass-pipeline=simplify,mirroring,cse --check-each 2>&1 | filecheck %s
// RUN: env PYTHONPATH=%S/Inputs:%pythonpath opt-tool %s --load mirroring_pass:MirroringPass --pass-pipeline=simplify,mirroring,cse --check-each --skip-nodes=curve | filecheck %s --check-prefix=RIGHT

// The second of three rewrites is wrong: the pass, the pattern, and the source node are named.
// CHECK: the pass 'mirroring' changes the results: output '0' differs in
// CHECK: first wrong rewrite: 2 mirroring/mirror-sigmoid on core.sigmoid: the curve is symmetric; from 'curve'

// RIGHT: core.max %y, %x

func.func @main(%x : tensor<4xf32>, %y : tensor<4xf32>) -> tensor<4xf32> {
  %a = core.max %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("first")
  %b = core.sigmoid %a : (tensor<4xf32>) -> tensor<4xf32> loc("curve")
  %c = core.max %b, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("last")
  func.return %c : tensor<4xf32>
}
