// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tf1,dce | filecheck %s

// Sizes that are computed from a shape, in i32, stay expressions: nothing is bound at run time.
// CHECK-LABEL: func.func @merged
// CHECK-NOT:   bind_symbols
// CHECK:       core.reshape %x [b * t, c floordiv 2, 2]
func.func @merged(%x : tensor<?x?x?xf32, #core.tensor<dims = [b, t, c]>>) -> tensor<*xf32> {
  %s = tf1.Shape %x {T = #tf1.dtype<float>} : (tensor<?x?x?xf32, #core.tensor<dims = [b, t, c]>>) -> tensor<*xi32>
  %0 = core.constant dense<[0]> : tensor<1xi32>
  %2 = core.constant dense<[2]> : tensor<1xi32>
  %3 = core.constant dense<[3]> : tensor<1xi32>
  %1 = core.constant dense<[1]> : tensor<1xi32>
  %two = core.constant dense<2> : tensor<i32>
  %rest = core.constant dense<-1> : tensor<i32>
  %bt = tf1.StridedSlice %s, %0, %2, %1 {T = #tf1.dtype<int32>, Index = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xi32>
  %n = tf1.Prod %bt, %0 {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<1xi32>) -> tensor<*xi32>
  %c = tf1.StridedSlice %s, %2, %3, %1 {T = #tf1.dtype<int32>, Index = #tf1.dtype<int32>, shrink_axis_mask = 1 : i64} : (tensor<*xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xi32>
  %h = tf1.FloorDiv %c, %two {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %d = tf1.Pack %n, %h, %two {N = 3 : i64, T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<*xi32>, tensor<i32>) -> tensor<*xi32>
  %y = tf1.Reshape %x, %d {T = #tf1.dtype<float>} : (tensor<?x?x?xf32, #core.tensor<dims = [b, t, c]>>, tensor<*xi32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// One element at a place that data decides is gathered, from what was packed.
// CHECK-LABEL: func.func @element
// CHECK-NEXT:  [[R:%.+]] = core.gather %x, %t axis 1 : (tensor<2x5x3xf32>, tensor<i32>) -> tensor<2x3xf32>
// CHECK-NEXT:  func.return [[R]]
func.func @element(%x : tensor<2x5x3xf32>, %t : tensor<i32>) -> tensor<*xf32> {
  %zero = core.constant dense<0> : tensor<i32>
  %ones = core.constant dense<[1, 1]> : tensor<2xi32>
  %b = tf1.Pack %zero, %t {N = 2 : i64, T = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> tensor<*xi32>
  %y = tf1.StridedSlice %x, %b, %b, %ones {T = #tf1.dtype<float>, Index = #tf1.dtype<int32>, begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64} : (tensor<2x5x3xf32>, tensor<*xi32>, tensor<*xi32>, tensor<2xi32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A range that data decides: only its begin is bound, and it may count from the end.
// CHECK-LABEL: func.func @range
// CHECK-NEXT:  core.bind_symbols %t ["u0"] : tensor<i32>
// CHECK-NEXT:  core.slice %x
func.func @range(%x : tensor<7xf32>, %t : tensor<i32>) -> tensor<*xf32> {
  %end = core.constant dense<[0]> : tensor<1xi32>
  %one = core.constant dense<[1]> : tensor<1xi32>
  %b = tf1.Pack %t {N = 1 : i64, T = #tf1.dtype<int32>} : (tensor<i32>) -> tensor<*xi32>
  %y = tf1.StridedSlice %x, %b, %end, %one {T = #tf1.dtype<float>, Index = #tf1.dtype<int32>, end_mask = 1 : i64} : (tensor<7xf32>, tensor<*xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// The last element of a dimension that is not known, and a size that a shape gives.
// CHECK-LABEL: func.func @last
// CHECK:       core.slice %x [0, t - 1] [b, 1]
// CHECK:       core.slice %x [0, 1] [b, t - 1]
func.func @last(%x : tensor<?x?xf32, #core.tensor<dims = [b, t]>>) -> (tensor<*xf32>, tensor<*xf32>) {
  %b = core.constant dense<[0, -1]> : tensor<2xi32>
  %ones = core.constant dense<[1, 1]> : tensor<2xi32>
  %y = tf1.StridedSlice %x, %b, %b, %ones {T = #tf1.dtype<float>, Index = #tf1.dtype<int32>, begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64} : (tensor<?x?xf32, #core.tensor<dims = [b, t]>>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<*xf32>
  %s = tf1.Shape %x {T = #tf1.dtype<float>} : (tensor<?x?xf32, #core.tensor<dims = [b, t]>>) -> tensor<*xi32>
  %less = core.constant dense<[0, 1]> : tensor<2xi32>
  %n = tf1.Sub %s, %less {T = #tf1.dtype<int32>} : (tensor<*xi32>, tensor<2xi32>) -> tensor<*xi32>
  %z = tf1.Slice %x, %less, %n {T = #tf1.dtype<float>, Index = #tf1.dtype<int32>} : (tensor<?x?xf32, #core.tensor<dims = [b, t]>>, tensor<2xi32>, tensor<*xi32>) -> tensor<*xf32>
  func.return %y, %z : tensor<*xf32>, tensor<*xf32>
}

// -----

// TensorFlow has no kernels for NCHW on the CPU: blocks of channels before the image.
// CHECK-LABEL: func.func @channels_first
// CHECK:       core.reshape %x [1, 2, 2, 3, 4, 5]
// CHECK:       core.transpose {{.*}} [0, 3, 4, 1, 5, 2]
// CHECK:       -> tensor<1x3x8x10xf32>
// CHECK:       core.reshape {{.*}} [1, 3, 4, 2, 5, 2]
// CHECK:       core.transpose {{.*}} [0, 3, 5, 1, 2, 4]
func.func @channels_first(%x : tensor<1x12x4x5xf32>) -> tensor<*xf32> {
  %y = tf1.DepthToSpace %x {T = #tf1.dtype<float>, block_size = 2 : i64, data_format = "NCHW"} : (tensor<1x12x4x5xf32>) -> tensor<*xf32>
  %z = tf1.SpaceToDepth %y {T = #tf1.dtype<float>, block_size = 2 : i64, data_format = "NCHW"} : (tensor<*xf32>) -> tensor<*xf32>
  func.return %z : tensor<*xf32>
}

// -----

// `k` was an attribute; the places are i32.
// CHECK-LABEL: func.func @best
// CHECK:       core.top_k %x [2]
// CHECK:       core.cast {{.*}} -> tensor<3x2xi32>
func.func @best(%x : tensor<3x5xf32>) -> (tensor<*xf32>, tensor<*xi32>) {
  %v, %i = tf1.TopK %x {T = #tf1.dtype<float>, k = 2 : i64} : (tensor<3x5xf32>) -> (tensor<*xf32>, tensor<*xi32>)
  func.return %v, %i : tensor<*xf32>, tensor<*xi32>
}
