// RUN: opt-tool %s --pass-pipeline=move-scratch,plan-memory | filecheck %s

// 4,096 bytes stay on the stack; of two buffers the larger one becomes an output of the kernel, and
// both calls give it the same workspace.
// CHECK-LABEL: buffer.func @few
// CHECK: buffer.scratch : !buffer.ref<[1024] x f32>
// CHECK-LABEL: buffer.func @many
// CHECK-NEXT: ^{{.*}}(%x: !buffer.ref<[4] x f32>, %y: !buffer.ref<[4] x f32>, %[[LARGE:.*]]: !buffer.ref<[1000] x f32>):
// CHECK-NEXT: %s = buffer.scratch : !buffer.ref<[25] x f32>
// CHECK: buffer.store %{{.*}}, %[[LARGE]](%{{.*}})
// CHECK: outputs = #builtin.int<2>
// CHECK-LABEL: buffer.entry
// CHECK: %[[FIRST:.*]] = buffer.alloc {dynamic = false, offset = #core.dims<[0]>} : !buffer.ref<[1000] x f32>
// CHECK-NEXT: buffer.call @many(%{{.*}}, %{{.*}}, %[[FIRST]]) <[]>
// CHECK: %[[SECOND:.*]] = buffer.alloc {dynamic = false, offset = #core.dims<[0]>} : !buffer.ref<[1000] x f32>
// CHECK-NEXT: buffer.call @many(%{{.*}}, %{{.*}}, %[[SECOND]]) <[]>
// CHECK: workspace = #core.dims<[4096]>
buffer.func @few {
^bb0(%x : !buffer.ref<[4] x f32>, %y : !buffer.ref<[4] x f32>):
  %t = buffer.scratch : !buffer.ref<[1024] x f32>
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    buffer.store %a, %t(%i) <[d0 * 9]> : f32, !buffer.ref<[1024] x f32>
    %b = buffer.load %t(%i) <[d0 * 9]> : !buffer.ref<[1024] x f32> -> f32
    buffer.store %b, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
buffer.func @many {
^bb0(%x : !buffer.ref<[4] x f32>, %y : !buffer.ref<[4] x f32>):
  %s = buffer.scratch : !buffer.ref<[25] x f32>
  buffer.for <[0, 4, 1]> {
  ^bb1(%i : index):
    %t = buffer.scratch : !buffer.ref<[1000] x f32>
    %a = buffer.load %x(%i) <[d0]> : !buffer.ref<[4] x f32> -> f32
    buffer.store %a, %t(%i) <[d0 * 9]> : f32, !buffer.ref<[1000] x f32>
    %b = buffer.load %t(%i) <[d0 * 9]> : !buffer.ref<[1000] x f32> -> f32
    buffer.store %b, %s(%i) <[d0]> : f32, !buffer.ref<[25] x f32>
    %c = buffer.load %s(%i) <[d0]> : !buffer.ref<[25] x f32> -> f32
    buffer.store %c, %y(%i) <[d0]> : f32, !buffer.ref<[4] x f32>
    buffer.yield
  } {parallel = false}
  buffer.return
} {symbols = [], outputs = #builtin.int<1>}
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[4] x f32>, %y : !buffer.ref<[4] x f32>):
  %a = buffer.alloc {dynamic = false} : !buffer.ref<[4] x f32>
  buffer.call @few(%x, %a) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
  buffer.call @many(%a, %y) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
  buffer.call @many(%x, %y) <[]> : (!buffer.ref<[4] x f32>, !buffer.ref<[4] x f32>)
  buffer.return
}
