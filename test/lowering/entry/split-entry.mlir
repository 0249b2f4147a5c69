// RUN: opt-tool %s --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,plan-memory,split-entry{limit=27}' --split-input-file | filecheck %s

// 15 ops, and 12 statements around them: as long as it may be.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:   buffer.section
// CHECK:       buffer.return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = core.softmax %x axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.softmax %0 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = core.softmax %1 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %3 = core.softmax %2 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %4 = core.softmax %3 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %5 = core.softmax %4 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %6 = core.softmax %5 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %7 = core.softmax %6 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %7 : tensor<8xf32>
}

// -----

// One more. A section gets what it uses, and gives what others need; its last one writes the output.
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^{{.*}}(%[[X:.*]]: !buffer.ref<[8] x f32>, %[[Y:.*]]: !buffer.ref<[8] x f32>):
// CHECK-NEXT:    %[[R:.*]] = buffer.section(%[[X]] : !buffer.ref<[8] x f32>) -> !buffer.ref<[8] x f32> {
// CHECK-NEXT:    ^{{.*}}(%[[IN:.*]]: !buffer.ref<[8] x f32>):
// CHECK-NEXT:      %[[A:.*]] = buffer.alloc
// CHECK-NEXT:      buffer.call @softmax_0(%[[IN]], %[[A]])
// CHECK-COUNT-9:   buffer.alloc
// CHECK-NEXT:      buffer.call @softmax_0(%{{.*}}, %[[B:.*]]) <[]>
// CHECK-NEXT:      buffer.yield %[[B]] : !buffer.ref<[8] x f32>
// CHECK-NEXT:    }
// CHECK-NOT:     buffer.section
// CHECK:         buffer.call @softmax_0(%[[R]],
// CHECK-NOT:     buffer.section
// CHECK:         buffer.call @softmax_0(%{{.*}}, %[[Y]])
// CHECK-NEXT:    buffer.return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = core.softmax %x axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.softmax %0 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = core.softmax %1 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %3 = core.softmax %2 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %4 = core.softmax %3 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %5 = core.softmax %4 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %6 = core.softmax %5 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %7 = core.softmax %6 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %8 = core.softmax %7 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %9 = core.softmax %8 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %10 = core.softmax %9 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %11 = core.softmax %10 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %11 : tensor<8xf32>
}

// -----

// A constant that both sections use is in both. A section has as many ops as leave room for more.
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^{{.*}}(%[[X:.*]]: !buffer.ref<[8] x f32>, %[[Y:.*]]: !buffer.ref<[8] x f32>):
// CHECK-NEXT:    %[[R:.*]] = buffer.section(%[[X]] :
// CHECK-NEXT:    ^{{.*}}:
// CHECK-NEXT:      buffer.weight
// CHECK-NOT:       buffer.weight
// CHECK:           buffer.yield
// CHECK:         buffer.section(%[[R]], %[[Y]] : {{[^>]*>, [^>]*>}}) {
// CHECK-NEXT:    ^{{.*}}:
// CHECK-NEXT:      buffer.weight
// CHECK-NOT:       buffer.weight
// CHECK:         buffer.return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %w = core.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %a0 = core.add %x, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %0 = core.softmax %a0 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a1 = core.add %0, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = core.softmax %a1 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a2 = core.add %1, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = core.softmax %a2 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a3 = core.add %2, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = core.softmax %a3 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a4 = core.add %3, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = core.softmax %a4 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a5 = core.add %4, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %5 = core.softmax %a5 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a6 = core.add %5, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = core.softmax %a6 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a7 = core.add %6, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %7 = core.softmax %a7 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a8 = core.add %7, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %8 = core.softmax %a8 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %a9 = core.add %8, %w : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %9 = core.softmax %a9 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  func.return %9 : tensor<8xf32>
}

// -----

