// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @reduce
// CHECK-NEXT:    %a = core.reduce sum %x [1] {keep_dims = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x1xf32, #core.tensor<dims = [n, 1]>>
// CHECK-NEXT:    %b = core.reduce max %x [0, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<f32>
// CHECK-NEXT:    %c = core.reduce prod %x [] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %d = core.arg_reduce min %x axis 0 {last_index = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<4xi64>
// CHECK-NEXT:    %e = core.softmax %x axis 1 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %g = core.softmax %x axis 1 {log = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %f = core.cumulative sum %x axis 0 {reverse = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @reduce(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) {
  %a = core.reduce sum %x [1] {keep_dims = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x1xf32, #core.tensor<dims = [n, 1]>>
  %b = core.reduce max %x [0, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<f32>
  %c = core.reduce prod %x [] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %d = core.arg_reduce min %x axis 0 {last_index = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<4xi64>
  %e = core.softmax %x axis 1 : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %g = core.softmax %x axis 1 {log = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %f = core.cumulative sum %x axis 0 {reverse = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  func.return
}

// CHECK-LABEL: func.func @pool
// CHECK-NEXT:    %y = core.pool average %x kernel [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] overhang [1, 0] {count_pads = true} : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x5x?xf32, #core.tensor<dims = [n, 4, 5, (w + 1) floordiv 2]>>
// CHECK-NEXT:    %z = core.pool max %x kernel [9, w] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x1x1xf32, #core.tensor<dims = [n, 4, 1, 1]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @pool(%x : tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) {
  %y = core.pool average %x kernel [3, 3] strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] overhang [1, 0] {count_pads = true} : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x5x?xf32, #core.tensor<dims = [n, 4, 5, (w + 1) floordiv 2]>>
  %z = core.pool max %x kernel [9, w] strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x1x1xf32, #core.tensor<dims = [n, 4, 1, 1]>>
  func.return
}
