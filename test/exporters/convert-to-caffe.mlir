// RUN: opt-tool %s --pass-pipeline=convert-to-caffe --split-input-file | filecheck %s
// RUN: opt-tool %s --compile-to=caffe --split-input-file --check-each | filecheck %s --check-prefix=PHASE

// A batch normalization is a BatchNorm, whose third blob is 1, and a Scale. No convolution takes it.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[ONE:.+]] = core.constant dense<[1.0]> : tensor<1xf32>
// CHECK-DAG:     %[[M:.+]] = core.constant dense<[6.0, 7.0]> : tensor<2xf32>
// CHECK-DAG:     %[[V:.+]] = core.constant dense<[8.0, 9.0]> : tensor<2xf32>
// CHECK:         %[[N:.+]] = caffe.BatchNorm %{{.+}} blobs(%[[M]], %[[V]], %[[ONE]]) {eps = 0.001} attributes {core.name = "bn"}
// CHECK-DAG:     %[[S:.+]] = core.constant dense<[2.0, 3.0]> : tensor<2xf32>
// CHECK-DAG:     %[[B:.+]] = core.constant dense<[4.0, 5.0]> : tensor<2xf32>
// CHECK:         %[[Y:.+]] = caffe.Scale %[[N]] blobs(%[[S]], %[[B]]) {bias_term = true} attributes {core.name = "bn/scale"}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
// PHASE:         caffe.Convolution
// PHASE:         caffe.BatchNorm
// PHASE:         caffe.Scale
func.func @main(%x : tensor<1x2x5x4xf32> {core.name = "data"}) -> tensor<1x2x5x4xf32> {
  %w = core.constant dense<[[[[1.0]], [[2.0]]], [[[3.0]], [[4.0]]]]> : tensor<2x2x1x1xf32>
  %c = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1
    : (tensor<1x2x5x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x5x4xf32> loc("conv")
  %s = core.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %b = core.constant dense<[4.0, 5.0]> : tensor<2xf32>
  %m = core.constant dense<[6.0, 7.0]> : tensor<2xf32>
  %v = core.constant dense<[8.0, 9.0]> : tensor<2xf32>
  %y = core.batch_norm %c, %s, %b, %m, %v axis 1 {epsilon = 1.0e-03 : f64}
    : (tensor<1x2x5x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
    -> tensor<1x2x5x4xf32> loc("bn")
  func.return %y : tensor<1x2x5x4xf32>
}

// -----

// Without scale and bias it is a BatchNorm alone.
// CHECK-LABEL: func.func @main
// CHECK:         %[[N:.+]] = caffe.BatchNorm %x
// CHECK-NOT:     caffe
// CHECK:         func.return %[[N]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32> {
  %s = core.constant dense<1.0> : tensor<2xf32>
  %b = core.constant dense<0.0> : tensor<2xf32>
  %m = core.constant dense<[6.0, 7.0]> : tensor<2xf32>
  %v = core.constant dense<[8.0, 9.0]> : tensor<2xf32>
  %y = core.batch_norm %x, %s, %b, %m, %v axis 1 {epsilon = 1.0e-05 : f64}
    : (tensor<1x2x5x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
    -> tensor<1x2x5x4xf32>
  func.return %y : tensor<1x2x5x4xf32>
}

// -----

// Channels that are last are brought to dimension 1 without moving anything.
// CHECK-LABEL: func.func @main
// CHECK:         caffe.Reshape %x {shape = {dim = [20, 2, 1]}}
// CHECK:         caffe.BatchNorm
// CHECK:         caffe.Scale
// CHECK:         caffe.Reshape {{.+}} {shape = {dim = [1, 5, 4, 2]}}
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x5x4x2xf32>) -> tensor<1x5x4x2xf32> {
  %s = core.constant dense<[2.0, 3.0]> : tensor<2xf32>
  %y = core.batch_norm %x, %s, %s, %s, %s axis 3 {epsilon = 1.0e-05 : f64}
    : (tensor<1x5x4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
    -> tensor<1x5x4x2xf32>
  func.return %y : tensor<1x5x4x2xf32>
}

// -----

// Padding that is the same on both sides is the layer's; the bias behind it, too.
// CHECK-LABEL: func.func @main
// CHECK:         %[[Y:.+]] = caffe.Convolution %x blobs(%{{.+}}, %{{.+}}) {kernel_size = [3], num_output = 2, pad = [1], stride = [2]}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x1x7x7xf32>) -> tensor<1x2x4x4xf32> {
  %w = core.constant dense<1.0> : tensor<2x1x3x3xf32>
  %b = core.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>
  %c = core.conv %x, %w strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1
    : (tensor<1x1x7x7xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x4x4xf32>
  %y = core.add %c, %b : (tensor<1x2x4x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}

// -----

// Padding at the end only, with stride 2: two before and behind would begin at -2 and have one
// window more in front, which is cut. With one before and behind, windows would begin at -1.
// CHECK-LABEL: func.func @main
// CHECK:         %[[C:.+]] = caffe.Convolution %x blobs(%{{.+}}) {bias_term = false, kernel_size = [3], num_output = 2, pad = [2], stride = [2]} {{.+}} -> tensor<1x2x5x5xf32>
// CHECK:         %{{.+}}, %[[R:.+]] = caffe.Slice %[[C]] {axis = 2, slice_point = [1]}
// CHECK:         %[[Z:.+]], %[[S:.+]] = caffe.Slice %[[R]] {axis = 3, slice_point = [1]}
// CHECK-NEXT:    caffe.Silence %[[Z]]
// CHECK-NEXT:    %[[Y:.+]] = caffe.Power %[[S]]
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x1x8x8xf32>) -> tensor<1x2x4x4xf32> {
  %w = core.constant dense<[[[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]],
    [[[9.0, 8.0, 7.0], [6.0, 5.0, 4.0], [3.0, 2.0, 1.0]]]]> : tensor<2x1x3x3xf32>
  %c = core.conv %x, %w strides [2, 2] dilations [1, 1] pads [0, 0] [1, 1] groups 1
    : (tensor<1x1x8x8xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x4x4xf32>
  func.return %c : tensor<1x2x4x4xf32>
}

// -----

// Rounded up, there is a window more in each dimension than core has.
// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.+]] = caffe.Pooling %x {kernel_size = 3, pad = 1, pool = "MAX", stride = 2} {{.+}} -> tensor<1x2x5x5xf32>
// CHECK:         %[[R:.+]], %{{.+}} = caffe.Slice %[[P]] {axis = 2, slice_point = [4]}
// CHECK:         caffe.Silence
// CHECK:         %[[S:.+]], %{{.+}} = caffe.Slice %[[R]] {axis = 3, slice_point = [4]}
// CHECK:         caffe.Silence
// CHECK:         %[[Y:.+]] = caffe.Power %[[S]]
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> {
  %y = core.pool max %x kernel [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1]
    overhang [0, 0] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}

// -----

// The nearest case: windows that Caffe has as well.
// CHECK-LABEL: func.func @main
// CHECK:         %[[Y:.+]] = caffe.Pooling %x {kernel_size = 2, pool = "MAX", stride = 2}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> {
  %y = core.pool max %x kernel [2, 2] strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0]
    overhang [0, 0] : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  func.return %y : tensor<1x2x4x4xf32>
}

// -----

// Caffe divides by what a window has of the padding, too; core does not here.
// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.+]] = caffe.Pooling %x {kernel_size = 3, pad = 1, pool = "AVE"}
// CHECK:         %[[F:.+]] = core.constant dense<{{\[\[}}2.25, 1.5, 2.25], [1.5, 1.0, 1.5], [2.25, 1.5, 2.25]]>
// CHECK:         caffe.Scale %[[P]] blobs(%[[F]]) {axis = 2, num_axes = 2}
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
  %y = core.pool average %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1]
    overhang [0, 0] : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  func.return %y : tensor<1x2x3x3xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.+]] = caffe.Pooling %x {kernel_size = 3, pad = 1, pool = "AVE"}
