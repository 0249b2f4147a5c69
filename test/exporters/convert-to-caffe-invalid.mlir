// RUN: not opt-tool %s --pass-pipeline=convert-to-caffe 2>&1 | filecheck %s

// All that has no form is listed at once, in order, a node once.
// CHECK: input 'ids': found elements of i32, expected f32, which is all that Caffe's blobs hold
// CHECK: node 'rounded' (core.floor): found an op that no layer of Caffe computes; end the model before it with --output, or export ONNX
// CHECK-NOT: 'rounded'
// CHECK: node 'swapped' (core.transpose): found what needs a layer Permute, expected a layer of BVLC Caffe; choose --dialect=ssd
// CHECK: node 'scores' (core.matmul): found a product of two values that depend on data, expected a constant matrix on the right
func.func @main(%x : tensor<80x90xf32> {core.name = "x"}, %ids : tensor<2xi32> {core.name = "ids"})
    -> (tensor<80x80xf32> {core.name = "y"}, tensor<2xi32> {core.name = "kept"}) {
  %a = core.round %x : (tensor<80x90xf32>) -> tensor<80x90xf32> loc("rounded")
  %b = core.floor %a : (tensor<80x90xf32>) -> tensor<80x90xf32> loc("rounded")
  %t = core.transpose %b [1, 0] : (tensor<80x90xf32>) -> tensor<90x80xf32> loc("swapped")
  %y = core.matmul %b, %t : (tensor<80x90xf32>, tensor<90x80xf32>) -> tensor<80x80xf32>
    loc("scores")
  func.return %y, %ids : tensor<80x80xf32>, tensor<2xi32>
}

// CHECK: input 'x': found a value of shape [n, 2], expected numbers; give the shapes with --input-shape
// CHECK: node 't' (core.tanh): found a value of shape [n, 2], expected numbers; give the shapes with --input-shape
func.func @open(%x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {core.name = "x"})
    -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {
  %y = core.tanh %x : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>)
    -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> loc("t")
  func.return %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
}

// CHECK: node 'pool' (core.pool): found a pool with the dilation 2, expected 1
func.func @dilated(%x : tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> {
  %y = core.pool max %x kernel [3, 3] strides [1, 1] dilations [2, 2] pads [0, 0] [0, 0]
    overhang [0, 0] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> loc("pool")
  func.return %y : tensor<1x2x4x4xf32>
}
