// RUN: opt-tool %s --for-target x86-64-v4 --pass-pipeline=form-kernels,choose-strategies --split-input-file | filecheck %s

// More weights than rows: panels of the packed weights outside, the next one asked for ahead.
// CHECK-LABEL: @wide
// CHECK:         schedule = #core.schedule<tiled_matmul, tile {m = 13, n = 2}, order [n, m], lanes {n = 16}, prefetch 1>
// CHECK-SAME:    layouts = [#core.layout<0, 1>, #core.layout<1/32, 0, 1 mod 32>, #core.layout<0, 1>]
func.func @wide(%x: tensor<26x64xf32>) -> tensor<26x128xf32> {
  %w = core.constant dense<1.0> : tensor<64x128xf32>
  %y = core.matmul %x, %w : (tensor<26x64xf32>, tensor<64x128xf32>) -> tensor<26x128xf32>
  func.return %y : tensor<26x128xf32>
}

// -----

// More rows than weights: rows outside.
// CHECK-LABEL: @tall
// CHECK:         order [m, n], lanes {n = 16}>
func.func @tall(%x: tensor<260x64xf32>) -> tensor<260x32xf32> {
  %w = core.constant dense<1.0> : tensor<64x32xf32>
  %y = core.matmul %x, %w : (tensor<260x64xf32>, tensor<64x32xf32>) -> tensor<260x32xf32>
  func.return %y : tensor<260x32xf32>
}

// -----

// One row: each panel is read once, so nothing is asked for ahead.
// CHECK-LABEL: @vector
// CHECK:         schedule = #core.schedule<tiled_matmul, tile {m = 1, n = 8}, order [n, m], lanes {n = 16}>
// CHECK-SAME:    #core.layout<1/128, 0, 1 mod 128>
func.func @vector(%x: tensor<1x64xf32>) -> tensor<1x256xf32> {
  %w = core.constant dense<1.0> : tensor<64x256xf32>
  %y = core.matmul %x, %w : (tensor<1x64xf32>, tensor<64x256xf32>) -> tensor<1x256xf32>
  func.return %y : tensor<1x256xf32>
}

// -----

// The rows of different matrices that meet one right matrix are in one tile.
// CHECK-LABEL: @batch
// CHECK:         tile {b0 = 9
func.func @batch(%x: tensor<9x1x64xf32>) -> tensor<9x1x48xf32> {
  %w = core.constant dense<1.0> : tensor<64x48xf32>
  %y = core.matmul %x, %w : (tensor<9x1x64xf32>, tensor<64x48xf32>) -> tensor<9x1x48xf32>
  func.return %y : tensor<9x1x48xf32>
}

// -----

// A right matrix that is computed is read where it lies.
// CHECK-LABEL: @variable
// CHECK:         schedule =
// CHECK-NOT:     layouts
func.func @variable(%x: tensor<26x64xf32>, %w: tensor<64x128xf32>) -> tensor<26x128xf32> {
  %y = core.matmul %x, %w : (tensor<26x64xf32>, tensor<64x128xf32>) -> tensor<26x128xf32>
  func.return %y : tensor<26x128xf32>
}

// -----

// Vectors hold half as many.
// CHECK-LABEL: @double
// CHECK:         lanes {n = 8}
func.func @double(%x: tensor<26x64xf64>, %w: tensor<64x128xf64>) -> tensor<26x128xf64> {
  %y = core.matmul %x, %w : (tensor<26x64xf64>, tensor<64x128xf64>) -> tensor<26x128xf64>
  func.return %y : tensor<26x128xf64>
}

// -----

// Lanes are those of the sums, whatever the factors are.
// CHECK-LABEL: @integers
// CHECK:         lanes {n = 16}
func.func @integers(%x: tensor<26x64xui8>, %w: tensor<64x128xi8>) -> tensor<26x128xi32> {
  %y = core.matmul %x, %w in i32 : (tensor<26x64xui8>, tensor<64x128xi8>) -> tensor<26x128xi32>
  func.return %y : tensor<26x128xi32>
}

// -----

// There are no vectors of i64, and none of floats that are narrower than their sums.
// CHECK-LABEL: @without_vectors
// CHECK-NOT:     schedule
func.func @without_vectors(%x: tensor<26x64xi64>, %w: tensor<64x128xi64>, %u: tensor<26x64xbf16>, %v: tensor<64x128xbf16>) -> (tensor<26x128xi64>, tensor<26x128xf32>) {
  %y = core.matmul %x, %w : (tensor<26x64xi64>, tensor<64x128xi64>) -> tensor<26x128xi64>
  %z = core.matmul %u, %v in f32 : (tensor<26x64xbf16>, tensor<64x128xbf16>) -> tensor<26x128xf32>
  func.return %y, %z : tensor<26x128xi64>, tensor<26x128xf32>
}

