// RUN: opt-tool %s --split-input-file --pass-pipeline=infer-shapes | filecheck %s

// The handle of a list has no shape, and the flow of an array of integers is not one of them; what
// is read has the type of the elements.
// CHECK-LABEL: func.func @lists
// CHECK:         tf1.TensorListReserve {{.*}} -> !tf1.variant
// CHECK:         core.loop cond %c : tensor<i1> carry {{.*}} : !tf1.variant -> !tf1.variant {
// CHECK:           ^{{.*}}: tensor<i64>, {{.*}}: !tf1.variant):
// CHECK:           tf1.TensorListSetItem {{.*}} -> !tf1.variant
// CHECK:         tf1.TensorListStack {{.*}} -> tensor<4x2xf32>
func.func @lists(%x : tensor<2xf32>, %k : tensor<i32>, %c : tensor<i1>) -> tensor<*xf32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x04000000">} : () -> tensor<i32>
  %any = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0xFFFFFFFF">} : () -> tensor<i32>
  %l = tf1.TensorListReserve %any, %n {element_dtype = #tf1.dtype<float>, shape_type = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> !tf1.variant
  %r = core.loop cond %c : tensor<i1> carry %l : !tf1.variant -> !tf1.variant {
  ^bb0(%i : tensor<i64>, %g : !tf1.variant):
    %w = tf1.TensorListSetItem %g, %k, %x {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>, tensor<2xf32>) -> !tf1.variant
    core.yield %c, %w : tensor<i1>, !tf1.variant
  }
  %y = tf1.TensorListStack %r, %any {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// CHECK-LABEL: func.func @array
// CHECK:         tf1.TensorArrayWriteV3 {{.*}} -> tensor<*xf32>
// CHECK:         tf1.TensorArrayReadV3 {{.*}} -> tensor<3xi32>
func.func @array(%x : tensor<3xi32>, %k : tensor<i32>) -> tensor<*xi32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x04000000">} : () -> tensor<i32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<int32>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %w = tf1.TensorArrayWriteV3 %h, %k, %x, %f {T = #tf1.dtype<int32>} : (!tf1.resource, tensor<i32>, tensor<3xi32>, tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.TensorArrayReadV3 %h, %k, %w {dtype = #tf1.dtype<int32>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xi32>
  func.return %y : tensor<*xi32>
}
