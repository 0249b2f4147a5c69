// RUN: opt-tool %s --pass-pipeline=hoist-products --split-input-file --check-each | filecheck %s

// The cell of a recurrent network: the input's part of the product, with the bias, for all steps.
// CHECK-LABEL: func.func @main
// CHECK:         %[[X:.+]] = core.reshape %x [6, 4]
// CHECK:         %[[WX:.+]] = core.slice %w [0, 0] [4, 5]
// CHECK:         %[[P:.+]] = core.matmul %[[X]], %[[WX]]
// CHECK:         %[[Q:.+]] = core.add %[[P]], %b
// CHECK:         %[[Y:.+]] = core.reshape %[[Q]] [3, 2, 5]
// CHECK:         %[[WH:.+]] = core.slice %w [4, 0] [5, 5]
// CHECK:         core.loop
// CHECK-NEXT:    ^bb0(%{{.+}}: tensor<i64>, %[[H:.+]]: tensor<2x5xf32>)
// CHECK-NEXT:      %[[S:.+]] = core.slice %[[Y]] [k, 0, 0] [1, 2, 5]
// CHECK-NEXT:      %[[A:.+]] = core.reshape %[[S]] [2, 5]
// CHECK-NEXT:      %[[B:.+]] = core.matmul %[[H]], %[[WH]]
// CHECK-NEXT:      %[[C:.+]] = core.add %[[A]], %[[B]]
// CHECK-NEXT:      core.tanh %[[C]]
func.func @main(%x : tensor<3x2x4xf32>, %h : tensor<2x5xf32>, %w : tensor<9x5xf32>,
                %b : tensor<5xf32>) -> tensor<2x5xf32> {
  %n = core.constant dense<3> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %h : tensor<2x5xf32> -> tensor<2x5xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2x5xf32>):
    %s = core.slice %x [k, 0, 0] [1, 2, 4] [1, 1, 1] : (tensor<3x2x4xf32>) -> tensor<1x2x4xf32>
    %t = core.reshape %s [2, 4] : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
    %c = core.concat %t, %v axis 1 : (tensor<2x4xf32>, tensor<2x5xf32>) -> tensor<2x9xf32>
    %m = core.matmul %c, %w : (tensor<2x9xf32>, tensor<9x5xf32>) -> tensor<2x5xf32>
    %a = core.add %m, %b : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
    %y = core.tanh %a : (tensor<2x5xf32>) -> tensor<2x5xf32>
    core.yield %y : tensor<2x5xf32>
  } {iteration = "k"}
  func.return %r : tensor<2x5xf32>
}

// -----

// From the end; the state first, between two slices, and a second state: each part meets its own
// rows of the weights. The bias is on the left.
// CHECK-LABEL: func.func @main
// CHECK:         core.slice %w [5, 0] [4, 5]
// CHECK:         core.slice %w [11, 0] [4, 5]
// CHECK:         %[[L:.+]] = core.slice %w [0, 0] [5, 5]
// CHECK:         %[[R:.+]] = core.slice %w [9, 0] [2, 5]
// CHECK:         %[[W:.+]] = core.concat %[[L]], %[[R]] axis 0
// CHECK:         core.loop
// CHECK:           core.slice %{{.+}} [-k + 2, 0, 0] [1, 2, 5]
// CHECK:           %[[H:.+]] = core.concat %{{.+}}, %{{.+}} axis 1
// CHECK-NEXT:      core.matmul %[[H]], %[[W]]
func.func @main(%x : tensor<3x2x4xf32>, %z : tensor<3x8xf32>, %h : tensor<2x5xf32>,
                %g : tensor<2x2xf32>, %w : tensor<15x5xf32>, %b : tensor<1xf32>)
    -> tensor<2x5xf32> {
  %n = core.constant dense<3> : tensor<i64>
  %r, %q = core.loop trip %n : tensor<i64> carry %h, %g : tensor<2x5xf32>, tensor<2x2xf32>
      -> tensor<2x5xf32>, tensor<2x2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2x5xf32>, %u : tensor<2x2xf32>):
    %s = core.slice %x [2 - k, 0, 0] [1, 2, 4] [1, 1, 1]
        : (tensor<3x2x4xf32>) -> tensor<1x2x4xf32>
    %t = core.reshape %s [2, 4] : (tensor<1x2x4xf32>) -> tensor<2x4xf32>
    %o = core.slice %z [2 - k, 0] [1, 8] [1, 1] : (tensor<3x8xf32>) -> tensor<1x8xf32>
    %p = core.reshape %o [2, 4] : (tensor<1x8xf32>) -> tensor<2x4xf32>
    %c = core.concat %v, %t, %u, %p axis 1
        : (tensor<2x5xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x4xf32>) -> tensor<2x15xf32>
    %m = core.matmul %c, %w : (tensor<2x15xf32>, tensor<15x5xf32>) -> tensor<2x5xf32>
    %a = core.add %b, %m : (tensor<1xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
    %y = core.tanh %a : (tensor<2x5xf32>) -> tensor<2x5xf32>
    %f = core.tanh %u : (tensor<2x2xf32>) -> tensor<2x2xf32>
    core.yield %y, %f : tensor<2x5xf32>, tensor<2x2xf32>
  } {iteration = "k"}
  func.return %r : tensor<2x5xf32>
}

