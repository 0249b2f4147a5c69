// RUN: not env PYTHONPATH=%S/Inputs:%pythonpath opt-tool %s --load mirroring_pass:MirroringPass --pass-pipeline=mirroring --check-each 2>&1 | filecheck %s
// RUN: env PYTHONPATH=%S/Inputs:%pythonpath opt-tool %s --load mirroring_pass:MirroringPass --pass-pipeline=mirroring,cse --check-each --skip-nodes=curve 2>&1 | filecheck %s --check-prefix=RIGHT

// Without @main, every public function runs; what changed nothing is told.
// CHECK: the pass 'mirroring' changes the results: output 'curved:z' differs in
// CHECK: first wrong rewrite: 2 mirroring/mirror-sigmoid on core.sigmoid: the curve is symmetric; from 'curve'

// RIGHT-DAG: core.max %y, %x
// RIGHT-DAG: note: the pass 'cse' changed nothing

func.func @largest(%x : tensor<4xf32>, %y : tensor<4xf32>) -> tensor<4xf32> {
  %a = core.max %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("first")
  func.return %a : tensor<4xf32>
}

func.func @curved(%x : tensor<?xf32, #core.tensor<dims = [n]>>) -> (tensor<?xf32, #core.tensor<dims = [n]>> {core.name = "z"}) {
  %b = core.sigmoid %x : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>> loc("curve")
  func.return %b : tensor<?xf32, #core.tensor<dims = [n]>>
}
