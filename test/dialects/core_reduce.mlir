// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @reduce
// CHECK-NEXT:    %a = core.reduce %x {kind = "sum", axes = array<i64: 1>, keep_dims = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x1xf32, #core.tensor<dims = [n, 1]>>
// CHECK-NEXT:    %b = core.reduce %x {kind = "max", axes = array<i64: 0, 1>, keep_dims = false} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<f32>
// CHECK-NEXT:    %c = core.reduce %x {kind = "prod", axes = array<i64>, keep_dims = false} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %d = core.arg_reduce %x {kind = "min", axis = #builtin.int<0>, keep_dims = false, last_index = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<4xi64>
// CHECK-NEXT:    %e = core.softmax %x {axis = #builtin.int<1>} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %f = core.cumulative %x {kind = "sum", axis = #builtin.int<0>, exclusive = false, reverse = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @reduce(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) {
  %a = core.reduce %x {kind = "sum", axes = array<i64: 1>, keep_dims = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x1xf32, #core.tensor<dims = [n, 1]>>
  %b = core.reduce %x {kind = "max", axes = array<i64: 0, 1>, keep_dims = false} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<f32>
  %c = core.reduce %x {kind = "prod", axes = array<i64>, keep_dims = false} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %d = core.arg_reduce %x {kind = "min", axis = #builtin.int<0>, keep_dims = false, last_index = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<4xi64>
  %e = core.softmax %x {axis = #builtin.int<1>} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %f = core.cumulative %x {kind = "sum", axis = #builtin.int<0>, exclusive = false, reverse = true} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  func.return
}

// CHECK-LABEL: func.func @pool
// CHECK-NEXT:    %y = core.pool %x {kind = "average", kernel = #core.dims<[3, 3]>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = #core.dims<[1, 1]>, pads_end = #core.dims<[1, 1]>, overhang = #core.dims<[1, 0]>, count_pads = true} : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x5x?xf32, #core.tensor<dims = [n, 4, 5, (w + 1) floordiv 2]>>
// CHECK-NEXT:    %z = core.pool %x {kind = "max", kernel = #core.dims<[9, w]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = #core.dims<[0, 0]>, pads_end = #core.dims<[0, 0]>, overhang = #core.dims<[0, 0]>, count_pads = false} : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x1x1xf32, #core.tensor<dims = [n, 4, 1, 1]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @pool(%x : tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) {
  %y = core.pool %x {kind = "average", kernel = #core.dims<[3, 3]>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads_begin = #core.dims<[1, 1]>, pads_end = #core.dims<[1, 1]>, overhang = #core.dims<[1, 0]>, count_pads = true} : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x5x?xf32, #core.tensor<dims = [n, 4, 5, (w + 1) floordiv 2]>>
  %z = core.pool %x {kind = "max", kernel = #core.dims<[9, w]>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads_begin = #core.dims<[0, 0]>, pads_end = #core.dims<[0, 0]>, overhang = #core.dims<[0, 0]>, count_pads = false} : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>) -> tensor<?x4x1x1xf32, #core.tensor<dims = [n, 4, 1, 1]>>
  func.return
}
