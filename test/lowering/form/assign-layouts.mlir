// RUN: opt-tool %s --for-target=x86-64-v3 --pass-pipeline=form-kernels,fuse-epilogue,assign-layouts --split-input-file | filecheck %s

// Few channels of an argument stay as they are, but for the border. Between convolutions: blocks of
// the lanes, with a border as wide as the widest that a consumer wants. Results are row-major.
// CHECK-LABEL: @chain
// CHECK:         core.kernel @layout_0(%x)
// CHECK:         } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3 pad [0, 0, 1, 1] [0, 0, 1, 1]>]}
// CHECK:         core.kernel @conv_0
// CHECK:         } {layouts = [#core.layout<0, 1, 2, 3 pad [0, 0, 1, 1] [0, 0, 1, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8 pad [0, 0, 2, 2] [0, 0, 2, 2]>]}
// CHECK-NEXT:    %{{.*}} = core.kernel @conv_2
// CHECK:         } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8 pad [0, 0, 2, 2] [0, 0, 2, 2]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/4, 2, 3, 1 mod 4>]}
// CHECK-NEXT:    %{{.*}} = core.kernel @conv_1
// CHECK:           core.add
// CHECK-NEXT:      core.yield
// CHECK-NEXT:    } {layouts = [#core.layout<0, 1/8, 2, 3, 1 mod 8 pad [0, 0, 2, 2] [0, 0, 2, 2]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/4, 2, 3, 1 mod 4>, #core.layout<0, 1/4, 2, 3, 1 mod 4>]}
// CHECK-NEXT:    %{{.*}} = core.kernel @layout_1
// CHECK:         } {layouts = [#core.layout<0, 1/4, 2, 3, 1 mod 4>, #core.layout<0, 1, 2, 3>]}
// CHECK-NEXT:    func.return
func.func @chain(%x: tensor<1x3x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = core.constant dense<0.1> : tensor<16x3x3x3xf32>
  %v = core.constant dense<0.1> : tensor<2x16x3x3xf32>
  %u = core.constant dense<0.1> : tensor<2x16x5x5xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>) -> tensor<1x16x8x8xf32>
  %b = core.conv %a, %v strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x8x8xf32>, tensor<2x16x3x3xf32>) -> tensor<1x2x8x8xf32>
  %c = core.conv %a, %u strides [1, 1] dilations [1, 1] pads [2, 2] [2, 2] groups 1 : (tensor<1x16x8x8xf32>, tensor<2x16x5x5xf32>) -> tensor<1x2x8x8xf32>
  %d = core.mul %b, %b : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %e = core.mul %c, %c : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  %f = core.add %d, %e : (tensor<1x2x8x8xf32>, tensor<1x2x8x8xf32>) -> tensor<1x2x8x8xf32>
  func.return %f : tensor<1x2x8x8xf32>
}

// -----

// What is joined or cut out at whole blocks shares the border of the whole, so that it can lie in it.
// CHECK-LABEL: @views
// CHECK:         core.concat
// CHECK-NEXT:    core.yield
// CHECK-NEXT:    } {layouts = [#core.layout<0, 1/8, 2, 1 mod 8 pad [0, 0, 1] [0, 0, 1]>, #core.layout<0, 1/8, 2, 1 mod 8 pad [0, 0, 1] [0, 0, 1]>, #core.layout<0, 1/8, 2, 1 mod 8 pad [0, 0, 1] [0, 0, 1]>]}
// CHECK:         core.slice
// CHECK-NEXT:    core.yield
// CHECK-NEXT:    } {layouts = [#core.layout<0, 1/8, 2, 1 mod 8 pad [0, 0, 1] [0, 0, 1]>, #core.layout<0, 1/8, 2, 1 mod 8 pad [0, 0, 1] [0, 0, 1]>]}
func.func @views(%x: tensor<1x16x9xf32>) -> tensor<1x8x9xf32> {
  %w = core.constant dense<0.1> : tensor<8x16x1xf32>
  %v = core.constant dense<0.1> : tensor<12x16x1xf32>
  %u = core.constant dense<0.1> : tensor<8x12x3xf32>
  %a = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x16x9xf32>, tensor<8x16x1xf32>) -> tensor<1x8x9xf32>
  %b = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x16x9xf32>, tensor<12x16x1xf32>) -> tensor<1x12x9xf32>
  %c = core.concat %a, %b axis 1 : (tensor<1x8x9xf32>, tensor<1x12x9xf32>) -> tensor<1x20x9xf32>
  %d = core.slice %c [0, 8, 0] [1, 12, 9] [1, 1, 1] : (tensor<1x20x9xf32>) -> tensor<1x12x9xf32>
  %e = core.conv %d, %u strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x12x9xf32>, tensor<8x12x3xf32>) -> tensor<1x8x9xf32>
  func.return %e : tensor<1x8x9xf32>
}

