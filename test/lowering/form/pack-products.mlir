// RUN: opt-tool %s --for-target=x86-64-v4 -p pack-products --split-input-file | filecheck %s
// RUN: opt-tool %s --for-target=x86-64-vnni -p pack-products --split-input-file | filecheck %s --check-prefix=QUADS
// RUN: opt-tool %s --for-target=x86-64-zen4 -p pack-products --split-input-file | filecheck %s --check-prefix=WORDS
// RUN: opt-tool %s --for-target=x86-64-amx -p pack-products --split-input-file | filecheck %s --check-prefix=TILES
// RUN: opt-tool %s --for-target=aarch64 -p pack-products --split-input-file | filecheck %s --check-prefix=PLAIN
// RUN: opt-tool %s --for-target=c99 -p pack-products --split-input-file | filecheck %s --check-prefix=NONE

// Term k beside term k + 2; of an odd number one is in two pairs, once with zero.
// CHECK-LABEL: @product
// CHECK:         core.slice %x [0, 0] [4, 2] [1, 1]
// CHECK:         core.slice %x [0, 1] [4, 2] [1, 1]
// CHECK:         core.constant {{.*}} : tensor<2x4xi32>
// CHECK-NEXT:    core.matmul %{{.*}}, %{{.*}} packed pairs : (tensor<4x2xi32>, tensor<2x4xi32>) -> tensor<4x4xi32>
// QUADS-LABEL: @product
// QUADS:         %[[ZERO:.+]] = core.cast %zero to i32
// QUADS:         core.slice %x [0, 2] [4, 1] [1, 1]
// QUADS-NOT:     core.slice
// QUADS:         %[[SUM:.+]] = core.matmul %{{.*}}, %{{.*}} packed unsigned_left : (tensor<4x1xi32>, tensor<1x4xi32>) -> tensor<4x4xi32>
// QUADS:         %[[SUMS:.+]] = core.constant dense<{{.*}}15, 18, 21, 24{{.*}}> : tensor<1x4xi32>
// QUADS-NEXT:    %[[EXCESS:.+]] = core.mul %[[ZERO]], %[[SUMS]]
// QUADS-NEXT:    core.sub %[[SUM]], %[[EXCESS]]
// PLAIN-LABEL: @product
// PLAIN:         core.matmul {{.*}} in i32
// NONE-LABEL:  @product
// NONE:          core.matmul {{.*}} in i32
func.func @product(%x: tensor<4x3xui8>, %zero: tensor<ui8>) -> tensor<4x4xi32> {
  %w = core.constant dense<[[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]> : tensor<3x4xi8>
  %none = core.constant dense<0> : tensor<i8>
  %y = core.matmul %x, %w, %zero, %none in i32 : (tensor<4x3xui8>, tensor<3x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<4x4xi32>
  func.return %y : tensor<4x4xi32>
}

// -----

// What is read but once stays in bytes: two of known weights that have signs are a number of 16
// bits. Four take no more than one each.
// CHECK-LABEL: @few_rows
// CHECK:         core.constant dense<{{.*}}1, 1, 1, 1], [257, 257, 257, 257{{.*}}> : tensor<2x4xi16>
// CHECK-NEXT:    core.matmul %{{.*}}, %{{.*}} packed pairs in i32 : (tensor<3x2xi32>, tensor<2x4xi16>) -> tensor<3x4xi32>
// CHECK-NOT:     packed
// CHECK-LABEL: @few_rows_of_wide_weights
// CHECK-NOT:     packed
// QUADS-LABEL: @few_rows
// QUADS-COUNT-1: packed unsigned_left
// QUADS-NOT:     packed
func.func @few_rows(%x: tensor<3x3xui8>, %v: tensor<3x4xi8>) -> (tensor<3x4xi32>, tensor<3x4xi32>) {
  %w = core.constant dense<1> : tensor<3x4xi8>
  %y = core.matmul %x, %w in i32 : (tensor<3x3xui8>, tensor<3x4xi8>) -> tensor<3x4xi32>
  %z = core.matmul %x, %v in i32 : (tensor<3x3xui8>, tensor<3x4xi8>) -> tensor<3x4xi32>
  func.return %y, %z : tensor<3x4xi32>, tensor<3x4xi32>
}

func.func @few_rows_of_wide_weights(%x: tensor<3x3xui8>) -> tensor<3x4xi32> {
  %w = core.constant dense<-100> : tensor<3x4xi8>
  %none = core.constant dense<0> : tensor<ui8>
  %far = core.constant dense<100> : tensor<i8>
  %y = core.matmul %x, %w, %none, %far in i32 : (tensor<3x3xui8>, tensor<3x4xi8>, tensor<ui8>, tensor<i8>) -> tensor<3x4xi32>
  func.return %y : tensor<3x4xi32>
}

// -----

// Both factors are computed: no one knows the sums of the weights, which pairs do not need.
// CHECK-LABEL: @computed
// CHECK:         core.sub
// CHECK:         core.sub
// CHECK:         packed pairs : (tensor<4x2xi32>, tensor<2x4xi32>) -> tensor<4x4xi32>
// QUADS-LABEL: @computed
// QUADS:         packed pairs
func.func @computed(%x: tensor<4x3xui8>, %v: tensor<3x4xi8>, %z: tensor<ui8>, %w: tensor<4xi8>) -> tensor<4x4xi32> {
  %y = core.matmul %x, %v, %z, %w in i32 : (tensor<4x3xui8>, tensor<3x4xi8>, tensor<ui8>, tensor<4xi8>) -> tensor<4x4xi32>
  func.return %y : tensor<4x4xi32>
}

// -----

// Numbers with signs get a zero point; weights without theirs that are no bytes are pairs.
// QUADS-LABEL: @signs
// QUADS:         %[[FLIP:.+]] = core.constant dense<-2139062144>
// QUADS-NEXT:    core.xor %{{.*}}, %[[FLIP]]
// QUADS:         packed unsigned_left
// QUADS:         %[[SUMS:.+]] = core.constant dense<{{.*}}-384, -384, -384, -384
// QUADS-NEXT:    core.add %{{.*}}, %[[SUMS]]
// QUADS:         packed pairs
func.func @signs(%x: tensor<4x3xi8>) -> (tensor<4x4xi32>, tensor<4x4xi32>) {
  %w = core.constant dense<1> : tensor<3x4xi8>
  %none = core.constant dense<0> : tensor<i8>
  %far = core.constant dense<-127> : tensor<i8>
  %y = core.matmul %x, %w, %none, %none in i32 : (tensor<4x3xi8>, tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<4x4xi32>
  %z = core.matmul %x, %w, %none, %far in i32 : (tensor<4x3xi8>, tensor<3x4xi8>, tensor<i8>, tensor<i8>) -> tensor<4x4xi32>
  func.return %y, %z : tensor<4x4xi32>, tensor<4x4xi32>
}

// -----

// A zero point that differs along the sums, and numbers of 16 bits.
// CHECK-LABEL: @columns
// CHECK-NOT:     packed
func.func @columns(%x: tensor<8x3xui8>, %v: tensor<8x3xi16>, %zero: tensor<3xui8>) -> (tensor<8x4xi32>, tensor<8x4xi32>) {
  %w = core.constant dense<1> : tensor<3x4xi8>
  %none = core.constant dense<0> : tensor<i8>
  %y = core.matmul %x, %w, %zero, %none in i32 : (tensor<8x3xui8>, tensor<3x4xi8>, tensor<3xui8>, tensor<i8>) -> tensor<8x4xi32>
  %z = core.matmul %v, %w in i32 : (tensor<8x3xi16>, tensor<3x4xi8>) -> tensor<8x4xi32>
  func.return %y, %z : tensor<8x4xi32>, tensor<8x4xi32>
}

// -----

// Both taps of 3 channels in 2 pairs each, or in one quad, with columns for whole vectors; what
// follows is computed for the matrix.
// CHECK-LABEL: @convolution
// CHECK:         core.pad constant %{{[^,]*}} [0, 0, 1] [0, 0, 0] : (tensor<1x2x5xi32>) -> tensor<1x2x6xi32>
// CHECK:         core.concat
// CHECK:         core.pad constant %{{.*}} [0, 0, 0] [0, 0, 3]
// CHECK-NEXT:    core.matmul %{{.*}}, %{{.*}} packed pairs : (tensor<4x4xi32>, tensor<1x4x8xi32>) -> tensor<1x4x8xi32>
// CHECK:         core.neg
// CHECK-NEXT:    core.slice %{{.*}} [0, 0, 0] [1, 4, 5]
// CHECK-NEXT:    core.reshape
// QUADS-LABEL: @convolution
// QUADS:         %[[ZERO:.+]] = core.constant dense<117901063>
// QUADS-NEXT:    core.pad constant %{{.*}}, %[[ZERO]] [0, 0, 1] [0, 0, 0] : (tensor<1x1x5xi32>, tensor<i32>) -> tensor<1x1x6xi32>
// QUADS:         core.matmul %{{.*}}, %{{.*}} packed unsigned_right : (tensor<4x2xi32>, tensor<1x2x8xi32>) -> tensor<1x4x8xi32>
// QUADS:         core.constant dense<{{.*}}-4200{{.*}}> : tensor<4x1xi32>
// QUADS-NEXT:    core.add
// PLAIN-LABEL: @convolution
// PLAIN:         core.matmul %{{.*}}, %{{.*}} : (tensor<4x6xi32>, tensor<1x6x8xi32>) -> tensor<1x4x8xi32>
// NONE-LABEL:  @convolution
// NONE:          core.conv
func.func @convolution(%x: tensor<1x3x5xui8>) -> tensor<1x4x5xi32> {
  %w = core.constant dense<100> : tensor<4x3x2xi8>
  %zero = core.constant dense<7> : tensor<ui8>
  %none = core.constant dense<0> : tensor<i8>
  %y = core.conv %x, %w, %zero, %none strides [1] dilations [1] pads [1] [0] groups 1 in i32 : (tensor<1x3x5xui8>, tensor<4x3x2xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x4x5xi32>
  %z = core.neg %y : (tensor<1x4x5xi32>) -> tensor<1x4x5xi32>
  func.return %z : tensor<1x4x5xi32>
}

// -----

// Channels 2 and 7 of the first filter, and 14 and 19 of the second one, are beside each other: what
// is more than 128, or less than -128, stands behind the row, after its place, and before all of them
// how many there are. Where each of few
// elements would lack something, pairs are faster.
// CHECK-LABEL: @split
// CHECK:         core.constant dense<{{\[}}[16843009, 16843009, 16843135, 16843009, 16843009, 1, 2, 32256], [16843009, 16843009, 16843009, 16843009, 8388865, 1, 4, -2147483648]]> : tensor<2x8xi32>
// CHECK:         core.matmul %{{.*}}, %{{.*}} packed split_left : (tensor<2x8xi32>, tensor<1x5x8xi32>) -> tensor<1x2x8xi32>
// CHECK-LABEL: @unsplit
// CHECK:         packed pairs
func.func @split(%x: tensor<1x20x8xui8>) -> tensor<1x2x8xi32> {
  %w = core.constant dense<[[[1], [1], [127], [1], [1], [1], [1], [127], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1]], [[1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [1], [-128], [1], [1], [1], [1], [-128]]]> : tensor<2x20x1xi8>
  %none = core.constant dense<0> : tensor<i8>
  %zero = core.constant dense<0> : tensor<ui8>
  %y = core.conv %x, %w, %zero, %none strides [1] dilations [1] pads [0] [0] groups 1 in i32 : (tensor<1x20x8xui8>, tensor<2x20x1xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x2x8xi32>
  func.return %y : tensor<1x2x8xi32>
}

func.func @unsplit(%x: tensor<1x8x8xui8>) -> tensor<1x2x8xi32> {
  %w = core.constant dense<[[[127], [1], [127], [1], [1], [1], [1], [1]], [[1], [1], [1], [1], [1], [1], [1], [1]]]> : tensor<2x8x1xi8>
  %none = core.constant dense<0> : tensor<i8>
  %zero = core.constant dense<0> : tensor<ui8>
  %y = core.conv %x, %w, %zero, %none strides [1] dilations [1] pads [0] [0] groups 1 in i32 : (tensor<1x8x8xui8>, tensor<2x8x1xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x2x8xi32>
  func.return %y : tensor<1x2x8xi32>
}

// -----

// Groups of few filters are convolutions of floats, which hold every sum up to 2^24. Bytes are multiplied where they are
// put in order, but not far ones.
// WORDS-LABEL: @depthwise
// WORDS:         core.conv {{.+}} in i32
// WORDS-LABEL: @strided
// WORDS-NOT:     in i32
// WORDS-LABEL: @depthwise_long
// CHECK-LABEL: @depthwise
// CHECK:         %[[X:.+]] = core.cast %x to f32
// CHECK:         %[[ZERO:.+]] = core.cast %zero to f32
// CHECK-NEXT:    %[[C:.+]] = core.sub %[[X]], %[[ZERO]]
// CHECK:         %[[SUM:.+]] = core.conv %[[C]], %{{.+}} strides [1, 1] dilations [1, 1] pads [1, 1] [0, 0] groups 4 : (tensor<1x4x3x5xf32>, tensor<4x1x2x2xf32>)
// CHECK-NEXT:    core.cast %[[SUM]] to i32
// CHECK-LABEL: @strided
// CHECK:         core.conv {{.+}} groups 2 : (tensor<1x4x3x5xf32>, tensor<4x2x1x2xf32>)
// CHECK-LABEL: @depthwise_long
// CHECK:         core.matmul %{{.*}} packed split_left
func.func @depthwise(%x: tensor<1x4x3x5xui8>) -> tensor<1x4x3x5xi32> {
  %w = core.constant dense<2> : tensor<4x1x2x2xi8>
  %zero = core.constant dense<7> : tensor<ui8>
  %none = core.constant dense<0> : tensor<i8>
  %y = core.conv %x, %w, %zero, %none strides [1, 1] dilations [1, 1] pads [1, 1] [0, 0] groups 4 in i32 : (tensor<1x4x3x5xui8>, tensor<4x1x2x2xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x4x3x5xi32>
  %z = core.neg %y : (tensor<1x4x3x5xi32>) -> tensor<1x4x3x5xi32>
  func.return %z : tensor<1x4x3x5xi32>
}

func.func @strided(%x: tensor<1x4x3x5xui8>) -> tensor<1x4x2x2xi32> {
  %w = core.constant dense<2> : tensor<4x2x1x2xi8>
  %y = core.conv %x, %w strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 2 in i32 : (tensor<1x4x3x5xui8>, tensor<4x2x1x2xi8>) -> tensor<1x4x2x2xi32>
  func.return %y : tensor<1x4x2x2xi32>
}

func.func @depthwise_long(%x: tensor<1x4x999xui8>) -> tensor<1x4x400xi32> {
  %w = core.constant dense<120> : tensor<4x1x600xi8>
  %y = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 4 in i32 : (tensor<1x4x999xui8>, tensor<4x1x600xi8>) -> tensor<1x4x400xi32>
  func.return %y : tensor<1x4x400xi32>
}

// -----

// What 9 taps see of 8 quads, or 16 pairs, is larger than a part of the L2 cache, and never in memory
// as a whole; that of one tap, or of few windows, is.
// CHECK-LABEL: @large
// CHECK:         %[[W:.+]] = core.windows %{{.+}} taps [3, 3] strides [2, 1] dilations [1, 2] : (tensor<1x16x65x68xi32>) -> tensor<1x144x2048xi32>
// CHECK-NEXT:    core.matmul %{{.+}}, %[[W]] packed pairs
// CHECK-NOT:     core.windows
// QUADS-LABEL: @large
// QUADS:         %[[W:.+]] = core.windows %{{.+}} : (tensor<1x8x65x68xi32>) -> tensor<1x72x2048xi32>
// QUADS-NEXT:    core.matmul %{{.+}}, %[[W]] packed unsigned_right
// QUADS-NOT:     core.windows
// PLAIN-LABEL: @large
// PLAIN:         core.windows
// NONE-LABEL:  @large
// NONE:          core.conv
func.func @large(%x: tensor<1x32x64x64xui8>, %y: tensor<1x32x8x8xui8>) -> (tensor<1x4x32x64xi32>, tensor<1x4x32x32xi32>, tensor<1x4x8x8xi32>) {
  %w = core.constant dense<100> : tensor<4x32x3x3xi8>
  %v = core.constant dense<100> : tensor<4x32x1x1xi8>
  %zero = core.constant dense<7> : tensor<ui8>
  %none = core.constant dense<0> : tensor<i8>
  %a = core.conv %x, %w, %zero, %none strides [2, 1] dilations [1, 2] pads [1, 2] [0, 2] groups 1 in i32 : (tensor<1x32x64x64xui8>, tensor<4x32x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x4x32x64xi32>
  %b = core.conv %x, %v, %zero, %none strides [2, 2] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x32x64x64xui8>, tensor<4x32x1x1xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x4x32x32xi32>
  %c = core.conv %y, %w, %zero, %none strides [1, 1] dilations [1, 1] pads [1, 1] [1, 1] groups 1 in i32 : (tensor<1x32x8x8xui8>, tensor<4x32x3x3xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x4x8x8xi32>
  func.return %a, %b, %c : tensor<1x4x32x64xi32>, tensor<1x4x32x32xi32>, tensor<1x4x8x8xi32>
}

// -----

// Both convolutions read the same words. What is added at each place has columns, too, and zeros
// beyond them; what widens it is computed of these, but not what something else reads. What would be
// widened again, right behind the first convolution, is never narrow.
// QUADS-LABEL: @residual
// QUADS:         core.reshape %[[QUAD:.+]] [1, 1, 9] : (tensor<1x1x3x3xi32>)
// QUADS-NOT:     core.or
// QUADS:         core.reshape %[[QUAD]] [1, 1, 9]
// QUADS:         %[[A:.+]] = core.requantize even %{{.+}} zero 3 low 0 high 255 to i32
// QUADS:         core.requantize even %{{.+}} zero 5 low 0 high 255 to ui8
// QUADS:         %[[B:.+]] = core.reshape %{{.+}} [1, 4, 3, 3] : (tensor<1x4x9xui8>)
// QUADS-NEXT:    %[[C:.+]] = core.reshape %[[B]] [1, 4, 9]
// QUADS-NEXT:    core.pad constant %[[C]] [0, 0, 0] [0, 0, 3] : (tensor<1x4x9xui8>) -> tensor<1x4x12xui8>
// QUADS-NEXT:    core.cast %{{.+}} to i32 : (tensor<1x4x12xui8>)
// QUADS-NEXT:    %[[D:.+]] = core.mul
// QUADS-NEXT:    core.add %[[A]], %[[D]] : (tensor<1x4x12xi32>
// QUADS-NEXT:    %[[X:.+]] = core.cast %x to i32 : (tensor<1x4x3x3xui8>)
// QUADS-NEXT:    %[[E:.+]] = core.reshape %[[X]] [1, 4, 9]
// QUADS-NEXT:    %[[F:.+]] = core.pad constant %[[E]]
// QUADS-NEXT:    core.add %{{.+}}, %[[F]] : (tensor<1x4x12xi32>
func.func @residual(%x: tensor<1x4x3x3xui8>) -> (tensor<1x4x3x3xi32>, tensor<1x4x3x3xi32>) {
  %w = core.constant dense<100> : tensor<4x4x1x1xi8>
  %three = core.constant dense<3> : tensor<i32>
  %scale = core.constant dense<0.01> : tensor<f32>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x4x3x3xui8>, tensor<4x4x1x1xi8>) -> tensor<1x4x3x3xi32>
  %b = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x4x3x3xui8>, tensor<4x4x1x1xi8>) -> tensor<1x4x3x3xi32>
  %a8 = core.requantize even %a, %scale zero 3 low 0 high 255 to ui8 : (tensor<1x4x3x3xi32>, tensor<f32>) -> tensor<1x4x3x3xui8>
  %b8 = core.requantize even %b, %scale zero 5 low 0 high 255 to ui8 : (tensor<1x4x3x3xi32>, tensor<f32>) -> tensor<1x4x3x3xui8>
  %aw = core.cast %a8 to i32 : (tensor<1x4x3x3xui8>) -> tensor<1x4x3x3xi32>
  %bw = core.cast %b8 to i32 : (tensor<1x4x3x3xui8>) -> tensor<1x4x3x3xi32>
  %bm = core.mul %bw, %three : (tensor<1x4x3x3xi32>, tensor<i32>) -> tensor<1x4x3x3xi32>
  %s = core.add %aw, %bm : (tensor<1x4x3x3xi32>, tensor<1x4x3x3xi32>) -> tensor<1x4x3x3xi32>
  %xw = core.cast %x to i32 : (tensor<1x4x3x3xui8>) -> tensor<1x4x3x3xi32>
  %t = core.add %s, %xw : (tensor<1x4x3x3xi32>, tensor<1x4x3x3xi32>) -> tensor<1x4x3x3xi32>
  func.return %t, %xw : tensor<1x4x3x3xi32>, tensor<1x4x3x3xi32>
}

// -----

// Floats that are added have columns as well.
// QUADS-LABEL: @floats
// QUADS:         %[[A:.+]] = core.cast %{{.+}} to f32 : (tensor<1x4x12xi32>)
// QUADS:         %[[Y:.+]] = core.reshape %y [1, 4, 9] : (tensor<1x4x3x3xf32>)
// QUADS-NEXT:    %[[P:.+]] = core.pad constant %[[Y]]
// QUADS-NEXT:    core.add %[[A]], %[[P]] : (tensor<1x4x12xf32>
func.func @floats(%x: tensor<1x4x3x3xui8>, %y: tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32> {
  %w = core.constant dense<100> : tensor<4x4x1x1xi8>
  %a = core.conv %x, %w strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x4x3x3xui8>, tensor<4x4x1x1xi8>) -> tensor<1x4x3x3xi32>
  %b = core.cast %a to f32 : (tensor<1x4x3x3xi32>) -> tensor<1x4x3x3xf32>
  %c = core.add %b, %y : (tensor<1x4x3x3xf32>, tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  func.return %c : tensor<1x4x3x3xf32>
}

// -----

// So many columns that a vector of some is computed twice need none beside them.
// CHECK-LABEL: @many
// CHECK-NOT:     core.pad
// CHECK:         core.matmul %{{.*}}, %{{.*}} packed {{.*}} -> tensor<1x4x141xi32>
// CHECK-NOT:     core.slice %{{.*}} [0, 0, 0]
// CHECK:         func.return
func.func @many(%x: tensor<1x4x3x47xui8>) -> tensor<1x4x3x47xi32> {
  %w = core.constant dense<3> : tensor<4x4x1x1xi8>
  %zero = core.constant dense<7> : tensor<ui8>
  %none = core.constant dense<0> : tensor<i8>
  %y = core.conv %x, %w, %zero, %none strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in i32 : (tensor<1x4x3x47xui8>, tensor<4x4x1x1xi8>, tensor<ui8>, tensor<i8>) -> tensor<1x4x3x47xi32>
  func.return %y : tensor<1x4x3x47xi32>
}

// -----

// Channel k of bf16 beside channel k + 2, in one word; what follows is computed of columns.
// TILES-LABEL: @halves
// TILES:         %[[LOW:.+]] = core.slice %x [0, 0, 0, 0] [1, 2, 3, 4]
// TILES:         %[[HIGH:.+]] = core.slice %x [0, 2, 0, 0] [1, 1, 3, 4]
// TILES-NEXT:    %[[REST:.+]] = core.pad constant %[[HIGH]]
// TILES-NEXT:    %[[X:.+]] = core.pair_halves %[[LOW]], %[[REST]]
// TILES:         %[[Y:.+]] = core.matmul %{{.*}}, %{{.*}} packed halves in f32 : (tensor<4x2xi32>, tensor<1x2x12xi32>) -> tensor<1x4x12xf32>
// TILES:         %[[Z:.+]] = core.max %{{.*}} : {{.*}} -> tensor<1x4x12xf32>
// TILES-NEXT:    core.reshape %[[Z]] [1, 4, 3, 4]
// QUADS-LABEL: @halves
// QUADS:         core.conv {{.*}} in f32
func.func @halves(%x: tensor<1x3x3x4xf32>) -> tensor<1x4x3x4xf32> {
  %w = core.constant dense<3.0> : tensor<4x3x1x1xbf16>
  %b = core.constant dense<1.0> : tensor<4xf32>
  %h = core.cast %x to bf16 : (tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xbf16>
  %a = core.conv %h, %w, %b strides [1, 1] dilations [1, 1] pads [0, 0] [0, 0] groups 1 in f32 : (tensor<1x3x3x4xbf16>, tensor<4x3x1x1xbf16>, tensor<4xf32>) -> tensor<1x4x3x4xf32>
  %zero = core.constant dense<0.0> : tensor<f32>
  %y = core.max %a, %zero : (tensor<1x4x3x4xf32>, tensor<f32>) -> tensor<1x4x3x4xf32>
  func.return %y : tensor<1x4x3x4xf32>
}
