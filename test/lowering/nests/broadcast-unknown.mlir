// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// Two dimensions with different names may be equal or one of them 1: the index is clamped, and the
// entry function checks.

// CHECK: buffer.func @add_0
// CHECK: buffer.for <[0, max(s0, s1), 1]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[min(d0, s0 - 1)]>
// CHECK-NEXT: buffer.load %{{.*}}(%{{.*}}) <[min(d0, s1 - 1)]>
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0]>
// CHECK: buffer.entry
// CHECK: buffer.require <[n]> broadcast <[max(m, n)]>
// CHECK-NEXT: buffer.require <[m]> broadcast <[max(m, n)]>
// CHECK-NEXT: buffer.call @add_0(%{{.*}}) <[n, m]>
func.func @main(%x: tensor<?xf32, #core.tensor<dims = [n]>>, %z: tensor<?xf32, #core.tensor<dims = [m]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>> {
  %y = core.add %x, %z : (tensor<?xf32, #core.tensor<dims = [n]>>, tensor<?xf32, #core.tensor<dims = [m]>>) -> tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
  func.return %y : tensor<?xf32, #core.tensor<dims = [max(m, n)]>>
}