// -----

// Parts that cut a block are copied, from wherever they lie to where the next kernel wants them.
// CHECK-LABEL: @cut_blocks
// CHECK-NOT:     core.kernel @layout
// CHECK:         core.concat
// CHECK-NEXT:    core.yield
// CHECK-NEXT:    } {layouts = [#core.layout<0, 1/8, 2, 1 mod 8>, #core.layout<0, 1/8, 2, 1 mod 8>, #core.layout<0, 1/8, 2, 1 mod 8 pad [0, 0, 1] [0, 0, 1]>]}
func.func @cut_blocks(%x: tensor<1x16x9xf32>) -> tensor<1x8x9xf32> {
  %w = core.constant dense<0.1> : tensor<8x16x1xf32>
  %v = core.constant dense<0.1> : tensor<12x16x1xf32>
  %u = core.constant dense<0.1> : tensor<8x20x3xf32>
  %a = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x16x9xf32>, tensor<8x16x1xf32>) -> tensor<1x8x9xf32>
  %b = core.conv %x, %v strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x16x9xf32>, tensor<12x16x1xf32>) -> tensor<1x12x9xf32>
  %c = core.concat %b, %a axis 1 : (tensor<1x12x9xf32>, tensor<1x8x9xf32>) -> tensor<1x20x9xf32>
  %d = core.conv %c, %u strides [1] dilations [1] pads [1] [1] groups 1 : (tensor<1x20x9xf32>, tensor<8x20x3xf32>) -> tensor<1x8x9xf32>
  func.return %d : tensor<1x8x9xf32>
}

// -----

// Nothing here works on blocks: no layouts. A convolution reads its weights as its input, too, of
// which there is no copy in another layout.
// CHECK-LABEL: @row_major
// CHECK-NOT:     layout
// CHECK:         func.return
func.func @row_major(%x: tensor<4x4x4x4xf32>) -> tensor<4x4x1x1xf32> {
  %a = core.sigmoid %x : (tensor<4x4x4x4xf32>) -> tensor<4x4x4x4xf32>
  %b = core.matmul %a, %a : (tensor<4x4x4x4xf32>, tensor<4x4x4x4xf32>) -> tensor<4x4x4x4xf32>
  %c = core.conv %b, %b strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<4x4x4x4xf32>, tensor<4x4x4x4xf32>) -> tensor<4x4x1x1xf32>
  func.return %c : tensor<4x4x1x1xf32>
}

// -----

// Weights that are computed lie as they are made: they are packed for the strategy that is chosen.
// CHECK-LABEL: @computed_weights
// CHECK:         core.kernel @conv_0(%x, %w)
// CHECK:         } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
func.func @computed_weights(%x: tensor<1x16x4x4xf32>, %w: tensor<8x16x1x1xf32>) -> tensor<1x8x4x4xf32> {
  %c = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x4x4xf32>, tensor<8x16x1x1xf32>) -> tensor<1x8x4x4xf32>
  func.return %c : tensor<1x8x4x4xf32>
}

// -----

