// RUN: opt-tool %s --pass-pipeline=fuse-grouped-conv,fold --split-input-file | filecheck %s

// Weights and biases in the order of the parts.
// CHECK-LABEL: @split
// CHECK-NEXT:    %[[W:.*]] = core.constant dense<[{{\[\[}}1.0, 2.0]], {{\[\[}}3.0, 4.0]], {{\[\[}}5.0, 6.0]]]>
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[7.0, 8.0, 9.0]>
// CHECK-NEXT:    %[[Y:.*]] = core.conv %x, %[[W]], %[[B]] strides [1] dilations [1] pads [1] [0] groups 3
// CHECK-NEXT:    func.return %[[Y]]
func.func @split(%x : tensor<1x3x4xf32>) -> tensor<1x3x4xf32> {
  %u = core.constant dense<[[[1.0, 2.0]]]> : tensor<1x1x2xf32>
  %v = core.constant dense<[[[3.0, 4.0]]]> : tensor<1x1x2xf32>
  %w = core.constant dense<[[[5.0, 6.0]]]> : tensor<1x1x2xf32>
  %p = core.constant dense<[7.0]> : tensor<1xf32>
  %q = core.constant dense<[8.0]> : tensor<1xf32>
  %r = core.constant dense<[9.0]> : tensor<1xf32>
  %0, %1, %2 = core.split %x axis 1 sizes [1, 1, 1] : (tensor<1x3x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %3 = core.conv %0, %u, %p strides [1] dilations [1] pads [1] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x2xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  %4 = core.conv %1, %v, %q strides [1] dilations [1] pads [1] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x2xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  %5 = core.conv %2, %w, %r strides [1] dilations [1] pads [1] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x2xf32>, tensor<1xf32>) -> tensor<1x1x4xf32>
  %6 = core.concat %3, %4, %5 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x3x4xf32>
  func.return %6 : tensor<1x3x4xf32>
}

// -----

