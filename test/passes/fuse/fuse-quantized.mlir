// RUN: opt-tool %s -p fuse-quantized --split-input-file | filecheck %s

// The bytes are multiplied, and their scales; the bias stays what it is.
// CHECK-LABEL: @convolution
// CHECK:         %[[X:.+]] = core.constant dense<128> : tensor<ui8>
// CHECK-NEXT:    %[[W:.+]] = core.constant {{.*}} : tensor<2x1x1xi8>
// CHECK-NEXT:    %[[SCALE:.+]] = core.reshape %scale [2, 1]
// CHECK-NEXT:    %[[SUM:.+]] = core.conv %x, %w, %[[X]], %[[W]] strides [1] dilations [2] pads [1] [0] groups 1 in i32
// CHECK:         %[[FLOAT:.+]] = core.cast %[[SUM]] to f32
// CHECK-NEXT:    %[[BOTH:.+]] = core.mul %{{.*}}, %[[SCALE]]
// CHECK-NEXT:    %[[SCALED:.+]] = core.mul %[[FLOAT]], %[[BOTH]]
// CHECK:         %[[BIAS:.+]] = core.reshape %b [2, 1]
// CHECK-NEXT:    core.add %[[SCALED]], %[[BIAS]]
func.func @convolution(%x: tensor<1x3x9xui8>, %b: tensor<2xf32>) -> tensor<1x2x8xf32> {
  %w = core.constant dense<2> : tensor<2x3x2xi8>
  %0 = core.cast %x to f32 : (tensor<1x3x9xui8>) -> tensor<1x3x9xf32>
  %1 = core.constant dense<128.0> : tensor<f32>
  %2 = core.sub %0, %1 : (tensor<1x3x9xf32>, tensor<f32>) -> tensor<1x3x9xf32>
  %3 = core.constant dense<0.5> : tensor<f32>
  %4 = core.mul %2, %3 : (tensor<1x3x9xf32>, tensor<f32>) -> tensor<1x3x9xf32>
  %5 = core.cast %w to f32 : (tensor<2x3x2xi8>) -> tensor<2x3x2xf32>
  %zero = core.constant dense<[1, 2]> : tensor<2xi8>
  %6 = core.reshape %zero [2, 1, 1] : (tensor<2xi8>) -> tensor<2x1x1xi8>
  %7 = core.cast %6 to f32 : (tensor<2x1x1xi8>) -> tensor<2x1x1xf32>
  %8 = core.sub %5, %7 : (tensor<2x3x2xf32>, tensor<2x1x1xf32>) -> tensor<2x3x2xf32>
  %scale = core.constant dense<[[[0.25]], [[0.75]]]> : tensor<2x1x1xf32>
  %9 = core.mul %8, %scale : (tensor<2x3x2xf32>, tensor<2x1x1xf32>) -> tensor<2x3x2xf32>
  %y = core.conv %4, %9, %b strides [1] dilations [2] pads [1] [0] groups 1 : (tensor<1x3x9xf32>, tensor<2x3x2xf32>, tensor<2xf32>) -> tensor<1x2x8xf32>
  func.return %y : tensor<1x2x8xf32>
}

// -----

