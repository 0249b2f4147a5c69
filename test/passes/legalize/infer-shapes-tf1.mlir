// RUN: opt-tool %s --split-input-file --pass-pipeline=infer-shapes | filecheck %s

// An op of tf1 has the type of what it is legalized to, also at the head of a loop.
// CHECK-LABEL: func.func @loop
// CHECK-SAME:  -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
// CHECK:       core.loop cond %c : tensor<i1> carry %x : [[T:.*]] -> [[T]] {
// CHECK-NEXT:  ^bb0(%i: tensor<i64>, %a: tensor<?x3xf32, #core.tensor<dims = [n, 3]>>):
// CHECK-NEXT:    tf1.Relu %a {{.*}} -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
func.func @loop(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, %c : tensor<i1>) -> tensor<*xf32> {
  %r = core.loop cond %c : tensor<i1> carry %x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %a : tensor<*xf32>):
    %m = tf1.Relu %a {T = #tf1.dtype<float>} : (tensor<*xf32>) -> tensor<*xf32>
    core.yield %c, %m : tensor<i1>, tensor<*xf32>
  }
  func.return %r : tensor<*xf32>
}

// -----

// A size that a loop decides has no name outside of its IR; what is not legalized has no type.
// CHECK-LABEL: func.func @unknown
// CHECK:       core.loop {{.*}} -> tensor<*xf32>
// CHECK:       tf1.MatrixExponential %m {{.*}} -> tensor<*xf32>
// CHECK:       tf1.Neg %m {{.*}} -> tensor<2x2xf32>
func.func @unknown(%x : tensor<2x3xf32>, %m : tensor<2x2xf32>, %c : tensor<i1>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) {
  %axis = tf1.Const {dtype = #tf1.dtype<int32>, value = #core.blob<"0x00000000">} : () -> tensor<i32>
  %r = core.loop cond %c : tensor<i1> carry %x : tensor<2x3xf32> -> tensor<*xf32> {
  ^bb0(%i : tensor<i64>, %a : tensor<*xf32>):
    %g = tf1.ConcatV2 %a, %x, %axis {N = 2 : i64, T = #tf1.dtype<float>, Tidx = #tf1.dtype<int32>} : (tensor<*xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<*xf32>
    core.yield %c, %g : tensor<i1>, tensor<*xf32>
  }
  %i = tf1.MatrixExponential %m {T = #tf1.dtype<float>} : (tensor<2x2xf32>) -> tensor<*xf32>
  %n = tf1.Neg %m {T = #tf1.dtype<float>} : (tensor<2x2xf32>) -> tensor<*xf32>
  func.return %r, %i, %n : tensor<*xf32>, tensor<*xf32>, tensor<*xf32>
}
