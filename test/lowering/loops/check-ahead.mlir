// RUN: opt-tool %s --for-target x86-64-v4 --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,check-ahead' --split-input-file | filecheck %s

// Indices are checked in vectors, at most 512 at a time, and kept; then elements are moved. What
// counts from the end is resolved; where one index is outside, the run ends, and 0 stands for it.
// CHECK-LABEL: buffer.func @gather_0
// CHECK:      buffer.for <[0, 2, 1]>
// CHECK-NEXT: ^bb0(%[[PART:.*]]: index):
// CHECK-NEXT: %[[KEPT:[0-9]+]] = buffer.scratch : !buffer.ref<[512] x i64>
// CHECK:      %[[INDEX:[0-9]+]] = buffer.load %{{.*}} -> vector<8xi64>
// CHECK:      %[[BACK:[0-9]+]] = buffer.compare lt %[[INDEX]], %{{.*}}
// CHECK:      arith.andi %[[BACK]], %{{.*}}
// CHECK-NEXT: %[[PLACE:[0-9]+]] = arith.addi %[[INDEX]], %{{.*}}
// CHECK-NEXT: %[[INSIDE:[0-9]+]] = buffer.compare unsigned lt %[[PLACE]], %{{.*}}
// CHECK-NEXT: %[[OUTSIDE:[0-9]+]] = buffer.compare unsigned ge %[[PLACE]], %{{.*}}
// CHECK-NEXT: %[[ANY:[0-9]+]] = buffer.any %[[OUTSIDE]]
// CHECK-NEXT: %[[WRONG:[0-9]+]] = arith.extui %[[ANY]] : i1 to i64
// CHECK-NEXT: buffer.check_index %[[WRONG]] <[1]>
// CHECK-NEXT: %[[FOUND:[0-9]+]] = arith.andi %[[PLACE]], %[[INSIDE]]
// CHECK-NEXT: buffer.store %[[FOUND]], %[[KEPT]]
// CHECK:      buffer.for(%[[PART]]) <[0, min(-d0 * 512 + 600, 512), 1]>
// CHECK-NOT:  check_index
// CHECK:      buffer.load %[[KEPT]]
// CHECK:      buffer.store
// CHECK:      buffer.return
func.func @many(%x: tensor<1000xf32>, %i: tensor<600xi64>) -> tensor<600xf32> {
  %y = core.gather %x, %i axis 0 : (tensor<1000xf32>, tensor<600xi64>) -> tensor<600xf32>
  func.return %y : tensor<600xf32>
}

// -----

// Whole rows: one check is for all elements of one.
// CHECK-LABEL: buffer.func @gather_0
// CHECK-NOT: buffer.scratch
// CHECK: buffer.check_index
// CHECK: buffer.return
func.func @rows(%x: tensor<100x64xf32>, %i: tensor<600xi64>) -> tensor<600x64xf32> {
  %y = core.gather %x, %i axis 0 : (tensor<100x64xf32>, tensor<600xi64>) -> tensor<600x64xf32>
  func.return %y : tensor<600x64xf32>
}

// -----

// Few indices are checked where they are used.
// CHECK-LABEL: buffer.func @gather_0
// CHECK-NOT: buffer.scratch
// CHECK: buffer.check_index
// CHECK: buffer.return
func.func @few(%x: tensor<100xf32>, %i: tensor<7xi64>) -> tensor<7xf32> {
  %y = core.gather %x, %i axis 0 : (tensor<100xf32>, tensor<7xi64>) -> tensor<7xf32>
  func.return %y : tensor<7xf32>
}

// -----

// Updates that add up stay in their order: only the checks come first.
// CHECK-LABEL: buffer.func @scatter_elements_0
// CHECK: %[[KEPT:[0-9]+]] = buffer.scratch : !buffer.ref<[512] x i64>
// CHECK: buffer.check_index
// CHECK: buffer.store %{{.*}}, %[[KEPT]]
// CHECK: buffer.for <[0, 40, 1]>
// CHECK: buffer.load %[[KEPT]]
// CHECK: arith.addf
// CHECK: buffer.return
func.func @updates(%x: tensor<9xf32>, %i: tensor<40xi32>, %u: tensor<40xf32>) -> tensor<9xf32> {
  %y = core.scatter_elements add %x, %i, %u axis 0 : (tensor<9xf32>, tensor<40xi32>, tensor<40xf32>) -> tensor<9xf32>
  func.return %y : tensor<9xf32>
}