// Slices that are all of the channels; each convolution has two groups already, and a maximum.
// CHECK-LABEL: @groups
// CHECK:         %[[Y:.*]] = core.conv %x, %{{.*}} groups 4 : (tensor<?x4x?xf32, {{.*}}>, tensor<4x1x2xf32>)
// CHECK-NEXT:    %[[M:.*]] = core.max %[[Y]], %{{.*}}
// CHECK-NEXT:    func.return %[[M]]
func.func @groups(%x : tensor<?x4x?xf32, #core.tensor<dims = [n, 4, h]>>) -> tensor<?x4x?xf32, #core.tensor<dims = [n, 4, h - 1]>> {
  %v = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %w = core.constant dense<[[[5.0, 6.0]], [[7.0, 8.0]]]> : tensor<2x1x2xf32>
  %c = core.constant dense<0.5> : tensor<f32>
  %d = core.constant dense<0.5> : tensor<1x1x1xf32>
  %0 = core.slice %x [0, 0, 0] [n, 2, h] [1, 1, 1] : (tensor<?x4x?xf32, #core.tensor<dims = [n, 4, h]>>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>
  %1 = core.slice %x [0, 2, 0] [n, 2, h] [1, 1, 1] : (tensor<?x4x?xf32, #core.tensor<dims = [n, 4, h]>>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>
  %2 = core.conv %0, %v strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>, tensor<2x1x2xf32>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 2 : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h]>>, tensor<2x1x2xf32>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>
  %4 = core.max %2, %c : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>, tensor<f32>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>
  %5 = core.max %3, %d : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>, tensor<1x1x1xf32>) -> tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>
  %6 = core.concat %4, %5 axis 1 : (tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>, tensor<?x2x?xf32, #core.tensor<dims = [n, 2, h - 1]>>) -> tensor<?x4x?xf32, #core.tensor<dims = [n, 4, h - 1]>>
  func.return %6 : tensor<?x4x?xf32, #core.tensor<dims = [n, 4, h - 1]>>
}

// -----

// One arm has a bias, each its own slope below zero, which a graph with two uses computes, and its own
// normalization; scalar and vector constants meet.
// CHECK-LABEL: @own_parameters
// CHECK:         %[[B:.*]] = core.constant dense<[7.0, 8.0, -0.0, -0.0]> : tensor<4xf32>
// CHECK:         %[[Y:.*]] = core.conv %x, %{{.*}}, %[[B]] {{.*}} groups 2
// CHECK-NEXT:    %[[C:.*]] = core.compare lt %[[Y]], %{{.*}}
// CHECK-NEXT:    %[[S:.*]] = core.constant dense<{{\[\[\[}}0.5], [0.25], [0.125], [0.125]]]> : tensor<1x4x1xf32>
// CHECK-NEXT:    %[[P:.*]] = core.mul %[[Y]], %[[S]]
// CHECK-NEXT:    %[[R:.*]] = core.select %[[C]], %[[P]], %[[Y]]
// CHECK:         %[[V:.*]] = core.constant dense<[1.0, 2.0, 4.0, 8.0]> : tensor<4xf32>
// CHECK:         %[[N:.*]] = core.batch_norm %[[R]], %{{.*}}, %[[V]], %{{.*}}, %[[V]] axis 1
// CHECK-NEXT:    func.return %[[N]]
func.func @own_parameters(%x : tensor<1x2x4xf32>) -> tensor<1x4x4xf32> {
  %v = core.constant dense<[[[1.0]], [[2.0]]]> : tensor<2x1x1xf32>
  %w = core.constant dense<[[[3.0]], [[-4.0]]]> : tensor<2x1x1xf32>
  %b = core.constant dense<[7.0, 8.0]> : tensor<2xf32>
  %z = core.constant dense<0.0> : tensor<f32>
  %s = core.constant dense<[[0.5], [0.25]]> : tensor<2x1xf32>
  %t = core.constant dense<0.125> : tensor<f32>
  %one = core.constant dense<[1.0, 1.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %n = core.constant dense<[4.0, 8.0]> : tensor<2xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %v, %b strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<2x1x1xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<2x1x1xf32>) -> tensor<1x2x4xf32>
  %4 = core.compare lt %2, %z : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xi1>
  %5 = core.mul %2, %s : (tensor<1x2x4xf32>, tensor<2x1xf32>) -> tensor<1x2x4xf32>
  %6 = core.select %4, %5, %2 : (tensor<1x2x4xi1>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %7 = core.batch_norm %6, %one, %m, %m, %m axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  %8 = core.compare lt %3, %z : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xi1>
  %9 = core.mul %3, %t : (tensor<1x2x4xf32>, tensor<f32>) -> tensor<1x2x4xf32>
  %10 = core.select %8, %9, %3 : (tensor<1x2x4xi1>, tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
  %11 = core.batch_norm %10, %one, %n, %m, %n axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32>
  %12 = core.concat %7, %11 axis 1 : (tensor<1x2x4xf32>, tensor<1x2x4xf32>) -> tensor<1x4x4xf32>
  func.return %12 : tensor<1x4x4xf32>
}

// -----

// A transposed convolution of one channel gives two.
// CHECK-LABEL: @transposed
// CHECK:         %[[Y:.*]] = core.conv_transpose %x, %{{.*}} groups 2 : (tensor<1x2x3xf32>, tensor<2x2x2xf32>) -> tensor<1x4x6xf32>
// CHECK-NEXT:    func.return %[[Y]]
func.func @transposed(%x : tensor<1x2x3xf32>) -> tensor<1x4x6xf32> {
  %v = core.constant dense<[[[1.0, 2.0], [3.0, 4.0]]]> : tensor<1x2x2xf32>
  %w = core.constant dense<[[[5.0, 6.0], [7.0, 8.0]]]> : tensor<1x2x2xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x3xf32>) -> (tensor<1x1x3xf32>, tensor<1x1x3xf32>)
  %2 = core.conv_transpose %0, %v strides [2] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x1x3xf32>, tensor<1x2x2xf32>) -> tensor<1x2x6xf32>
  %3 = core.conv_transpose %1, %w strides [2] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x1x3xf32>, tensor<1x2x2xf32>) -> tensor<1x2x6xf32>
  %4 = core.concat %2, %3 axis 1 : (tensor<1x2x6xf32>, tensor<1x2x6xf32>) -> tensor<1x4x6xf32>
  func.return %4 : tensor<1x4x6xf32>
}

// -----

