// RUN: opt-tool %s --pass-pipeline=view-parts --split-input-file | filecheck %s

// Channels in blocks of 4, with a border around the others: parts of whole blocks, the last of which
// need not be full.
// CHECK:         core.concat
// CHECK-NEXT:    core.yield
// CHECK-NEXT:    } {layouts = {{.*}}, view}
// CHECK:         core.slice
// CHECK-NEXT:    core.yield
// CHECK-NEXT:    } {layouts = {{.*}}, view}
func.func @main(%x: tensor<1x8x3xf32>, %y: tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  %a = core.kernel @a (%x) : (tensor<1x8x3xf32>) -> tensor<1x8x3xf32> {
  ^bb0(%v : tensor<1x8x3xf32>):
    core.yield %v : tensor<1x8x3xf32>
  } {layouts = [#core.layout<0, 1, 2>, #core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>]}
  %b = core.kernel @b (%y) : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  ^bb0(%v : tensor<1x2x3xf32>):
    core.yield %v : tensor<1x2x3xf32>
  } {layouts = [#core.layout<0, 1, 2>, #core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>]}
  %c = core.kernel @join (%a, %b) : (tensor<1x8x3xf32>, tensor<1x2x3xf32>) -> tensor<1x10x3xf32> {
  ^bb0(%v : tensor<1x8x3xf32>, %w : tensor<1x2x3xf32>):
    %r = core.concat %v, %w axis 1 : (tensor<1x8x3xf32>, tensor<1x2x3xf32>) -> tensor<1x10x3xf32>
    core.yield %r : tensor<1x10x3xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>, #core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>, #core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>]}
  %d = core.kernel @cut (%c) : (tensor<1x10x3xf32>) -> tensor<1x2x3xf32> {
  ^bb0(%v : tensor<1x10x3xf32>):
    %r = core.slice %v [0, 8, 0] [1, 2, 3] [1, 1, 1] : (tensor<1x10x3xf32>) -> tensor<1x2x3xf32>
    core.yield %r : tensor<1x2x3xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>, #core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>]}
  %e = core.kernel @e (%d) : (tensor<1x2x3xf32>) -> tensor<1x2x3xf32> {
  ^bb0(%v : tensor<1x2x3xf32>):
    core.yield %v : tensor<1x2x3xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4 pad [0, 0, 1] [0, 0, 1]>, #core.layout<0, 1, 2>]}
  func.return %e : tensor<1x2x3xf32>
}

// -----

// A block that is cut; a first part that ends within a block; another border; a cut along a border.
// CHECK:     @cut_blocks
// CHECK-NOT: view}
// CHECK: func.return
func.func @main(%x: tensor<1x8x4xf32>) -> (tensor<1x4x4xf32>, tensor<1x8x2xf32>, tensor<1x10x4xf32>, tensor<1x16x4xf32>) {
  %a = core.kernel @cut_blocks (%x) : (tensor<1x8x4xf32>) -> tensor<1x4x4xf32> {
  ^bb0(%v : tensor<1x8x4xf32>):
    %r = core.slice %v [0, 2, 0] [1, 4, 4] [1, 1, 1] : (tensor<1x8x4xf32>) -> tensor<1x4x4xf32>
    core.yield %r : tensor<1x4x4xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4>, #core.layout<0, 1/4, 2, 1 mod 4>]}
  %b = core.kernel @cut_border (%x) : (tensor<1x8x4xf32>) -> tensor<1x8x2xf32> {
  ^bb0(%v : tensor<1x8x4xf32>):
    %r = core.slice %v [0, 0, 0] [1, 8, 2] [1, 1, 1] : (tensor<1x8x4xf32>) -> tensor<1x8x2xf32>
    core.yield %r : tensor<1x8x2xf32>
  } {layouts = [#core.layout<2, 0, 1 pad [0, 0, 1] [0, 0, 0]>, #core.layout<2, 0, 1 pad [0, 0, 1] [0, 0, 0]>]}
  %p = core.kernel @two (%x) : (tensor<1x8x4xf32>) -> tensor<1x2x4xf32> {
  ^bb0(%v : tensor<1x8x4xf32>):
    %r = core.slice %v [0, 0, 0] [1, 2, 4] [1, 3, 1] : (tensor<1x8x4xf32>) -> tensor<1x2x4xf32>
    core.yield %r : tensor<1x2x4xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4>, #core.layout<0, 1/4, 2, 1 mod 4>]}
  %q = core.kernel @eight (%x) : (tensor<1x8x4xf32>) -> tensor<1x8x4xf32> {
  ^bb0(%v : tensor<1x8x4xf32>):
    core.yield %v : tensor<1x8x4xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4>, #core.layout<0, 1/4, 2, 1 mod 4>]}
  %c = core.kernel @join_blocks (%p, %q) : (tensor<1x2x4xf32>, tensor<1x8x4xf32>) -> tensor<1x10x4xf32> {
  ^bb0(%v : tensor<1x2x4xf32>, %w : tensor<1x8x4xf32>):
    %r = core.concat %v, %w axis 1 : (tensor<1x2x4xf32>, tensor<1x8x4xf32>) -> tensor<1x10x4xf32>
    core.yield %r : tensor<1x10x4xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4>, #core.layout<0, 1/4, 2, 1 mod 4>, #core.layout<0, 1/4, 2, 1 mod 4>]}
  %d = core.kernel @join_others (%q, %x) : (tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> tensor<1x16x4xf32> {
  ^bb0(%v : tensor<1x8x4xf32>, %w : tensor<1x8x4xf32>):
    %r = core.concat %v, %w axis 1 : (tensor<1x8x4xf32>, tensor<1x8x4xf32>) -> tensor<1x16x4xf32>
    core.yield %r : tensor<1x16x4xf32>
  } {layouts = [#core.layout<0, 1/4, 2, 1 mod 4>, #core.layout<0, 1, 2>, #core.layout<0, 1/4, 2, 1 mod 4>]}
  func.return %a, %b, %c, %d : tensor<1x4x4xf32>, tensor<1x8x2xf32>, tensor<1x10x4xf32>, tensor<1x16x4xf32>
}
