// RUN: opt-tool %s --for-target=x86-64-v4 --pass-pipeline=choose-strategies,bufferize,lower-kernels,pack-weights,tile,vectorize-lanes,unroll-tiles,prefetch --split-input-file | filecheck %s

// A tile of four positions by two blocks of output channels. The bias starts the sums; the loop over
// taps and channels of a block carries them; each input is read once for both blocks. The weights
// of the next tile are asked for.
// CHECK-LABEL: buffer.func @conv
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         %[[B0:[0-9]+]] = buffer.load %[[X2]] <[0, 0]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:    %[[B1:[0-9]+]] = buffer.load %[[X2]] <[1, 0]>
// CHECK-NEXT:    buffer.for <[0, 3, 1]> carry {{(%[0-9]+, ){3}%[0-9]+}}, %[[B1]], %[[B1]], %[[B1]], %[[B1]] :
// CHECK:           buffer.for <[0, 16, 1]> carry
// CHECK:             buffer.prefetch %[[X1]]
// CHECK:             buffer.load %[[X1]]({{.*}}) <[0, 0, 0, d0, d1, 0, 0]>
// CHECK-NEXT:        buffer.load %[[X1]]({{.*}}) <[0, 0, 0, d0, d1, 1, 0]>
// CHECK-NEXT:        buffer.load %[[X0]]({{.*}}) <[0, 0, 0, d0, d1]> {{.*}} -> f32
// CHECK-NEXT:        vector.broadcast
// CHECK-NEXT:        math.fma
// CHECK-NEXT:        math.fma
// CHECK-NEXT:        buffer.load %[[X0]]({{.*}}) <[0, 0, 0, d0 + 1, d1]>
// CHECK-COUNT-6:     math.fma
// CHECK-NEXT:        buffer.yield
// CHECK-COUNT-8: buffer.store {{.*}} : vector<16xf32>
func.func @main(%x: tensor<1x16x1x4xf32>) -> tensor<1x32x1x4xf32> {
  %w = core.constant dense<1.0> : tensor<32x16x1x3xf32>
  %b = core.constant dense<1.0> : tensor<32xf32>
  %y = core.kernel @conv(%x, %w, %b) : (tensor<1x16x1x4xf32>, tensor<32x16x1x3xf32>, tensor<32xf32>) -> tensor<1x32x1x4xf32> {
  ^bb0(%a: tensor<1x16x1x4xf32>, %f: tensor<32x16x1x3xf32>, %s: tensor<32xf32>):
    %c = core.conv %a, %f, %s strides [1, 1] dilations [1, 1] pads [0, 1] [0, 1] groups 1 : (tensor<1x16x1x4xf32>, tensor<32x16x1x3xf32>, tensor<32xf32>) -> tensor<1x32x1x4xf32>
    core.yield %c : tensor<1x32x1x4xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 0, 1] [0, 0, 0, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x32x1x4xf32>
}

// -----

// Each block of output channels reads the channels of its own group; every second position.
// CHECK-LABEL: buffer.func @groups
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.load %[[X1]](%[[G:[0-9]+]], %[[C:[0-9]+]]) <[d0, 0, 0, 0, d1, 0]>
// CHECK-NEXT:    buffer.load %[[X0]](%[[G]], %[[C]]) <[0, d0, 0, 0, d1]>
// CHECK:         buffer.load %[[X0]](%[[G]], %[[C]]) <[0, d0, 0, 2, d1]>
// CHECK-COUNT-2: buffer.store {{.*}} : vector<16xf32>
func.func @main(%x: tensor<1x32x1x3xf32>) -> tensor<1x32x1x2xf32> {
  %w = core.constant dense<1.0> : tensor<32x16x1x1xf32>
  %y = core.kernel @groups(%x, %w) : (tensor<1x32x1x3xf32>, tensor<32x16x1x1xf32>) -> tensor<1x32x1x2xf32> {
  ^bb0(%a: tensor<1x32x1x3xf32>, %f: tensor<32x16x1x1xf32>):
    %c = core.conv %a, %f strides [1, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x32x1x3xf32>, tensor<32x16x1x1xf32>) -> tensor<1x32x1x2xf32>
    core.yield %c : tensor<1x32x1x2xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x32x1x2xf32>
}

// -----

// Groups of twelve output channels cut blocks, into parts of four.
// CHECK-LABEL: buffer.func @cut
// CHECK:         buffer.load {{.*}} -> vector<4xf32>
// CHECK-NOT:     vector<16xf32>
// CHECK:         buffer.store {{.*}} : vector<4xf32>
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x32x1x3xf32>) -> tensor<1x24x1x2xf32> {
  %w = core.constant dense<1.0> : tensor<24x16x1x1xf32>
  %y = core.kernel @cut(%x, %w) : (tensor<1x32x1x3xf32>, tensor<24x16x1x1xf32>) -> tensor<1x24x1x2xf32> {
  ^bb0(%a: tensor<1x32x1x3xf32>, %f: tensor<24x16x1x1xf32>):
    %c = core.conv %a, %f strides [1, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x32x1x3xf32>, tensor<24x16x1x1xf32>) -> tensor<1x24x1x2xf32>
    core.yield %c : tensor<1x24x1x2xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x24x1x2xf32>
}

// -----

// Parts of two are too few: whole blocks are computed for each group, which keeps the lanes before
// its own.
// CHECK-LABEL: buffer.func @small
// CHECK:         math.fma {{.*}} : vector<16xf32>
// CHECK:         buffer.select {{.*}} : vector<16xi32>, vector<16xf32>
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x32x1x3xf32>) -> tensor<1x20x1x2xf32> {
  %w = core.constant dense<1.0> : tensor<20x16x1x1xf32>
  %y = core.kernel @small(%x, %w) : (tensor<1x32x1x3xf32>, tensor<20x16x1x1xf32>) -> tensor<1x20x1x2xf32> {
  ^bb0(%a: tensor<1x32x1x3xf32>, %f: tensor<20x16x1x1xf32>):
    %c = core.conv %a, %f strides [1, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x32x1x3xf32>, tensor<20x16x1x1xf32>) -> tensor<1x20x1x2xf32>
    core.yield %c : tensor<1x20x1x2xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x20x1x2xf32>
}

// -----

// The weights of a panel of 32 output channels do not stay in the first cache: eight blocks of input
// channels at a time, for all four panels. The first part brings the bias, the others add to what
// lies in the output.
// CHECK-LABEL: buffer.func @parts
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: !buffer.ref<[1, 4, 4, 8, 1, 1, 16, 2, 16] x f32>, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK-NEXT:    ^bb0(%[[P:[0-9]+]]: index):
// CHECK-NEXT:      buffer.for <[0, 2, 1]> {
// CHECK:             buffer.for <[0, 8, 1]> carry
// CHECK:               buffer.load %[[X1]](%[[P]], {{.*}}) <[0, 0, d0, d1, 0, 0, d2, 0, 0]>
// CHECK:             %[[B:[0-9]+]] = buffer.load %[[X2]](%[[P]]) <[d0 * 2, 0]>
// CHECK-NEXT:        arith.addf %[[B]]
// CHECK-NEXT:        buffer.store {{.*}}, %[[Y]]
// CHECK:         buffer.for <[1, 3, 1]> {
// CHECK:           buffer.for <[0, 4, 1]> {
// CHECK:                 buffer.load %[[X1]]({{.*}}) <[0, d0, d1, d2, 0, 0, d3, 0, 0]>
// CHECK:               %[[S:[0-9]+]] = buffer.load %[[Y]]
// CHECK-NEXT:          arith.addf %[[S]]
// CHECK-NEXT:          buffer.store {{.*}}, %[[Y]]
// CHECK:         buffer.for <[0, 4, 1]> {
// CHECK:               buffer.load %[[X1]]({{.*}}) <[0, 3, d0, d1, 0, 0, d2, 0, 0]>
// CHECK:             buffer.load %[[Y]]
// CHECK:             buffer.store {{.*}}, %[[Y]]
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x512x1x28xf32>) -> tensor<1x128x1x28xf32> {
  %w = core.constant dense<1.0> : tensor<128x512x1x1xf32>
  %b = core.constant dense<1.0> : tensor<128xf32>
  %y = core.kernel @parts(%x, %w, %b) : (tensor<1x512x1x28xf32>, tensor<128x512x1x1xf32>, tensor<128xf32>) -> tensor<1x128x1x28xf32> {
  ^bb0(%a: tensor<1x512x1x28xf32>, %f: tensor<128x512x1x1xf32>, %s: tensor<128xf32>):
    %c = core.conv %a, %f, %s strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x512x1x28xf32>, tensor<128x512x1x1xf32>, tensor<128xf32>) -> tensor<1x128x1x28xf32>
    core.yield %c : tensor<1x128x1x28xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x128x1x28xf32>
}

// -----

// The nearest miss: one tile has all positions, and no weights are read twice.
// CHECK-LABEL: buffer.func @once
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK-NOT:     buffer.load %[[Y]]
// CHECK:         buffer.store {{.*}}, %[[Y]]
// CHECK-NOT:     buffer.load %[[Y]]
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x512x1x14xf32>) -> tensor<1x128x1x14xf32> {
  %w = core.constant dense<1.0> : tensor<128x512x1x1xf32>
  %b = core.constant dense<1.0> : tensor<128xf32>
  %y = core.kernel @once(%x, %w, %b) : (tensor<1x512x1x14xf32>, tensor<128x512x1x1xf32>, tensor<128xf32>) -> tensor<1x128x1x14xf32> {
  ^bb0(%a: tensor<1x512x1x14xf32>, %f: tensor<128x512x1x1xf32>, %s: tensor<128xf32>):
    %c = core.conv %a, %f, %s strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x512x1x14xf32>, tensor<128x512x1x1xf32>, tensor<128xf32>) -> tensor<1x128x1x14xf32>
    core.yield %c : tensor<1x128x1x14xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x128x1x14xf32>
}

