// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=assign-layouts --split-input-file | filecheck %s

// Without padding an image could be read as it lies, but blocks allow for Winograd's algorithm.
// CHECK: %[[COPY:[0-9]+]] = core.kernel @layout_0(%x)
// CHECK: @windows(%[[COPY]]
func.func @main(%x: tensor<1x64x30x30xf32>) -> tensor<1x64x28x28xf32> {
  %k = core.constant dense<1.0> : tensor<64x64x3x3xf32>
  %y = core.kernel @windows(%x, %k) : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32> {
  ^bb0(%a: tensor<1x64x30x30xf32>, %f: tensor<64x64x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
    core.yield %c : tensor<1x64x28x28xf32>
  }
  func.return %y : tensor<1x64x28x28xf32>
}

// -----

// Nor does skipping taps need a border, but 256 channels on pages of their own are found slowly.
// CHECK: %[[COPY:[0-9]+]] = core.kernel @layout_0(%x)
// CHECK: @dilated(%[[COPY]]
func.func @main(%x: tensor<1x256x33x33xf32>) -> tensor<1x256x33x33xf32> {
  %k = core.constant dense<1.0> : tensor<256x256x3x3xf32>
  %y = core.kernel @dilated(%x, %k) : (tensor<1x256x33x33xf32>, tensor<256x256x3x3xf32>) -> tensor<1x256x33x33xf32> {
  ^bb0(%a: tensor<1x256x33x33xf32>, %f: tensor<256x256x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [12, 12] pads [12, 12] [12, 12] groups 1 : (tensor<1x256x33x33xf32>, tensor<256x256x3x3xf32>) -> tensor<1x256x33x33xf32>
    core.yield %c : tensor<1x256x33x33xf32>
  }
  func.return %y : tensor<1x256x33x33xf32>
}

// -----

// The few channels of small images share pages: a copy would save nothing.
// CHECK-NOT: @layout_0
// CHECK: @small(%x
func.func @main(%x: tensor<1x512x7x7xf32>) -> tensor<1x512x7x7xf32> {
  %k = core.constant dense<1.0> : tensor<512x512x1x1xf32>
  %y = core.kernel @small(%x, %k) : (tensor<1x512x7x7xf32>, tensor<512x512x1x1xf32>) -> tensor<1x512x7x7xf32> {
  ^bb0(%a: tensor<1x512x7x7xf32>, %f: tensor<512x512x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x512x7x7xf32>, tensor<512x512x1x1xf32>) -> tensor<1x512x7x7xf32>
    core.yield %c : tensor<1x512x7x7xf32>
  }
  func.return %y : tensor<1x512x7x7xf32>
}

// -----

// Other operands than the image may be of any rank.
// CHECK: @scaled({{.*}}, %s)
func.func @main(%x: tensor<1x64x30x30xf32>, %s: tensor<1xf32>) -> tensor<1x64x28x28xf32> {
  %k = core.constant dense<1.0> : tensor<64x64x3x3xf32>
  %y = core.kernel @scaled(%x, %k, %s) : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>, tensor<1xf32>) -> tensor<1x64x28x28xf32> {
  ^bb0(%a: tensor<1x64x30x30xf32>, %f: tensor<64x64x3x3xf32>, %t: tensor<1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x28x28xf32>
    %m = core.mul %c, %t : (tensor<1x64x28x28xf32>, tensor<1xf32>) -> tensor<1x64x28x28xf32>
    core.yield %m : tensor<1x64x28x28xf32>
  }
  func.return %y : tensor<1x64x28x28xf32>
}

// -----

// What a map writes row-major with the border that a convolution needs is copied, too, if that pays.
// CHECK: %[[MAX:[a-z]+]] = core.kernel @bounded(%x
// CHECK: %[[COPY:[0-9]+]] = core.kernel @layout_0(%[[MAX]])
// CHECK: @behind(%[[COPY]]
func.func @main(%x: tensor<1x64x30x30xf32>) -> tensor<1x64x30x30xf32> {
  %z = core.constant dense<0.0> : tensor<f32>
  %k = core.constant dense<1.0> : tensor<64x64x3x3xf32>
  %m = core.kernel @bounded(%x, %z) : (tensor<1x64x30x30xf32>, tensor<f32>) -> tensor<1x64x30x30xf32> {
  ^bb0(%a: tensor<1x64x30x30xf32>, %b: tensor<f32>):
    %c = core.max %a, %b : (tensor<1x64x30x30xf32>, tensor<f32>) -> tensor<1x64x30x30xf32>
    core.yield %c : tensor<1x64x30x30xf32>
  }
  %y = core.kernel @behind(%m, %k) : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x30x30xf32> {
  ^bb0(%a: tensor<1x64x30x30xf32>, %f: tensor<64x64x3x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x30x30xf32>
    core.yield %c : tensor<1x64x30x30xf32>
  }
  func.return %y : tensor<1x64x30x30xf32>
}

// -----

// Where Winograd's algorithm does not apply, it is read as it lies.
// CHECK-NOT: @layout_0
// CHECK: @behind(%m
func.func @main(%x: tensor<1x64x30x30xf32>) -> tensor<1x64x15x15xf32> {
  %z = core.constant dense<0.0> : tensor<f32>
  %k = core.constant dense<1.0> : tensor<64x64x3x3xf32>
  %m = core.kernel @bounded(%x, %z) : (tensor<1x64x30x30xf32>, tensor<f32>) -> tensor<1x64x30x30xf32> {
  ^bb0(%a: tensor<1x64x30x30xf32>, %b: tensor<f32>):
    %c = core.max %a, %b : (tensor<1x64x30x30xf32>, tensor<f32>) -> tensor<1x64x30x30xf32>
    core.yield %c : tensor<1x64x30x30xf32>
  }
  %y = core.kernel @behind(%m, %k) : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x15x15xf32> {
  ^bb0(%a: tensor<1x64x30x30xf32>, %f: tensor<64x64x3x3xf32>):
    %c = core.conv %a, %f strides [2, 2] dilations [1, 1] pads [1, 1] [0, 0] groups 1 : (tensor<1x64x30x30xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x15x15xf32>
    core.yield %c : tensor<1x64x15x15xf32>
  }
  func.return %y : tensor<1x64x15x15xf32>
}