// Rows of the transposed weights have scales; without zero points there are none.
// CHECK-LABEL: @product
// CHECK:         %[[W:.+]] = core.transpose %w [1, 0] : (tensor<4x3xi8>) -> tensor<3x4xi8>
// CHECK:         %[[SUM:.+]] = core.matmul %x, %[[W]] in i32
// CHECK:         %[[FLOAT:.+]] = core.cast %[[SUM]] to f32
// CHECK-NEXT:    %[[BOTH:.+]] = core.mul {{.*}} -> tensor<1x4xf32>
// CHECK-NEXT:    core.mul %[[FLOAT]], %[[BOTH]]
func.func @product(%x: tensor<5x3xi8>) -> tensor<5x4xf32> {
  %w = core.constant dense<2> : tensor<4x3xi8>
  %0 = core.cast %x to f32 : (tensor<5x3xi8>) -> tensor<5x3xf32>
  %1 = core.constant dense<0.5> : tensor<f32>
  %2 = core.mul %0, %1 : (tensor<5x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %3 = core.cast %w to f32 : (tensor<4x3xi8>) -> tensor<4x3xf32>
  %4 = core.constant dense<[[1.0], [2.0], [3.0], [4.0]]> : tensor<4x1xf32>
  %5 = core.mul %3, %4 : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<4x3xf32>
  %6 = core.transpose %5 [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  %y = core.matmul %2, %6 : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  func.return %y : tensor<5x4xf32>
}

// -----

// The weights know how many terms sums have, where the size of the input is open.
// CHECK-LABEL: @open_product
// CHECK:         core.matmul %x, %w in i32
func.func @open_product(%x: tensor<?x?xi8, #core.tensor<dims = [m, k]>>) -> tensor<?x4xf32, #core.tensor<dims = [m, 4]>> {
  %w = core.constant dense<2> : tensor<3x4xi8>
  %0 = core.cast %x to f32 : (tensor<?x?xi8, #core.tensor<dims = [m, k]>>) -> tensor<?x?xf32, #core.tensor<dims = [m, k]>>
  %1 = core.constant dense<0.5> : tensor<f32>
  %2 = core.mul %0, %1 : (tensor<?x?xf32, #core.tensor<dims = [m, k]>>, tensor<f32>) -> tensor<?x?xf32, #core.tensor<dims = [m, k]>>
  %3 = core.cast %w to f32 : (tensor<3x4xi8>) -> tensor<3x4xf32>
  %4 = core.mul %3, %1 : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %y = core.matmul %2, %4 : (tensor<?x?xf32, #core.tensor<dims = [m, k]>>, tensor<3x4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [m, 4]>>
  func.return %y : tensor<?x4xf32, #core.tensor<dims = [m, 4]>>
}

// -----

// Scales that differ along the sums, a zero point that is no byte, and weights that are computed.
// CHECK-LABEL: @others
// CHECK-NOT:     in i32
func.func @others(%x: tensor<5x3xi8>, %v: tensor<3x4xi8>) -> (tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>) {
  %w = core.constant dense<2> : tensor<3x4xi8>
  %0 = core.cast %x to f32 : (tensor<5x3xi8>) -> tensor<5x3xf32>
  %half = core.constant dense<0.5> : tensor<f32>
  %1 = core.mul %0, %half : (tensor<5x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  %2 = core.cast %w to f32 : (tensor<3x4xi8>) -> tensor<3x4xf32>
  %rows = core.constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %3 = core.mul %2, %rows : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %a = core.matmul %1, %3 : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  %5 = core.sub %2, %half : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %6 = core.mul %5, %half : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %c = core.matmul %1, %6 : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  %7 = core.cast %v to f32 : (tensor<3x4xi8>) -> tensor<3x4xf32>
  %8 = core.mul %7, %half : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %d = core.matmul %1, %8 : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  func.return %a, %c, %d : tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>
}

// -----

// Steps as large as the kernel: each tap of a filter is a filter of one tap, with the scale and the
// bias of the filter; the results are interleaved.
// CHECK-LABEL: @transposed
// CHECK:         core.transpose %w [1, 2, 0] : (tensor<3x2x2xi8>) -> tensor<2x2x3xi8>
// CHECK-NEXT:    %[[W:.+]] = core.reshape %{{.+}} [4, 3, 1]
// CHECK:         %[[SUM:.+]] = core.conv %x, %[[W]] strides [1] dilations [1] pads [0] [0] groups 1 in i32 : (tensor<1x3x5xi8>, tensor<4x3x1xi8>) -> tensor<1x4x5xi32>
// CHECK:         core.broadcast %{{.+}} [2, 2]
// CHECK:         core.add %{{.+}}, %{{.+}} : (tensor<1x4x5xf32>, tensor<4x1xf32>) -> tensor<1x4x5xf32>
// CHECK-NEXT:    core.reshape %{{.+}} [1, 2, 2, 5]
// CHECK-NEXT:    core.transpose %{{.+}} [0, 1, 3, 2]
// CHECK-NEXT:    core.reshape %{{.+}} [1, 2, 10]
// CHECK-NOT:     in i32
// CHECK:         core.conv_transpose %{{.+}} strides [1]
// CHECK-NEXT:    core.conv_transpose %{{.+}} pads [1]
func.func @transposed(%x: tensor<1x3x5xi8>, %b: tensor<2xf32>) -> (tensor<1x2x10xf32>, tensor<1x2x6xf32>, tensor<1x2x9xf32>) {
  %w = core.constant dense<[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]> : tensor<3x2x2xi8>
  %0 = core.cast %x to f32 : (tensor<1x3x5xi8>) -> tensor<1x3x5xf32>
  %1 = core.constant dense<0.5> : tensor<f32>
  %2 = core.mul %0, %1 : (tensor<1x3x5xf32>, tensor<f32>) -> tensor<1x3x5xf32>
  %3 = core.cast %w to f32 : (tensor<3x2x2xi8>) -> tensor<3x2x2xf32>
  %scale = core.constant dense<[[[0.25], [0.75]]]> : tensor<1x2x1xf32>
  %4 = core.mul %3, %scale : (tensor<3x2x2xf32>, tensor<1x2x1xf32>) -> tensor<3x2x2xf32>
  %y = core.conv_transpose %2, %4, %b strides [2] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x3x5xf32>, tensor<3x2x2xf32>, tensor<2xf32>) -> tensor<1x2x10xf32>
  %z = core.conv_transpose %2, %4, %b strides [1] dilations [1] pads [0] [0] output_padding [0] groups 1 : (tensor<1x3x5xf32>, tensor<3x2x2xf32>, tensor<2xf32>) -> tensor<1x2x6xf32>
  %v = core.conv_transpose %2, %4, %b strides [2] dilations [1] pads [1] [0] output_padding [0] groups 1 : (tensor<1x3x5xf32>, tensor<3x2x2xf32>, tensor<2xf32>) -> tensor<1x2x9xf32>
  func.return %y, %z, %v : tensor<1x2x10xf32>, tensor<1x2x6xf32>, tensor<1x2x9xf32>
}
