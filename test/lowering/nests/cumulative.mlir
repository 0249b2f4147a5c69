// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels | filecheck %s

// The running value is stored before the element is added, and the line is walked from its end.

// CHECK: buffer.func @cumulative_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[0, 5, 1]> carry %{{.*}} : f64 -> f64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, -d1 + 4]>
// CHECK-NEXT: arith.extf %{{.*}}
// CHECK-NEXT: arith.addf %{{.*}}
// CHECK-NEXT: arith.truncf %{{.*}}
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, -d1 + 4]>
// CHECK: buffer.entry
// CHECK: buffer.call @cumulative_0(%{{.*}}) <[]>
func.func @main(%x: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %y = core.cumulative sum %x axis 1 {exclusive = true, reverse = true} : (tensor<2x5xf32>) -> tensor<2x5xf32>
  func.return %y : tensor<2x5xf32>
}