// Another function; the arms read each other.
// CHECK-LABEL: @other_function
// CHECK-COUNT-2: core.conv {{.*}} groups 1
// CHECK-LABEL: @crossed
// CHECK-COUNT-2: core.conv {{.*}} groups 1
func.func @other_function(%x : tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.abs %2 : (tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  %5 = core.neg %3 : (tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  %6 = core.concat %4, %5 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %6 : tensor<1x2x4xf32>
}
func.func @crossed(%x : tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.sub %2, %3 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  %5 = core.sub %3, %2 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  %6 = core.concat %4, %5 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %6 : tensor<1x2x4xf32>
}

// -----

// The parts change places; they have different windows; different columns are added; one of them is
// needed elsewhere; a channel is left out.
// CHECK-LABEL: @reordered
// CHECK-COUNT-2: core.conv {{.*}} groups 1
// CHECK-LABEL: @other_window
// CHECK-COUNT-2: core.conv {{.*}} groups 1
// CHECK-LABEL: @other_columns
// CHECK-COUNT-2: core.conv {{.*}} groups 1
// CHECK-LABEL: @needed_too
// CHECK-COUNT-2: core.conv {{.*}} groups 1
// CHECK-LABEL: @not_all
// CHECK-COUNT-2: core.conv {{.*}} groups 1
func.func @reordered(%x : tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.concat %3, %2 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %4 : tensor<1x2x4xf32>
}
func.func @other_window(%x : tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[5.0, 4.0]]]> : tensor<1x1x2xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [1] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [1] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x2xf32>) -> tensor<1x1x4xf32>
  %4 = core.concat %2, %3 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %4 : tensor<1x2x4xf32>
}
func.func @other_columns(%x : tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %c = core.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %d = core.constant dense<0.5> : tensor<f32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.add %2, %c : (tensor<1x1x4xf32>, tensor<4xf32>) -> tensor<1x1x4xf32>
  %5 = core.add %3, %d : (tensor<1x1x4xf32>, tensor<f32>) -> tensor<1x1x4xf32>
  %6 = core.concat %4, %5 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %6 : tensor<1x2x4xf32>
}
func.func @needed_too(%x : tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x2x4xf32>) {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.concat %2, %3 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %2, %4 : tensor<1x1x4xf32>, tensor<1x2x4xf32>
}
func.func @not_all(%x : tensor<1x3x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %0, %1, %n = core.split %x axis 1 sizes [1, 1, 1] : (tensor<1x3x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.concat %2, %3 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %4 : tensor<1x2x4xf32>
}

// -----

// Columns are no channels; the parts are of two tensors; computed weights would be joined each time.
// CHECK-LABEL: @columns
// CHECK-COUNT-2: core.conv {{.*}} groups 1
// CHECK-LABEL: @other_tensor
// CHECK-COUNT-2: core.conv {{.*}} groups 1
// CHECK-LABEL: @computed_weight
// CHECK-COUNT-2: core.conv {{.*}} groups 1
func.func @columns(%x : tensor<1x1x4xf32>) -> tensor<1x2x2xf32> {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %0, %1 = core.split %x axis 2 sizes [2, 2] : (tensor<1x1x4xf32>) -> (tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x2xf32>, tensor<1x1x1xf32>) -> tensor<1x1x2xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x2xf32>, tensor<1x1x1xf32>) -> tensor<1x1x2xf32>
  %4 = core.concat %2, %3 axis 1 : (tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> tensor<1x2x2xf32>
  func.return %4 : tensor<1x2x2xf32>
}
func.func @other_tensor(%x : tensor<1x2x4xf32>, %y : tensor<1x2x4xf32>) -> tensor<1x2x4xf32> {
  %w = core.constant dense<[[[5.0]]]> : tensor<1x1x1xf32>
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %a, %b = core.split %y axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %b, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.concat %2, %3 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %4 : tensor<1x2x4xf32>
}
func.func @computed_weight(%x : tensor<1x2x4xf32>, %w : tensor<1x1x1xf32>) -> tensor<1x2x4xf32> {
  %0, %1 = core.split %x axis 1 sizes [1, 1] : (tensor<1x2x4xf32>) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>)
  %2 = core.conv %0, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %3 = core.conv %1, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x4xf32>, tensor<1x1x1xf32>) -> tensor<1x1x4xf32>
  %4 = core.concat %2, %3 axis 1 : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x2x4xf32>
  func.return %4 : tensor<1x2x4xf32>
}

// -----