// -----

// Blocks of two vectors of queries; a mask that differs between them is packed so, too.
// CHECK-LABEL: @attention
// CHECK:         t = 2
// CHECK-SAME:    lanes {t = 16, e = 16}
// CHECK-SAME:    #core.layout<0/32, 1, 0 mod 32>
func.func @attention(%q: tensor<1x40x2x8xf32>) -> tensor<1x40x2x8xf32> {
  %m = core.constant dense<1.0> : tensor<40x40xf32>
  %y = core.attention %q, %q, %q, %m {scale = 1.0 : f64} : (tensor<1x40x2x8xf32>, tensor<1x40x2x8xf32>, tensor<1x40x2x8xf32>, tensor<40x40xf32>) -> tensor<1x40x2x8xf32>
  func.return %y : tensor<1x40x2x8xf32>
}

// -----

// Nobody knows how many keys there are: scores of 128 at a time lie on the stack.
// CHECK-LABEL: @open
// CHECK:         t = 2
// CHECK-SAME:    lanes {t = 16, e = 16}, chunk = 128>
func.func @open(%q: tensor<1x40x2x8xf32>, %k: tensor<1x?x2x8xf32, #core.tensor<dims = [1, s, 2, 8]>>) -> tensor<1x40x2x8xf32> {
  %y = core.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x40x2x8xf32>, tensor<1x?x2x8xf32, #core.tensor<dims = [1, s, 2, 8]>>, tensor<1x?x2x8xf32, #core.tensor<dims = [1, s, 2, 8]>>) -> tensor<1x40x2x8xf32>
  func.return %y : tensor<1x40x2x8xf32>
}

// -----

// Fewer columns than a vector has lanes: the lanes are terms, and the constant is transposed.
// CHECK-LABEL: @narrow
// CHECK:         schedule = #core.schedule<dot_products, tile {m = {{[0-9]+}}, n = 3}, order [m, n], terms = 16>
// CHECK-SAME:    layouts = [#core.layout<0, 1>, #core.layout<1, 0>, #core.layout<0, 1>]
func.func @narrow(%x: tensor<500x300xf32>) -> tensor<500x3xf32> {
  %w = core.constant dense<1.0> : tensor<300x3xf32>
  %y = core.matmul %x, %w : (tensor<500x300xf32>, tensor<300x3xf32>) -> tensor<500x3xf32>
  func.return %y : tensor<500x3xf32>
}

// -----

// A matrix that is computed is transposed before; short sums are not worth it.
// CHECK-LABEL: @short
// CHECK:         #core.schedule<dot_products
// CHECK:         #core.schedule<tiled_matmul
func.func @short(%x: tensor<500x300xf32>, %v: tensor<300x3xf32>) -> (tensor<500x3xf32>, tensor<500x2xf32>) {
  %w = core.constant dense<1.0> : tensor<3x2xf32>
  %y = core.matmul %x, %v : (tensor<500x300xf32>, tensor<300x3xf32>) -> tensor<500x3xf32>
  %z = core.matmul %y, %w : (tensor<500x3xf32>, tensor<3x2xf32>) -> tensor<500x2xf32>
  func.return %y, %z : tensor<500x3xf32>, tensor<500x2xf32>
}

// -----

// A computed matrix whose rows lie on more pages than are found without delay: it is copied panel
// by panel for many rows of the other one,
// CHECK-LABEL: @copied
// CHECK-NOT:     _pack_
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}wide = 1>
func.func @copied(%x: tensor<200x300xf32>, %w: tensor<300x400xf32>) -> tensor<200x400xf32> {
  %y = core.matmul %x, %w : (tensor<200x300xf32>, tensor<300x400xf32>) -> tensor<200x400xf32>
  func.return %y : tensor<200x400xf32>
}

// -----

// not for few, which read it only once or twice,
// CHECK-LABEL: @few
// CHECK-NOT:     _pack_
// CHECK:         func.return
func.func @few(%x: tensor<8x300xf32>, %w: tensor<300x400xf32>) -> tensor<8x400xf32> {
  %y = core.matmul %x, %w : (tensor<8x300xf32>, tensor<300x400xf32>) -> tensor<8x400xf32>
  func.return %y : tensor<8x400xf32>
}

// -----

