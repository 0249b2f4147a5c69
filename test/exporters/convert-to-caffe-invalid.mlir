// RUN: not opt-tool %s --pass-pipeline=convert-to-caffe 2>&1 | filecheck %s

// All that has no form is listed at once, in order, a node once.
// CHECK: input 'ids': found elements of i32, expected f32, which is all that Caffe's blobs hold
// CHECK: node 'rounded' (core.floor): found an op that no layer of Caffe computes (the nearest is Threshold, which is 1 above a number, else 0); end the model before it with --output, or export ONNX
// CHECK-NOT: 'rounded'
// CHECK: node 'swapped' (core.transpose): found what needs a layer Permute, expected a layer of BVLC Caffe; choose --dialect=ssd
// CHECK: node 'scores' (core.matmul): found a product of two values that depend on data, with 73728000 terms, expected at most 67108864 in a blob: no layer of Caffe multiplies two matrices, and Scale and Eltwise, the nearest ones, give all terms before they are added; end the model
func.func @main(%x : tensor<80x90xf32> {core.name = "x"},
    %z : tensor<12800x72xf32> {core.name = "z"}, %ids : tensor<2xi32> {core.name = "ids"})
    -> (tensor<12800x80xf32> {core.name = "y"}, tensor<2xi32> {core.name = "kept"}) {
  %a = core.round %x : (tensor<80x90xf32>) -> tensor<80x90xf32> loc("rounded")
  %b = core.floor %a : (tensor<80x90xf32>) -> tensor<80x90xf32> loc("rounded")
  %t = core.transpose %b [1, 0] : (tensor<80x90xf32>) -> tensor<90x80xf32> loc("swapped")
  %s = core.slice %t [0, 0] [72, 80] [1, 1] : (tensor<90x80xf32>) -> tensor<72x80xf32>
  %y = core.matmul %z, %s : (tensor<12800x72xf32>, tensor<72x80xf32>) -> tensor<12800x80xf32>
    loc("scores")
  func.return %y, %ids : tensor<12800x80xf32>, tensor<2xi32>
}

// CHECK: input 'x': found a value of shape [n, 2], expected numbers; give the shapes with --input-shape
// CHECK: node 't' (core.tanh): found a value of shape [n, 2], expected numbers; give the shapes with --input-shape
func.func @open(%x : tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {core.name = "x"})
    -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {
  %y = core.tanh %x : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>)
    -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> loc("t")
  func.return %y : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
}

// CHECK: node 'pool' (core.pool): found a pool that keeps a NaN first of 81 elements, expected at most 64
func.func @dilated(%x : tensor<1x2x20x20xf32>) -> tensor<1x2x4x4xf32> {
  %y = core.pool max %x kernel [9, 9] strides [1, 1] dilations [2, 2] pads [0, 0] [0, 0]
    overhang [0, 0] {keeps_first = true}
    : (tensor<1x2x20x20xf32>) -> tensor<1x2x4x4xf32> loc("pool")
  func.return %y : tensor<1x2x4x4xf32>
}

// CHECK: node 'long' (core.pad): found a new order of 66 parts, expected at most 64, which a Slice and a Concat bring into it
func.func @padded(%x : tensor<1x70xf32>) -> tensor<1x135xf32> {
  %y = core.pad reflect %x [0, 65] [0, 0] : (tensor<1x70xf32>) -> tensor<1x135xf32> loc("long")
  func.return %y : tensor<1x135xf32>
}

// CHECK: node 'volume' (core.pool): found a window that holds nothing but padding, expected an element in each window
func.func @outside(%x : tensor<1x2x2x4x4xf32>) -> tensor<1x2x3x4x4xf32> {
  %y = core.pool max %x kernel [1, 1, 1] strides [1, 1, 1] dilations [1, 1, 1]
    pads [0, 0, 0] [1, 0, 0] overhang [0, 0, 0]
    : (tensor<1x2x2x4x4xf32>) -> tensor<1x2x3x4x4xf32> loc("volume")
  func.return %y : tensor<1x2x3x4x4xf32>
}

// Floats do not tell so many places apart.
// CHECK: node 'far' (core.arg_reduce): found places among 16777217 elements, expected 1 to 16777216, which floats tell apart
func.func @far(%x : tensor<1x16777217xf32>) -> tensor<1xi64> {
  %y = core.arg_reduce max %x axis 1 : (tensor<1x16777217xf32>) -> tensor<1xi64> loc("far")
  func.return %y : tensor<1xi64>
}

// CHECK: node 'columns' (core.arg_reduce): found what needs a layer Permute, expected a layer of BVLC Caffe; choose --dialect=ssd
func.func @columns(%x : tensor<1x70x80xf32>) -> tensor<1x80xi64> {
  %y = core.arg_reduce max %x axis 1 : (tensor<1x70x80xf32>) -> tensor<1x80xi64> loc("columns")
  func.return %y : tensor<1x80xi64>
}

// What replaces NaN has to lose to all numbers, or else it is a choice of its own.
// CHECK: node 'zeros' (core.select): found an op that no layer of Caffe computes
func.func @zeros(%x : tensor<3x5xf32>) -> tensor<3xi64> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %c = core.compare eq %x, %x : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1> loc("zeros")
  %s = core.select %c, %x, %zero
    : (tensor<3x5xi1>, tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32> loc("zeros")
  %y = core.arg_reduce max %s axis 1 : (tensor<3x5xf32>) -> tensor<3xi64>
  func.return %y : tensor<3xi64>
}

// Integers that something computes with are no places.
// CHECK: input 'ids': found elements of i32, expected f32, which is all that Caffe's blobs hold
// CHECK: node 'sum' (core.add): found elements of i32, expected f32, which is all that Caffe's blobs hold
func.func @computed(%i : tensor<2xi32> {core.name = "ids"}) -> tensor<2x3xf32> {
  %t = core.constant dense<1.0> : tensor<7x3xf32>
  %s = core.add %i, %i : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32> loc("sum")
  %y = core.gather %t, %s axis 0 : (tensor<7x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  func.return %y : tensor<2x3xf32>
}

// A cast that wraps what does not fit changes numbers.
// CHECK: input 'wide': found elements of i64, expected f32, which is all that Caffe's blobs hold
func.func @wrapped(%i : tensor<2xi64> {core.name = "wide"}) -> tensor<2xf32> {
  %n = core.cast %i to i32 : (tensor<2xi64>) -> tensor<2xi32> loc("narrow")
  %y = core.cast %n to f32 : (tensor<2xi32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// CHECK: node 'kernels' (core.conv): found a weight of Convolution, the nearest layer, that depends on data, expected a constant
func.func @kernels(%x : tensor<1x2x4x4xf32>, %w : tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32> {
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1
    : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32> loc("kernels")
  func.return %y : tensor<1x3x4x4xf32>
}
