// RUN: opt-tool %s --pass-pipeline=fix-input-sizes --split-input-file | filecheck %s

// The weights say how many channels there are; batch and positions stay open.
// CHECK-LABEL: @channels
// CHECK-SAME:    %x: tensor<?x4x?xf32, #core.tensor<dims = [n, 4, h]>>
func.func @channels(%x : tensor<?x?x?xf32, #core.tensor<dims = [n, c, h]>>, %w : tensor<5x4x3xf32>) -> tensor<?x5x?xf32, #core.tensor<dims = [n, 5, h - 2]>> {
  %y = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<?x?x?xf32, #core.tensor<dims = [n, c, h]>>, tensor<5x4x3xf32>) -> tensor<?x5x?xf32, #core.tensor<dims = [n, 5, h - 2]>>
  func.return %y : tensor<?x5x?xf32, #core.tensor<dims = [n, 5, h - 2]>>
}

// -----

// Of groups each has its share of them.
// CHECK-LABEL: @groups
// CHECK-SAME:    %x: tensor<?x6x?xf32, #core.tensor<dims = [n, 6, h]>>
func.func @groups(%x : tensor<?x?x?xf32, #core.tensor<dims = [n, c, h]>>, %w : tensor<6x2x3xf32>) -> tensor<?x6x?xf32, #core.tensor<dims = [n, 6, h - 2]>> {
  %y = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 3 : (tensor<?x?x?xf32, #core.tensor<dims = [n, c, h]>>, tensor<6x2x3xf32>) -> tensor<?x6x?xf32, #core.tensor<dims = [n, 6, h - 2]>>
  func.return %y : tensor<?x6x?xf32, #core.tensor<dims = [n, 6, h - 2]>>
}

// -----

// Of two inputs of one size the second takes the symbol of the first; n and m have no other.
// CHECK-LABEL: @others
// CHECK-SAME:    %x: tensor<?x?xf32, #core.tensor<dims = [n, k]>>, %w: tensor<?x?xf32, #core.tensor<dims = [k, m]>>
func.func @others(%x : tensor<?x?xf32, #core.tensor<dims = [n, k]>>, %w : tensor<?x?xf32, #core.tensor<dims = [l, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, m]>> {
  %y = core.matmul %x, %w : (tensor<?x?xf32, #core.tensor<dims = [n, k]>>, tensor<?x?xf32, #core.tensor<dims = [l, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, m]>>
  func.return %y : tensor<?x?xf32, #core.tensor<dims = [n, m]>>
}

// -----

// What one op finds others have found to be equal: l is k, so it is 7 in both.
// CHECK-LABEL: @chain
// CHECK-SAME:    %x: tensor<?x7xf32, #core.tensor<dims = [n, 7]>>, %w: tensor<7x?xf32, #core.tensor<dims = [7, m]>>
// CHECK:         core.iota [7, 9]
func.func @chain(%x : tensor<?x?xf32, #core.tensor<dims = [n, k]>>, %w : tensor<?x?xf32, #core.tensor<dims = [l, m]>>) -> (tensor<?x?xf32, #core.tensor<dims = [n, m]>>, tensor<63xi64>) {
  %y = core.matmul %x, %w : (tensor<?x?xf32, #core.tensor<dims = [n, k]>>, tensor<?x?xf32, #core.tensor<dims = [l, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, m]>>
  %i = core.iota [l, 9] axis 0 : tensor<?x9xi64, #core.tensor<dims = [l, 9]>>
  %z = core.reshape %i [63] : (tensor<?x9xi64, #core.tensor<dims = [l, 9]>>) -> tensor<63xi64>
  func.return %y, %z : tensor<?x?xf32, #core.tensor<dims = [n, m]>>, tensor<63xi64>
}

// -----

// Only one row can be repeated to one; to be repeated ten times, there may be ten.
// CHECK-LABEL: @one
// CHECK-SAME:    %x: tensor<1x3xf32>, %y: tensor<?x3xf32, #core.tensor<dims = [m, 3]>>
func.func @one(%x : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, %y : tensor<?x3xf32, #core.tensor<dims = [m, 3]>>) -> (tensor<1x3xf32>, tensor<10x3xf32>) {
  %a = core.broadcast %x [1, 3] : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>) -> tensor<1x3xf32>
  %b = core.broadcast %y [10, 3] : (tensor<?x3xf32, #core.tensor<dims = [m, 3]>>) -> tensor<10x3xf32>
  func.return %a, %b : tensor<1x3xf32>, tensor<10x3xf32>
}

// -----

// Two unknowns have several solutions, half an element none, and a square is no sum.
// CHECK-LABEL: @product
// CHECK-SAME:    dims = [n, m]
// CHECK-SAME:    dims = [k, 4]
// CHECK-SAME:    dims = [l, l]
func.func @product(%x : tensor<?x?xf32, #core.tensor<dims = [n, m]>>, %y : tensor<?x4xf32, #core.tensor<dims = [k, 4]>>, %z : tensor<?x?xf32, #core.tensor<dims = [l, l]>>) -> (tensor<12xf32>, tensor<6xf32>, tensor<9xf32>) {
  %a = core.reshape %x [12] : (tensor<?x?xf32, #core.tensor<dims = [n, m]>>) -> tensor<12xf32>
  %b = core.reshape %y [6] : (tensor<?x4xf32, #core.tensor<dims = [k, 4]>>) -> tensor<6xf32>
  %c = core.reshape %z [9] : (tensor<?x?xf32, #core.tensor<dims = [l, l]>>) -> tensor<9xf32>
  func.return %a, %b, %c : tensor<12xf32>, tensor<6xf32>, tensor<9xf32>
}

// -----

// A size that data give is checked when they are known: it is no size of an input.
// CHECK-LABEL: @data
// CHECK-SAME:    dims = [n]
// CHECK:         core.iota [s]
func.func @data(%x : tensor<1xi64>, %y : tensor<?xf32, #core.tensor<dims = [n]>>) -> (tensor<5xi64>, tensor<?xf32, #core.tensor<dims = [s]>>) {
  core.bind_symbols %x ["s"] : tensor<1xi64>
  %i = core.iota [s] axis 0 : tensor<?xi64, #core.tensor<dims = [s]>>
  %r = core.reshape %i [5] : (tensor<?xi64, #core.tensor<dims = [s]>>) -> tensor<5xi64>
  %c = core.broadcast %y [s] : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [s]>>
  func.return %r, %c : tensor<5xi64>, tensor<?xf32, #core.tensor<dims = [s]>>
}

// -----

// A branch that wants three elements need not run; one that could not run otherwise keeps a size
// open that each run has.
// CHECK-LABEL: @branch
// CHECK-SAME:    dims = [n]
// CHECK-SAME:    dims = [m]
func.func @branch(%x : tensor<?xf32, #core.tensor<dims = [n]>>, %y : tensor<?xf32, #core.tensor<dims = [m]>>, %c : tensor<i1>) -> (tensor<3xf32>, tensor<4xf32>) {
  %z = core.constant dense<0.0> : tensor<3xf32>
  %r = core.reshape %y [4] : (tensor<?xf32, #core.tensor<dims = [m]>>) -> tensor<4xf32>
  %a = core.if %c : tensor<i1> -> tensor<3xf32> {
    %0 = core.reshape %x [3] : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<3xf32>
    core.yield %0 : tensor<3xf32>
  } else {
    %1 = core.add %y, %z : (tensor<?xf32, #core.tensor<dims = [m]>>, tensor<3xf32>) -> tensor<3xf32>
    core.yield %1 : tensor<3xf32>
  }
  func.return %a, %r : tensor<3xf32>, tensor<4xf32>
}

// -----

// Nor does a size that others have taken: the branch is about l, which is k by then.
// CHECK-LABEL: @branch_of_others
// CHECK-SAME:    dims = [n, k]
// CHECK-SAME:    dims = [k, m]
func.func @branch_of_others(%x : tensor<?x?xf32, #core.tensor<dims = [n, k]>>, %w : tensor<?x?xf32, #core.tensor<dims = [l, m]>>, %c : tensor<i1>) -> (tensor<?x?xf32, #core.tensor<dims = [n, m]>>, tensor<63xi64>, tensor<3xi64>) {
  %y = core.matmul %x, %w : (tensor<?x?xf32, #core.tensor<dims = [n, k]>>, tensor<?x?xf32, #core.tensor<dims = [l, m]>>) -> tensor<?x?xf32, #core.tensor<dims = [n, m]>>
  %j = core.iota [l] axis 0 : tensor<?xi64, #core.tensor<dims = [l]>>
  %i = core.iota [k, 9] axis 0 : tensor<?x9xi64, #core.tensor<dims = [k, 9]>>
  %r = core.reshape %i [63] : (tensor<?x9xi64, #core.tensor<dims = [k, 9]>>) -> tensor<63xi64>
  %o = core.constant dense<1> : tensor<3xi64>
  %s = core.if %c : tensor<i1> -> tensor<3xi64> {
    %0 = core.add %j, %o : (tensor<?xi64, #core.tensor<dims = [l]>>, tensor<3xi64>) -> tensor<3xi64>
    core.yield %0 : tensor<3xi64>
  } else {
    core.yield %o : tensor<3xi64>
  }
  func.return %y, %r, %s : tensor<?x?xf32, #core.tensor<dims = [n, m]>>, tensor<63xi64>, tensor<3xi64>
}

// -----

// A name that two functions have stands for a size of each.
// CHECK-LABEL: @first
// CHECK-SAME:    dims = [n]
func.func @first(%x : tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<4xf32> {
  %a = core.reshape %x [4] : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// It may be another one there.
// CHECK-LABEL: @second
// CHECK-SAME:    dims = [n]
func.func @second(%x : tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>> {
  %a = core.neg %x : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
  func.return %a : tensor<?xf32, #core.tensor<dims = [n]>>
}