// and not if its size is open.
// CHECK-LABEL: @open
// CHECK-NOT:     _pack_
// CHECK:         func.return
func.func @open(%x: tensor<200x?xf32, #core.tensor<dims = [200, k]>>, %w: tensor<?x400xf32, #core.tensor<dims = [k, 400]>>) -> tensor<200x400xf32> {
  %y = core.matmul %x, %w : (tensor<200x?xf32, #core.tensor<dims = [200, k]>>, tensor<?x400xf32, #core.tensor<dims = [k, 400]>>) -> tensor<200x400xf32>
  func.return %y : tensor<200x400xf32>
}

// -----

// A matrix that is transposed before: the panels are made of the matrix itself,
// CHECK-LABEL: @transposed
// CHECK-NOT:     core.transpose
// CHECK:         core.kernel @[[NAME:.*]]_pack_1(%w) : (tensor<400x300xf32>) -> tensor<300x400xf32>
// CHECK:         core.transpose
// CHECK:         layouts = [#core.layout<0, 1>, #core.layout<1/{{[0-9]+}}, 0, 1 mod {{[0-9]+}}>
// CHECK-SAME:    schedule = #core.schedule<map_squares
// CHECK-NOT:     core.transpose
// CHECK:         core.kernel @[[NAME]](
func.func @transposed(%x: tensor<200x300xf32>, %w: tensor<400x300xf32>) -> tensor<200x400xf32> {
  %t = core.transpose %w [1, 0] : (tensor<400x300xf32>) -> tensor<300x400xf32>
  %y = core.matmul %x, %t : (tensor<200x300xf32>, tensor<300x400xf32>) -> tensor<200x400xf32>
  func.return %y : tensor<200x400xf32>
}

// -----

// but not if the transposed one is a result, too.
// CHECK-LABEL: @transposed_is_read
// CHECK:         core.transpose
// CHECK-NOT:     core.kernel {{.*}}_pack_1
// CHECK:         wide = 1
func.func @transposed_is_read(%x: tensor<200x300xf32>, %w: tensor<400x300xf32>) -> (tensor<200x400xf32>, tensor<300x400xf32>) {
  %t = core.transpose %w [1, 0] : (tensor<400x300xf32>) -> tensor<300x400xf32>
  %y = core.matmul %x, %t : (tensor<200x300xf32>, tensor<300x400xf32>) -> tensor<200x400xf32>
  func.return %y, %t : tensor<200x400xf32>, tensor<300x400xf32>
}

// -----

// Rows of 100 columns: most vectors lie in two lines, so that tiles have many rows and few of
// them.
// CHECK-LABEL: @split
// CHECK:         schedule = #core.schedule<tiled_matmul, tile {m = {{1[0-9]}}, n = 2}
func.func @split(%x: tensor<2x1000x32xf32>, %w: tensor<2x32x100xf32>) -> tensor<2x1000x100xf32> {
  %y = core.matmul %x, %w : (tensor<2x1000x32xf32>, tensor<2x32x100xf32>) -> tensor<2x1000x100xf32>
  func.return %y : tensor<2x1000x100xf32>
}

// -----

// Weights larger than a core's cache come from the one that cores share: tiles of few vectors wait
// less for them.
// CHECK-LABEL: @large
// CHECK:         tile {m = 8, n = 3}
func.func @large(%x: tensor<24x1024xf32>) -> tensor<24x512xf32> {
  %w = core.constant dense<1.0> : tensor<1024x512xf32>
  %y = core.matmul %x, %w : (tensor<24x1024xf32>, tensor<1024x512xf32>) -> tensor<24x512xf32>
  func.return %y : tensor<24x512xf32>
}

// -----

// One row, and weights that come from far: vectors side by side, whose sums do not wait for each
// other.
// CHECK-LABEL: @one_row_of_large
// CHECK:         tile {m = 1, n = {{[2-8]}}}
func.func @one_row_of_large(%x: tensor<1x768xf32>) -> tensor<1x3072xf32> {
  %w = core.constant dense<1.0> : tensor<768x3072xf32>
  %y = core.matmul %x, %w : (tensor<1x768xf32>, tensor<768x3072xf32>) -> tensor<1x3072xf32>
  func.return %y : tensor<1x3072xf32>
}

// -----

// Sixteen rows by one vector would ask for few of the lines that come from far; two such tiles ask
// for the next panel ahead.
// CHECK-LABEL: @some_rows_of_large
// CHECK-NOT:     n = 1}
// CHECK:         tile {m = {{[4-8]}}, n = {{[3-6]}}}, order [n, m], lanes {n = 16}, prefetch 1
func.func @some_rows_of_large(%x: tensor<16x512xf32>) -> tensor<16x32128xf32> {
  %w = core.constant dense<1.0> : tensor<512x32128xf32>
  %y = core.matmul %x, %w : (tensor<16x512xf32>, tensor<512x32128xf32>) -> tensor<16x32128xf32>
  func.return %y : tensor<16x32128xf32>
}

// -----

// Weights that a core holds.
// CHECK-LABEL: @some_rows_of_small
// CHECK:         tile {m = 6, n = 4}
func.func @some_rows_of_small(%x: tensor<16x256xf32>) -> tensor<16x256xf32> {
  %w = core.constant dense<1.0> : tensor<256x256xf32>
  %y = core.matmul %x, %w : (tensor<16x256xf32>, tensor<256x256xf32>) -> tensor<16x256xf32>
  func.return %y : tensor<16x256xf32>
}

// -----

// Short sums of a result that does not stay in the L2 cache: it is stored along rows.
// CHECK-LABEL: @mostly_result
// CHECK:         order [m, n], lanes {n = 16}
func.func @mostly_result(%x: tensor<300x24xf32>) -> tensor<300x3000xf32> {
  %w = core.constant dense<1.0> : tensor<24x3000xf32>
  %y = core.matmul %x, %w : (tensor<300x24xf32>, tensor<24x3000xf32>) -> tensor<300x3000xf32>
  func.return %y : tensor<300x3000xf32>
}

// -----

// It stays there; or more weights than rows have to be read again and again from far.
// CHECK-LABEL: @small_result
// CHECK:         order [n, m], lanes {n = 16}
// CHECK-LABEL: @many_weights
// CHECK:         order [n, m], lanes {n = 16}
func.func @small_result(%x: tensor<64x24xf32>) -> tensor<64x3000xf32> {
  %w = core.constant dense<1.0> : tensor<24x3000xf32>
  %y = core.matmul %x, %w : (tensor<64x24xf32>, tensor<24x3000xf32>) -> tensor<64x3000xf32>
  func.return %y : tensor<64x3000xf32>
}
func.func @many_weights(%x: tensor<300x240xf32>) -> tensor<300x3000xf32> {
  %w = core.constant dense<1.0> : tensor<240x3000xf32>
  %y = core.matmul %x, %w : (tensor<300x240xf32>, tensor<240x3000xf32>) -> tensor<300x3000xf32>
  func.return %y : tensor<300x3000xf32>
}

// -----

// Of an unknown number of columns the last vector ends with the last one,
// CHECK-LABEL: @open_columns
// CHECK:         schedule = #core.schedule<tiled_matmul, {{.*}}width = 16
func.func @open_columns(%x: tensor<200x30xf32>, %w: tensor<30x?xf32, #core.tensor<dims = [30, n]>>) -> tensor<200x?xf32, #core.tensor<dims = [200, n]>> {
  %y = core.matmul %x, %w : (tensor<200x30xf32>, tensor<30x?xf32, #core.tensor<dims = [30, n]>>) -> tensor<200x?xf32, #core.tensor<dims = [200, n]>>
  func.return %y : tensor<200x?xf32, #core.tensor<dims = [200, n]>>
}

// -----

// and one column of unknown length is read by vectors,
// CHECK-LABEL: @open_vector
// CHECK:         schedule = #core.schedule<dot_products
func.func @open_vector(%x: tensor<200x?xf32, #core.tensor<dims = [200, k]>>, %w: tensor<?x1xf32, #core.tensor<dims = [k, 1]>>) -> tensor<200x1xf32> {
  %y = core.matmul %x, %w : (tensor<200x?xf32, #core.tensor<dims = [200, k]>>, tensor<?x1xf32, #core.tensor<dims = [k, 1]>>) -> tensor<200x1xf32>
  func.return %y : tensor<200x1xf32>
}

// -----

// but not two, which would have to be transposed.
// CHECK-LABEL: @open_vectors
// CHECK-NOT:     dot_products
// CHECK:         func.return
func.func @open_vectors(%x: tensor<200x?xf32, #core.tensor<dims = [200, k]>>, %w: tensor<?x2xf32, #core.tensor<dims = [k, 2]>>) -> tensor<200x2xf32> {
  %y = core.matmul %x, %w : (tensor<200x?xf32, #core.tensor<dims = [200, k]>>, tensor<?x2xf32, #core.tensor<dims = [k, 2]>>) -> tensor<200x2xf32>
  func.return %y : tensor<200x2xf32>
}
