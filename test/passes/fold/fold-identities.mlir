// RUN: opt-tool %s --pass-pipeline=fold-identities --split-input-file | filecheck %s

// CHECK-LABEL: @identities
// CHECK-NEXT:    func.return %x
func.func @identities(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {
  %a = core.reshape %x [n, 3] : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %b = core.transpose %a [0, 1] : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %c = core.slice %b [0, 0] [n, 3] [1, 1] : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %d = core.pad constant %c [0, 0] [0, 0] : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %e = core.concat %d axis 0 : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  %f = core.cast %e to f32 : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  func.return %f : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
}

// -----

// Same sizes, other elements: from the end backwards, and a permutation of equal dimensions.
// CHECK-LABEL: @not_identities
// CHECK:         core.slice
// CHECK:         core.transpose
func.func @not_identities(%x : tensor<3x3xf32>) -> tensor<3x3xf32> {
  %a = core.slice %x [2, 0] [3, 3] [-1, 1] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %b = core.transpose %a [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return %b : tensor<3x3xf32>
}

// -----

// CHECK-LABEL: @select
// CHECK:         func.return %y
func.func @select(%x : tensor<2xf32>, %y : tensor<2xf32>) -> tensor<2xf32> {
  %c = core.constant dense<false> : tensor<2xi1>
  %a = core.select %c, %x, %y : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %a : tensor<2xf32>
}

// -----

// A choice of truth values is the condition; the opposite choice and that of a larger shape are not.
// CHECK-LABEL: @select_truth
// CHECK:         %[[B:.*]] = core.select %c, %{{.*}}, %{{.*}} : (tensor<2xi1>
// CHECK-NEXT:    %[[D:.*]] = core.select %c, %{{.*}}, %{{.*}} : (tensor<2xi1>
// CHECK-NEXT:    func.return %c, %[[B]], %[[D]]
func.func @select_truth(%c : tensor<2xi1>) -> (tensor<2xi1>, tensor<2xi1>, tensor<3x2xi1>) {
  %t = core.constant dense<true> : tensor<i1>
  %f = core.constant dense<false> : tensor<i1>
  %u = core.constant dense<true> : tensor<3x1xi1>
  %a = core.select %c, %t, %f : (tensor<2xi1>, tensor<i1>, tensor<i1>) -> tensor<2xi1>
  %b = core.select %c, %f, %t : (tensor<2xi1>, tensor<i1>, tensor<i1>) -> tensor<2xi1>
  %d = core.select %c, %u, %f : (tensor<2xi1>, tensor<3x1xi1>, tensor<i1>) -> tensor<3x2xi1>
  func.return %a, %b, %d : tensor<2xi1>, tensor<2xi1>, tensor<3x2xi1>
}

// -----

// The chosen operand has not the shape of the result; a mixed condition chooses none.
// CHECK-LABEL: @select_stays
// CHECK-COUNT-2: core.select
func.func @select_stays(%x : tensor<f32>, %y : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = core.constant dense<true> : tensor<i1>
  %d = core.constant dense<[true, false]> : tensor<2xi1>
  %a = core.select %c, %x, %y : (tensor<i1>, tensor<f32>, tensor<2xf32>) -> tensor<2xf32>
  %b = core.select %d, %y, %y : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: @empty_operand
// CHECK:         core.concat %x, %y axis
func.func @empty_operand(%x : tensor<2x1xf32>, %e : tensor<2x0xf32>, %y : tensor<2x3xf32>) -> tensor<2x4xf32> {
  %a = core.concat %x, %e, %y axis 1 : (tensor<2x1xf32>, tensor<2x0xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  func.return %a : tensor<2x4xf32>
}

// -----

// Only a split that makes one part gives its operand back.
// CHECK-LABEL: @split
// CHECK-NEXT:    %[[B:.*]], %[[C:.*]] = core.split %x
// CHECK-NEXT:    func.return %x, %[[C]]
func.func @split(%x : tensor<3xf32>) -> (tensor<3xf32>, tensor<0xf32>) {
  %a = core.split %x axis 0 sizes [3] : (tensor<3xf32>) -> tensor<3xf32>
  %b, %c = core.split %x axis 0 sizes [3, 0] : (tensor<3xf32>) -> (tensor<3xf32>, tensor<0xf32>)
  func.return %a, %c : tensor<3xf32>, tensor<0xf32>
}

// -----

// Zero points are dropped where all are zero, by whatever shape; the bias stays.
// CHECK-LABEL: @zero_points
// CHECK:         core.conv %x, %w, %b strides
// CHECK:         core.matmul %y, %v in i32
// CHECK:         core.matmul %y, %v, %{{.*}}, %{{.*}} in i32
func.func @zero_points(%x : tensor<1x2x5xui8>, %w : tensor<3x2x2xi8>, %b : tensor<3xi32>, %y : tensor<2x3xui8>, %v : tensor<3x2xi8>) -> (tensor<1x3x4xi32>, tensor<2x2xi32>, tensor<2x2xi32>) {
  %none = core.constant dense<0> : tensor<ui8>
  %zeros = core.constant dense<0> : tensor<3x1x1xi8>
  %row = core.constant dense<0> : tensor<2xi8>
  %one = core.constant dense<[0, 1]> : tensor<2xi8>
  %r = core.conv %x, %w, %b, %none, %zeros strides [1] dilations [1] pads [0] [0] groups 1 in i32 : (tensor<1x2x5xui8>, tensor<3x2x2xi8>, tensor<3xi32>, tensor<ui8>, tensor<3x1x1xi8>) -> tensor<1x3x4xi32>
  %s = core.matmul %y, %v, %none, %row in i32 : (tensor<2x3xui8>, tensor<3x2xi8>, tensor<ui8>, tensor<2xi8>) -> tensor<2x2xi32>
  %t = core.matmul %y, %v, %none, %one in i32 : (tensor<2x3xui8>, tensor<3x2xi8>, tensor<ui8>, tensor<2xi8>) -> tensor<2x2xi32>
  func.return %r, %s, %t : tensor<1x3x4xi32>, tensor<2x2xi32>, tensor<2x2xi32>
}
