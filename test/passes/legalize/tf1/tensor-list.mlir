// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tf1 | filecheck %s

// The handle of a list that a loop writes is the tensor of its elements, at their real indices.
// CHECK-LABEL: func.func @written
// CHECK:       [[Z:%.+]] = core.constant dense<{{.*}}> : tensor<4x2xf32>
// CHECK:       [[R:%.+]] = core.loop cond %c : tensor<i1> carry [[Z]] : tensor<4x2xf32> -> tensor<4x2xf32>
// CHECK:         core.scatter_nd {{.*}} : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
// CHECK:       func.return [[R]]
func.func @written(%x : tensor<2xf32>, %k : tensor<i32>, %c : tensor<i1>) -> tensor<*xf32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x04000000">} : () -> tensor<i32>
  %any = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0xFFFFFFFF">} : () -> tensor<i32>
  %l = tf1.TensorListReserve %any, %n {element_dtype = #tf1.dtype<float>, shape_type = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> !tf1.variant
  %r = core.loop cond %c : tensor<i1> carry %l : !tf1.variant -> !tf1.variant {
  ^bb0(%i : tensor<i64>, %g : !tf1.variant):
    %w = tf1.TensorListSetItem %g, %k, %x {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>, tensor<2xf32>) -> !tf1.variant
    core.yield %c, %w : tensor<i1>, !tf1.variant
  }
  %y = tf1.TensorListStack %r, %any {element_dtype = #tf1.dtype<float>, num_elements = 4 : i64} : (!tf1.variant, tensor<i32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// A handle is a version of the list: the write through one does not show through the other.
// CHECK-LABEL: func.func @versions
// CHECK:       [[W:%.+]] = core.scatter_nd none %x,
// CHECK:       func.return [[W]], %x
func.func @versions(%x : tensor<3x2xf32>, %v : tensor<2xf32>, %k : tensor<i32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %any = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0xFFFFFFFF">} : () -> tensor<i32>
  %l = tf1.TensorListFromTensor %x, %any {element_dtype = #tf1.dtype<float>, shape_type = #tf1.dtype<int32>} : (tensor<3x2xf32>, tensor<i32>) -> !tf1.variant
  %w = tf1.TensorListSetItem %l, %k, %v {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>, tensor<2xf32>) -> !tf1.variant
  %a = tf1.TensorListStack %w, %any {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>) -> tensor<*xf32>
  %b = tf1.TensorListStack %l, %any {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>) -> tensor<*xf32>
  func.return %a, %b : tensor<*xf32>, tensor<*xf32>
}

// -----

// What is appended makes the list longer; the branch that appends nothing keeps it empty.
// CHECK-LABEL: func.func @appended
// CHECK:       [[R:%.+]] = core.if %c : tensor<i1> -> tensor<?x2xf32, #core.tensor<dims = [[[N:u[0-9]+]], 2]>> {
// CHECK:         core.reshape %x [1, 2]
// CHECK:         core.yield {{.*}} : tensor<1x2xf32>
// CHECK:       } else {
// CHECK:         core.yield {{.*}} : tensor<0x2xf32>
// CHECK:       core.from_dims {{\[}}[[N]]]
func.func @appended(%x : tensor<2xf32>, %c : tensor<i1>) -> tensor<*xi32> {
  %any = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0xFFFFFFFF">} : () -> tensor<i32>
  %l = tf1.EmptyTensorList %any, %any {element_dtype = #tf1.dtype<float>, shape_type = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> !tf1.variant
  %r = core.if %c : tensor<i1> -> !tf1.variant {
    %w = tf1.TensorListPushBack %l, %x {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<2xf32>) -> !tf1.variant
    core.yield %w : !tf1.variant
  } else {
    core.yield %l : !tf1.variant
  }
  %y = tf1.TensorListLength %r : (!tf1.variant) -> tensor<*xi32>
  func.return %y : tensor<*xi32>
}

// -----

// An array of the second version: the constant that is its first flow is none of its elements.
// CHECK-LABEL: func.func @second_version
// CHECK:       core.loop cond %c : tensor<i1> carry {{.*}} : tensor<4x2xf32> -> tensor<4x2xf32>
func.func @second_version(%x : tensor<2xf32>, %k : tensor<i32>, %c : tensor<i1>) -> tensor<*xf32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x04000000">} : () -> tensor<i32>
  %h = tf1.TensorArrayV2 %n {dtype = #tf1.dtype<float>} : (tensor<i32>) -> tensor<*x!core.string>
  %f = tf1.Const {dtype = #tf1.dtype<float>, value = #core.blob<"0x00000000">} : () -> tensor<f32>
  %r = core.loop cond %c : tensor<i1> carry %f : tensor<f32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %g : tensor<*xf32>):
    %w = tf1.TensorArrayWriteV2 %h, %k, %x, %g {T = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<i32>, tensor<2xf32>, tensor<*xf32>) -> tensor<*xf32>
    core.yield %c, %w : tensor<i1>, tensor<*xf32>
  }
  %y = tf1.TensorArrayReadV2 %h, %k, %r {dtype = #tf1.dtype<float>} : (tensor<*x!core.string>, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}
