// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,choose-strategies,bufferize,lower-kernels --split-input-file | filecheck %s

// Rows of 16 KB have few places in the caches: those of a band are copied, and read as copies.
// CHECK-LABEL: buffer.func @conv_0
// CHECK:         %[[LINES:.*]] = buffer.scratch
// CHECK:         buffer.store %{{.*}}, %[[LINES]]
// CHECK:         buffer.load %[[LINES]]
func.func @few_places(%x: tensor<1x32x64x64xf32>) -> tensor<1x64x64x64xf32> {
  %w = core.constant dense<0.1> : tensor<64x32x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x64x64xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x64x64xf32>
  func.return %y : tensor<1x64x64x64xf32>
}

// -----

// Others are read as they lie.
// CHECK-LABEL: buffer.func @conv_0
// CHECK-NOT:     buffer.scratch
func.func @enough_places(%x: tensor<1x32x25x27xf32>) -> tensor<1x64x25x27xf32> {
  %w = core.constant dense<0.1> : tensor<64x32x1x1xf32>
  %y = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x25x27xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x25x27xf32>
  func.return %y : tensor<1x64x25x27xf32>
}
