// RUN: opt-tool %s --pass-pipeline=open-outputs --split-input-file | filecheck %s

// Before the copy to it; the output whose size is that of an input is open from the start.
// CHECK-LABEL: buffer.entry ["x", "c"] -> ["y", "z"]
// CHECK-NEXT:  ^bb0(%[[X:.*]]: !buffer.ref<[n] x f32>, %[[C:.*]]: !buffer.ref<[] x i64>, %[[Y:.*]]: !buffer.ref<[n] x f32>, %[[Z:.*]]: !buffer.ref<[m] x f32>):
// CHECK-NEXT:    buffer.bind %[[C]]
// CHECK-NEXT:    buffer.copy %[[X]], %[[Y]]
// CHECK-NEXT:    %[[A:.*]] = buffer.alloc
// CHECK-NEXT:    buffer.open_output %[[Z]] : !buffer.ref<[m] x f32>
// CHECK-NEXT:    buffer.copy %[[A]], %[[Z]]
// CHECK-NEXT:    buffer.return
buffer.entry ["x", "c"] -> ["y", "z"] {
^bb0(%x : !buffer.ref<[n] x f32>, %c : !buffer.ref<[] x i64>, %y : !buffer.ref<[n] x f32>, %z : !buffer.ref<[m] x f32>):
  buffer.bind %c {symbols = ["m"]} : !buffer.ref<[] x i64>
  buffer.copy %x, %y : !buffer.ref<[n] x f32>, !buffer.ref<[n] x f32>
  %a = buffer.alloc {dynamic = true} : !buffer.ref<[m] x f32>
  buffer.copy %a, %z : !buffer.ref<[m] x f32>, !buffer.ref<[m] x f32>
  buffer.return
}

// -----

// All threads see whether there is room, though one of them copies; each output is opened once.
// CHECK-LABEL: buffer.entry ["c"] -> ["y", "z"]
// CHECK:         buffer.bind
// CHECK-NEXT:    buffer.open_output %[[Y:.*]] : !buffer.ref<[m] x i64>
// CHECK-NEXT:    buffer.open_output %[[Z:.*]] : !buffer.ref<[m + 1] x i64>
// CHECK-NEXT:    buffer.once {
// CHECK-NEXT:      buffer.call @k(%[[Y]], %[[Z]])
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    buffer.call @k(%[[Y]], %[[Z]])
// CHECK-NEXT:    buffer.return
buffer.entry ["c"] -> ["y", "z"] {
^bb0(%c : !buffer.ref<[] x i64>, %y : !buffer.ref<[m] x i64>, %z : !buffer.ref<[m + 1] x i64>):
  buffer.bind %c {symbols = ["m"]} : !buffer.ref<[] x i64>
  buffer.once {
    buffer.call @k(%y, %z) <[]> : (!buffer.ref<[m] x i64>, !buffer.ref<[m + 1] x i64>)
    buffer.yield
  }
  buffer.call @k(%y, %z) <[]> : (!buffer.ref<[m] x i64>, !buffer.ref<[m + 1] x i64>)
  buffer.return
}