// CHECK-NEXT:    func.return %[[P]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32> {
  %y = core.pool average %x kernel [3, 3] strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1]
    overhang [0, 0] {count_pads = true} : (tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  func.return %y : tensor<1x2x3x3xf32>
}

// -----

// A product takes the sum behind it, and flattens by itself.
// CHECK-LABEL: func.func @main
// CHECK:         %[[W:.+]] = core.constant dense<{{\[\[}}1.0, 3.0, 5.0, 7.0], [2.0, 4.0, 6.0, 8.0]]>
// CHECK:         caffe.InnerProduct %x blobs(%[[W]], %{{.+}}) {num_output = 2}
// CHECK-NOT:     caffe
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<3x2x2x1xf32>) -> tensor<3x2xf32> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
  %b = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %f = core.reshape %x [3, 4] : (tensor<3x2x2x1xf32>) -> tensor<3x4xf32>
  %p = core.matmul %f, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %y = core.add %p, %b : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3x2xf32>
  func.return %y : tensor<3x2xf32>
}

// -----

// Parts are those of one Slice; what nothing reads is no output.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]], %[[B:.+]], %[[C:.+]] = caffe.Slice %x {slice_point = [1, 3]}
// CHECK-NEXT:    caffe.Silence %[[B]]
// CHECK-NEXT:    func.return %[[A]], %[[C]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2x4x3xf32>) -> (tensor<2x1x3xf32>, tensor<2x1x3xf32>) {
  %a, %b, %c = core.split %x axis 1 sizes [1, 2, 1]
    : (tensor<2x4x3xf32>) -> (tensor<2x1x3xf32>, tensor<2x2x3xf32>, tensor<2x1x3xf32>)
  func.return %a, %c : tensor<2x1x3xf32>, tensor<2x1x3xf32>
}

