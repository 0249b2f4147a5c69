// RUN: opt-tool %s --pass-pipeline=fold-control-flow --split-input-file | filecheck %s

// CHECK-LABEL: @taken
// CHECK-NOT:     core.if
// CHECK:         %[[T:.*]] = core.tanh %x
// CHECK-NEXT:    func.return %[[T]]
func.func @taken(%x : tensor<f32>) -> tensor<f32> {
  %c = core.constant dense<false> : tensor<i1>
  %a = core.if %c : tensor<i1> -> tensor<f32> {
    %e = core.exp %x : (tensor<f32>) -> tensor<f32>
    core.yield %e : tensor<f32>
  } else {
    %t = core.tanh %x : (tensor<f32>) -> tensor<f32>
    core.yield %t : tensor<f32>
  }
  func.return %a : tensor<f32>
}

// -----

// CHECK-LABEL: @unknown
// CHECK:         core.if
func.func @unknown(%c : tensor<i1>, %x : tensor<f32>) -> tensor<f32> {
  %a = core.if %c : tensor<i1> -> tensor<f32> {
    %e = core.exp %x : (tensor<f32>) -> tensor<f32>
    core.yield %e : tensor<f32>
  } else {
    core.yield %x : tensor<f32>
  }
  func.return %a : tensor<f32>
}

// -----

// A negative trip count is no trip; without a condition the loop would otherwise run.
// CHECK-LABEL: @no_trip
// CHECK-NOT:     core.loop
// CHECK:         %[[E:.*]] = core.constant #core.blob<"0x"> : tensor<0xf32>
// CHECK:         func.return %x, %[[E]]
func.func @no_trip(%x : tensor<f32>) -> (tensor<f32>, tensor<0xf32>) {
  %n = core.constant dense<-1> : tensor<i64>
  %a, %s = core.loop trip %n : tensor<i64> carry %x : tensor<f32> -> tensor<f32>, tensor<0xf32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %q, %q : tensor<f32>, tensor<f32>
  } {count = "t"}
  func.return %a, %s : tensor<f32>, tensor<0xf32>
}

// -----

// One trip: the condition is asked before it, and decides only about the next. The number of the
// iteration is 0, and one has run; what is yielded may be what was carried.
// CHECK-LABEL: @one_trip
// CHECK-NOT:     core.loop
// CHECK:         %[[K:.*]] = core.from_dims [0]
// CHECK-NEXT:    core.bind_symbols %[[K]] ["k"]
// CHECK-NEXT:    %[[T:.*]] = core.from_dims [1]
// CHECK-NEXT:    core.bind_symbols %[[T]] ["t"]
// CHECK:         %[[I:.*]] = core.constant dense<0> : tensor<i64>
// CHECK:         %[[P:.*]] = core.slice %r [k, 0] [1, 2] [1, 1]
// CHECK:         %[[Q:.*]] = core.add %[[P]], %x
// CHECK:         %[[S:.*]] = core.reshape %[[Q]] [t, 1, 2]
// CHECK:         func.return %[[Q]], %x, %[[I]], %[[S]]
func.func @one_trip(%x : tensor<1x2xf32>, %r : tensor<4x2xf32>, %j : tensor<i64>)
    -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<i64>,
        tensor<?x1x2xf32, #core.tensor<dims = [t, 1, 2]>>) {
  %n = core.constant dense<1> : tensor<i64>
  %c = core.constant dense<true> : tensor<i1>
  %a, %b, %l, %s = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %x, %x, %j
      : tensor<1x2xf32>, tensor<1x2xf32>, tensor<i64>
      -> tensor<1x2xf32>, tensor<1x2xf32>, tensor<i64>,
         tensor<?x1x2xf32, #core.tensor<dims = [t, 1, 2]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<1x2xf32>, %o : tensor<1x2xf32>, %m : tensor<i64>):
    %row = core.slice %r [k, 0] [1, 2] [1, 1] : (tensor<4x2xf32>) -> tensor<1x2xf32>
    %q = core.add %row, %p : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<1x2xf32>
    %f = core.constant dense<false> : tensor<i1>
    core.yield %f, %q, %p, %i, %q
        : tensor<i1>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<i64>, tensor<1x2xf32>
  } {iteration = "k", count = "t"}
  func.return %a, %b, %l, %s : tensor<1x2xf32>, tensor<1x2xf32>, tensor<i64>,
      tensor<?x1x2xf32, #core.tensor<dims = [t, 1, 2]>>
}

