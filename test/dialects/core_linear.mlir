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

// CHECK-LABEL: func.func @normalization
// CHECK-NEXT:    %y = core.batch_norm %x, %p, %p, %p, %p axis 1 {epsilon = 1.000000e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %z = core.layer_norm %x, %p, %p axis 1 {epsilon = 1.000000e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    %v = core.layer_norm %x, %p axis 0 {epsilon = 1.000000e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @normalization(%x : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, %p : tensor<4xf32>) {
  %y = core.batch_norm %x, %p, %p, %p, %p axis 1 {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %z = core.layer_norm %x, %p, %p axis 1 {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %v = core.layer_norm %x, %p axis 0 {epsilon = 1.0e-05 : f64} : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  func.return
}

// CHECK-LABEL: func.func @attention
// CHECK-NEXT:    %y = core.attention %q, %k, %k, %m {scale = 1.250000e-01 : f64} : (tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) -> tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>
// CHECK-NEXT:    %z = core.attention %k, %k, %k {scale = 1.250000e-01 : f64} : (tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>) -> tensor<1x5x2x4xf32>
// CHECK-NEXT:    func.return
// CHECK-NEXT:  }
func.func @attention(%q : tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, %k : tensor<1x5x2x4xf32>, %m : tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) {
  %y = core.attention %q, %k, %k, %m {scale = 0.125 : f64} : (tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) -> tensor<1x?x2x4xf32, #core.tensor<dims = [1, n, 2, 4]>>
  %z = core.attention %k, %k, %k {scale = 0.125 : f64} : (tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>) -> tensor<1x5x2x4xf32>
  func.return
}