// -----

// A result that a layer reads, or another result, is copied, for outputs are blobs that nothing
// reads; an input that nothing reads is silenced.
// CHECK-LABEL: func.func @main
// CHECK-DAG:     caffe.Silence %z
// CHECK-DAG:     %[[T:.+]] = caffe.TanH %x
// CHECK:         %[[C:.+]] = caffe.Power %[[T]] attributes
// CHECK:         %[[S:.+]] = caffe.Sigmoid %[[T]]
// CHECK-DAG:     %[[D:.+]] = caffe.Power %[[S]] attributes {core.name = "sigmoid/copy"}
// CHECK-DAG:     %[[E:.+]] = caffe.Power %[[S]] attributes {core.name = "sigmoid/copy_2"}
// CHECK:         func.return %[[C]], %[[D]], %[[E]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2xf32>, %z : tensor<2xf32>)
    -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %t = core.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  %s = core.sigmoid %t : (tensor<2xf32>) -> tensor<2xf32>
  func.return %t, %s, %s : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// By what broadcasts: numbers are a Power, channels a Scale with its bias, what covers neither is
// repeated.
// CHECK-LABEL: func.func @main
// CHECK:         caffe.Power %x {scale = 2.0, shift = 3.0}
// CHECK:         caffe.Scale {{.+}} blobs({{.+}}) {bias_term = true}
// CHECK:         caffe.Flatten %g
// CHECK:         caffe.Scale {{.+}} {axis = 0}
// CHECK:         caffe.Reshape %r
// CHECK:         caffe.Bias
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x2x3xf32>, %g : tensor<1x2x1x1xf32>, %r : tensor<1x1x2x3xf32>)
    -> tensor<1x2x2x3xf32> {
  %two = core.constant dense<2.0> : tensor<f32>
  %three = core.constant dense<3.0> : tensor<f32>
  %s = core.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>
  %t = core.constant dense<[[[3.0]], [[4.0]]]> : tensor<2x1x1xf32>
  %a = core.mul %x, %two : (tensor<1x2x2x3xf32>, tensor<f32>) -> tensor<1x2x2x3xf32>
  %b = core.add %a, %three : (tensor<1x2x2x3xf32>, tensor<f32>) -> tensor<1x2x2x3xf32>
  %c = core.mul %b, %s : (tensor<1x2x2x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %d = core.add %c, %t : (tensor<1x2x2x3xf32>, tensor<2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %e = core.mul %d, %g : (tensor<1x2x2x3xf32>, tensor<1x2x1x1xf32>) -> tensor<1x2x2x3xf32>
  %f = core.add %e, %r : (tensor<1x2x2x3xf32>, tensor<1x1x2x3xf32>) -> tensor<1x2x2x3xf32>
  func.return %f : tensor<1x2x2x3xf32>
}

// -----

// A slope of its own for each channel is a PReLU, one for all is a ReLU.
// CHECK-LABEL: func.func @main
// CHECK:         caffe.ReLU %x {negative_slope = 0.5}
// CHECK:         caffe.PReLU
// CHECK-NOT:     caffe
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  %zero = core.constant dense<0.0> : tensor<f32>
  %half = core.constant dense<0.5> : tensor<f32>
  %s = core.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %a = core.compare lt %x, %zero : (tensor<1x2x3xf32>, tensor<f32>) -> tensor<1x2x3xi1>
  %b = core.mul %x, %half : (tensor<1x2x3xf32>, tensor<f32>) -> tensor<1x2x3xf32>
  %c = core.select %a, %b, %x
    : (tensor<1x2x3xi1>, tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  %d = core.compare lt %c, %zero : (tensor<1x2x3xf32>, tensor<f32>) -> tensor<1x2x3xi1>
  %e = core.mul %c, %s : (tensor<1x2x3xf32>, tensor<2x1xf32>) -> tensor<1x2x3xf32>
  %f = core.select %d, %e, %c
    : (tensor<1x2x3xi1>, tensor<1x2x3xf32>, tensor<1x2x3xf32>) -> tensor<1x2x3xf32>
  func.return %f : tensor<1x2x3xf32>
}

// -----

// Without Permute, the channels are sliced off one by one. The phase brings the order of the other
// op to the end.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]], %[[B:.+]] = caffe.Slice %x {axis = 3, slice_point = [1]}
// CHECK:         %[[C:.+]] = caffe.Reshape %[[A]] {shape = {dim = [0, 1, 2, 3]}}
// CHECK:         %[[D:.+]] = caffe.Reshape %[[B]] {shape = {dim = [0, 1, 2, 3]}}
// CHECK:         %[[E:.+]] = caffe.Concat %[[C]], %[[D]]
// CHECK:         caffe.TanH %[[E]]
// PHASE-LABEL: func.func @main
// PHASE:         caffe.TanH %x
// PHASE:         caffe.Slice
func.func @main(%x : tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32> {
  %t = core.transpose %x [0, 3, 1, 2] : (tensor<1x2x3x2xf32>) -> tensor<1x2x2x3xf32>
  %y = core.tanh %t : (tensor<1x2x2x3xf32>) -> tensor<1x2x2x3xf32>
  func.return %y : tensor<1x2x2x3xf32>
}

// -----

// No layer multiplies two blobs as matrices: all terms are one blob, whose channels are added.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[R:.+]] = caffe.Reshape %y {shape = {dim = [0, 1, 15, 1]}}
// CHECK:         %[[T:.+]] = caffe.Convolution %[[R]] {{.+}} num_output = 2} attributes {core.name = "product/tile"}
// CHECK-NEXT:    %[[U:.+]] = caffe.Reshape %[[T]] {shape = {dim = [0, 0, 3, 5]}}
// CHECK-NEXT:    %[[P:.+]] = caffe.Scale %[[U]], %x {axis = 0} attributes {core.name = "product/terms"}
// CHECK-NEXT:    %[[C:.+]] = caffe.Reshape %[[P]] {shape = {dim = [8, 3, 5, 1]}}
// CHECK-NEXT:    %[[W:.+]] = core.constant dense<{{.+}}> : tensor<1x3x1x1xf32>
// CHECK-NEXT:    %[[S:.+]] = caffe.Convolution %[[C]] blobs(%[[W]]) {{.+}} attributes {core.name = "product"}
// CHECK-NEXT:    %[[Z:.+]] = caffe.Reshape %[[S]] {shape = {dim = [4, 2, 5]}}
// CHECK-NEXT:    func.return %[[Z]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<4x2x3xf32>, %y : tensor<4x3x5xf32>) -> tensor<4x2x5xf32> {
  %z = core.matmul %x, %y : (tensor<4x2x3xf32>, tensor<4x3x5xf32>) -> tensor<4x2x5xf32>
    loc("product")
  func.return %z : tensor<4x2x5xf32>
}

// -----

// What is transposed for the product is read as it is: the terms are added along the last dimension.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     caffe.{{Slice|Permute}}
// CHECK:         %[[T:.+]] = caffe.Convolution %{{.+}} num_output = 90}
// CHECK-NEXT:    %[[U:.+]] = caffe.Reshape %[[T]] {shape = {dim = [1, 70, 90, 80]}}
// CHECK-NEXT:    %[[P:.+]] = caffe.Scale %[[U]], %y {axis = 2}
// CHECK-NEXT:    %[[F:.+]] = caffe.Reshape %[[P]] {shape = {dim = [6300, 80]}}
// CHECK:         caffe.InnerProduct %[[F]] blobs(%{{.+}}) {bias_term = false, num_output = 1}
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<70x80xf32>, %y : tensor<90x80xf32>) -> tensor<70x90xf32> {
  %t = core.transpose %y [1, 0] : (tensor<90x80xf32>) -> tensor<80x90xf32>
  %z = core.matmul %x, %t : (tensor<70x80xf32>, tensor<80x90xf32>) -> tensor<70x90xf32>
  func.return %z : tensor<70x90xf32>
}

// -----

// A constant on the left is the kernels of a convolution.
// CHECK-LABEL: func.func @main
// CHECK:         %[[R:.+]] = caffe.Reshape %x {shape = {dim = [1, 2, 5, 1]}}
// CHECK:         caffe.Convolution %[[R]] blobs(%{{.+}}) {bias_term = false, kernel_size = [1], num_output = 3}
// CHECK-NOT:     caffe.{{Tile|Scale}}
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2x5xf32>) -> tensor<3x5xf32> {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %y = core.matmul %w, %x : (tensor<3x2xf32>, tensor<2x5xf32>) -> tensor<3x5xf32>
  func.return %y : tensor<3x5xf32>
}