// -----

// Few channels into row-major rows: positions are the lanes, read at any offset; a vector of 16 and
// one of 8 make 24 of them, for all output channels at once.
// CHECK-LABEL: buffer.func @rows
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.load %[[X0]]({{.*}}) <[0, d0, 0, d1]> {{.*}} -> vector<16xf32>
// CHECK-NEXT:    buffer.load %[[X1]]({{.*}}) <[0, d0, 0, d1, 0]> {{.*}} -> f32
// CHECK:         buffer.load %[[X1]]({{.*}}) <[0, d0, 0, d1, 2]> {{.*}} -> f32
// CHECK-COUNT-3: buffer.store {{.*}} : vector<16xf32>
// CHECK:         buffer.load %[[X0]]({{.*}}) <[0, d0, 0, d1 + 16]> {{.*}} -> vector<8xf32>
// CHECK-COUNT-3: buffer.store {{.*}} : vector<8xf32>
func.func @main(%x: tensor<1x2x1x24xf32>) -> tensor<1x3x1x24xf32> {
  %w = core.constant dense<1.0> : tensor<3x2x1x3xf32>
  %y = core.kernel @rows(%x, %w) : (tensor<1x2x1x24xf32>, tensor<3x2x1x3xf32>) -> tensor<1x3x1x24xf32> {
  ^bb0(%a: tensor<1x2x1x24xf32>, %f: tensor<3x2x1x3xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 1] [0, 1] groups 1 : (tensor<1x2x1x24xf32>, tensor<3x2x1x3xf32>) -> tensor<1x3x1x24xf32>
    core.yield %c : tensor<1x3x1x24xf32>
  } {layouts = [#core.layout<0, 1, 2, 3 pad [0, 0, 0, 1] [0, 0, 0, 1]>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>]}
  func.return %y : tensor<1x3x1x24xf32>
}

// -----

// The nearest miss: with a stride of two, positions side by side read every second element, which is
// brought together before.
// CHECK-LABEL: buffer.func @strided
// CHECK:         buffer.scratch
// CHECK:         -> vector<16xf32> {stride = #builtin.int<2>}
// CHECK:         math.fma
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x2x1x49xf32>) -> tensor<1x3x1x24xf32> {
  %w = core.constant dense<1.0> : tensor<3x2x1x3xf32>
  %y = core.kernel @strided(%x, %w) : (tensor<1x2x1x49xf32>, tensor<3x2x1x3xf32>) -> tensor<1x3x1x24xf32> {
  ^bb0(%a: tensor<1x2x1x49xf32>, %f: tensor<3x2x1x3xf32>):
    %c = core.conv %a, %f strides [1, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x2x1x49xf32>, tensor<3x2x1x3xf32>) -> tensor<1x3x1x24xf32>
    core.yield %c : tensor<1x3x1x24xf32>
  } {layouts = [#core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1, 2, 3>]}
  func.return %y : tensor<1x3x1x24xf32>
}

// -----

// Positions lie along the first of two dimensions: those make the tile, for of the other one there
// is but one.
// CHECK-LABEL: buffer.func @column
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.load %[[X0]]({{.*}}) <[0, d0, 27, 0, d1]>
// CHECK-COUNT-28: buffer.store {{.*}} : vector<16xf32>
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x32x28x1xf32>) -> tensor<1x16x28x1xf32> {
  %w = core.constant dense<1.0> : tensor<16x32x1x1xf32>
  %y = core.kernel @column(%x, %w) : (tensor<1x32x28x1xf32>, tensor<16x32x1x1xf32>) -> tensor<1x16x28x1xf32> {
  ^bb0(%a: tensor<1x32x28x1xf32>, %f: tensor<16x32x1x1xf32>):
    %c = core.conv %a, %f strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 : (tensor<1x32x28x1xf32>, tensor<16x32x1x1xf32>) -> tensor<1x16x28x1xf32>
    core.yield %c : tensor<1x16x28x1xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x16x28x1xf32>
}

// -----

// Two taps of three lie in the padding at all but two positions: tap by tap, from the bias on, for
// as many positions as lie on the image. The input has no border.
// CHECK-LABEL: buffer.func @sparse
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: !buffer.ref<[1, 1, 1, 8, 16] x f32>, %[[X1:[0-9]+]]: !buffer.ref<[1, 1, 3, 16, 2, 16] x f32>, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK-NEXT:    %[[B:[0-9]+]] = buffer.load %[[X2]] <[0, 0]>
// CHECK-COUNT-8: buffer.store %[[B]], %[[Y]]
// CHECK:         buffer.for <[0, 3, 1]> {
// CHECK-NEXT:    ^bb0(%[[T:[0-9]+]]: index):
// CHECK-NEXT:      %[[FIRST:[0-9]+]] = buffer.apply(%[[T]]) <[max(-d0 * 6 + 6, 0)]>
// CHECK-NEXT:      %[[COUNT:[0-9]+]] = buffer.apply(%[[T]])
// CHECK-NEXT:      buffer.for(%[[COUNT]]) <[0, max(0, d0) floordiv 8, 1]> {
// CHECK-COUNT-16:    buffer.load %[[Y]]
// CHECK:             buffer.for <[0, 16, 1]> carry
// CHECK-NEXT:        ^bb0(%[[C:[0-9]+]]: index
// CHECK:               buffer.load %[[X1]](%[[T]], %[[C]]) <[0, 0, d0, d1, 0, 0]>
// CHECK-COUNT-16:      math.fma
// CHECK-COUNT-16:    buffer.store {{.*}}, %[[Y]]
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x16x1x8xf32>) -> tensor<1x32x1x8xf32> {
  %w = core.constant dense<1.0> : tensor<32x16x1x3xf32>
  %b = core.constant dense<1.0> : tensor<32xf32>
  %y = core.kernel @sparse(%x, %w, %b) : (tensor<1x16x1x8xf32>, tensor<32x16x1x3xf32>, tensor<32xf32>) -> tensor<1x32x1x8xf32> {
  ^bb0(%a: tensor<1x16x1x8xf32>, %f: tensor<32x16x1x3xf32>, %s: tensor<32xf32>):
    %c = core.conv %a, %f, %s strides [1, 1] dilations [1, 6] pads [0, 6] [0, 6] groups 1 : (tensor<1x16x1x8xf32>, tensor<32x16x1x3xf32>, tensor<32xf32>) -> tensor<1x32x1x8xf32>
    core.yield %c : tensor<1x32x1x8xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x32x1x8xf32>
}

// -----

// The nearest miss: one product in six has a factor of padding.
// CHECK-LABEL: buffer.func @dense
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: !buffer.ref<[1, 1, 1, 12, 16] x f32>, %[[X1:[0-9]+]]: {{.*}}, %[[X2:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK-NOT:     buffer.load %[[Y]]
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x16x1x8xf32>) -> tensor<1x32x1x8xf32> {
  %w = core.constant dense<1.0> : tensor<32x16x1x3xf32>
  %b = core.constant dense<1.0> : tensor<32xf32>
  %y = core.kernel @dense(%x, %w, %b) : (tensor<1x16x1x8xf32>, tensor<32x16x1x3xf32>, tensor<32xf32>) -> tensor<1x32x1x8xf32> {
  ^bb0(%a: tensor<1x16x1x8xf32>, %f: tensor<32x16x1x3xf32>, %s: tensor<32xf32>):
    %c = core.conv %a, %f, %s strides [1, 1] dilations [1, 2] pads [0, 2] [0, 2] groups 1 : (tensor<1x16x1x8xf32>, tensor<32x16x1x3xf32>, tensor<32xf32>) -> tensor<1x32x1x8xf32>
    core.yield %c : tensor<1x32x1x8xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16 pad [0, 0, 0, 2] [0, 0, 0, 2]>, #core.layout<0, 1, 2, 3>, #core.layout<0>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x32x1x8xf32>
}

// -----

// Of groups of twenty, the second block of sixteen belongs to both: it is computed for each of them,
// and lanes of the first one keep what they have.
// CHECK-LABEL: buffer.func @across
// CHECK-NEXT:  ^bb0(%[[X0:[0-9]+]]: {{.*}}, %[[X1:[0-9]+]]: {{.*}}, %[[Y:[0-9]+]]: {{.*}}):
// CHECK:         buffer.for <[0, 3, 1]> {
// CHECK-NEXT:    ^bb0(%[[B:[0-9]+]]: index):
// CHECK:           buffer.for(%[[B]]) <[(d0 * 4) floordiv 5, min(39, d0 * 16 + 15) floordiv 20 + 1, 1]> {
// CHECK-NEXT:      ^bb0(%[[G:[0-9]+]]: index):
// CHECK:             buffer.load %[[X1]](%[[B]], {{.*}} -> vector<16xf32>
// CHECK-NEXT:        buffer.load %[[X0]](%[[G]], {{.*}} -> f32
// CHECK:             %[[BEFORE:[0-9]+]] = buffer.compare
// CHECK:             %[[OLD:[0-9]+]] = buffer.load %[[Y]](%[[B]])
// CHECK-NEXT:        %[[NEW:[0-9]+]] = buffer.select %[[BEFORE]], %[[OLD]]
// CHECK-NEXT:        buffer.store %[[NEW]], %[[Y]]
// CHECK-LABEL: buffer.entry
func.func @main(%x: tensor<1x32x1x3xf32>) -> tensor<1x40x1x2xf32> {
  %w = core.constant dense<1.0> : tensor<40x16x1x1xf32>
  %y = core.kernel @across(%x, %w) : (tensor<1x32x1x3xf32>, tensor<40x16x1x1xf32>) -> tensor<1x40x1x2xf32> {
  ^bb0(%a: tensor<1x32x1x3xf32>, %f: tensor<40x16x1x1xf32>):
    %c = core.conv %a, %f strides [1, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 2 : (tensor<1x32x1x3xf32>, tensor<40x16x1x1xf32>) -> tensor<1x40x1x2xf32>
    core.yield %c : tensor<1x40x1x2xf32>
  } {layouts = [#core.layout<0, 1/16, 2, 3, 1 mod 16>, #core.layout<0, 1, 2, 3>, #core.layout<0, 1/16, 2, 3, 1 mod 16>]}
  func.return %y : tensor<1x40x1x2xf32>
}
