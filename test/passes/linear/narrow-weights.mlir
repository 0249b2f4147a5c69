// RUN: opt-tool %s --weight-format=int8 --pass-pipeline=narrow-weights --split-input-file | filecheck %s
// RUN: opt-tool %s --weight-format=bf16 --pass-pipeline=narrow-weights --split-input-file | filecheck %s --check-prefix=BF16
// RUN: opt-tool %s --weight-format=int4 --pass-pipeline=narrow-weights --split-input-file | filecheck %s --check-prefix=INT4
// RUN: opt-tool %s --pass-pipeline=narrow-weights --split-input-file | filecheck %s --check-prefix=NONE
// RUN: opt-tool %s --precision=bf16 --pass-pipeline=narrow-weights --split-input-file | filecheck %s --check-prefix=MAY

// A scale a column; the bytes are where the constant was.
// CHECK-LABEL: @columns
// CHECK-NEXT:    %[[Q:.*]] = core.constant {{.*}} : tensor<32x32xi8>
// CHECK-NEXT:    %[[W:.*]] = core.cast %[[Q]] to f32
// CHECK-NEXT:    %[[T:.*]] = core.matmul %x, %[[W]]
// CHECK-NEXT:    %[[S:.*]] = core.constant dense<{{.*}}> : tensor<1x32xf32>
// CHECK-NEXT:    %[[Y:.*]] = core.mul %[[T]], %[[S]]
// BF16-LABEL: @columns
// BF16-NEXT:     %[[Q:.*]] = core.constant {{.*}} : tensor<32x32xbf16>
// BF16-NEXT:     %[[W:.*]] = core.cast %[[Q]] to f32
// BF16-NEXT:     %[[Y:.*]] = core.matmul %x, %[[W]]
// BF16-NEXT:     func.return %[[Y]]
// NONE-NOT:      i8
// NONE-NOT:      bf16
// INT4-LABEL: @columns
// INT4-NEXT:     %[[Q:.*]] = core.constant {{.*}} : tensor<16x32xui8>
// INT4-NEXT:     %[[S:.*]] = core.constant {{.*}} : tensor<1x32xbf16>
// INT4-NEXT:     %[[W:.*]] = core.dequantize %[[Q]], %[[S]] axis 0 size 32 block 32
// INT4-NEXT:     %[[Y:.*]] = core.matmul %x, %[[W]]
// INT4-NEXT:     func.return %[[Y]]
func.func @columns(%x : tensor<3x32xf32>) -> tensor<3x32xf32> {
  %w = core.constant dense<0.5> : tensor<32x32xf32>
  %y = core.matmul %x, %w : (tensor<3x32xf32>, tensor<32x32xf32>) -> tensor<3x32xf32>
  func.return %y : tensor<3x32xf32>
}

// -----

// A scale a row of the left matrix, whose weights are no halves of bytes.
// INT4-LABEL: @rows
// INT4:          core.constant {{.*}} : tensor<32x32xi8>
// CHECK-LABEL: @rows
// CHECK:         core.matmul %{{.*}}, %x
// CHECK-NEXT:    %[[S:.*]] = core.constant dense<{{.*}}> : tensor<32x1xf32>
// CHECK-NEXT:    core.mul %{{.*}}, %[[S]]
func.func @rows(%x : tensor<32x3xf32>) -> tensor<32x3xf32> {
  %w = core.constant dense<0.5> : tensor<32x32xf32>
  %y = core.matmul %w, %x : (tensor<32x32xf32>, tensor<32x3xf32>) -> tensor<32x3xf32>
  func.return %y : tensor<32x3xf32>
}

// -----

// Where bf16 is permitted, what many positions read stays f32, and what one reads does not.
// MAY-LABEL: @positions
// MAY-NOT:       bf16
func.func @positions(%x : tensor<1x8x4x4xf32>) -> tensor<1x16x2x2xf32> {
  %w = core.constant dense<-0.25> : tensor<16x8x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x4x4xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x2x2xf32>
  func.return %y : tensor<1x16x2x2xf32>
}

// -----

// MAY-LABEL: @position
// MAY-NEXT:      core.constant {{.*}} : tensor<16x8x3x3xbf16>
func.func @position(%x : tensor<1x8x3x3xf32>) -> tensor<1x16x1x1xf32> {
  %w = core.constant dense<-0.25> : tensor<16x8x3x3xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x8x3x3xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x1x1xf32>
  func.return %y : tensor<1x16x1x1xf32>
}

// -----

// The bias is not scaled.
// CHECK-LABEL: @conv
// CHECK:         core.constant {{.*}} : tensor<16x8x3x3xi8>
// CHECK:         core.conv %x, %{{[^,]*}} strides
// CHECK-NEXT:    %[[S:.*]] = core.constant {{.*}} : tensor<16x1x1xf32>
// CHECK-NEXT:    %[[T:.*]] = core.mul %{{.*}}, %[[S]]
// CHECK-NEXT:    %[[B:.*]] = core.constant {{.*}} : tensor<16x1x1xf32>
// CHECK-NEXT:    core.add %[[T]], %[[B]]
// BF16-LABEL: @conv
// BF16:          core.conv %x, %{{.*}}, %b strides
func.func @conv(%x : tensor<1x8x4x4xf32>) -> tensor<1x16x2x2xf32> {
  %w = core.constant dense<-0.25> : tensor<16x8x3x3xf32>
  %b = core.constant dense<3.0> : tensor<16xf32>
  %y = core.conv %x, %w, %b strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1
      : (tensor<1x8x4x4xf32>, tensor<16x8x3x3xf32>, tensor<16xf32>) -> tensor<1x16x2x2xf32>
  func.return %y : tensor<1x16x2x2xf32>
}

