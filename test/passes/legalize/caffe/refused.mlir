// RUN: not opt-tool %s --pass-pipeline=legalize-caffe 2>&1 | filecheck %s

// All layers that cannot be converted are listed in one error; what follows from them is not.
// CHECK:      node 'loss' (SoftmaxWithLoss): found a layer that compares with labels, expected a net for deployment; choose blobs before it with --output, or remove it from the net
// CHECK-NEXT: node 'noise' (DummyData): found data from a filler of type 'gaussian', expected 'constant'; make the tops inputs by giving their shapes with --input-shape
// CHECK-NEXT: node 'large' (Pooling): found a plane of h by 4, expected numbers; give the shape of the input
// CHECK-NEXT: node 'wrong' (InnerProduct): found blob 0 of type tensor<2x3xf32>, expected the shape [2, 4]
// CHECK-NEXT: node 'unequal' (Eltwise): the bottoms have the shapes [2, 4], [2, 3], expected equal ones
// CHECK-NEXT: node 'base' (Log): found base 1, expected a base whose logarithm is not zero
// CHECK-NEXT: node 'negative' (Exp): found base -2.0, expected a positive number, or -1 for e
// CHECK-NEXT: node 'python' (Python): the Python layer m.C is not known
// CHECK-NEXT: node 'fourth' (DetectionOutput): a fourth bottom is not defined alike everywhere
// CHECK-NEXT: node 'interp' (Interp): found a plane of h by 4, expected numbers; give the shape of the input
// CHECK-NEXT: node 'padded' (Interp): found a padding, expected a crop: no positive pad
func.func @main(%x : tensor<2x4xf32>, %y : tensor<2x3xf32>, %l : tensor<2xf32>, %p : tensor<1x1x?x4xf32, #core.tensor<dims = [1, 1, h, 4]>>, %q : tensor<1x1x4x4xf32>) -> (tensor<*xf32>, tensor<*xf32>) {
  %a = caffe.SoftmaxWithLoss %x, %l {} : (tensor<2x4xf32>, tensor<2xf32>) -> tensor<*xf32> loc("loss")
  %b = caffe.ReLU %a {} : (tensor<*xf32>) -> tensor<*xf32> loc("behind")
  %c = caffe.DummyData {shape = [{dim = [2]}], data_filler = [{type = "gaussian"}]} : () -> tensor<*xf32> loc("noise")
  %d = caffe.Pooling %p {kernel_size = 2} : (tensor<1x1x?x4xf32, #core.tensor<dims = [1, 1, h, 4]>>) -> tensor<*xf32> loc("large")
  %e = caffe.InnerProduct %x blobs(%y) {num_output = 2, bias_term = false} : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<*xf32> loc("wrong")
  %f = caffe.Eltwise %x, %y {} : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<*xf32> loc("unequal")
  %g = caffe.Log %x {base = 1.0} : (tensor<2x4xf32>) -> tensor<*xf32> loc("base")
  %h = caffe.Exp %x {base = -2.0} : (tensor<2x4xf32>) -> tensor<*xf32> loc("negative")
  %i = caffe.Python %x {module = "m", layer = "C"} : (tensor<2x4xf32>) -> tensor<*xf32> loc("python")
  %j = caffe.DetectionOutput %x, %x, %x, %x {num_classes = 2} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<*xf32> loc("fourth")
  %k = caffe.Interp %p {zoom_factor = 2} : (tensor<1x1x?x4xf32, #core.tensor<dims = [1, 1, h, 4]>>) -> tensor<*xf32> loc("interp")
  %m = caffe.Interp %q {height = 3, width = 3, pad_beg = 1} : (tensor<1x1x4x4xf32>) -> tensor<*xf32> loc("padded")
  func.return %b, %c : tensor<*xf32>, tensor<*xf32>
}
