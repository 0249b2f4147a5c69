// RUN: opt-tool %s --for-target=x86-64-zen4 --threads=2 --pass-pipeline='form-kernels,fuse-epilogue,bufferize,lower-kernels,parallelize{worth=0}' --split-input-file | filecheck %s

// Each thread has written some rows. It reads them again if threads share rows, and not channels.
// CHECK-LABEL: buffer.func @reduce_0
// CHECK:       buffer.for <[(s0 * 26) floordiv s1, (s0 * 26 + 26) floordiv s1, 1]>
// CHECK-LABEL: buffer.func @add_0
// CHECK:       buffer.for <[0, 4, 1]> {
// CHECK:         buffer.for <[(s0 * 26) floordiv s1, (s0 * 26 + 26) floordiv s1, 1]>
func.func @main(%x: tensor<4x26x16xf32>, %z: tensor<4x26x16xf32>) -> tensor<4x26x16xf32> {
  %y = core.reduce sum %x [0] : (tensor<4x26x16xf32>) -> tensor<26x16xf32>
  %r = core.add %y, %z : (tensor<26x16xf32>, tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  func.return %r : tensor<4x26x16xf32>
}

// -----

// What was given to the network is as far from one thread as from the other.
// CHECK-LABEL: buffer.func @add_0
// CHECK:       buffer.for <[(s0 * 4) floordiv s1, (s0 * 4 + 4) floordiv s1, 1]> {
// CHECK:         buffer.for <[0, 26, 1]>
func.func @main(%x: tensor<4x26x16xf32>, %z: tensor<4x26x16xf32>) -> tensor<4x26x16xf32> {
  %r = core.add %x, %z : (tensor<4x26x16xf32>, tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  func.return %r : tensor<4x26x16xf32>
}

// -----

// Of two things that it reads the larger one counts, which was shared by channels.
// CHECK-LABEL: buffer.func @add_0
// CHECK:       buffer.for <[(s0 * 4) floordiv s1, (s0 * 4 + 4) floordiv s1, 1]> {
// CHECK:         buffer.for <[0, 26, 1]>
func.func @main(%x: tensor<4x26x16xf32>, %z: tensor<4x26x16xf32>) -> (tensor<4x26x16xf32>, tensor<4x26x16xf32>) {
  %y = core.reduce sum %x [0] : (tensor<4x26x16xf32>) -> tensor<26x16xf32>
  %s = core.softmax %z axis 2 : (tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  %r = core.add %y, %s : (tensor<26x16xf32>, tensor<4x26x16xf32>) -> tensor<4x26x16xf32>
  func.return %r, %s : tensor<4x26x16xf32>, tensor<4x26x16xf32>
}
