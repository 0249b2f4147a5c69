// RUN: opt-tool %s --pass-pipeline=convert-to-caffe --split-input-file | filecheck %s
// RUN: opt-tool %s --compile-to=caffe --split-input-file --check-each | filecheck %s --check-prefix=PHASE

// The first of equal elements is what Pooling finds. Places are floats, also as other integers.
// CHECK-LABEL: func.func @main
// CHECK-SAME:      %x: tensor<3x100xf32>) -> tensor<3xf32>
// CHECK-NEXT:    %[[C:.+]] = caffe.Reshape %x {shape = {dim = [0, 1, 100, 1]}}
// CHECK-NEXT:    %[[M:.+]], %[[P:.+]] = caffe.Pooling %[[C]] {global_pooling = true, pool = "MAX"}
// CHECK-NEXT:    caffe.Silence %[[M]]
// CHECK-NEXT:    %[[R:.+]] = caffe.ReLU %[[P]] attributes {core.name = "place"}
// CHECK-NEXT:    %[[Y:.+]] = caffe.Reshape %[[R]] {shape = {dim = [0]}}
// CHECK-NEXT:    func.return %[[Y]] : tensor<3xf32>
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<3x100xf32>) -> tensor<3xi32> {
  %i = core.arg_reduce max %x axis 1 : (tensor<3x100xf32>) -> tensor<3xi64> loc("place")
  %y = core.cast %i to i32 : (tensor<3xi64>) -> tensor<3xi32>
  func.return %y : tensor<3xi32>
}

// -----

// The last one is what ArgMax finds.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[Y:.+]] = caffe.ArgMax %x {axis = 1}
// CHECK-NEXT:    func.return %[[Y]] : tensor<3x1xf32>
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<3x100xf32>) -> tensor<3x1xi64> {
  %y = core.arg_reduce max %x axis 1 {keep_dims = true, last_index = true}
    : (tensor<3x100xf32>) -> tensor<3x1xi64>
  func.return %y : tensor<3x1xi64>
}

// -----

// With something behind the axis, the first of equal elements is the last one in reverse.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[N:.+]] = caffe.Power %x {scale = -1.0}
// CHECK-NEXT:    %[[A:.+]], %[[B:.+]], %[[C:.+]] = caffe.Slice %[[N]] {axis = 1, slice_point = [1, 2]}
// CHECK-NEXT:    %[[R:.+]] = caffe.Concat %[[C]], %[[B]], %[[A]]
// CHECK-NEXT:    %[[L:.+]] = caffe.ArgMax %[[R]] {axis = 1}
// CHECK-NEXT:    %[[P:.+]] = caffe.Power %[[L]] {scale = -1.0, shift = 2.0}
// CHECK-NEXT:    caffe.Reshape %[[P]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x3x4x4xf32>) -> tensor<1x4x4xi64> {
  %y = core.arg_reduce min %x axis 1 : (tensor<1x3x4x4xf32>) -> tensor<1x4x4xi64>
  func.return %y : tensor<1x4x4xi64>
}

// -----

// NaN never wins, which is what Pooling has as well.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[C:.+]] = caffe.Reshape %x
// CHECK-NEXT:    %{{.+}}, %[[P:.+]] = caffe.Pooling %[[C]]
// CHECK:         caffe.ReLU %[[P]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<3x5xf32>) -> tensor<3xi64> {
  %never = core.constant #core.blob<"0x000080FF"> : tensor<f32>
  %c = core.compare eq %x, %x : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xi1>
  %s = core.select %c, %x, %never
    : (tensor<3x5xi1>, tensor<3x5xf32>, tensor<f32>) -> tensor<3x5xf32>
  %y = core.arg_reduce max %s axis 1 : (tensor<3x5xf32>) -> tensor<3xi64>
  func.return %y : tensor<3xi64>
}

// -----

