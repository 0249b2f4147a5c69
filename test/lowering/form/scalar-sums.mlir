// RUN: opt-tool %s --for-target=cortex-m4 --pass-pipeline=form-kernels,fuse-epilogue --split-input-file | filecheck %s --check-prefixes=CHECK,SCALAR
// RUN: opt-tool %s --for-target=c99 --pass-pipeline=form-kernels,fuse-epilogue --split-input-file | filecheck %s --check-prefixes=CHECK,ROWS

// Sums of a convolution that are in registers end in bytes; rows of them in memory do not.
// CHECK-LABEL: func.func @main
// CHECK:       core.kernel @conv_0
// CHECK:         core.conv
// SCALAR:        core.cast
// ROWS:        core.kernel @cast_0
// CHECK:       func.return
func.func @main(%x: tensor<1x2x3x3xi8>, %w: tensor<4x2x1x1xi8>) -> tensor<1x4x3x3xi8> {
  %b = core.constant dense<0> : tensor<4xi32>
  %z = core.constant dense<0> : tensor<i8>
  %sum = core.conv %x, %w, %b, %z, %z strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x2x3x3xi8>, tensor<4x2x1x1xi8>, tensor<4xi32>, tensor<i8>, tensor<i8>) -> tensor<1x4x3x3xi32>
  %y = core.cast %sum to i8 : (tensor<1x4x3x3xi32>) -> tensor<1x4x3x3xi8>
  func.return %y : tensor<1x4x3x3xi8>
}

// -----

// A pool reads bytes and widens them itself, so that what it reads is not widened in memory.
// CHECK-LABEL: func.func @main
// SCALAR-NOT:  core.kernel @cast
// SCALAR:      core.kernel @pool_0(%x) : (tensor<1x2x4x4xi8>)
// ROWS:        core.kernel @cast_0
// ROWS:        core.kernel @pool_0(%wide) : (tensor<1x2x4x4xi32>)
// CHECK:       func.return
func.func @main(%x: tensor<1x2x4x4xi8>) -> tensor<1x2x2x2xi32> {
  %wide = core.cast %x to i32 : (tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi32>
  %y = core.pool sum %wide kernel [2, 2] strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<1x2x4x4xi32>) -> tensor<1x2x2x2xi32>
  func.return %y : tensor<1x2x2x2xi32>
}

// -----

// The nearest miss: something else reads the wide numbers, too, so they are in memory.
// CHECK-LABEL: func.func @main
// CHECK:       core.kernel @cast_0
// CHECK:       core.kernel @pool_0(%wide) : (tensor<1x2x4x4xi32>)
func.func @main(%x: tensor<1x2x4x4xi8>) -> (tensor<1x2x2x2xi32>, tensor<1x2x4x4xi32>) {
  %wide = core.cast %x to i32 : (tensor<1x2x4x4xi8>) -> tensor<1x2x4x4xi32>
  %y = core.pool sum %wide kernel [2, 2] strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] overhang [0, 0] : (tensor<1x2x4x4xi32>) -> tensor<1x2x2x2xi32>
  func.return %y, %wide : tensor<1x2x2x2xi32>, tensor<1x2x4x4xi32>
}
