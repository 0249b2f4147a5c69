// RUN: opt-tool %s --split-input-file --verify-diagnostics | filecheck %s
// RUN: opt-tool %s --split-input-file --verify-diagnostics -p dce | filecheck %s

// What is right is printed, what is expected is not.
// CHECK:      func.func @good
// CHECK-NOT:  error
// CHECK-NOT:  wrong
func.func @good(%x : tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}

// -----

func.func @wrong_same_line(%x : tensor<2xf32>) {
  %y = core.exp %x : (tensor<2xf32>) -> tensor<3xf32> // expected-error {{result 0 has type tensor<3xf32>}}
  func.return
}

// -----

// All that are wrong, each by another way to name a line.
func.func @wrong_below(%x : tensor<2xf32>) {
  // expected-error@+1 {{tensor<3xf32>}}
  %a = core.exp %x : (tensor<2xf32>) -> tensor<3xf32>
  %b = core.exp %x : (tensor<2xf32>) -> tensor<4xf32>
  // expected-error@-1 {{tensor<4xf32>}}
  // expected-error@below {{op 'core.exp': result 0}}
  %c = core.exp %x : (tensor<2xf32>) -> tensor<5xf32>
  func.return
}

// -----

// Operations of names have no line unless the name has one.
func.func @wrong_anywhere(%x : tensor<2xf32>) {
  %a = core.exp %x : (tensor<2xf32>) -> tensor<3xf32>
  // expected-error-re@above {{type tensor<{{[3-9]}}xf32>, but}}
  %b = core.exp %x : (tensor<2xf32>) -> tensor<4xf32> loc("a-node")
  // expected-error@* {{node 'a-node' (core.exp)}}
  func.return
}

// -----

func.func @unknown(%x : tensor<2xf32>) {
  // expected-error@+1 {{core.nosuch}}
  %y = core.nosuch %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return
}
