// RUN: LOWERDECK_ROUNDTRIP
// RUN: LOWERDECK_GENERIC_ROUNDTRIP

// CHECK-LABEL: func.func @conv
// CHECK-NEXT:    %y = core.conv %x, %w, %b strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<?x6x5x?xf32, #core.tensor<dims = [n, 6, 5, (w + 1) floordiv 2]>>
// CHECK-NEXT:    %z = core.conv %x, %w strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, tensor<6x2x3x3xf32>) -> tensor<?x6x5x?xf32, #core.tensor<dims = [n, 6, 5, (w + 1) floordiv 2]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @conv(%x : tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, %w : tensor<6x2x3x3xf32>, %b : tensor<6xf32>) {
  %y = core.conv %x, %w, %b strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<?x6x5x?xf32, #core.tensor<dims = [n, 6, 5, (w + 1) floordiv 2]>>
  %z = core.conv %x, %w strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 2 : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, tensor<6x2x3x3xf32>) -> tensor<?x6x5x?xf32, #core.tensor<dims = [n, 6, 5, (w + 1) floordiv 2]>>
  func.return
}

// CHECK-LABEL: func.func @conv_transpose
// CHECK-NEXT:    %y = core.conv_transpose %x, %w, %b strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] output_padding [1, 0] groups 2 : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, tensor<4x3x3x3xf32>, tensor<6xf32>) -> tensor<?x6x18x?xf32, #core.tensor<dims = [n, 6, 18, w * 2 - 1]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @conv_transpose(%x : tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, %w : tensor<4x3x3x3xf32>, %b : tensor<6xf32>) {
  %y = core.conv_transpose %x, %w, %b strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] output_padding [1, 0] groups 2 : (tensor<?x4x9x?xf32, #core.tensor<dims = [n, 4, 9, w]>>, tensor<4x3x3x3xf32>, tensor<6xf32>) -> tensor<?x6x18x?xf32, #core.tensor<dims = [n, 6, 18, w * 2 - 1]>>
  func.return
}

// CHECK-LABEL: func.func @matmul
// CHECK-NEXT:    %z = core.matmul %x, %y : (tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<3x4xf32>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @matmul(%x : tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, %y : tensor<3x4xf32>) {
  %z = core.matmul %x, %y : (tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>, tensor<3x4xf32>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
  func.return
}

// CHECK-LABEL: func.func @accumulated
// CHECK-NEXT:    %r = core.matmul %x, %y, %p, %q in i32 : (tensor<2x3xui8>, tensor<3x4xi8>, tensor<2x1xui8>, tensor<i32>) -> tensor<2x4xi32>
// CHECK-NEXT:    %s = core.matmul %x, %y in i32 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
// CHECK-NEXT:    %t = core.conv %u, %v, %b, %o, %z strides [1] dilations [1] pads [1] [0] groups 1 in i32 : (tensor<1x2x5xi8>, tensor<3x2x2xi8>, tensor<3xi32>, tensor<i8>, tensor<3x1x1xi8>) -> tensor<1x3x5xi32>
// CHECK-NEXT:    %w = core.conv %u, %v, %o, %z strides [1] dilations [1] pads [1] [0] groups 1 in i32 : (tensor<1x2x5xi8>, tensor<3x2x2xi8>, tensor<i8>, tensor<3x1x1xi8>) -> tensor<1x3x5xi32>
// CHECK-NEXT:    %a = core.conv_transpose %h, %k strides [1] dilations [1] pads [0] [0] output_padding [0] groups 1 in f32 : (tensor<1x2x5xbf16>, tensor<2x3x2xbf16>) -> tensor<1x3x6xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @accumulated(%x : tensor<2x3xui8>, %y : tensor<3x4xi8>, %p : tensor<2x1xui8>, %q : tensor<i32>, %u : tensor<1x2x5xi8>, %v : tensor<3x2x2xi8>, %b : tensor<3xi32>, %o : tensor<i8>, %z : tensor<3x1x1xi8>, %h : tensor<1x2x5xbf16>, %k : tensor<2x3x2xbf16>) {
  %r = core.matmul %x, %y, %p, %q in i32 : (tensor<2x3xui8>, tensor<3x4xi8>, tensor<2x1xui8>, tensor<i32>) -> tensor<2x4xi32>
  %s = core.matmul %x, %y in i32 : (tensor<2x3xui8>, tensor<3x4xi8>) -> tensor<2x4xi32>
  %t = core.conv %u, %v, %b, %o, %z strides [1] dilations [1] pads [1] [0] groups 1 in i32 : (tensor<1x2x5xi8>, tensor<3x2x2xi8>, tensor<3xi32>, tensor<i8>, tensor<3x1x1xi8>) -> tensor<1x3x5xi32>
  %w = core.conv %u, %v, %o, %z strides [1] dilations [1] pads [1] [0] groups 1 in i32 : (tensor<1x2x5xi8>, tensor<3x2x2xi8>, tensor<i8>, tensor<3x1x1xi8>) -> tensor<1x3x5xi32>
  %a = core.conv_transpose %h, %k strides [1] dilations [1] pads [0] [0] output_padding [0] groups 1 in f32 : (tensor<1x2x5xbf16>, tensor<2x3x2xbf16>) -> tensor<1x3x6xf32>
  func.return
}

