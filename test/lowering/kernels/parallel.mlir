// RUN: opt-tool %s --pass-pipeline=form-kernels,bufferize,parallelize | filecheck %s

// Each thread takes its share of the outermost loop, and everybody waits.

// CHECK: buffer.func @exp_0
// CHECK: buffer.for <[(s0 * 10) floordiv s1, (s0 * 10 + 10) floordiv s1, 1]>
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK-NEXT: math.exp %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, d1]>
// CHECK: buffer.func @run
// CHECK: buffer.call @exp_0(%{{.*}}) <[thread.id, thread.count]>
// CHECK-NEXT: buffer.barrier
func.func @main(%x: tensor<10x3xf32>) -> tensor<10x3xf32> {
  %y = core.exp %x : (tensor<10x3xf32>) -> tensor<10x3xf32>
  func.return %y : tensor<10x3xf32>
}
