// RUN: opt-tool %s --precision=bf16 --pass-pipeline=halve-products --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=halve-products --split-input-file | filecheck %s --check-prefix=NONE

// Both factors are bf16, the sum is f32.
// CHECK-LABEL: @rows
// CHECK-NEXT:    %[[X:.*]] = core.cast %x to bf16
// CHECK-NEXT:    %[[W:.*]] = core.constant {{.*}} : tensor<32x32xbf16>
// CHECK-NEXT:    %[[Y:.*]] = core.matmul %[[X]], %[[W]] in f32
// CHECK-NEXT:    func.return %[[Y]]
// NONE-NOT:      bf16
func.func @rows(%x : tensor<3x32xf32>) -> tensor<3x32xf32> {
  %w = core.constant dense<0.5> : tensor<32x32xf32>
  %y = core.matmul %x, %w : (tensor<3x32xf32>, tensor<32x32xf32>) -> tensor<3x32xf32>
  func.return %y : tensor<3x32xf32>
}

// -----

// Open sizes are many rows.
// CHECK-LABEL: @open
// CHECK:         core.matmul {{.*}} in f32
func.func @open(%x : tensor<?x32xf32, #core.tensor<dims = [n, 32]>>) -> tensor<?x32xf32, #core.tensor<dims = [n, 32]>> {
  %w = core.constant dense<0.5> : tensor<32x32xf32>
  %y = core.matmul %x, %w : (tensor<?x32xf32, #core.tensor<dims = [n, 32]>>, tensor<32x32xf32>) -> tensor<?x32xf32, #core.tensor<dims = [n, 32]>>
  func.return %y : tensor<?x32xf32, #core.tensor<dims = [n, 32]>>
}

// -----

// One row, too.
// CHECK-LABEL: @row
// CHECK:         core.matmul {{.*}} in f32
func.func @row(%x : tensor<1x32xf32>) -> tensor<1x32xf32> {
  %w = core.constant dense<0.5> : tensor<32x32xf32>
  %y = core.matmul %x, %w : (tensor<1x32xf32>, tensor<32x32xf32>) -> tensor<1x32xf32>
  func.return %y : tensor<1x32xf32>
}

// -----

// A computed factor, a left one, weights that are infinite in bf16, short sums.
// CHECK-LABEL: @others
// CHECK-NOT:     bf16
func.func @others(%y : tensor<32x32xf32>, %z : tensor<32x8xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>) {
  %w = core.constant dense<0.5> : tensor<32x32xf32>
  %h = core.constant dense<3.4e38> : tensor<32x32xf32>
  %s = core.constant dense<0.5> : tensor<8x128xf32>
  %b = core.matmul %y, %y : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %c = core.matmul %w, %y : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %d = core.matmul %y, %h : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %e = core.matmul %z, %s : (tensor<32x8xf32>, tensor<8x128xf32>) -> tensor<32x128xf32>
  func.return %b, %c, %d, %e : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x128xf32>
}