// Symbols go in and out; a buffer from the allocator does, too. What is still too long becomes a
// section with sections in it; the copy to an output of a size that was not known stays outside.
// CHECK-LABEL: buffer.entry
// CHECK-NEXT:  ^
// CHECK-NEXT:    %[[ALL:.*]] = buffer.section(%{{.*}} : !buffer.ref<[8] x f32>) -> !buffer.ref<[1, u] x f32> {
// CHECK-NEXT:    ^
// CHECK-NEXT:      %[[S:.*]], %[[D:.*]] = buffer.section({{.*}} -> !buffer.ref<[8] x f32>, !buffer.ref<[1, u] x i64> {
// CHECK:             buffer.bind {{.*}} {symbols = ["u"]}
// CHECK-NEXT:        %[[INNER:.*]] = buffer.alloc {dynamic = true} : !buffer.ref<[1, u] x i64>
// CHECK-NEXT:        buffer.yield %{{.*}}, %[[INNER]] :
// CHECK-NEXT:      } {result_symbols = ["u"]}
// CHECK-NEXT:      %{{.*}} = buffer.section(%[[S]], %[[D]] :
// CHECK:           } {symbols = ["u"]}
// CHECK:         } {result_symbols = ["u"]}
// CHECK-NEXT:    buffer.copy %[[ALL]],
// CHECK-NEXT:    buffer.return
func.func @main(%x: tensor<8xf32>) -> tensor<1x?xf32, #core.tensor<dims = [1, u]>> {
  %0 = core.softmax %x axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %1 = core.softmax %0 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %2 = core.softmax %1 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %3 = core.softmax %2 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %4 = core.softmax %3 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
  %c = core.count_nonzero %4 : (tensor<8xf32>) -> tensor<i64>
  core.bind_symbols %c ["u"] : tensor<i64>
  %n = core.nonzero %4 [u] : (tensor<8xf32>) -> tensor<1x?xi64, #core.tensor<dims = [1, u]>>
  %f = core.cast %n to f32 : (tensor<1x?xi64, #core.tensor<dims = [1, u]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, u]>>
  %b0 = core.softmax %f axis 1 : (tensor<1x?xf32, #core.tensor<dims = [1, u]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, u]>>
  %b1 = core.softmax %b0 axis 1 : (tensor<1x?xf32, #core.tensor<dims = [1, u]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, u]>>
  %b2 = core.softmax %b1 axis 1 : (tensor<1x?xf32, #core.tensor<dims = [1, u]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, u]>>
  %b3 = core.softmax %b2 axis 1 : (tensor<1x?xf32, #core.tensor<dims = [1, u]>>) -> tensor<1x?xf32, #core.tensor<dims = [1, u]>>
  func.return %b3 : tensor<1x?xf32, #core.tensor<dims = [1, u]>>
}

// -----

// The body of a loop that is too long by itself; what swaps at its end is outside.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.loop trip
// CHECK-NEXT:    ^{{.*}}(%[[CURRENT:.*]]: !buffer.ref<[8] x f32>, %[[NEXT:.*]]: !buffer.ref<[8] x f32>):
// CHECK-NEXT:      %[[R:.*]] = buffer.section(%[[CURRENT]] :
// CHECK:           buffer.section(%{{.*}}, %[[NEXT]] :
// CHECK:             buffer.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK:         buffer.return
func.func @main(%x: tensor<8xf32>, %n: tensor<i64>) -> tensor<8xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<8xf32> -> tensor<8xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<8xf32>):
    %0 = core.softmax %v axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %1 = core.softmax %0 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = core.softmax %1 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %3 = core.softmax %2 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %4 = core.softmax %3 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %5 = core.softmax %4 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %6 = core.softmax %5 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %7 = core.softmax %6 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %8 = core.softmax %7 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %9 = core.softmax %8 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %10 = core.softmax %9 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %11 = core.softmax %10 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %12 = core.softmax %11 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %13 = core.softmax %12 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %14 = core.softmax %13 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    %15 = core.softmax %14 axis 0 : (tensor<8xf32>) -> tensor<8xf32>
    core.yield %15 : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}
