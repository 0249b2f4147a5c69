// RUN: opt-tool %s --pass-pipeline=convert-to-caffe --split-input-file | filecheck %s
// RUN: opt-tool %s --compile-to=caffe --split-input-file --check-each | filecheck %s --check-prefix=PHASE

// A volume: its planes are pooled as more channels, then the first dimension as columns.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[P:.+]] = caffe.Reshape %x {shape = {dim = [0, 8, 3, 3]}}
// CHECK-NEXT:    %[[M:.+]] = caffe.Pooling %[[P]] {kernel_size = 2, pool = "MAX", stride = 2} attributes {core.name = "pool"} {{.+}} -> tensor<1x8x2x2xf32>
// CHECK-NEXT:    %[[C:.+]] = caffe.Reshape %[[M]] {shape = {dim = [0, 2, 4, 4]}}
// CHECK-NEXT:    %[[D:.+]] = caffe.Pooling %[[C]] {kernel_h = 2, kernel_w = 1, pool = "MAX", stride_h = 2, stride_w = 1} attributes {core.name = "pool/columns"} {{.+}} -> tensor<1x2x2x4xf32>
// CHECK-NEXT:    %[[Y:.+]] = caffe.Reshape %[[D]] {shape = {dim = [0, 0, 0, 2, 2]}}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x4x3x3xf32>) -> tensor<1x2x2x2x2xf32> {
  %y = core.pool max %x kernel [2, 2, 2] strides [2, 2, 2] dilations [1, 1, 1]
    pads [0, 0, 0] [0, 1, 1] overhang [0, 0, 0]
    : (tensor<1x2x4x3x3xf32>) -> tensor<1x2x2x2x2xf32> loc("pool")
  func.return %y : tensor<1x2x2x2x2xf32>
}

// -----

// Only planes are pooled here.
// CHECK-LABEL: func.func @main
// CHECK:         caffe.Pooling {{.+}} {global_pooling = true, pool = "MAX"}
// CHECK-NOT:     caffe.Pooling
// CHECK:         func.return
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x4x3x3xf32>) -> tensor<1x2x4x1x1xf32> {
  %y = core.pool max %x kernel [1, 3, 3] strides [1, 1, 1] dilations [1, 1, 1]
    pads [0, 0, 0] [0, 0, 0] overhang [0, 0, 0]
    : (tensor<1x2x4x3x3xf32>) -> tensor<1x2x4x1x1xf32>
  func.return %y : tensor<1x2x4x1x1xf32>
}

// -----

// What averages are divided by is the product of each dimension's: the padding of the first one,
// which Caffe counts, is corrected for its windows.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]] = caffe.Pooling {{.+}} {kernel_size = 2, pool = "AVE", stride = 2}
// CHECK-NEXT:    %[[C:.+]] = caffe.Reshape %[[A]] {shape = {dim = [0, 2, 3, 4]}}
// CHECK-NEXT:    %[[P:.+]] = caffe.Pooling %[[C]] {kernel_h = 3, kernel_w = 1, pad_h = 1, pad_w = 0, pool = "AVE"}
// CHECK-NEXT:    %[[F:.+]] = core.constant dense<[1.5, 1.0, 1.5]> : tensor<3xf32>
// CHECK-NEXT:    caffe.Scale %[[P]] blobs(%[[F]]) {axis = 2}
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x3x4x4xf32>) -> tensor<1x2x3x2x2xf32> {
  %y = core.pool average %x kernel [3, 2, 2] strides [1, 2, 2] dilations [1, 1, 1]
    pads [1, 0, 0] [1, 0, 0] overhang [0, 0, 0]
    : (tensor<1x2x3x4x4xf32>) -> tensor<1x2x3x2x2xf32>
  func.return %y : tensor<1x2x3x2x2xf32>
}

// -----

// One factor for all windows is a Power.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]] = caffe.Pooling %x {kernel_size = 2, pool = "AVE", stride = 2}
// CHECK-NEXT:    caffe.Power %[[A]] {scale = 4.0}
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32> {
  %y = core.pool sum %x kernel [2, 2] strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0]
    overhang [0, 0] : (tensor<1x2x4x4xf32>) -> tensor<1x2x2x2xf32>
  func.return %y : tensor<1x2x2x2xf32>
}

// -----

