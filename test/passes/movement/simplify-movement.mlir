// RUN: opt-tool %s --pass-pipeline=simplify-movement --split-input-file | filecheck %s

// Two permutations that do not commute: q[p] instead of p[q] gives [2, 0, 1].
// CHECK-LABEL: @transposes
// CHECK-NEXT:    core.transpose %x [1, 2, 0]
func.func @transposes(%x : tensor<2x3x5xf32>) -> tensor<3x5x2xf32> {
  %a = core.transpose %x [1, 0, 2] : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %b = core.transpose %a [0, 2, 1] : (tensor<3x2x5xf32>) -> tensor<3x5x2xf32>
  func.return %b : tensor<3x5x2xf32>
}

// -----

// A dimension of one moves: the elements stay in order. The other transpose moves 3 past 5.
// CHECK-LABEL: @views
// CHECK-NEXT:    core.reshape %x [3, 1, 5]
// CHECK-NEXT:    core.transpose
func.func @views(%x : tensor<1x3x5xf32>) -> (tensor<3x1x5xf32>, tensor<5x1x3xf32>) {
  %a = core.transpose %x [1, 0, 2] : (tensor<1x3x5xf32>) -> tensor<3x1x5xf32>
  %b = core.transpose %x [2, 0, 1] : (tensor<1x3x5xf32>) -> tensor<5x1x3xf32>
  func.return %a, %b : tensor<3x1x5xf32>, tensor<5x1x3xf32>
}

// -----

// Every third from 1 of every second from 2: from 4 in steps of 6. Adding the starts would give 3.
// CHECK-LABEL: @slices
// CHECK-NEXT:    core.slice %x [4] [3] [6]
func.func @slices(%x : tensor<20xf32>) -> tensor<3xf32> {
  %a = core.slice %x [2] [9] [2] : (tensor<20xf32>) -> tensor<9xf32>
  %b = core.slice %a [1] [3] [3] : (tensor<9xf32>) -> tensor<3xf32>
  func.return %b : tensor<3xf32>
}

// -----

