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

// -----

// Stacked again, and multiplied with what it was parts of: all in pairs.
// CHECK-LABEL: @stacked
// CHECK-NEXT:    %[[X:.*]] = core.reshape %x [n, 4, 2]
// CHECK-NEXT:    %[[A:.*]], %[[B:.*]] = core.split %[[X]] axis 2
// CHECK-NEXT:    %[[M:.*]] = core.neg %[[B]]
// CHECK-NEXT:    %[[R:.*]] = core.concat %[[M]], %[[A]] axis 2
// CHECK-NEXT:    %[[V:.*]] = core.reshape %x [n, 4, 2]
// CHECK-NEXT:    %[[C:.*]] = core.reshape %c [1, 4, 2]
// CHECK-NEXT:    %[[S:.*]] = core.reshape %s [1, 4, 2]
// CHECK-NEXT:    %[[P:.*]] = core.mul %[[V]], %[[C]]
// CHECK-NEXT:    %[[Q:.*]] = core.mul %[[R]], %[[S]]
// CHECK-NEXT:    %[[Y:.*]] = core.add %[[P]], %[[Q]]
// CHECK-NEXT:    %[[Z:.*]] = core.reshape %[[Y]] [n, 8]
// CHECK-NEXT:    func.return %[[Z]]
func.func @stacked(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %c : tensor<8xf32>, %s : tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>> {
  %v = core.reshape %x [n, 4, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  %a, %b = core.split %v axis 2 sizes [1, 1] : (tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>) -> (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>)
  %d = core.reshape %b [n, 4] : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %e = core.neg %d : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %f = core.reshape %e [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %g = core.concat %f, %a axis 2 : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  %r = core.reshape %g [n, 8] : (tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %p = core.mul %x, %c : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %q = core.mul %r, %s : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %y = core.add %p, %q : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  func.return %y : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
}

// -----

// Halves, stacked along the last dimension but one.
// CHECK-LABEL: @stacked_halves
// CHECK:         %[[A:.*]], %[[B:.*]] = core.split %{{.*}} axis 1
// CHECK-NEXT:    %[[M:.*]] = core.neg %[[B]]
// CHECK-NEXT:    core.concat %[[M]], %[[A]] axis 1
func.func @stacked_halves(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>> {
  %v = core.reshape %x [n, 2, 4] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
  %a, %b = core.split %v axis 1 sizes [1, 1] : (tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>) -> (tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>, tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>)
  %d = core.reshape %b [n, 4] : (tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %e = core.neg %d : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %f = core.reshape %e [n, 1, 4] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>
  %g = core.concat %f, %a axis 1 : (tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>, tensor<?x1x4xf32, #core.tensor<dims = [n, 1, 4]>>) -> tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
  func.return %g : tensor<?x2x4xf32, #core.tensor<dims = [n, 2, 4]>>
}

// -----

// What is multiplied with it is another value; pairs that are read elsewhere; a factor of every
// fourth element, which pairs are not.
// CHECK-LABEL: @of_another
// CHECK:         core.mul %{{.*}}, %s : (tensor<?x8xf32
// CHECK-LABEL: @pairs_used_elsewhere
// CHECK:         core.mul %{{.*}}, %s : (tensor<?x8xf32
// CHECK-LABEL: @factors_of_parts
// CHECK:         core.mul %{{.*}}, %s : (tensor<2x8xf32
func.func @of_another(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %w : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %c : tensor<8xf32>, %s : tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>> {
  %v = core.reshape %x [n, 4, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  %a, %b = core.split %v axis 2 sizes [1, 1] : (tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>) -> (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>)
  %d = core.reshape %b [n, 4] : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %e = core.neg %d : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %f = core.reshape %e [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %g = core.concat %f, %a axis 2 : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  %r = core.reshape %g [n, 8] : (tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %p = core.mul %w, %c : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %q = core.mul %r, %s : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %y = core.add %p, %q : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  func.return %y : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
}
func.func @pairs_used_elsewhere(%x : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, %c : tensor<8xf32>, %s : tensor<8xf32>) -> (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) {
  %v = core.reshape %x [n, 4, 2] : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  %a, %b = core.split %v axis 2 sizes [1, 1] : (tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>) -> (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>)
  %d = core.reshape %b [n, 4] : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %e = core.neg %d : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %f = core.reshape %e [n, 4, 1] : (tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>
  %g = core.concat %f, %a axis 2 : (tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>, tensor<?x4x1xf32, #core.tensor<dims = [n, 4, 1]>>) -> tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>
  %r = core.reshape %g [n, 8] : (tensor<?x4x2xf32, #core.tensor<dims = [n, 4, 2]>>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %p = core.mul %x, %c : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %q = core.mul %r, %s : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  %y = core.add %p, %q : (tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<?x8xf32, #core.tensor<dims = [n, 8]>>) -> tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
  func.return %y, %r : tensor<?x8xf32, #core.tensor<dims = [n, 8]>>, tensor<?x8xf32, #core.tensor<dims = [n, 8]>>
}
func.func @factors_of_parts(%x : tensor<2x8xf32>, %s : tensor<8xf32>) -> tensor<2x8xf32> {
  %v = core.reshape %x [8, 2] : (tensor<2x8xf32>) -> tensor<8x2xf32>
  %a, %b = core.split %v axis 1 sizes [1, 1] : (tensor<8x2xf32>) -> (tensor<8x1xf32>, tensor<8x1xf32>)
  %g = core.concat %b, %a axis 1 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x2xf32>
  %r = core.reshape %g [2, 8] : (tensor<8x2xf32>) -> tensor<2x8xf32>
  %q = core.mul %r, %s : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %y = core.add %x, %q : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  func.return %y : tensor<2x8xf32>
}

// A part that has the dimension already, beside what nothing pairs: a memory of rows that moves on by one.
// CHECK-LABEL: @what_moves_on
// CHECK:         core.reshape
// CHECK-NEXT:    core.concat
func.func @what_moves_on(%x : tensor<2x6x2xf32>, %v : tensor<2x6xf32>) -> tensor<2x6x2xf32> {
  %a = core.slice %x [0, 0, 1] [2, 6, 1] [1, 1, 1] : (tensor<2x6x2xf32>) -> tensor<2x6x1xf32>
  %b = core.reshape %v [2, 6, 1] : (tensor<2x6xf32>) -> tensor<2x6x1xf32>
  %y = core.concat %a, %b axis 2 : (tensor<2x6x1xf32>, tensor<2x6x1xf32>) -> tensor<2x6x2xf32>
  func.return %y : tensor<2x6x2xf32>
}
