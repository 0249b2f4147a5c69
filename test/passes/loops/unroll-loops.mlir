// RUN: opt-tool %s --pass-pipeline=unroll-loops --split-input-file --check-each | filecheck %s

// The number of the iteration is a constant, also where it is a symbol; a captured value stays.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     core.loop
// CHECK:         %[[A:.+]] = core.slice %rows [0, 0] [1, 2]
// CHECK:         %[[B:.+]] = core.add %x, %[[A]]
// CHECK:         %[[C:.+]] = core.slice %rows [1, 0] [1, 2]
// CHECK:         %[[D:.+]] = core.add %[[B]], %[[C]]
// CHECK:         %[[S:.+]] = core.concat %{{.+}}, %{{.+}} axis 0
// CHECK:         func.return %[[D]], %[[S]]
func.func @main(%x : tensor<1x2xf32>, %rows : tensor<3x2xf32>)
    -> (tensor<1x2xf32>, tensor<2x1x2xf32>) {
  %n = core.constant dense<2> : tensor<i64>
  %r, %s = core.loop trip %n : tensor<i64> carry %x : tensor<1x2xf32>
      -> tensor<1x2xf32>, tensor<2x1x2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<1x2xf32>):
    %row = core.slice %rows [k, 0] [1, 2] [1, 1] : (tensor<3x2xf32>) -> tensor<1x2xf32>
    %w = core.add %v, %row : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    core.yield %w, %w : tensor<1x2xf32>, tensor<1x2xf32>
  } {iteration = "k", count = "c"}
  func.return %r, %s : tensor<1x2xf32>, tensor<2x1x2xf32>
}

// -----

// The nearest miss: it may end before.
// CHECK-LABEL: func.func @main
// CHECK:         core.loop
func.func @main(%x : tensor<2xf32>, %go : tensor<i1>) -> tensor<2xf32> {
  %n = core.constant dense<2> : tensor<i64>
  %r = core.loop trip %n : tensor<i64> cond %go : tensor<i1> carry %x : tensor<2xf32>
      -> tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>):
    %w = core.add %v, %v : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %go, %w : tensor<i1>, tensor<2xf32>
  }
  func.return %r : tensor<2xf32>
}

// -----

// Two values that change places: both of an iteration are those of the one before.
// CHECK-LABEL: func.func @main
// CHECK:         %[[A:.+]] = core.sub %x, %y
// CHECK:         %[[B:.+]] = core.sub %y, %[[A]]
// CHECK:         func.return %[[A]], %[[B]]
func.func @main(%x : tensor<2xf32>, %y : tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %n = core.constant dense<2> : tensor<i64>
  %a, %b = core.loop trip %n : tensor<i64> carry %x, %y : tensor<2xf32>, tensor<2xf32>
      -> tensor<2xf32>, tensor<2xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2xf32>, %w : tensor<2xf32>):
    %d = core.sub %v, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    core.yield %w, %d : tensor<2xf32>, tensor<2xf32>
  }
  func.return %a, %b : tensor<2xf32>, tensor<2xf32>
}
