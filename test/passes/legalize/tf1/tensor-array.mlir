// RUN: opt-tool %s --split-input-file --pass-pipeline=legalize-tf1 | filecheck %s

// The flow of an array that a loop writes is the tensor of its elements, zero before the loop.
// CHECK-LABEL: func.func @written
// CHECK:       [[Z:%.+]] = core.constant dense<{{.*}}> : tensor<4x2xf32>
// CHECK:       [[R:%.+]] = core.loop cond %c : tensor<i1> carry [[Z]] : tensor<4x2xf32> -> tensor<4x2xf32>
// CHECK:         core.scatter_nd {{.*}} : (tensor<4x2xf32>, tensor<1x1xi64>, tensor<1x2xf32>) -> tensor<4x2xf32>
// CHECK:       func.return [[R]]
func.func @written(%x : tensor<2xf32>, %k : tensor<i32>, %c : tensor<i1>) -> tensor<*xf32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x04000000">} : () -> tensor<i32>
  %all = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000010000000200000003000000">} : () -> tensor<4xi32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %r = core.loop cond %c : tensor<i1> carry %f : tensor<*xf32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %g : tensor<*xf32>):
    %w = tf1.TensorArrayWriteV3 %h, %k, %x, %g {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<2xf32>, tensor<*xf32>) -> tensor<*xf32>
    core.yield %c, %w : tensor<i1>, tensor<*xf32>
  }
  %y = tf1.TensorArrayGatherV3 %h, %all, %r {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<4xi32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Other indices than all of them in order are gathered.
// CHECK-LABEL: func.func @reordered
// CHECK:       core.gather %x, {{.*}} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
func.func @reordered(%x : tensor<2x3xf32>) -> tensor<*xf32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %in = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x0000000001000000">} : () -> tensor<2xi32>
  %out = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x0100000000000000">} : () -> tensor<2xi32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %s = tf1.TensorArrayScatterV3 %h, %in, %x, %f {T = #tf1.dtype<float>} : (!tf1.resource, tensor<2xi32>, tensor<2x3xf32>, tensor<*xf32>) -> tensor<*xf32>
  %y = tf1.TensorArrayGatherV3 %h, %out, %s {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<2xi32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// An array of dynamic size has room for the highest index that was written.
// CHECK-LABEL: func.func @grown
// CHECK:       core.loop cond %c : tensor<i1> carry {{.*}} : tensor<0x2xf32> -> tensor<?x2xf32, #core.tensor<dims = [[[R:u[0-9]+]], 2]>>
// CHECK:         core.pad
// CHECK:         core.scatter_nd
func.func @grown(%x : tensor<2xf32>, %k : tensor<i32>, %c : tensor<i1>) -> tensor<*xi32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>, dynamic_size = true} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %r = core.loop cond %c : tensor<i1> carry %f : tensor<*xf32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %g : tensor<*xf32>):
    %w = tf1.TensorArrayWriteV3 %h, %k, %x, %g {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<2xf32>, tensor<*xf32>) -> tensor<*xf32>
    core.yield %c, %w : tensor<i1>, tensor<*xf32>
  }
  %y = tf1.TensorArraySizeV3 %h, %r : (!tf1.resource, tensor<*xf32>) -> tensor<*xi32>
  func.return %y : tensor<*xi32>
}

// -----

// The branch that does not write the array gives as many zeros.
// CHECK-LABEL: func.func @one_branch
// CHECK:       core.if %c : tensor<i1> -> tensor<1x2xf32> {
// CHECK:         core.yield %{{.*}} : tensor<1x2xf32>
// CHECK:       } else {
// CHECK:         core.yield %{{.*}} : tensor<1x2xf32>
func.func @one_branch(%x : tensor<2xf32>, %k : tensor<i32>, %c : tensor<i1>) -> tensor<*xf32> {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x01000000">} : () -> tensor<i32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %r = core.if %c : tensor<i1> -> tensor<*xf32> {
    %w = tf1.TensorArrayWriteV3 %h, %k, %x, %f {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<2xf32>, tensor<*xf32>) -> tensor<*xf32>
    core.yield %w : tensor<*xf32>
  } else {
    core.yield %f : tensor<*xf32>
  }
  %y = tf1.TensorArrayReadV3 %h, %k, %r {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<*xf32>) -> tensor<*xf32>
  func.return %y : tensor<*xf32>
}

// -----

// Elements of different lengths are padded; their lengths are carried beside them.
// CHECK-LABEL: func.func @uneven
// CHECK:       [[E:%.+]], [[L:%.+]] = core.loop cond %c : tensor<i1> carry {{.*}} : tensor<2x{{.*}}>, tensor<2xi64> -> tensor<2x?xf32, #core.tensor<dims = [2, [[R:u[0-9]+]]]>>, tensor<2xi64>
// CHECK:         core.scatter_nd {{.*}} -> tensor<2x?xf32
// CHECK:         core.scatter_nd {{.*}} : (tensor<2xi64>, tensor<1x1xi64>, tensor<1xi64>) -> tensor<2xi64>
// CHECK:       core.nonzero
// CHECK:       func.return {{.*}}, [[L]]
func.func @uneven(%x : tensor<2xf32>, %v : tensor<3xf32>, %j : tensor<i32>, %k : tensor<i32>, %c : tensor<i1>) -> (tensor<*xf32>, tensor<*xi64>) {
  %n = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x02000000">} : () -> tensor<i32>
  %h, %f = tf1.TensorArrayV3 %n {dtype = #tf1.dtype<float>} : (tensor<i32>) -> (!tf1.resource, tensor<*xf32>)
  %r = core.loop cond %c : tensor<i1> carry %f : tensor<*xf32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %g : tensor<*xf32>):
    %w = tf1.TensorArrayWriteV3 %h, %j, %x, %g {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<2xf32>, tensor<*xf32>) -> tensor<*xf32>
    %u = tf1.TensorArrayWriteV3 %h, %k, %v, %w {T = #tf1.dtype<float>} : (!tf1.resource, tensor<i32>, tensor<3xf32>, tensor<*xf32>) -> tensor<*xf32>
    core.yield %c, %u : tensor<i1>, tensor<*xf32>
  }
  %y, %l = tf1.TensorArrayConcatV3 %h, %r {dtype = #tf1.dtype<float>} : (!tf1.resource, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi64>)
  func.return %y, %l : tensor<*xf32>, tensor<*xi64>
}
