// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,fuse-bands --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,fuse-bands --split-input-file --disable=fuse-bands | filecheck %s --check-prefix=OFF
// RUN: opt-tool %s --for-target=c99 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,fuse-bands --split-input-file | filecheck %s --check-prefix=OFF
// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts,fuse-bands --split-input-file --rewrite-log -o %t 2>&1 | filecheck %s --check-prefix=LOG
// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=form-kernels,assign-layouts,fuse-bands --split-input-file --rewrite-limit=0 | filecheck %s --check-prefix=OFF

// LOG: fuse-bands/fuse-bands on core.kernel: {{[0-9]+}} cycles in bands, {{[0-9]+}} apart; from

// 5 MB that are written and read once: maps behind each of the two stay there, and so do the
// layouts of what stays in memory.
// CHECK-LABEL: @fires
// CHECK:       core.kernel @conv_0
// CHECK-NEXT:  ^
// CHECK-NEXT:    core.conv
// CHECK-NEXT:    core.sigmoid
// CHECK-NEXT:    core.conv
// CHECK-NEXT:    core.neg
// CHECK-NEXT:    core.yield
// CHECK-NEXT:  } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
// CHECK-NOT:   core.kernel @conv_1
// CHECK:       func.return
// OFF-LABEL:   @fires
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @fires(%x: tensor<1x16x112x112xf32>) -> tensor<1x96x56x56xf32> {
  %w = core.constant dense<1.0> : tensor<96x16x1x1xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x112x112xf32>, tensor<96x16x1x1xf32>) -> tensor<1x96x112x112xf32>
  %a = core.sigmoid %e : (tensor<1x96x112x112xf32>) -> tensor<1x96x112x112xf32>
  %c = core.conv %a, %d strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x56x56xf32>
  %y = core.neg %c : (tensor<1x96x56x56xf32>) -> tensor<1x96x56x56xf32>
  func.return %y : tensor<1x96x56x56xf32>
}

// -----

// Somebody else reads the tensor in between.
// CHECK-LABEL: @second_user
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @second_user
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @second_user(%x: tensor<1x16x112x112xf32>) -> (tensor<1x96x56x56xf32>, tensor<1x96x112x112xf32>) {
  %w = core.constant dense<1.0> : tensor<96x16x1x1xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x112x112xf32>, tensor<96x16x1x1xf32>) -> tensor<1x96x112x112xf32>
  %a = core.sigmoid %e : (tensor<1x96x112x112xf32>) -> tensor<1x96x112x112xf32>
  %y = core.conv %a, %d strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x56x56xf32>
  func.return %y, %a : tensor<1x96x56x56xf32>, tensor<1x96x112x112xf32>
}

// -----

// So do the maps behind the depthwise convolution, at another index than its windows.
// CHECK-LABEL: @read_behind
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @read_behind
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @read_behind(%x: tensor<1x16x112x112xf32>) -> tensor<1x96x112x112xf32> {
  %w = core.constant dense<1.0> : tensor<96x16x1x1xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x112x112xf32>, tensor<96x16x1x1xf32>) -> tensor<1x96x112x112xf32>
  %a = core.sigmoid %e : (tensor<1x96x112x112xf32>) -> tensor<1x96x112x112xf32>
  %c = core.conv %a, %d strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x112x112xf32>
  %y = core.add %c, %a : (tensor<1x96x112x112xf32>, tensor<1x96x112x112xf32>) -> tensor<1x96x112x112xf32>
  func.return %y : tensor<1x96x112x112xf32>
}

// -----

// Every output of the second convolution needs all channels.
// CHECK-LABEL: @not_depthwise
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @not_depthwise
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @not_depthwise(%x: tensor<1x16x112x112xf32>) -> tensor<1x32x56x56xf32> {
  %w = core.constant dense<1.0> : tensor<96x16x1x1xf32>
  %d = core.constant dense<1.0> : tensor<32x96x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x112x112xf32>, tensor<96x16x1x1xf32>) -> tensor<1x96x112x112xf32>
  %y = core.conv %e, %d strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x96x112x112xf32>, tensor<32x96x3x3xf32>) -> tensor<1x32x56x56xf32>
  func.return %y : tensor<1x32x56x56xf32>
}