// -----

// The channels of a transposed convolution are those of all groups.
// CHECK-LABEL: @backward
// CHECK:         core.constant {{.*}} : tensor<16x8x3x3xi8>
// CHECK:         core.conv_transpose
// CHECK-NEXT:    core.constant {{.*}} : tensor<16x1x1xf32>
func.func @backward(%x : tensor<1x16x4x4xf32>) -> tensor<1x16x6x6xf32> {
  %w = core.constant dense<-0.25> : tensor<16x8x3x3xf32>
  %y = core.conv_transpose %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] output_padding [0, 0] groups 2
      : (tensor<1x16x4x4xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x6x6xf32>
  func.return %y : tensor<1x16x6x6xf32>
}

// -----

// Only the rows that are read are widened; a product reads the same bytes with the scales of rows.
// CHECK-LABEL: @table
// CHECK:         %[[Q:.*]] = core.constant {{.*}} : tensor<32x32xi8>
// CHECK-NOT:     tensor<32x32xi8>
// CHECK:         %[[R:.*]] = core.gather %[[Q]], %i axis 0
// CHECK-NEXT:    %[[W:.*]] = core.cast %[[R]] to f32
// CHECK-NEXT:    %[[S:.*]] = core.constant {{.*}} : tensor<32x1xf32>
// CHECK-NEXT:    %[[F:.*]] = core.gather %[[S]], %i axis 0 : {{.*}} -> tensor<2x1xf32>
// CHECK-NEXT:    core.mul %[[W]], %[[F]]
// CHECK:         core.cast %[[Q]] to f32
// INT4-LABEL: @table
// INT4:          %[[R:.*]] = core.gather %{{.*}}, %i axis 0 : (tensor<32x16xui8>
// INT4-NEXT:     %[[F:.*]] = core.gather %{{.*}}, %i axis 0 : (tensor<32x1xbf16>
// INT4-NEXT:     core.dequantize %[[R]], %[[F]] axis 1 size 32 block 32
func.func @table(%i : tensor<2xi64>, %x : tensor<32x3xf32>) -> (tensor<2x32xf32>, tensor<32x3xf32>) {
  %w = core.constant dense<0.5> : tensor<32x32xf32>
  %y = core.gather %w, %i axis 0 : (tensor<32x32xf32>, tensor<2xi64>) -> tensor<2x32xf32>
  %z = core.matmul %w, %x : (tensor<32x32xf32>, tensor<32x3xf32>) -> tensor<32x3xf32>
  func.return %y, %z : tensor<2x32xf32>, tensor<32x3xf32>
}

// -----

// What has few elements stays, and so does what others read, or has short sums.
// CHECK-LABEL: @others
// CHECK-NOT:     i8
// BF16-LABEL: @others
// BF16-NOT:      bf16
// BF16:          core.exp
func.func @others(%x : tensor<3x31xf32>, %v : tensor<3x32xf32>, %u : tensor<1x128x3x3xf32>)
    -> (tensor<3x33xf32>, tensor<3x32xf32>, tensor<32x32xf32>, tensor<1x128x1x1xf32>) {
  %few = core.constant dense<0.5> : tensor<31x33xf32>
  %a = core.matmul %x, %few : (tensor<3x31xf32>, tensor<31x33xf32>) -> tensor<3x33xf32>
  %shared = core.constant dense<0.5> : tensor<32x32xf32>
  %b = core.matmul %v, %shared : (tensor<3x32xf32>, tensor<32x32xf32>) -> tensor<3x32xf32>
  %c = core.exp %shared : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %w = core.constant dense<0.5> : tensor<128x1x3x3xf32>
  %e = core.conv %u, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 128
      : (tensor<1x128x3x3xf32>, tensor<128x1x3x3xf32>) -> tensor<1x128x1x1xf32>
  func.return %a, %b, %c, %e : tensor<3x33xf32>, tensor<3x32xf32>, tensor<32x32xf32>, tensor<1x128x1x1xf32>
}

// -----

// What would overflow stays.
// CHECK-LABEL: @largest
// CHECK:         i8
// BF16-LABEL: @largest
// BF16-NOT:      bf16
func.func @largest(%x : tensor<3x32xf32>) -> tensor<3x32xf32> {
  %w = core.constant dense<3.4e38> : tensor<32x32xf32>
  %y = core.matmul %x, %w : (tensor<3x32xf32>, tensor<32x32xf32>) -> tensor<3x32xf32>
  func.return %y : tensor<3x32xf32>
}
