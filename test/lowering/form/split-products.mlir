// RUN: opt-tool %s --for-target x86-64-v4 --pass-pipeline=split-products | filecheck %s
// RUN: opt-tool %s --for-target c99 --pass-pipeline=split-products | filecheck %s --check-prefix=PLAIN

// PLAIN-NOT: core.add

// Parts of about equal length, in whole vectors; the last one takes what remains.
// CHECK-LABEL: @long
// CHECK:         core.slice %{{.*}} [0, 0] [8, 704]
// CHECK:         %[[A:.*]] = core.matmul {{.*}} (tensor<8x704xf32>, tensor<704x96xf32>)
// CHECK:         core.slice %{{.*}} [0, 704] [8, 704]
// CHECK:         %[[B:.*]] = core.matmul
// CHECK-NEXT:    %[[AB:.*]] = core.add %[[B]], %[[A]]
// CHECK:         core.slice %{{.*}} [0, 1408] [8, 692]
// CHECK:         %[[C:.*]] = core.matmul {{.*}} (tensor<8x692xf32>, tensor<692x96xf32>)
// CHECK-NEXT:    %[[ABC:.*]] = core.add %[[C]], %[[AB]]
// CHECK-NEXT:    func.return %[[ABC]]
func.func @long(%x: tensor<8x2100xf32>) -> tensor<8x96xf32> {
  %w = core.constant dense<1.0> : tensor<2100x96xf32>
  %y = core.matmul %x, %w : (tensor<8x2100xf32>, tensor<2100x96xf32>) -> tensor<8x96xf32>
  func.return %y : tensor<8x96xf32>
}

// Few rows read every weight but once or twice.
// CHECK-LABEL: @few_rows
// CHECK-NOT:     core.add
// CHECK:         func.return
func.func @few_rows(%x: tensor<7x2100xf32>) -> tensor<7x96xf32> {
  %w = core.constant dense<1.0> : tensor<2100x96xf32>
  %y = core.matmul %x, %w : (tensor<7x2100xf32>, tensor<2100x96xf32>) -> tensor<7x96xf32>
  func.return %y : tensor<7x96xf32>
}

// A panel stays in the cache.
// CHECK-LABEL: @short
// CHECK-NOT:     core.add
// CHECK:         func.return
func.func @short(%x: tensor<8x2048xf32>) -> tensor<8x96xf32> {
  %w = core.constant dense<1.0> : tensor<2048x96xf32>
  %y = core.matmul %x, %w : (tensor<8x2048xf32>, tensor<2048x96xf32>) -> tensor<8x96xf32>
  func.return %y : tensor<8x96xf32>
}

// What is not constant would be copied at run time.
// CHECK-LABEL: @variable
// CHECK-NOT:     core.add
// CHECK:         func.return
func.func @variable(%x: tensor<8x2100xf32>, %w: tensor<2100x96xf32>) -> tensor<8x96xf32> {
  %y = core.matmul %x, %w : (tensor<8x2100xf32>, tensor<2100x96xf32>) -> tensor<8x96xf32>
  func.return %y : tensor<8x96xf32>
}

// Of few columns, copies of the left matrix would take longer.
// CHECK-LABEL: @narrow
// CHECK-NOT:     core.add
// CHECK:         func.return
func.func @narrow(%x: tensor<8x2100xf32>) -> tensor<8x95xf32> {
  %w = core.constant dense<1.0> : tensor<2100x95xf32>
  %y = core.matmul %x, %w : (tensor<8x2100xf32>, tensor<2100x95xf32>) -> tensor<8x95xf32>
  func.return %y : tensor<8x95xf32>
}
