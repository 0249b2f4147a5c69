// RUN: opt-tool %s --pass-pipeline=form-kernels --for-target c99 --split-input-file | filecheck %s
// RUN: opt-tool %s --pass-pipeline=form-kernels --for-target x86-64-v3 --split-input-file | filecheck %s --check-prefix=BLOCKS

// A resized image that is joined with another is computed where it is copied to, on a target whose
// channels do not lie in blocks.
// CHECK-LABEL: @resized
// CHECK-NEXT:    core.kernel @concat_0(%x, %i, %z)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      core.gather
// CHECK-NEXT:      core.neg
// CHECK-NEXT:      core.concat
// BLOCKS-LABEL: @resized
// BLOCKS:        core.kernel @neg_0(%x, %i)
// BLOCKS:        core.kernel @concat_0
func.func @resized(%x: tensor<2x3x4x5xf32>, %i: tensor<7xi64>, %z: tensor<2x1x4x7xf32>) -> tensor<2x4x4x7xf32> {
  %g = core.gather %x, %i axis 3 : (tensor<2x3x4x5xf32>, tensor<7xi64>) -> tensor<2x3x4x7xf32>
  %n = core.neg %g : (tensor<2x3x4x7xf32>) -> tensor<2x3x4x7xf32>
  %y = core.concat %n, %z axis 1 : (tensor<2x3x4x7xf32>, tensor<2x1x4x7xf32>) -> tensor<2x4x4x7xf32>
  func.return %y : tensor<2x4x4x7xf32>
}

// -----

// One image: its parts lie one after the other, and are computed in place.
// CHECK-LABEL: @one_image
// CHECK:         core.kernel @neg_0(%x, %i)
// CHECK:         core.kernel @concat_0
func.func @one_image(%x: tensor<1x3x4x5xf32>, %i: tensor<7xi64>, %z: tensor<1x1x4x7xf32>) -> tensor<1x4x4x7xf32> {
  %g = core.gather %x, %i axis 3 : (tensor<1x3x4x5xf32>, tensor<7xi64>) -> tensor<1x3x4x7xf32>
  %n = core.neg %g : (tensor<1x3x4x7xf32>) -> tensor<1x3x4x7xf32>
  %y = core.concat %n, %z axis 1 : (tensor<1x3x4x7xf32>, tensor<1x1x4x7xf32>) -> tensor<1x4x4x7xf32>
  func.return %y : tensor<1x4x4x7xf32>
}