// What is added to a convolution, an argument, is brought into blocks; what does not vary along the
// channels is read as it is.
// CHECK-LABEL: @operands
// CHECK:         core.kernel @layout_0(%y)
// CHECK:         } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
// CHECK:         core.kernel @conv_0(%x, %{{.*}}, %{{.*}}, %m)
// CHECK:         } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/8, 2, 3, 1 mod 8>]}
func.func @operands(%x: tensor<1x16x4x4xf32>, %y: tensor<1x12x4x4xf32>, %m: tensor<1x1x4x4xf32>) -> tensor<1x12x4x4xf32> {
  %w = core.constant dense<0.1> : tensor<12x16x1x1xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x16x4x4xf32>, tensor<12x16x1x1xf32>) -> tensor<1x12x4x4xf32>
  %b = core.add %a, %y : (tensor<1x12x4x4xf32>, tensor<1x12x4x4xf32>) -> tensor<1x12x4x4xf32>
  %c = core.mul %b, %m : (tensor<1x12x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x12x4x4xf32>
  func.return %c : tensor<1x12x4x4xf32>
}

// -----

// A branch yields row-major values; what it reads from outside is converted there, once, and then
// the branch does not need blocks.
// CHECK-LABEL: @branches
// CHECK:         core.kernel @conv_0
// CHECK:         %[[ROWS:.*]] = core.kernel @layout_0
// CHECK:         } {layouts = [#core.layout<0, 1/8, 2, 1 mod 8>, #core.layout<0, 1, 2>]}
// CHECK-NEXT:    %{{.*}} = core.if
// CHECK-NEXT:      core.yield %[[ROWS]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %{{.*}} = core.kernel @mul_0(%[[ROWS]])
// CHECK-NOT:     core.kernel
// CHECK:         func.return %{{.*}}, %[[ROWS]]
func.func @branches(%x: tensor<1x16x3xf32>, %c: tensor<i1>) -> (tensor<1x64x3xf32>, tensor<1x64x3xf32>) {
  %w = core.constant dense<0.1> : tensor<64x16x1xf32>
  %a = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x16x3xf32>, tensor<64x16x1xf32>) -> tensor<1x64x3xf32>
  %y = core.if %c : tensor<i1> -> tensor<1x64x3xf32> {
    core.yield %a : tensor<1x64x3xf32>
  } else {
    %b = core.mul %a, %a : (tensor<1x64x3xf32>, tensor<1x64x3xf32>) -> tensor<1x64x3xf32>
    core.yield %b : tensor<1x64x3xf32>
  }
  func.return %y, %a : tensor<1x64x3xf32>, tensor<1x64x3xf32>
}

// -----

// Where most taps lie in the padding at most positions, nothing reads it.
// CHECK-LABEL: @sparse
// CHECK-NOT:     pad [
// CHECK:         func.return
func.func @sparse(%x: tensor<1x3x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = core.constant dense<0.1> : tensor<16x3x1x1xf32>
  %v = core.constant dense<0.1> : tensor<2x16x3x3xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %b = core.conv %a, %v strides [1, 1] dilations [6, 6] pads [6, 6] [6, 6] groups 1 : (tensor<1x16x8x8xf32>, tensor<2x16x3x3xf32>) -> tensor<1x2x8x8xf32>
  func.return %b : tensor<1x2x8x8xf32>
}

// -----

// The nearest miss: one product in six does.
// CHECK-LABEL: @dense
// CHECK:         core.kernel @conv_0
// CHECK:         pad [0, 0, 1, 1] [0, 0, 1, 1]
func.func @dense(%x: tensor<1x3x8x8xf32>) -> tensor<1x2x8x8xf32> {
  %w = core.constant dense<0.1> : tensor<16x3x1x1xf32>
  %v = core.constant dense<0.1> : tensor<2x16x3x3xf32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x3x8x8xf32>, tensor<16x3x1x1xf32>) -> tensor<1x16x8x8xf32>
  %b = core.conv %a, %v strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 : (tensor<1x16x8x8xf32>, tensor<2x16x3x3xf32>) -> tensor<1x2x8x8xf32>
  func.return %b : tensor<1x2x8x8xf32>
}

// -----

// A vector from which a tensor is gathered has no channels that those of the result could follow.
// CHECK-LABEL: @gathered
// CHECK:         core.gather
// CHECK-NEXT:    core.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
func.func @gathered(%x: tensor<5xf32>, %i: tensor<3x3x4xi64>) -> tensor<3x3x4xf32> {
  %y = core.gather %x, %i axis 0 : (tensor<5xf32>, tensor<3x3x4xi64>) -> tensor<3x3x4xf32>
  func.return %y : tensor<3x3x4xf32>
}
