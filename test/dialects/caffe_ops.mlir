// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// Fields print as plain values in the order of their names; blobs follow the bottoms.
// CHECK-LABEL: func.func @fields
// CHECK-NEXT:    %{{.*}} = caffe.Convolution %x, %x blobs(%w, %b) {bias_filler = {type = "constant", value = 0.5}, engine = "CAFFE", force_nd_im2col = false, kernel_size = [3, 1], num_output = 4} : (tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<4x2x3x1xf32>, tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
// CHECK-NEXT:    %{{.*}} = caffe.Eltwise %{{.*}}, %{{.*}} {coeff = [0.1, -1.0], operation = "SUM"} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = caffe.BatchNorm %{{.*}} blobs(%b, %b, %b) {eps = 1.0e-05} attributes {note = "kept"} : (tensor<*xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = caffe.Threshold %{{.*}} {threshold = "-inf"} : (tensor<*xf32>) -> tensor<*xf32>
// CHECK-NEXT:    %{{.*}} = caffe.Reshape %{{.*}} {axis = -1, shape = {dim = [0, -1]}} : (tensor<*xf32>) -> tensor<*xf32>
func.func @fields(%x: tensor<1x2x5x5xf32>, %w: tensor<4x2x3x1xf32>, %b: tensor<4xf32>) -> tensor<*xf32> {
  %c, %d = caffe.Convolution %x, %x blobs(%w, %b) {num_output = 4, kernel_size = [3, 1], force_nd_im2col = false, engine = "CAFFE", bias_filler = {type = "constant", value = 0.5}} : (tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<4x2x3x1xf32>, tensor<4xf32>) -> (tensor<*xf32>, tensor<*xf32>)
  %e = caffe.Eltwise %c, %d {operation = "SUM", coeff = [0.1, -1.0]} : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
  %n = caffe.BatchNorm %e blobs(%b, %b, %b) {eps = 1.0e-5} attributes {note = "kept"} : (tensor<*xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<*xf32>
  %t = caffe.Threshold %n {threshold = "-inf"} : (tensor<*xf32>) -> tensor<*xf32>
  %r = caffe.Reshape %t {axis = -1, shape = {dim = [0, -1]}} : (tensor<*xf32>) -> tensor<*xf32>
  func.return %r : tensor<*xf32>
}

// Layers without bottoms, and without tops; lists of messages.
// CHECK-LABEL: func.func @ends
// CHECK-NEXT:    %{{.*}}, %{{.*}} = caffe.DummyData {data_filler = [{value = 1.0}, {}], shape = [{dim = [2]}]} : () -> (tensor<*xf32>, tensor<*xf32>)
// CHECK-NEXT:    %{{.*}} = caffe.Parameter blobs(%w) {shape = {dim = [3]}} : (tensor<3xf32>) -> tensor<*xf32>
// CHECK-NEXT:    caffe.Silence %{{.*}}, %{{.*}} : (tensor<*xf32>, tensor<*xf32>) -> ()
func.func @ends(%w: tensor<3xf32>) {
  %a, %b = caffe.DummyData {data_filler = [{value = 1.0}, {}], shape = [{dim = [2]}]} : () -> (tensor<*xf32>, tensor<*xf32>)
  %p = caffe.Parameter blobs(%w) {shape = {dim = [3]}} : (tensor<3xf32>) -> tensor<*xf32>
  caffe.Silence %a, %p : (tensor<*xf32>, tensor<*xf32>) -> ()
  func.return
}
