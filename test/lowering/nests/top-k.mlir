// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels --split-input-file | filecheck %s

// Few of few: the best are carried, by keys that are integers. A better one takes the place of the
// one behind which it comes no longer, and that one of the next. Elements are fetched at the end.
// CHECK-LABEL: buffer.func @top_k_0
// CHECK: buffer.for <[0, 2, 1]>
// CHECK: buffer.for <[2, 9, 1]> carry %{{.*}} : i32, i32, i32, i32 -> i32, i32, i32, i32
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[A:.*]]: i32, %[[I:.*]]: i32, %[[B:.*]]: i32, %[[J:.*]]: i32):
// CHECK: arith.cmpf uno
// CHECK-NEXT: %[[KEY:[0-9]+]] = arith.select
// CHECK-NEXT: %[[FIRST:[0-9]+]] = arith.cmpi sgt, %[[KEY]], %[[A]] : i32
// CHECK-NEXT: arith.select %[[FIRST]], %{{.*}}, %[[I]] : i32
// CHECK-NEXT: %[[BACK:[0-9]+]] = arith.select %[[FIRST]], %[[I]], %{{.*}} : i32
// CHECK-NEXT: arith.maxsi %[[KEY]], %[[A]] : i32
// CHECK-NEXT: arith.minsi %[[KEY]], %[[A]] : i32
// CHECK-NEXT: %[[SECOND:[0-9]+]] = arith.cmpi sgt, %[[KEY]], %[[B]] : i32
// CHECK-NEXT: arith.select %[[SECOND]], %[[BACK]], %[[J]] : i32
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[d0, 0]> : i64
// CHECK: buffer.store %{{.*}}(%{{.*}}) <[d0, 1]> : i64
// CHECK: buffer.load %{{.*}}(%{{.*}}, %{{.*}}) <[d0, d1]> : !buffer.ref<[2, 9] x f32>
// CHECK-NEXT: buffer.store %{{.*}}(%{{.*}}) <[d0, 0]> : f32
func.func @few(%x: tensor<2x9xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>) {
  %v, %i = core.top_k %x [2] axis 1 : (tensor<2x9xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
  func.return %v, %i : tensor<2x2xf32>, tensor<2x2xi64>
}

// -----

// Few of many: the first ones become a heap with the worst of them at its top. Elements are
// compared with it sixteen at a time, and only where one is better one by one; it takes the place
// of the worst and goes down. Then the worst goes to the end, one after the other.
// CHECK-LABEL: buffer.func @top_k_0
// CHECK: buffer.for <[0, 3, 1]>
// CHECK: buffer.for <[0, 1, 1]>
// CHECK: buffer.for <[0, 62, 1]>
// CHECK: %[[BETTER:[0-9]+]] = buffer.for <[0, 16, 1]> carry %{{.*}} : i1 -> i1
// CHECK: arith.cmpf ogt
// CHECK: arith.ori
// CHECK: scf.if %[[BETTER]]
// CHECK: buffer.for <[0, 16, 1]>
// CHECK: scf.if
// CHECK: buffer.for <[0, 1, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, min(2, d1 * 2 + 1)]>
// CHECK: buffer.load %{{.*}}(%{{.*}}) <[d0, min(2, d1 * 2 + 2)]>
// CHECK: buffer.for <[995, 1000, 1]>
// CHECK: buffer.for <[0, 2, 1]>
func.func @heap(%x: tensor<2x1000xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>) {
  %v, %i = core.top_k %x [3] axis 1 : (tensor<2x1000xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  func.return %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}

// -----

// Many: those with enough first digits are sorted by one digit after the other.
// CHECK-LABEL: buffer.func @top_k_0
// CHECK: buffer.scratch : !buffer.ref<[900] x i32>
// CHECK: buffer.scratch : !buffer.ref<[1024] x i32>
// CHECK: buffer.for <[0, 1024, 1]> carry %{{.*}} : i64, i64 -> i64, i64
// CHECK: %[[COUNT:[0-9]+]] = buffer.for <[0, 900, 1]> carry %{{.*}} : i64 -> i64
// CHECK: buffer.scratch : !buffer.ref<[256] x i32>
// CHECK: buffer.for <[0, 256, 1]> carry %{{.*}} : i32 -> i32
// CHECK: buffer.scratch : !buffer.ref<[256] x i32>
// CHECK: buffer.scratch : !buffer.ref<[256] x i32>
// CHECK: buffer.scratch : !buffer.ref<[256] x i32>
// CHECK-NOT: buffer.scratch
// CHECK: buffer.for <[0, 400, 1]>
func.func @many(%x: tensor<2x900xf32>) -> (tensor<2x400xf32>, tensor<2x400xi64>) {
  %v, %i = core.top_k %x [400] axis 1 : (tensor<2x900xf32>) -> (tensor<2x400xf32>, tensor<2x400xi64>)
  func.return %v, %i : tensor<2x400xf32>, tensor<2x400xi64>
}

// -----

// Of a short slice: how many keys are larger than one is its rank, and equal ones follow each other.
// The keys fill whole vectors. What is not asked for goes behind the last place.
// CHECK-LABEL: buffer.func @top_k_0
// CHECK: %[[KEYS:[0-9]+]] = buffer.scratch : !buffer.ref<[48] x i32>
// CHECK: %[[RANKS:[0-9]+]] = buffer.scratch : !buffer.ref<[48] x i32>
// CHECK: %[[TAKEN:[0-9]+]] = buffer.scratch : !buffer.ref<[40] x i32>
// CHECK: buffer.for <[40, 48, 1]>
// CHECK: buffer.for <[0, 48, 1]> {
// CHECK: %[[OWN:[0-9]+]] = buffer.load %[[KEYS]]
// CHECK: buffer.for <[0, 40, 1]> carry %{{.*}} : i32 -> i32
// CHECK: %[[OTHER:[0-9]+]] = buffer.load %[[KEYS]]
// CHECK-NEXT: %[[LARGER:[0-9]+]] = arith.cmpi sgt, %[[OTHER]], %[[OWN]] : i32
// CHECK: %[[PLACES:[0-9]+]] = buffer.scratch : !buffer.ref<[21] x i32>
// CHECK: buffer.for <[0, 40, 1]>
// CHECK: buffer.load %[[RANKS]]
// CHECK: %[[BEFORE:[0-9]+]] = buffer.load %[[TAKEN]]
// CHECK: arith.minsi
// CHECK: buffer.store %{{.*}}, %[[PLACES]]
// CHECK: buffer.for <[0, 20, 1]>
func.func @ranks(%x: tensor<2x40xf32>) -> (tensor<2x20xf32>, tensor<2x20xi64>) {
  %v, %i = core.top_k %x [20] axis 1 : (tensor<2x40xf32>) -> (tensor<2x20xf32>, tensor<2x20xi64>)
  func.return %v, %i : tensor<2x20xf32>, tensor<2x20xi64>
}

// -----

// All of them, of as many as a vector has: each goes to its place in the results at once.
// CHECK-LABEL: buffer.func @top_k_0
// CHECK-COUNT-3: buffer.scratch : !buffer.ref<[16] x i32>
// CHECK-NOT: buffer.scratch
// CHECK-NOT: arith.minsi
func.func @all(%x: tensor<2x16xf32>) -> (tensor<2x16xf32>, tensor<2x16xi64>) {
  %v, %i = core.top_k %x [16] axis 1 : (tensor<2x16xf32>) -> (tensor<2x16xf32>, tensor<2x16xi64>)
  func.return %v, %i : tensor<2x16xf32>, tensor<2x16xi64>
}

// -----

// Sixteen short slices side by side: ten of each are carried, in vectors. Of fifteen slices, and of
// long ones, each has its heap.
// CHECK-LABEL: buffer.func @top_k_0
// CHECK: buffer.for <[0, 16, 1]>
// CHECK: buffer.for <[10, 100, 1]> carry
func.func @side_by_side(%x: tensor<100x16xf32>) -> (tensor<10x16xf32>, tensor<10x16xi64>) {
  %v, %i = core.top_k %x [10] axis 0 : (tensor<100x16xf32>) -> (tensor<10x16xf32>, tensor<10x16xi64>)
  func.return %v, %i : tensor<10x16xf32>, tensor<10x16xi64>
}

// -----

// CHECK-LABEL: buffer.func @top_k_0
// CHECK-NOT: buffer.for <[10, 100, 1]> carry
// CHECK: buffer.entry
func.func @fifteen(%x: tensor<100x15xf32>) -> (tensor<10x15xf32>, tensor<10x15xi64>) {
  %v, %i = core.top_k %x [10] axis 0 : (tensor<100x15xf32>) -> (tensor<10x15xf32>, tensor<10x15xi64>)
  func.return %v, %i : tensor<10x15xf32>, tensor<10x15xi64>
}

// -----

// CHECK-LABEL: buffer.func @top_k_0
// CHECK-NOT: buffer.for <[10, 1000, 1]> carry
// CHECK: buffer.entry
func.func @long(%x: tensor<1000x16xf32>) -> (tensor<10x16xf32>, tensor<10x16xi64>) {
  %v, %i = core.top_k %x [10] axis 0 : (tensor<1000x16xf32>) -> (tensor<10x16xf32>, tensor<10x16xi64>)
  func.return %v, %i : tensor<10x16xf32>, tensor<10x16xi64>
}
