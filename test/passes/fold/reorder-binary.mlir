// RUN: opt-tool %s --pass-pipeline=reorder-binary --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=reorder-binary,cse --split-input-file | filecheck %s --check-prefix=CSE

// The second product is the first one; so is the sum of it, and a comparison from the other side.
// CHECK-LABEL: @equal
// CHECK-NEXT:    %[[P:.*]] = core.mul %x, %z
// CHECK-NEXT:    %[[Q:.*]] = core.mul %x, %z
// CHECK-NEXT:    core.add %w, %[[P]]
// CHECK-NEXT:    core.add %w, %[[Q]]
// CHECK-NEXT:    core.compare lt %x, %z
// CHECK-NEXT:    core.compare lt %x, %z
// CSE-LABEL:   @equal
// CSE-COUNT-1:   core.mul
// CSE-COUNT-1:   core.add
// CSE-COUNT-1:   core.compare
// CSE-NEXT:      func.return
func.func @equal(%x : tensor<3xf32>, %w : tensor<3xf32>, %z : tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>) {
  %0 = core.mul %x, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = core.mul %z, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = core.add %w, %0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %3 = core.add %1, %w : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %4 = core.compare lt %x, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %5 = core.compare gt %z, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  func.return %2, %3, %4, %5 : tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>
}

// -----

// Differences do not commute, other comparisons are others, and a maximum of 0 and -0 may be either.
// CSE-LABEL:   @different
// CSE-COUNT-2:   core.sub
// CSE-COUNT-2:   core.compare
// CSE-COUNT-2:   core.max
// CSE-LABEL:   @integers
// CSE-COUNT-1:   core.max
// CSE-NEXT:      func.return
func.func @different(%x : tensor<3xf32>, %z : tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>, tensor<3xf32>, tensor<3xf32>) {
  %0 = core.sub %x, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = core.sub %z, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = core.compare lt %x, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %3 = core.compare lt %z, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>
  %4 = core.max %x, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %5 = core.max %z, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %0, %1, %2, %3, %4, %5 : tensor<3xf32>, tensor<3xf32>, tensor<3xi1>, tensor<3xi1>, tensor<3xf32>, tensor<3xf32>
}
func.func @integers(%x : tensor<3xi8>, %z : tensor<3xi8>) -> (tensor<3xi8>, tensor<3xi8>) {
  %0 = core.max %x, %z : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  %1 = core.max %z, %x : (tensor<3xi8>, tensor<3xi8>) -> tensor<3xi8>
  func.return %0, %1 : tensor<3xi8>, tensor<3xi8>
}

// -----

// The first order is kept: it is that of an epilogue, perhaps. There is nothing it is equal to.
// CHECK-LABEL: @alone
// CHECK-NEXT:    core.add %z, %x
func.func @alone(%x : tensor<3xf32>, %z : tensor<3xf32>) -> tensor<3xf32> {
  %0 = core.add %z, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %0 : tensor<3xf32>
}

// -----