// Only what is needed of a TopK has a layer.
// CHECK-LABEL: func.func @main
// CHECK:         caffe.Concat
// CHECK-NEXT:    %[[P:.+]] = caffe.ArgMax {{.+}} {axis = 1, top_k = 2}
// CHECK-NEXT:    %[[Y:.+]] = caffe.Power %[[P]] {scale = -1.0, shift = 3.0}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2x4xf32>) -> tensor<2x2xi64> {
  %v, %i = core.top_k %x [2] axis 1 : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  func.return %i : tensor<2x2xi64>
}

// -----

// Rows at the places of an input, which are counted from the end where they are negative.
// CHECK-LABEL: func.func @main
// CHECK-SAME:      %i: tensor<2xf32> {core.name = "ids"}
// CHECK-NEXT:    %[[I:.+]] = caffe.Reshape %i
// CHECK-NEXT:    %[[T:.+]] = caffe.Threshold %[[I]] {threshold = -0.5}
// CHECK-NEXT:    %[[E:.+]] = caffe.Eltwise %[[I]], %[[T]] {coeff = [1.0, -7.0]}
// CHECK-NEXT:    %[[P:.+]] = caffe.Power %[[E]] {shift = 7.0}
// CHECK:         caffe.Embed %[[P]] {{.+}} {bias_term = false, input_dim = 7, num_output = 3}
// PHASE-LABEL: func.func @main
func.func @main(%i : tensor<2xi32> {core.name = "ids"}) -> tensor<2x1x3xf32> {
  %t = core.constant dense<1.0> : tensor<7x3xf32>
  %r = core.reshape %i [2, 1] : (tensor<2xi32>) -> tensor<2x1xi32>
  %y = core.gather %t, %r axis 0 : (tensor<7x3xf32>, tensor<2x1xi32>) -> tensor<2x1x3xf32>
  func.return %y : tensor<2x1x3xf32>
}

// -----

// Places that are not negative are those of Embed.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     caffe.Threshold
// CHECK:         caffe.Embed %i
// CHECK:         %[[P:.+]] = caffe.ReLU
// CHECK-NEXT:    %[[I:.+]] = caffe.Reshape %[[P]]
// CHECK-NOT:     caffe.Threshold
// CHECK:         caffe.Embed %[[I]]
// PHASE-LABEL: func.func @main
func.func @main(%i : tensor<2xui8>, %x : tensor<1x7xf32>) -> (tensor<2x3xf32>, tensor<1x3xf32>) {
  %t = core.constant dense<1.0> : tensor<7x3xf32>
  %a = core.gather %t, %i axis 0 : (tensor<7x3xf32>, tensor<2xui8>) -> tensor<2x3xf32>
  %p = core.arg_reduce max %x axis 1 : (tensor<1x7xf32>) -> tensor<1xi64>
  %b = core.gather %t, %p axis 0 : (tensor<7x3xf32>, tensor<1xi64>) -> tensor<1x3xf32>
  func.return %a, %b : tensor<2x3xf32>, tensor<1x3xf32>
}

// -----

// An image of bytes may arrive as floats, for nothing else is made of it.
// CHECK-LABEL: func.func @main
// CHECK-SAME:      %x: tensor<2xf32>
// CHECK-NEXT:    caffe.TanH %x
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2xui8>) -> tensor<2xf32> {
  %f = core.cast %x to f32 : (tensor<2xui8>) -> tensor<2xf32>
  %y = core.tanh %f : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y : tensor<2xf32>
}

// -----

// A constant of whole numbers is one of floats.
// CHECK-LABEL: func.func @main
// CHECK:         %[[C:.+]] = core.constant dense<[3.0, -4.0]> : tensor<2xf32>
// CHECK-NEXT:    %[[P:.+]] = caffe.Parameter blobs(%[[C]])
// CHECK-NEXT:    func.return %{{.+}}, %[[P]] : tensor<2xf32>, tensor<2xf32>
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi64>) {
  %c = core.constant dense<[3, -4]> : tensor<2xi64>
  %y = core.tanh %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %y, %c : tensor<2xf32>, tensor<2xi64>
}