// CHECK-LABEL: func.func @normalization
// CHECK-NEXT:    %y = core.batch_norm %x, %p, %p, %p, %p axis 1 {epsilon = 1.000000e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %z = core.layer_norm %x, %p, %p axis 1 {epsilon = 1.000000e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %v = core.layer_norm %x, %p axis 0 {epsilon = 1.000000e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %u = core.layer_norm %x, %p axis 0 {epsilon = 1.000000e-05 : f64, uncentered, late_epsilon} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @normalization(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %p : tensor<4xf32>) {
  %y = core.batch_norm %x, %p, %p, %p, %p axis 1 {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %z = core.layer_norm %x, %p, %p axis 1 {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %v = core.layer_norm %x, %p axis 0 {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %u = core.layer_norm %x, %p axis 0 {epsilon = 1.0e-05 : f64, uncentered, late_epsilon} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  func.return
}

// CHECK-LABEL: func.func @attention
// CHECK-NEXT:    %y = core.attention %q, %k, %k, %m {scale = 1.250000e-01 : f64} : (tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) -> tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>
// CHECK-NEXT:    %w = core.attention %q, %k, %k, %m, %b {scale = 1.250000e-01 : f64, fill = -1.000000e+04 : f64} : (tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, tensor<5xi1>) -> tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>
// CHECK-NEXT:    %u = core.attention %k, %k, %k, %b {scale = 1.000000e+00 : f64, fill = {{.*}} : f64} : (tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<5xi1>) -> tensor<1x5x2x4xf32>
// CHECK-NEXT:    %z = core.attention %k, %k, %k {scale = 1.250000e-01 : f64} : (tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>) -> tensor<1x5x2x4xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @attention(%q : tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, %k : tensor<1x5x2x4xf32>, %m : tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, %b : tensor<5xi1>) {
  %y = core.attention %q, %k, %k, %m {scale = 0.125 : f64} : (tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) -> tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>
  %w = core.attention %q, %k, %k, %m, %b {scale = 0.125 : f64, fill = -1.0e4 : f64} : (tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, tensor<5xi1>) -> tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>
  %u = core.attention %k, %k, %k, %b {scale = 1.0 : f64, fill = 0xFFF0000000000000 : f64} : (tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<5xi1>) -> tensor<1x5x2x4xf32>
  %z = core.attention %k, %k, %k {scale = 0.125 : f64} : (tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>) -> tensor<1x5x2x4xf32>
  func.return
}
