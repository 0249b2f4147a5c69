// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tf1 --verify-diagnostics | filecheck %s

// All that is wrong with lists, at once.
// CHECK:      node 'nested' (EmptyTensorList): found an output of type !tf1.variant, expected tensors; make what it holds outputs of their own
// CHECK-NEXT: node 'scalar' (TensorListFromTensor): found an output
// CHECK-NEXT: node 'batch' (TensorListPushBackBatch): found an output
// CHECK-NEXT: node 'popped' (TensorListPopBack): found an array that is read and never written, expected a write before it
// CHECK-NEXT: node 'nested' (EmptyTensorList): found elements of type variant, expected tensors
// CHECK-NEXT: node 'wrong' (TensorListSetItem): found an element of shape [2, 2] in an array of elements of shape [2], expected elements of one shape
// CHECK-NEXT: node 'scalar' (TensorListFromTensor): found 'tensor' of type tensor<f32>, expected 1 or more dimensions
// CHECK-NEXT: node 'batch' (TensorListPushBackBatch): no legalization for TensorListPushBackBatch
func.func @lists(%x : tensor<3x2xf32>, %m : tensor<2x2xf32>, %s : tensor<f32>, %k : tensor<i32>) -> (tensor<*xf32>, !tf1.variant, tensor<*xf32>, !tf1.variant, !tf1.variant) {
  %any = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0xFFFFFFFF">} : () -> tensor<i32>
  %l = tf1.EmptyTensorList %any, %any {element_dtype = #tf1.dtype<float>, shape_type = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> !tf1.variant
  %p, %q = tf1.TensorListPopBack %l, %any {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>) -> (!tf1.variant, tensor<*xf32>) loc("popped")
  %n = tf1.EmptyTensorList %any, %any {element_dtype = #tf1.dtype<variant>, shape_type = #tf1.dtype<int32>} : (tensor<i32>, tensor<i32>) -> !tf1.variant loc("nested")
  %rows = tf1.TensorListFromTensor %x, %any {element_dtype = #tf1.dtype<float>, shape_type = #tf1.dtype<int32>} : (tensor<3x2xf32>, tensor<i32>) -> !tf1.variant
  %w = tf1.TensorListSetItem %rows, %k, %m {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>, tensor<2x2xf32>) -> !tf1.variant loc("wrong")
  %y = tf1.TensorListStack %w, %any {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<i32>) -> tensor<*xf32>
  %z = tf1.TensorListFromTensor %s, %any {element_dtype = #tf1.dtype<float>, shape_type = #tf1.dtype<int32>} : (tensor<f32>, tensor<i32>) -> !tf1.variant loc("scalar")
  %b = tf1.TensorListPushBackBatch %rows, %x {element_dtype = #tf1.dtype<float>} : (!tf1.variant, tensor<3x2xf32>) -> !tf1.variant loc("batch")
  func.return %q, %n, %y, %z, %b : tensor<*xf32>, !tf1.variant, tensor<*xf32>, !tf1.variant, !tf1.variant
}
