// RUN: opt-tool %s --pass-pipeline=convert-to-caffe --split-input-file | filecheck %s
// RUN: opt-tool %s --compile-to=caffe --split-input-file --check-each | filecheck %s --check-prefix=PHASE

// The sum over the axis, and its copies, are convolutions with ones.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[X:.+]] = caffe.Reshape %x {shape = {dim = [0, 0, 0, 1]}}
// CHECK-NEXT:    %[[C:.+]] = caffe.Reshape %x {shape = {dim = [0, 1, 3, 4]}}
// CHECK-NEXT:    %[[P:.+]] = caffe.Pooling %[[C]] {kernel_h = 3, kernel_w = 1, pool = "MAX"}
// CHECK-NEXT:    %[[M:.+]] = caffe.Reshape %[[P]] {shape = {dim = [0, 0, 4, 1]}}
// CHECK-DAG:     %[[A:.+]] = core.constant dense<{{.+}}> : tensor<3x1x1x1xf32>
// CHECK:         %[[T:.+]] = caffe.Convolution %[[M]] blobs(%[[A]])
// CHECK-NEXT:    %[[D:.+]] = caffe.Eltwise %[[X]], %[[T]] {coeff = [1.0, -1.0]}
// CHECK-NEXT:    %[[E:.+]] = caffe.Exp %[[D]]
// CHECK:         %[[S:.+]] = caffe.Convolution %[[E]] {{.+}} num_output = 1}
// CHECK-NEXT:    %[[L:.+]] = caffe.Log %[[S]]
// CHECK:         %[[U:.+]] = caffe.Convolution %[[L]] {{.+}} num_output = 3}
// CHECK-NEXT:    %[[Z:.+]] = caffe.Eltwise %[[D]], %[[U]] {coeff = [1.0, -1.0]} attributes {core.name = "log"}
// CHECK-NEXT:    %[[Y:.+]] = caffe.Reshape %[[Z]] {shape = {dim = [0, 0, 0]}}
// CHECK-NEXT:    func.return %[[Y]]
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = core.softmax %x axis 1 {log = true} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("log")
  func.return %y : tensor<2x3x4xf32>
}

// -----

// The nearest case: no logarithm.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    caffe.Softmax %x {axis = 2}
// CHECK-NOT:     caffe
// PHASE-LABEL: func.func @main
func.func @main(%x : tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %y = core.softmax %x axis 2 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  func.return %y : tensor<2x3x4xf32>
}