// In branches, too, what is computed before them is known.
// CSE-LABEL:   @branches
// CSE:           core.mul
// CSE-NOT:       core.mul
// CSE-LABEL:   @constants
func.func @branches(%b : tensor<i1>, %x : tensor<3xf32>, %z : tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = core.mul %x, %z : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = core.if %b : tensor<i1> -> tensor<3xf32> {
    %2 = core.mul %z, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    core.yield %2 : tensor<3xf32>
  } else {
    core.yield %x : tensor<3xf32>
  }
  func.return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// -----

// Constants meet (fold adds them up), also in a tree; of floats, each sum is rounded.
// CHECK-LABEL: @constants
// CHECK-DAG:     %[[S:.*]] = core.add %x, %y
// CHECK-DAG:     %[[T:.*]] = core.add %{{[cd]}}, %{{[cd]}} : (tensor<i32>, tensor<i32>) -> tensor<i32>
// CHECK:         core.add %[[S]], %[[T]]
// CHECK-LABEL: @one_constant
// CHECK:         core.mul %x, %c
// CHECK-LABEL: @tree
// CHECK-DAG:     %[[P:.*]] = core.mul %x, %y
// CHECK-DAG:     %[[Q:.*]] = core.mul %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i32>
// CHECK-DAG:     %[[R:.*]] = core.mul %c, %[[Q]] : (tensor<i32>, tensor<i32>) -> tensor<i32>
// CHECK:         %[[S:.*]] = core.mul %[[P]], %[[R]]
// CHECK-NEXT:    core.add %[[S]], %c
// CHECK-LABEL: @floats
// CHECK:         %[[S:.*]] = core.add %x, %c
// CHECK-NEXT:    core.add %[[S]], %d
func.func @constants(%x : tensor<3xi32>, %y : tensor<3xi32>) -> tensor<3xi32> {
  %c = core.constant dense<3> : tensor<i32>
  %d = core.constant dense<4> : tensor<i32>
  %0 = core.add %x, %c : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %1 = core.add %y, %d : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %2 = core.add %0, %1 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  func.return %2 : tensor<3xi32>
}
func.func @one_constant(%x : tensor<3xi32>, %y : tensor<3xi32>) -> tensor<3xi32> {
  %c = core.constant dense<3> : tensor<i32>
  %0 = core.mul %x, %c : (tensor<3xi32>, tensor<i32>) -> tensor<3xi32>
  %1 = core.mul %0, %y : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi32>
  func.return %1 : tensor<3xi32>
}
func.func @tree(%x : tensor<i32>, %y : tensor<i32>) -> tensor<i32> {
  %c = core.constant dense<3> : tensor<i32>
  %d = core.constant dense<5> : tensor<i32>
  %0 = core.mul %x, %c : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %1 = core.mul %0, %y : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %2 = core.mul %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %3 = core.mul %2, %1 : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %4 = core.add %3, %c : (tensor<i32>, tensor<i32>) -> tensor<i32>
  func.return %4 : tensor<i32>
}
func.func @floats(%x : tensor<3xf32>) -> tensor<3xf32> {
  %c = core.constant dense<3.0> : tensor<f32>
  %d = core.constant dense<4.0> : tensor<f32>
  %0 = core.add %x, %c : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = core.add %0, %d : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}

// -----

// The product of a row and a scalar before that with a matrix; not what others need, too, nor so
// that the constant meets more elements.
// CHECK-LABEL: @small_first
// CHECK-NEXT:    %[[S:.*]] = core.mul %y, %z : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
// CHECK-NEXT:    core.mul %x, %[[S]]
// CHECK-LABEL: @needed_too
// CHECK-NEXT:    core.mul %x, %y
// CHECK-LABEL: @row_and_constant
// CHECK:         %[[S:.*]] = core.add %y, %c
// CHECK-NEXT:    core.add %[[S]], %x
func.func @small_first(%x : tensor<3x4xi32>, %y : tensor<4xi32>, %z : tensor<i32>) -> tensor<3x4xi32> {
  %0 = core.mul %x, %y : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
  %1 = core.mul %0, %z : (tensor<3x4xi32>, tensor<i32>) -> tensor<3x4xi32>
  func.return %1 : tensor<3x4xi32>
}
func.func @needed_too(%x : tensor<3x4xi32>, %y : tensor<4xi32>, %z : tensor<i32>) -> (tensor<3x4xi32>, tensor<3x4xi32>) {
  %0 = core.mul %x, %y : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
  %1 = core.mul %0, %z : (tensor<3x4xi32>, tensor<i32>) -> tensor<3x4xi32>
  func.return %0, %1 : tensor<3x4xi32>, tensor<3x4xi32>
}
func.func @row_and_constant(%x : tensor<3x4xi32>, %y : tensor<4xi32>) -> tensor<3x4xi32> {
  %c = core.constant dense<3> : tensor<i32>
  %0 = core.add %y, %c : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  %1 = core.add %0, %x : (tensor<4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
  func.return %1 : tensor<3x4xi32>
}