// -----

// The condition may be false: then there is no iteration.
// CHECK-LABEL: @perhaps
// CHECK:         core.loop
func.func @perhaps(%x : tensor<f32>, %c : tensor<i1>) -> tensor<f32> {
  %n = core.constant dense<1> : tensor<i64>
  %a = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %x : tensor<f32>
      -> tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %c, %q : tensor<i1>, tensor<f32>
  }
  func.return %a : tensor<f32>
}

// -----

// The size that the if has named is that of the branch which is taken.
// CHECK-LABEL: @taken_size
// CHECK-NOT:     core.if
// CHECK:         %[[SIZE:.*]] = core.from_dims [3]
// CHECK-NEXT:    core.bind_symbols %[[SIZE]] ["r"]
// CHECK-NEXT:    %[[Y:.*]] = core.reshape %y [r]
// CHECK-NEXT:    core.exp %[[Y]]
func.func @taken_size(%x : tensor<2xf32>, %y : tensor<3xf32>) -> tensor<?xf32, #core.tensor<dims = [r]>> {
  %c = core.constant dense<false> : tensor<i1>
  %a = core.if %c : tensor<i1> -> tensor<?xf32, #core.tensor<dims = [r]>> {
    core.yield %x : tensor<2xf32>
  } else {
    core.yield %y : tensor<3xf32>
  } {result_symbols = ["r"]}
  %b = core.exp %a : (tensor<?xf32, #core.tensor<dims = [r]>>) -> tensor<?xf32, #core.tensor<dims = [r]>>
  func.return %b : tensor<?xf32, #core.tensor<dims = [r]>>
}

// -----

// No iteration: the final size is the initial one.
// CHECK-LABEL: @empty_size
// CHECK-NOT:     core.loop
// CHECK:         core.from_dims [2]
// CHECK-NEXT:    core.bind_symbols %{{.*}} ["r"]
// CHECK-NEXT:    core.reshape %x [r]
func.func @empty_size(%x : tensor<2xf32>) -> tensor<?xf32, #core.tensor<dims = [r]>> {
  %n = core.constant dense<0> : tensor<i64>
  %a = core.loop trip %n : tensor<i64> carry %x : tensor<2xf32> -> tensor<?xf32, #core.tensor<dims = [r]>> {
  ^bb0(%i : tensor<i64>, %v : tensor<?xf32, #core.tensor<dims = [s]>>):
    %e = core.concat %v, %x axis 0 : (tensor<?xf32, #core.tensor<dims = [s]>>, tensor<2xf32>) -> tensor<?xf32, #core.tensor<dims = [s + 2]>>
    core.yield %e : tensor<?xf32, #core.tensor<dims = [s + 2]>>
  } {carried_symbols = ["s"], result_symbols = ["r"]}
  func.return %a : tensor<?xf32, #core.tensor<dims = [r]>>
}

// -----

// What every iteration leaves as it was is the same outside of the loop.
// CHECK-LABEL: @invariant
// CHECK:       ^bb0(%i: tensor<i64>, %p: tensor<f32>, %w: tensor<f32>):
// CHECK-NEXT:    %[[Q:.*]] = core.mul %p, %y
// CHECK-NEXT:    core.yield %[[Q]], %y, %y
// CHECK:         func.return %{{.*}}, %y
func.func @invariant(%x : tensor<f32>, %y : tensor<f32>, %n : tensor<i64>) -> (tensor<f32>, tensor<f32>) {
  %a, %b, %s = core.loop trip %n : tensor<i64> carry %x, %y : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32>, tensor<?xf32, #core.tensor<dims = [t]>> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>, %w : tensor<f32>):
    %q = core.mul %p, %w : (tensor<f32>, tensor<f32>) -> tensor<f32>
    core.yield %q, %w, %w : tensor<f32>, tensor<f32>, tensor<f32>
  } {count = "t"}
  func.return %a, %b : tensor<f32>, tensor<f32>
}

// -----

// Two values that change places are as they were in every other iteration only.
// CHECK-LABEL: @swap
// CHECK:         core.yield %q, %p
func.func @swap(%x : tensor<f32>, %y : tensor<f32>, %n : tensor<i64>) -> tensor<f32> {
  %a, %b = core.loop trip %n : tensor<i64> carry %x, %y : tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>, %q : tensor<f32>):
    core.yield %q, %p : tensor<f32>, tensor<f32>
  }
  func.return %a : tensor<f32>
}