// -----

// Without anything else to multiply nothing is left to do in the loop. The sum is used, and so is
// the product alone: no bias is part of what moves.
// CHECK-LABEL: func.func @main
// CHECK:         %[[P:.+]] = core.matmul %x, %w
// CHECK-NEXT:    %[[Y:.+]] = core.reshape %[[P]] [3, 1, 5]
// CHECK-NEXT:    core.loop
// CHECK-NOT:       core.matmul
// CHECK:           core.slice %[[Y]] [k, 0, 0] [1, 1, 5]
// CHECK:           core.add %{{.+}}, %b
func.func @main(%x : tensor<3x4xf32>, %h : tensor<1x5xf32>, %w : tensor<4x5xf32>,
                %b : tensor<5xf32>) -> tensor<1x5xf32> {
  %n = core.constant dense<3> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %h : tensor<1x5xf32> -> tensor<1x5xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<1x5xf32>):
    %s = core.slice %x [k, 0] [1, 4] [1, 1] : (tensor<3x4xf32>) -> tensor<1x4xf32>
    %m = core.matmul %s, %w : (tensor<1x4xf32>, tensor<4x5xf32>) -> tensor<1x5xf32>
    %a = core.add %m, %b : (tensor<1x5xf32>, tensor<5xf32>) -> tensor<1x5xf32>
    %y = core.mul %a, %m : (tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<1x5xf32>
    %z = core.add %y, %v : (tensor<1x5xf32>, tensor<1x5xf32>) -> tensor<1x5xf32>
    core.yield %z : tensor<1x5xf32>
  } {iteration = "k"}
  func.return %r : tensor<1x5xf32>
}

// -----

// The nearest misses. Weights that change in the loop; a part of a slice; columns of x, not rows;
// a slice that does not depend on the iteration.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     core.matmul
// CHECK:         core.loop
// CHECK-COUNT-4:   core.matmul
func.func @main(%x : tensor<3x4xf32>, %z : tensor<4x3xf32>, %h : tensor<4x4xf32>,
                %w : tensor<4x4xf32>) -> tensor<4x4xf32> {
  %n = core.constant dense<3> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %h : tensor<4x4xf32> -> tensor<4x4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<4x4xf32>):
    %s = core.slice %x [k, 0] [1, 4] [1, 1] : (tensor<3x4xf32>) -> tensor<1x4xf32>
    %a = core.matmul %s, %v : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %t = core.slice %w [k, 0] [1, 3] [1, 1] : (tensor<4x4xf32>) -> tensor<1x3xf32>
    %o = core.slice %w [0, 0] [3, 4] [1, 1] : (tensor<4x4xf32>) -> tensor<3x4xf32>
    %b = core.matmul %t, %x : (tensor<1x3xf32>, tensor<3x4xf32>) -> tensor<1x4xf32>
    %p = core.slice %z [0, k] [4, 1] [1, 1] : (tensor<4x3xf32>) -> tensor<4x1xf32>
    %q = core.reshape %p [1, 4] : (tensor<4x1xf32>) -> tensor<1x4xf32>
    %c = core.matmul %q, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %f = core.slice %x [1, 0] [1, 4] [1, 1] : (tensor<3x4xf32>) -> tensor<1x4xf32>
    %d = core.matmul %f, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    %all = core.concat %a, %b, %c, %d axis 0
        : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
    core.yield %all : tensor<4x4xf32>
  } {iteration = "k"}
  func.return %r : tensor<4x4xf32>
}

// -----