// CHECK-LABEL: @reshapes
// CHECK-NEXT:    core.reshape %x [n, 2, 3]
// CHECK-NEXT:    func.return
func.func @reshapes(%x : tensor<?x6xf32, #core.tensor<dims = [n, 6]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>> {
  %a = core.reshape %x [n * 6] : (tensor<?x6xf32, #core.tensor<dims = [n, 6]>>) -> tensor<?xf32, #core.tensor<dims = [n * 6]>>
  %b = core.reshape %a [n, 2, 3] : (tensor<?xf32, #core.tensor<dims = [n * 6]>>) -> tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
  func.return %b : tensor<?x2x3xf32, #core.tensor<dims = [n, 2, 3]>>
}

// -----

// The inner concat of the second is along the other axis; that of the third has another user.
// CHECK-LABEL: @concats
// CHECK:         %[[A:.*]] = core.concat %x, %y, %x axis 0
// CHECK:         %[[C:.*]] = core.concat %x, %y axis 1
// CHECK:         core.concat %[[C]], %[[C]] axis 0
// CHECK:         %[[E:.*]] = core.concat %y, %y axis 0
// CHECK:         core.concat %[[E]], %x axis 0
func.func @concats(%x : tensor<2x2xf32>, %y : tensor<2x2xf32>) -> (tensor<6x2xf32>, tensor<4x4xf32>, tensor<6x2xf32>, tensor<4x2xf32>) {
  %a = core.concat %x, %y axis 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %b = core.concat %a, %x axis 0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
  %c = core.concat %x, %y axis 1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
  %d = core.concat %c, %c axis 0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %e = core.concat %y, %y axis 0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %f = core.concat %e, %x axis 0 : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<6x2xf32>
  func.return %b, %d, %f, %e : tensor<6x2xf32>, tensor<4x4xf32>, tensor<6x2xf32>, tensor<4x2xf32>
}

// -----

// The first addition broadcasts by itself; without its broadcast the second would be too small.
// CHECK-LABEL: @broadcast
// CHECK:         core.broadcast
// CHECK-NEXT:    core.add %x, %y : (tensor<2x3xf32>, tensor<3xf32>)
// CHECK-NEXT:    core.add {{.*}} : (tensor<3xf32>, tensor<2x3xf32>)
func.func @broadcast(%x : tensor<2x3xf32>, %y : tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %b = core.broadcast %y [2, 3] : (tensor<3xf32>) -> tensor<2x3xf32>
  %a = core.add %x, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = core.add %y, %b : (tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %a, %c : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @join_parts
// CHECK-NEXT:    func.return %x
func.func @join_parts(%x : tensor<2x3xf32>) -> tensor<2x3xf32> {
  %a, %b = core.split %x axis 1 sizes [1, 2] : (tensor<2x3xf32>) -> (tensor<2x1xf32>, tensor<2x2xf32>)
  %c = core.concat %a, %b axis 1 : (tensor<2x1xf32>, tensor<2x2xf32>) -> tensor<2x3xf32>
  func.return %c : tensor<2x3xf32>
}

// -----

// With something before and behind them; who reads one part has a slice.
// CHECK-LABEL: @join_parts_among_others
// CHECK:         %[[A:.*]] = core.slice %x [0] [1] [1]
// CHECK-NEXT:    %[[C:.*]] = core.concat %y, %x, %y axis 0
// CHECK-NEXT:    func.return %[[C]], %[[A]]
func.func @join_parts_among_others(%x : tensor<3xf32>, %y : tensor<1xf32>) -> (tensor<5xf32>, tensor<1xf32>) {
  %a, %b = core.split %x axis 0 sizes [1, 2] : (tensor<3xf32>) -> (tensor<1xf32>, tensor<2xf32>)
  %c = core.concat %y, %a, %b, %y axis 0 : (tensor<1xf32>, tensor<1xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<5xf32>
  func.return %c, %a : tensor<5xf32>, tensor<1xf32>
}

// -----

// Slices that make up x, or all but one element, or in another order.
// CHECK-LABEL: @join_slices
// CHECK:         %[[A:.*]] = core.slice %x [0] [1]
// CHECK:         %[[B:.*]] = core.slice %x [1] [2]
// CHECK:         core.concat %x, %y axis 0
// CHECK:         core.concat %[[A]], %{{.*}}, %y
// CHECK:         core.concat %[[B]], %[[A]], %y
func.func @join_slices(%x : tensor<3xf32>, %y : tensor<1xf32>) -> (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) {
  %a = core.slice %x [0] [1] [1] : (tensor<3xf32>) -> tensor<1xf32>
  %b = core.slice %x [1] [2] [1] : (tensor<3xf32>) -> tensor<2xf32>
  %c = core.slice %x [1] [1] [1] : (tensor<3xf32>) -> tensor<1xf32>
  %r = core.concat %a, %b, %y axis 0 : (tensor<1xf32>, tensor<2xf32>, tensor<1xf32>) -> tensor<4xf32>
  %s = core.concat %a, %c, %y axis 0 : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<3xf32>
  %t = core.concat %b, %a, %y axis 0 : (tensor<2xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return %r, %s, %t : tensor<4xf32>, tensor<3xf32>, tensor<4xf32>
}

// -----

// In another order, along the other axis, without one part, and with one twice: all of x's type.
// CHECK-LABEL: @parts_that_stay
// CHECK:         %[[A:.*]], %[[B:.*]] = core.split %x
// CHECK:         core.concat %[[B]], %[[A]] axis 0
// CHECK:         core.concat %[[A]], %[[B]] axis 1
// CHECK:         core.concat %[[A]], %[[A]] axis 0
// CHECK:         %[[C:.*]], %[[D:.*]], %{{.*}} = core.split %x
// CHECK:         core.concat %[[C]], %[[D]] axis 0
func.func @parts_that_stay(%x : tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<1x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %a, %b = core.split %x axis 0 sizes [1, 1] : (tensor<2x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>)
  %r = core.concat %b, %a axis 0 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  %s = core.concat %a, %b axis 1 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x4xf32>
  %t = core.concat %a, %a axis 0 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  %c, %d, %e = core.split %x axis 0 sizes [1, 1, 0] : (tensor<2x2xf32>) -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<0x2xf32>)
  %u = core.concat %c, %d axis 0 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  func.return %r, %s, %t, %u : tensor<2x2xf32>, tensor<1x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// The parts are the operands: of two equal types, each keeps its place.
// CHECK-LABEL: @split_operands
// CHECK-NEXT:    func.return %y, %x
func.func @split_operands(%x : tensor<2xf32>, %y : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %c = core.concat %x, %y axis 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  %a, %b = core.split %c axis 0 sizes [2, 2] : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  func.return %b, %a : tensor<2xf32>, tensor<2xf32>
}

// -----

// The parts meet elsewhere than the operands, or along another axis.
// CHECK-LABEL: @split_across
// CHECK-COUNT-2: core.split
func.func @split_across(%x : tensor<1x4xf32>, %y : tensor<3x4xf32>, %z : tensor<4x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %c = core.concat %x, %y axis 0 : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
  %a, %b = core.split %c axis 0 sizes [2, 2] : (tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  %d = core.concat %z, %z axis 1 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
  %e, %f = core.split %d axis 0 sizes [2, 2] : (tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
  func.return %a, %b, %e, %f : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// One part is an operand; of the others, which meet elsewhere, one is used.
// CHECK-LABEL: @split_one
// CHECK-NEXT:    %[[C:.*]] = core.concat %x, %y, %z axis 0
// CHECK-NEXT:    %[[S:.*]] = core.slice %[[C]] [3] [4] [1] : (tensor<9xf32>) -> tensor<4xf32>
// CHECK-NEXT:    func.return %x, %[[S]]
func.func @split_one(%x : tensor<2xf32>, %y : tensor<2xf32>, %z : tensor<5xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
  %c = core.concat %x, %y, %z axis 0 : (tensor<2xf32>, tensor<2xf32>, tensor<5xf32>) -> tensor<9xf32>
  %a, %b, %d, %e = core.split %c axis 0 sizes [2, 1, 4, 2] : (tensor<9xf32>) -> (tensor<2xf32>, tensor<1xf32>, tensor<4xf32>, tensor<2xf32>)
  func.return %a, %d : tensor<2xf32>, tensor<4xf32>
}

// -----

// A crop of a concatenation that others need, too: exactly one operand, within one, of open sizes;
// and one element more.
// CHECK-LABEL: @slice_of_operand
// CHECK-NEXT:    core.concat %x, %y, %x axis 1
// CHECK-NEXT:    %[[A:.*]] = core.slice %y [0, 1] [n, 2] [1, 2]
// CHECK-NEXT:    %[[B:.*]] = core.slice %{{.*}} [0, h] [n, 5] [1, 1]
// CHECK-NEXT:    func.return %{{.*}}, %y, %[[A]], %[[B]], %x
func.func @slice_of_operand(%x : tensor<?x?xf32, #core.tensor<dims = [n, h]>>, %y : tensor<?x4xf32, #core.tensor<dims = [n, 4]>>) -> (tensor<?x?xf32, #core.tensor<dims = [n, h * 2 + 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, tensor<?x?xf32, #core.tensor<dims = [n, h]>>) {
  %c = core.concat %x, %y, %x axis 1 : (tensor<?x?xf32, #core.tensor<dims = [n, h]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x?xf32, #core.tensor<dims = [n, h]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, h * 2 + 4]>>
  %0 = core.slice %c [0, h] [n, 4] [1, 1] : (tensor<?x?xf32, #core.tensor<dims = [n, h * 2 + 4]>>) -> tensor<?x4xf32, #core.tensor<dims = [n, 4]>>
  %1 = core.slice %c [0, h + 1] [n, 2] [1, 2] : (tensor<?x?xf32, #core.tensor<dims = [n, h * 2 + 4]>>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  %2 = core.slice %c [0, h] [n, 5] [1, 1] : (tensor<?x?xf32, #core.tensor<dims = [n, h * 2 + 4]>>) -> tensor<?x5xf32, #core.tensor<dims = [n, 5]>>
  %3 = core.slice %c [0, h + 4] [n, h] [1, 1] : (tensor<?x?xf32, #core.tensor<dims = [n, h * 2 + 4]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, h]>>
  func.return %c, %0, %1, %2, %3 : tensor<?x?xf32, #core.tensor<dims = [n, h * 2 + 4]>>, tensor<?x4xf32, #core.tensor<dims = [n, 4]>>, tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, tensor<?x?xf32, #core.tensor<dims = [n, h]>>
}

// -----

// A row of a sequence: the dimension of one in between is not needed. Row 2 of 3, all columns.
// CHECK-LABEL: @slice_between_reshapes
// CHECK-NEXT:    %[[Y:.*]] = core.slice %x [2, 0] [1, 4] [1, 1]
// CHECK-NEXT:    func.return %[[Y]]
func.func @slice_between_reshapes(%x : tensor<3x4xf32>) -> tensor<1x4xf32> {
  %0 = core.reshape %x [3, 1, 4] : (tensor<3x4xf32>) -> tensor<3x1x4xf32>
  %1 = core.slice %0 [2, 0, 0] [1, 1, 4] [1, 1, 1] : (tensor<3x1x4xf32>) -> tensor<1x1x4xf32>
  %2 = core.reshape %1 [1, 4] : (tensor<1x1x4xf32>) -> tensor<1x4xf32>
  func.return %2 : tensor<1x4xf32>
}

// -----

// Here another reshape stays behind the slice; the dimension of one is at another place.
// CHECK-LABEL: @slice_before_reshape
// CHECK-NEXT:    %[[S:.*]] = core.slice %x [0, 2, 3] [1, 1, 2] [1, 1, -1]
// CHECK-NEXT:    %[[Y:.*]] = core.reshape %[[S]] [2]
func.func @slice_before_reshape(%x : tensor<1x3x4xf32>) -> tensor<2xf32> {
  %0 = core.reshape %x [3, 4, 1] : (tensor<1x3x4xf32>) -> tensor<3x4x1xf32>
  %1 = core.slice %0 [2, 3, 0] [1, 2, 1] [1, -1, 1] : (tensor<3x4x1xf32>) -> tensor<1x2x1xf32>
  %2 = core.reshape %1 [2] : (tensor<1x2x1xf32>) -> tensor<2xf32>
  func.return %2 : tensor<2xf32>
}

// -----

// The first reshape merges dimensions: a slice of the result is none of x.
// CHECK-LABEL: @slice_of_merged
// CHECK-COUNT-2: core.reshape
func.func @slice_of_merged(%x : tensor<3x4xf32>) -> tensor<1x5xf32> {
  %0 = core.reshape %x [12] : (tensor<3x4xf32>) -> tensor<12xf32>
  %1 = core.slice %0 [2] [5] [1] : (tensor<12xf32>) -> tensor<5xf32>
  %2 = core.reshape %1 [1, 5] : (tensor<5xf32>) -> tensor<1x5xf32>
  func.return %2 : tensor<1x5xf32>
}

// -----

// Transposes that undo each other leave nothing.
// CHECK-LABEL: @transposes_cancel
// CHECK-NEXT:    func.return %x
func.func @transposes_cancel(%x : tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = core.transpose %x [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %1 = core.transpose %0 [2, 0, 1] : (tensor<3x4x2xf32>) -> tensor<2x3x4xf32>
  func.return %1 : tensor<2x3x4xf32>
}

// -----

// Evenly spaced indices, from the end and backwards: 5 - 1, then 2; one index drops the dimension.
// CHECK-LABEL: @gather_evenly
// CHECK-DAG:     core.slice %x [0, 4] [3, 2] [1, -2]
// CHECK-DAG:     %[[P:.*]] = core.slice %x [1, 0] [1, 5] [1, 1]
// CHECK-DAG:     core.reshape %[[P]] [5]
func.func @gather_evenly(%x : tensor<3x5xf32>) -> (tensor<3x2xf32>, tensor<5xf32>) {
  %i = core.constant dense<[-1, 2]> : tensor<2xi64>
  %j = core.constant dense<1> : tensor<i64>
  %0 = core.gather %x, %i axis 1 : (tensor<3x5xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  %1 = core.gather %x, %j axis 0 : (tensor<3x5xf32>, tensor<i64>) -> tensor<5xf32>
  func.return %0, %1 : tensor<3x2xf32>, tensor<5xf32>
}

// -----

// Uneven, the same twice, or outside: that is an error at run time.
// CHECK-LABEL: @gather_unevenly
// CHECK-COUNT-3: core.gather
func.func @gather_unevenly(%x : tensor<3x5xf32>) -> (tensor<3x3xf32>, tensor<3x2xf32>, tensor<3xf32>) {
  %i = core.constant dense<[0, 1, 3]> : tensor<3xi64>
  %j = core.constant dense<[2, 2]> : tensor<2xi64>
  %k = core.constant dense<5> : tensor<i64>
  %0 = core.gather %x, %i axis 1 : (tensor<3x5xf32>, tensor<3xi64>) -> tensor<3x3xf32>
  %1 = core.gather %x, %j axis 1 : (tensor<3x5xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  %2 = core.gather %x, %k axis 1 : (tensor<3x5xf32>, tensor<i64>) -> tensor<3xf32>
  func.return %0, %1, %2 : tensor<3x3xf32>, tensor<3x2xf32>, tensor<3xf32>
}

// -----

// All parts and slices that are one value are joined together; those of x are in the wrong order.
// CHECK-LABEL: @wholes
// CHECK-SAME:    (%[[X:[a-z]+]]: tensor<4xf32>, %[[Y:[a-z]+]]: tensor<4xf32>, %[[Z:[a-z]+]]: tensor<3xf32>)
// CHECK:         %[[A:.+]], %[[B:.+]] = core.split %[[X]]
// CHECK:         %[[R:.+]] = core.concat %[[Z]], %[[B]], %[[A]], %[[Y]], %[[Z]] axis 0
// CHECK-NEXT:    func.return %[[R]]
func.func @wholes(%x : tensor<4xf32>, %y : tensor<4xf32>, %z : tensor<3xf32>) -> tensor<14xf32> {
  %a, %b = core.split %x axis 0 sizes [1, 3] : (tensor<4xf32>) -> (tensor<1xf32>, tensor<3xf32>)
  %c, %d = core.split %y axis 0 sizes [2, 2] : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %e = core.slice %z [0] [1] [1] : (tensor<3xf32>) -> tensor<1xf32>
  %f = core.slice %z [1] [2] [1] : (tensor<3xf32>) -> tensor<2xf32>
  %r = core.concat %e, %f, %b, %a, %c, %d, %e, %f axis 0 : (tensor<1xf32>, tensor<2xf32>, tensor<3xf32>, tensor<1xf32>, tensor<2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<2xf32>) -> tensor<14xf32>
  func.return %r : tensor<14xf32>
}
