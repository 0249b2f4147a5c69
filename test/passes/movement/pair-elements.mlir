// RUN: opt-tool %s --pass-pipeline=pair-elements,fold-identities,simplify-movement,dce --split-input-file | filecheck %s

// A rotary embedding of interleaved pairs.
// CHECK-LABEL: @rotary
// CHECK-NEXT:    %[[X:.*]] = core.reshape %x [n, 4, 2]
// CHECK-NEXT:    %[[A:.*]] = core.slice %[[X]] [0, 0, 0] [n, 4, 1]
// CHECK-NEXT:    %[[C:.*]] = core.reshape %c [4, 1]
// CHECK-NEXT:    %[[D:.*]] = core.mul %[[A]], %[[C]]
// CHECK:         %[[B:.*]] = core.slice %{{.*}} [0, 0, 1] [n, 4, 1]
// CHECK:         %[[F:.*]] = core.sub %[[D]]
// CHECK:         %[[I:.*]] = core.add
// CHECK-NEXT:    %[[Y:.*]] = core.concat %[[F]], %[[I]] axis 2
// CHECK-NEXT:    func.return %[[Y]]
func.func @rotary(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %c : tensor<4xf32>, %s : tensor<4xf32>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>> {
  %a = core.slice %x [0, 0] [n, 4] [1, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %b = core.slice %x [0, 1] [n, 4] [1, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %d = core.mul %a, %c : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %e = core.mul %b, %s : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %f = core.sub %d, %e : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %g = core.mul %a, %s : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %h = core.mul %b, %c : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<4xf32>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %i = core.add %g, %h : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %u = core.reshape %f [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %v = core.reshape %i [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %y = core.concat %u, %v axis 2 : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  func.return %y : tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
}

// -----

// The second of the elements has number 5, that is 2 * 2 + 1.
// CHECK-LABEL: @later_start
// CHECK:         core.slice %{{.*}} [0, 2, 1] [n, 2, 1]
func.func @later_start(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>> {
  %a = core.slice %x [0, 5] [n, 2] [1, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  %b = core.neg %a : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  %u = core.reshape %a [n, 2, 1] : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<?x2x1xf32, #core.tensor<dims = [n, 2, 1]>>
  %v = core.reshape %b [n, 2, 1] : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>) -> tensor<?x2x1xf32, #core.tensor<dims = [n, 2, 1]>>
  %y = core.concat %u, %v axis 2 : (tensor<?x2x1xf32, #core.tensor<dims = [n, 2, 1]>>, tensor<?x2x1xf32, #core.tensor<dims = [n, 2, 1]>>) -> tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>
  func.return %y : tensor<?x2x2xf32, #core.tensor<dims = [n, 2, 2]>>
}

// -----

// A map that has another user; elements that lie side by side; rows that hold no whole pairs.
// CHECK-LABEL: @used_elsewhere
// CHECK:         core.slice %x [0, 0] [n, 4] [1, 2]
// CHECK-LABEL: @side_by_side
// CHECK:         core.slice %x [0, 0] [n, 4]
// CHECK-LABEL: @no_pairs
// CHECK:         core.slice %x [0, 0] [n, 4] [1, 2]
func.func @used_elsewhere(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> (tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) {
  %a = core.slice %x [0, 0] [n, 4] [1, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %b = core.slice %x [0, 1] [n, 4] [1, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %d = core.mul %a, %b : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %u = core.reshape %d [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %v = core.reshape %b [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %y = core.concat %u, %v axis 2 : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  func.return %y, %d : tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
}
func.func @side_by_side(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>> {
  %a = core.slice %x [0, 0] [n, 4] [1, 1] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %b = core.slice %x [0, 4] [n, 4] [1, 1] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %d = core.mul %a, %b : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %u = core.reshape %d [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %v = core.reshape %b [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %y = core.concat %u, %v axis 2 : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  func.return %y : tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
}
func.func @no_pairs(%x : tensor<?x7xf32, #core.tensor<dims = [n, 7]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>> {
  %a = core.slice %x [0, 0] [n, 4] [1, 2] : (tensor<?x7xf32, #core.tensor<dims = [n, 7]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %d = core.mul %a, %a : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %u = core.reshape %d [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %v = core.reshape %a [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %y = core.concat %u, %v axis 2 : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  func.return %y : tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
}