// A loop that comes to less than half of the slices, and one that may end before any: their
// products may be more than those that the loop needs. Half precision would be rounded twice.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop trip
// CHECK:           core.matmul
// CHECK:         core.loop trip %{{.+}} cond
// CHECK:           core.matmul
// CHECK:         core.loop trip
// CHECK:           core.matmul
func.func @main(%x : tensor<9x4xf32>, %h : tensor<1x4xf32>, %w : tensor<4x4xf32>, %c : tensor<i1>,
                %d : tensor<9x4xf16>, %g : tensor<1x4xf16>, %e : tensor<4x4xf16>)
    -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf16>) {
  %four = core.constant dense<4> : tensor<i64>
  %nine = core.constant dense<9> : tensor<i64>
  %r = core.loop trip %four : tensor<i64> carry %h : tensor<1x4xf32> -> tensor<1x4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<1x4xf32>):
    %s = core.slice %x [k, 0] [1, 4] [1, 1] : (tensor<9x4xf32>) -> tensor<1x4xf32>
    %a = core.matmul %s, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    core.yield %a : tensor<1x4xf32>
  } {iteration = "k"}
  %q = core.loop trip %nine : tensor<i64> cond %c : tensor<i1> carry %h : tensor<1x4xf32>
      -> tensor<1x4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<1x4xf32>):
    %s = core.slice %x [l, 0] [1, 4] [1, 1] : (tensor<9x4xf32>) -> tensor<1x4xf32>
    %a = core.matmul %s, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
    core.yield %c, %a : tensor<i1>, tensor<1x4xf32>
  } {iteration = "l"}
  %p = core.loop trip %nine : tensor<i64> carry %g : tensor<1x4xf16> -> tensor<1x4xf16> {
  ^bb0(%i : tensor<i64>, %v : tensor<1x4xf16>):
    %s = core.slice %d [m, 0] [1, 4] [1, 1] : (tensor<9x4xf16>) -> tensor<1x4xf16>
    %a = core.matmul %s, %e : (tensor<1x4xf16>, tensor<4x4xf16>) -> tensor<1x4xf16>
    core.yield %a : tensor<1x4xf16>
  } {iteration = "m"}
  func.return %r, %q, %p : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf16>
}

// -----

// Sizes that are not numbers: as many rows as the slices have, which the concatenation has checked.
// CHECK-LABEL: func.func @main
// CHECK:         core.reshape %x [b * n, 4]
// CHECK:         core.loop
// CHECK-NEXT:    ^bb0(%{{.+}}: tensor<i64>, %[[H:.+]]: tensor<?x5xf32, #core.tensor<dims = [c, 5]>>)
// CHECK:           %[[R:.+]] = core.reshape %[[H]] [b, 5]
// CHECK:           core.matmul %[[R]]
func.func @main(%x : tensor<?x?x4xf32, #core.tensor<dims = [n, b, 4]>>,
                %h : tensor<?x5xf32, #core.tensor<dims = [c, 5]>>, %w : tensor<9x5xf32>)
    -> tensor<?x5xf32, #core.tensor<dims = [c, 5]>> {
  %n = core.from_dims [n] shape [] : tensor<i64>
  %r = core.loop trip %n : tensor<i64> carry %h : tensor<?x5xf32, #core.tensor<dims = [c, 5]>>
      -> tensor<?x5xf32, #core.tensor<dims = [c, 5]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?x5xf32, #core.tensor<dims = [c, 5]>>):
    %s = core.slice %x [k, 0, 0] [1, b, 4] [1, 1, 1]
        : (tensor<?x?x4xf32, #core.tensor<dims = [n, b, 4]>>)
        -> tensor<1x?x4xf32, #core.tensor<dims = [1, b, 4]>>
    %t = core.reshape %s [b, 4]
        : (tensor<1x?x4xf32, #core.tensor<dims = [1, b, 4]>>)
        -> tensor<?x4xf32, #core.tensor<dims = [b, 4]>>
    %j = core.concat %t, %v axis 1
        : (tensor<?x4xf32, #core.tensor<dims = [b, 4]>>, tensor<?x5xf32, #core.tensor<dims = [c, 5]>>)
        -> tensor<?x9xf32, #core.tensor<dims = [b, 9]>>
    %m = core.matmul %j, %w
        : (tensor<?x9xf32, #core.tensor<dims = [b, 9]>>, tensor<9x5xf32>)
        -> tensor<?x5xf32, #core.tensor<dims = [b, 5]>>
    %y = core.reshape %m [c, 5]
        : (tensor<?x5xf32, #core.tensor<dims = [b, 5]>>)
        -> tensor<?x5xf32, #core.tensor<dims = [c, 5]>>
    core.yield %y : tensor<?x5xf32, #core.tensor<dims = [c, 5]>>
  } {iteration = "k"}
  func.return %r : tensor<?x5xf32, #core.tensor<dims = [c, 5]>>
}
