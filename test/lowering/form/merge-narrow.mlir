// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=merge-narrow,dce --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=c99 --pass-pipeline=merge-narrow,dce --split-input-file | filecheck %s --check-prefix=SCALAR

// Three and five filters fill one vector of eight; the 16 need none of their own. A target without
// vectors gains nothing.
// CHECK-LABEL: @filters
// CHECK:         %[[Y:.*]] = core.conv %x, %{{.*}} : {{.*}}tensor<8x32x3x3xf32>
// CHECK-NEXT:    core.split %[[Y]] axis 1 sizes [3, 5]
// CHECK:         core.conv %x, %{{.*}} : {{.*}}tensor<16x32x3x3xf32>
// SCALAR-LABEL: @filters
// SCALAR-NOT:   core.split
func.func @filters(%x: tensor<?x32x9x9xf32, #core.tensor<dims = [n, 32, 9, 9]>>) -> (tensor<?x3x9x9xf32, #core.tensor<dims = [n, 3, 9, 9]>>, tensor<?x16x9x9xf32, #core.tensor<dims = [n, 16, 9, 9]>>, tensor<?x5x9x9xf32, #core.tensor<dims = [n, 5, 9, 9]>>) {
  %u = core.constant dense<1.0> : tensor<3x32x3x3xf32>
  %v = core.constant dense<2.0> : tensor<16x32x3x3xf32>
  %w = core.constant dense<3.0> : tensor<5x32x3x3xf32>
  %a = core.conv %x, %u strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<?x32x9x9xf32, #core.tensor<dims = [n, 32, 9, 9]>>, tensor<3x32x3x3xf32>) -> tensor<?x3x9x9xf32, #core.tensor<dims = [n, 3, 9, 9]>>
  %b = core.conv %x, %v strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<?x32x9x9xf32, #core.tensor<dims = [n, 32, 9, 9]>>, tensor<16x32x3x3xf32>) -> tensor<?x16x9x9xf32, #core.tensor<dims = [n, 16, 9, 9]>>
  %c = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<?x32x9x9xf32, #core.tensor<dims = [n, 32, 9, 9]>>, tensor<5x32x3x3xf32>) -> tensor<?x5x9x9xf32, #core.tensor<dims = [n, 5, 9, 9]>>
  func.return %a, %b, %c : tensor<?x3x9x9xf32, #core.tensor<dims = [n, 3, 9, 9]>>, tensor<?x16x9x9xf32, #core.tensor<dims = [n, 16, 9, 9]>>, tensor<?x5x9x9xf32, #core.tensor<dims = [n, 5, 9, 9]>>
}

// -----

// Products with rows of their own and different activations: the parts stand in their order.
// CHECK-LABEL: @columns
// CHECK:         %[[Y:.*]] = core.matmul %x, %{{.*}} : {{.*}}tensor<128x8xf32>
// CHECK-NEXT:    %[[B:.*]] = core.constant dense<[3.0, 3.0, 3.0, 4.0, 4.0, 4.0, 4.0, 4.0]>
// CHECK-NEXT:    %[[S:.*]] = core.add %[[Y]], %[[B]]
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = core.split %[[S]] axis 1 sizes [3, 5]
// CHECK-NEXT:    core.tanh %[[A]]
// CHECK-NEXT:    core.abs %[[B]]
func.func @columns(%x: tensor<?x128xf32, #core.tensor<dims = [n, 128]>>) -> (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) {
  %v = core.constant dense<1.0> : tensor<128x3xf32>
  %w = core.constant dense<2.0> : tensor<128x5xf32>
  %b = core.constant dense<3.0> : tensor<3xf32>
  %c = core.constant dense<4.0> : tensor<5xf32>
  %p = core.matmul %x, %v : (tensor<?x128xf32, #core.tensor<dims = [n, 128]>>, tensor<128x3xf32>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %q = core.add %p, %b : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<3xf32>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %r = core.tanh %q : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %s = core.matmul %x, %w : (tensor<?x128xf32, #core.tensor<dims = [n, 128]>>, tensor<128x5xf32>) -> tensor<?x5xf32, #core.tensor<dims = [n, 5]>>
  %t = core.add %s, %c : (tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, tensor<5xf32>) -> tensor<?x5xf32, #core.tensor<dims = [n, 5]>>
  %u = core.abs %t : (tensor<?x5xf32, #core.tensor<dims = [n, 5]>>) -> tensor<?x5xf32, #core.tensor<dims = [n, 5]>>
  func.return %r, %u : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>
}

// -----

// Too few products to pay for the copies; no vector saved; one saved of four; nine columns, no vector saved.
// CHECK-LABEL: @few_products
// CHECK-NOT:     core.split
// CHECK-LABEL: @whole_vectors
// CHECK-NOT:     core.split
// CHECK-LABEL: @one_of_many
// CHECK-NOT:     core.split
// CHECK-LABEL: @nine_columns
// CHECK-NOT:     core.split
func.func @few_products(%x: tensor<6x32xf32>, %y: tensor<6xf32>) -> (tensor<6x3xf32>, tensor<6x5xf32>) {
  %v = core.constant dense<1.0> : tensor<32x3xf32>
  %w = core.constant dense<2.0> : tensor<32x5xf32>
  %p = core.matmul %x, %v : (tensor<6x32xf32>, tensor<32x3xf32>) -> tensor<6x3xf32>
  %q = core.matmul %x, %w : (tensor<6x32xf32>, tensor<32x5xf32>) -> tensor<6x5xf32>
  func.return %p, %q : tensor<6x3xf32>, tensor<6x5xf32>
}
func.func @whole_vectors(%x: tensor<6x512xf32>) -> (tensor<6x8xf32>, tensor<6x16xf32>) {
  %v = core.constant dense<1.0> : tensor<512x8xf32>
  %w = core.constant dense<2.0> : tensor<512x16xf32>
  %p = core.matmul %x, %v : (tensor<6x512xf32>, tensor<512x8xf32>) -> tensor<6x8xf32>
  %q = core.matmul %x, %w : (tensor<6x512xf32>, tensor<512x16xf32>) -> tensor<6x16xf32>
  func.return %p, %q : tensor<6x8xf32>, tensor<6x16xf32>
}
func.func @one_of_many(%x: tensor<6x512xf32>) -> (tensor<6x12xf32>, tensor<6x12xf32>) {
  %v = core.constant dense<1.0> : tensor<512x12xf32>
  %w = core.constant dense<2.0> : tensor<512x12xf32>
  %p = core.matmul %x, %v : (tensor<6x512xf32>, tensor<512x12xf32>) -> tensor<6x12xf32>
  %q = core.matmul %x, %w : (tensor<6x512xf32>, tensor<512x12xf32>) -> tensor<6x12xf32>
  func.return %p, %q : tensor<6x12xf32>, tensor<6x12xf32>
}
func.func @nine_columns(%x: tensor<6x512xf32>) -> (tensor<6x3xf32>, tensor<6x6xf32>) {
  %v = core.constant dense<1.0> : tensor<512x3xf32>
  %w = core.constant dense<2.0> : tensor<512x6xf32>
  %p = core.matmul %x, %v : (tensor<6x512xf32>, tensor<512x3xf32>) -> tensor<6x3xf32>
  %q = core.matmul %x, %w : (tensor<6x512xf32>, tensor<512x6xf32>) -> tensor<6x6xf32>
  func.return %p, %q : tensor<6x3xf32>, tensor<6x6xf32>
}