// -----

// The first one is depthwise itself: nothing is made of few channels.
// CHECK-LABEL: @both_depthwise
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @both_depthwise
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @both_depthwise(%x: tensor<1x96x112x112xf32>) -> tensor<1x96x56x56xf32> {
  %w = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x112x112xf32>
  %y = core.conv %e, %d strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x56x56xf32>
  func.return %y : tensor<1x96x56x56xf32>
}

// -----

// 345 KB stay in the second cache.
// CHECK-LABEL: @small
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @small
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @small(%x: tensor<1x16x28x28xf32>) -> tensor<1x96x28x28xf32> {
  %w = core.constant dense<1.0> : tensor<96x16x1x1xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x28x28xf32>, tensor<96x16x1x1xf32>) -> tensor<1x96x28x28xf32>
  %y = core.conv %e, %d strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x28x28xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x28x28xf32>
  func.return %y : tensor<1x96x28x28xf32>
}

// -----

// More weights than inputs: what asks for them ahead of their use is worth more.
// CHECK-LABEL: @many_weights
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @many_weights
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @many_weights(%x: tensor<1x96x14x14xf32>) -> tensor<1x576x14x14xf32> {
  %w = core.constant dense<1.0> : tensor<576x96x1x1xf32>
  %d = core.constant dense<1.0> : tensor<576x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x96x14x14xf32>, tensor<576x96x1x1xf32>) -> tensor<1x576x14x14xf32>
  %y = core.conv %e, %d strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 576 : (tensor<1x576x14x14xf32>, tensor<576x1x3x3xf32>) -> tensor<1x576x14x14xf32>
  func.return %y : tensor<1x576x14x14xf32>
}

// -----

// By Winograd's algorithm the first one takes a fraction of the time.
// CHECK-LABEL: @winograd
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @winograd
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @winograd(%x: tensor<1x16x112x112xf32>) -> tensor<1x96x56x56xf32> {
  %w = core.constant dense<1.0> : tensor<96x16x3x3xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x112x112xf32>, tensor<96x16x3x3xf32>) -> tensor<1x96x112x112xf32>
  %y = core.conv %e, %d strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x56x56xf32>
  func.return %y : tensor<1x96x56x56xf32>
}

// -----

// It has no such algorithm at a stride of two.
// CHECK-LABEL: @strided
// CHECK:       core.kernel @conv_0
// CHECK-NOT:   core.kernel @conv_1
// CHECK:       func.return
// OFF-LABEL:   @strided
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @strided(%x: tensor<1x16x224x224xf32>) -> tensor<1x96x56x56xf32> {
  %w = core.constant dense<1.0> : tensor<96x16x3x3xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x224x224xf32>, tensor<96x16x3x3xf32>) -> tensor<1x96x112x112xf32>
  %y = core.conv %e, %d strides [2, 2] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x56x56xf32>
  func.return %y : tensor<1x96x56x56xf32>
}

// -----

// A convolution in groups does not sum over all channels.
// CHECK-LABEL: @groups
// CHECK:       core.kernel @conv_0
// CHECK:       core.kernel @conv_1
// OFF-LABEL:   @groups
// OFF:         core.kernel @conv_0
// OFF:         core.kernel @conv_1
func.func @groups(%x: tensor<1x96x112x112xf32>) -> tensor<1x96x112x112xf32> {
  %w = core.constant dense<1.0> : tensor<96x16x1x1xf32>
  %d = core.constant dense<1.0> : tensor<96x1x3x3xf32>
  %e = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 6 : (tensor<1x96x112x112xf32>, tensor<96x16x1x1xf32>) -> tensor<1x96x112x112xf32>
  %y = core.conv %e, %d strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 96 : (tensor<1x96x112x112xf32>, tensor<96x1x3x3xf32>) -> tensor<1x96x112x112xf32>
  func.return %y : tensor<1x96x112x112xf32>
}