// Around the blob, its own rows in the order of the mode; what only the blob has is silenced.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]], %[[B:.+]], %[[C:.+]], %[[D:.+]], %[[E:.+]] = caffe.Slice %x {axis = 2, slice_point = [1, 2, 3, 4]}
// CHECK-DAG:     caffe.Silence %[[A]]
// CHECK-DAG:     caffe.Silence %[[E]]
// CHECK:         %[[Y:.+]] = caffe.Concat %[[C]], %[[B]], %x, %[[D]] {axis = 2} attributes {core.name = "pad/pad"}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x1x5x2xf32>) -> tensor<1x1x8x2xf32> {
  %y = core.pad reflect %x [0, 0, 2, 0] [0, 0, 1, 0]
    : (tensor<1x1x5x2xf32>) -> tensor<1x1x8x2xf32> loc("pad")
  func.return %y : tensor<1x1x8x2xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]], %{{.+}}, %[[C:.+]] = caffe.Slice %x {axis = 1, slice_point = [1, 4]}
// CHECK:         caffe.Concat %[[A]], %[[A]], %x, %[[C]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x5xf32>) -> tensor<1x8xf32> {
  %y = core.pad edge %x [0, 2] [0, 1] : (tensor<1x5xf32>) -> tensor<1x8xf32>
  func.return %y : tensor<1x8xf32>
}

// -----

// The last two elements follow each other: they stay together.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]], %{{.+}}, %[[C:.+]] = caffe.Slice %x {axis = 1, slice_point = [1, 3]}
// CHECK:         caffe.Concat %[[C]], %x, %[[A]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x5xf32>) -> tensor<1x8xf32> {
  %y = core.pad wrap %x [0, 2] [0, 1] : (tensor<1x5xf32>) -> tensor<1x8xf32>
  func.return %y : tensor<1x8xf32>
}

// -----

// A few elements in reverse, of more than a Slice takes apart: those alone are cut out.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]], %[[B:.+]], %{{.+}} = caffe.Slice %x {axis = 1, slice_point = [1, 2]}
// CHECK:         %[[L:.+]] = caffe.Concat %[[B]], %[[A]]
// CHECK:         %{{.+}}, %[[R:.+]] = caffe.Slice %x {axis = 1, slice_point = [99]}
// CHECK:         caffe.Concat %[[L]], %x, %[[R]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x100xf32>) -> tensor<1x103xf32> {
  %a = core.slice %x [0, 1] [1, 2] [1, -1] : (tensor<1x100xf32>) -> tensor<1x2xf32>
  %b = core.slice %x [0, 99] [1, 1] [1, -1] : (tensor<1x100xf32>) -> tensor<1x1xf32>
  %y = core.concat %a, %x, %b axis 1
    : (tensor<1x2xf32>, tensor<1x100xf32>, tensor<1x1xf32>) -> tensor<1x103xf32>
  func.return %y : tensor<1x103xf32>
}

// -----

// With a dilation of 2, every second element of a column is a row: there the windows have none.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[A:.+]] = caffe.Reshape %x {shape = {dim = [0, 0, 4, 12]}}
// CHECK-NEXT:    %[[P:.+]] = caffe.Pooling %[[A]] {kernel_h = 3, kernel_w = 1, pad_h = 1, pad_w = 0, pool = "MAX"} attributes {core.name = "pool"} {{.+}} -> tensor<1x2x4x12xf32>
// CHECK-NEXT:    %[[Y:.+]] = caffe.Reshape %[[P]] {shape = {dim = [0, 0, 8, 6]}}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x8x6xf32>) -> tensor<1x2x8x6xf32> {
  %y = core.pool max %x kernel [3, 1] strides [1, 1] dilations [2, 1] pads [2, 0] [2, 0]
    overhang [0, 0] {from_lowest = true} : (tensor<1x2x8x6xf32>) -> tensor<1x2x8x6xf32> loc("pool")
  func.return %y : tensor<1x2x8x6xf32>
}

// -----

// A window that begins with NaN is NaN: Eltwise keeps its second bottom unless the first is larger.
// CHECK-LABEL: func.func @main
// CHECK:         %{{.+}}, %[[B:.+]] = caffe.Slice %x {axis = 2, slice_point = [2]}
// CHECK:         %[[A:.+]], %{{.+}} = caffe.Slice %x {axis = 2, slice_point = [3]}
// CHECK:         caffe.Eltwise %[[B]], %[[A]] {operation = "MAX"}
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<1x2x5x6xf32>) -> tensor<1x2x3x6xf32> {
  %y = core.pool max %x kernel [2, 1] strides [1, 1] dilations [2, 1] pads [0, 0] [0, 0]
    overhang [0, 0] {keeps_first = true} : (tensor<1x2x5x6xf32>) -> tensor<1x2x3x6xf32>
  func.return %y : tensor<1x2x3x6xf32>
}