// The sums are of both; then the arms differ, and take their parts. One needs nothing else.
// CHECK-LABEL: @different_maps
// CHECK:         %[[Y:.*]] = core.conv %x, %{{.*}} groups 2 : {{.*}}tensor<32x128x2xf32>
// CHECK:         %[[S:.*]] = core.add %[[Y]], %{{.*}}tensor<1x32x1xf32>
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = core.split %[[S]] axis 1 sizes [16, 16]
// CHECK-NEXT:    %[[C:.*]] = core.tanh %[[A]]
// CHECK-NEXT:    %[[D:.*]] = core.exp %[[B]]
// CHECK-NEXT:    core.concat %[[C]], %[[D]] axis 1
// CHECK-LABEL: @map_of_one
// CHECK:         %[[Y:.*]] = core.conv %x, %{{.*}} groups 2
// CHECK:         %[[A:.*]], %[[B:.*]] = core.split %{{.*}} axis 1 sizes [16, 16]
// CHECK-NEXT:    %[[C:.*]] = core.tanh %[[A]]
// CHECK-NEXT:    core.concat %[[C]], %[[B]] axis 1
func.func @different_maps(%x : tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>> {
  %u = core.constant dense<1.0> : tensor<16x128x2xf32>
  %v = core.constant dense<2.0> : tensor<16x128x2xf32>
  %b = core.constant dense<3.0> : tensor<16x1xf32>
  %c = core.constant dense<4.0> : tensor<16x1xf32>
  %p, %q = core.split %x axis 1 sizes [128, 128] : (tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>)
  %0 = core.conv %p, %u strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<16x128x2xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %1 = core.add %0, %b : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<16x1xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %2 = core.tanh %1 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %3 = core.conv %q, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<16x128x2xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %4 = core.add %3, %c : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<16x1xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %5 = core.exp %4 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %y = core.concat %2, %5 axis 1 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>>
  func.return %y : tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>>
}
func.func @map_of_one(%x : tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>> {
  %u = core.constant dense<1.0> : tensor<16x128x2xf32>
  %v = core.constant dense<2.0> : tensor<16x128x2xf32>
  %b = core.constant dense<3.0> : tensor<16x1xf32>
  %c = core.constant dense<4.0> : tensor<16x1xf32>
  %p, %q = core.split %x axis 1 sizes [128, 128] : (tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>)
  %0 = core.conv %p, %u strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<16x128x2xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %1 = core.add %0, %b : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<16x1xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %2 = core.tanh %1 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %3 = core.conv %q, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<16x128x2xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %4 = core.add %3, %c : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<16x1xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>

  %y = core.concat %2, %4 axis 1 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>>
  func.return %y : tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>>
}

// -----

// Few channels are computed where they are read; sums that somebody else reads stay.
// CHECK-LABEL: @few_channels
// CHECK:         core.split %x
// CHECK-LABEL: @read_elsewhere
// CHECK:         core.split %x
func.func @few_channels(%x : tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> tensor<?x30x6xf32, #core.tensor<dims = [n, 30, 6]>> {
  %u = core.constant dense<1.0> : tensor<15x128x2xf32>
  %v = core.constant dense<2.0> : tensor<15x128x2xf32>
  %b = core.constant dense<3.0> : tensor<15x1xf32>
  %c = core.constant dense<4.0> : tensor<15x1xf32>
  %p, %q = core.split %x axis 1 sizes [128, 128] : (tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>)
  %0 = core.conv %p, %u strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<15x128x2xf32>) -> tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>
  %1 = core.add %0, %b : (tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>, tensor<15x1xf32>) -> tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>
  %2 = core.tanh %1 : (tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>) -> tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>
  %3 = core.conv %q, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<15x128x2xf32>) -> tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>
  %4 = core.add %3, %c : (tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>, tensor<15x1xf32>) -> tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>
  %5 = core.exp %4 : (tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>) -> tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>
  %y = core.concat %2, %5 axis 1 : (tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>, tensor<?x15x6xf32, #core.tensor<dims = [n, 15, 6]>>) -> tensor<?x30x6xf32, #core.tensor<dims = [n, 30, 6]>>
  func.return %y : tensor<?x30x6xf32, #core.tensor<dims = [n, 30, 6]>>
}
func.func @read_elsewhere(%x : tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> (tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>>, tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) {
  %u = core.constant dense<1.0> : tensor<16x128x2xf32>
  %v = core.constant dense<2.0> : tensor<16x128x2xf32>
  %b = core.constant dense<3.0> : tensor<16x1xf32>
  %c = core.constant dense<4.0> : tensor<16x1xf32>
  %p, %q = core.split %x axis 1 sizes [128, 128] : (tensor<?x256x7xf32, #core.tensor<dims = [n, 256, 7]>>) -> (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>)
  %0 = core.conv %p, %u strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<16x128x2xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %1 = core.add %0, %b : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<16x1xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %2 = core.tanh %1 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %3 = core.conv %q, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x128x7xf32, #core.tensor<dims = [n, 128, 7]>>, tensor<16x128x2xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %4 = core.add %3, %c : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<16x1xf32>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %5 = core.exp %4 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
  %y = core.concat %2, %5 axis 1 : (tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>, tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>) -> tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>>
  func.return %y, %1 : tensor<?x32x6xf32, #core.tensor<dims = [n, 32, 6]>>, tensor<?x16x6xf32, #core.tensor<dims = [n, 16, 6]>>
}