// -----

// The condition comes first: what it yields is no carried value.
// CHECK-LABEL: @condition_first
// CHECK:         core.yield %p, %q : tensor<i1>, tensor<i1>
// CHECK:         func.return %a : tensor<i1>
func.func @condition_first(%c : tensor<i1>, %n : tensor<i64>) -> tensor<i1> {
  %a = core.loop trip %n : tensor<i64> cond %c : tensor<i1> carry %c : tensor<i1> -> tensor<i1> {
  ^bb0(%i : tensor<i64>, %p : tensor<i1>):
    %q = core.not %p : (tensor<i1>) -> tensor<i1>
    core.yield %p, %q : tensor<i1>, tensor<i1>
  }
  func.return %a : tensor<i1>
}

// -----

// Both branches give what was there before; the other result differs.
// CHECK-LABEL: @same_in_both
// CHECK:         %{{.*}}, %[[B:.*]] = core.if
// CHECK:         func.return %x, %[[B]]
func.func @same_in_both(%c : tensor<i1>, %x : tensor<f32>, %y : tensor<f32>)
    -> (tensor<f32>, tensor<f32>) {
  %a, %b = core.if %c : tensor<i1> -> tensor<f32>, tensor<f32> {
    core.yield %x, %x : tensor<f32>, tensor<f32>
  } else {
    core.yield %x, %y : tensor<f32>, tensor<f32>
  }
  func.return %a, %b : tensor<f32>, tensor<f32>
}

// -----

// %p becomes %x again after each iteration, in place of the value it has. %q becomes %x only after
// the first one, so it is %y in that.
// CHECK-LABEL: @reset
// CHECK:         %{{.*}}, %[[B:.*]], %{{.*}} = core.loop
// CHECK-NEXT:    ^{{.*}}(%{{.*}}: tensor<i64>, %{{.*}}: tensor<f32>, %[[Q:.*]]: tensor<f32>, %[[R:.*]]: tensor<f32>):
// CHECK-NEXT:      %[[S:.*]] = core.add %x, %[[Q]]
// CHECK-NEXT:      core.add %[[S]], %[[R]]
// CHECK:         func.return %x, %[[B]]
func.func @reset(%n : tensor<i64>, %x : tensor<f32>, %y : tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %a, %b, %s = core.loop trip %n : tensor<i64> carry %x, %y, %y
      : tensor<f32>, tensor<f32>, tensor<f32> -> tensor<f32>, tensor<f32>, tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>, %q : tensor<f32>, %r : tensor<f32>):
    %t = core.add %p, %q : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %u = core.add %t, %r : (tensor<f32>, tensor<f32>) -> tensor<f32>
    core.yield %x, %x, %u : tensor<f32>, tensor<f32>, tensor<f32>
  }
  func.return %a, %b, %s : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// %p and %q start equal and stay equal; %r starts elsewhere, and %s ends elsewhere.
// CHECK-LABEL: @equal
// CHECK:         %[[A:.*]], %{{.*}}, %[[C:.*]], %[[D:.*]] = core.loop
// CHECK-NEXT:    ^{{.*}}(%{{.*}}: tensor<i64>, %[[P:.*]]: tensor<f32>, %{{.*}}: tensor<f32>, %[[R:.*]]: tensor<f32>, %[[S:.*]]: tensor<f32>):
// CHECK-NEXT:      %[[T:.*]] = core.sub %[[P]], %[[P]]
// CHECK-NEXT:      %[[U:.*]] = core.sub %[[R]], %[[S]]
// CHECK:         func.return %[[A]], %[[A]], %[[C]], %[[D]]
func.func @equal(%n : tensor<i64>, %x : tensor<f32>, %y : tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %a, %b, %c, %d = core.loop trip %n : tensor<i64> carry %x, %x, %y, %x
      : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
      -> tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>, %q : tensor<f32>, %r : tensor<f32>, %s : tensor<f32>):
    %t = core.sub %p, %q : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %u = core.sub %r, %s : (tensor<f32>, tensor<f32>) -> tensor<f32>
    core.yield %t, %t, %t, %u : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
  }
  func.return %a, %b, %c, %d : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}
