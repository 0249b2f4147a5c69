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

// One trip: the condition is asked before it, and decides only about the next.
// CHECK-LABEL: @one_trip
// CHECK:         core.loop
func.func @one_trip(%x : tensor<f32>) -> tensor<f32> {
  %n = core.constant dense<1> : tensor<i64>
  %a = core.loop trip %n : tensor<i64> carry %x : tensor<f32> -> tensor<f32> {
  ^bb0(%i : tensor<i64>, %p : tensor<f32>):
    %q = core.exp %p : (tensor<f32>) -> tensor<f32>
    core.yield %q : tensor<f32>
  }
  func.return %a : tensor<f32>
}
