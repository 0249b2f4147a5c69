// RUN: opt-tool %s --pass-pipeline=fuse | filecheck %s
// RUN: opt-tool %s --pass-pipeline=fuse --disable=fuse-linear --disable=decompose-linear | filecheck %s --check-prefix=KEPT
// RUN: opt-tool %s --pass-pipeline=fuse --disable=fuse | filecheck %s --check-prefix=KEPT
// RUN: opt-tool %s --pass-pipeline=fuse --skip-nodes='^norm_b$' | filecheck %s --check-prefix=SKIP
// RUN: opt-tool %s --pass-pipeline=fuse --skip-nodes='^(conv|norm)' | filecheck %s --check-prefix=KEPT
// RUN: opt-tool %s --pass-pipeline=fuse --rewrite-limit=1 | filecheck %s --check-prefix=LIMIT
// RUN: opt-tool %s --pass-pipeline=fuse --rewrite-limit=0 | filecheck %s --check-prefix=KEPT
// RUN: opt-tool %s --pass-pipeline=fuse --disable=fuse-linear | filecheck %s --check-prefix=APART
// RUN: opt-tool %s --pass-pipeline=fuse --skip-nodes='^conv' | filecheck %s --check-prefix=APART
// RUN: opt-tool %s --pass-pipeline=fuse --rewrite-log -o %t 2>&1 | filecheck %s --check-prefix=LOG
// RUN: opt-tool %s --pass-pipeline=fuse --pass-statistics --skip-nodes=norm_b -o %t 2>&1 | filecheck %s --check-prefix=COUNT
// RUN: opt-tool %s --pass-pipeline=fuse --print-debuginfo | filecheck %s --check-prefix=LOC
// RUN: opt-tool %s --pass-pipeline=fuse --print-debuginfo | opt-tool --print-debuginfo | filecheck %s --check-prefix=LOC

// CHECK-NOT: core.batch_norm

// A disabled pass, a skipped node in the match, or no rewrite at all: everything stays.
// KEPT-COUNT-2: core.batch_norm

// Only one of the two comes from the node.
// SKIP:     core.conv
// SKIP-NOT: core.batch_norm
// SKIP:     core.conv
// SKIP:     core.batch_norm
// SKIP:     return

// LIMIT:     core.conv
// LIMIT-NOT: core.batch_norm
// LIMIT:     core.conv
// LIMIT:     core.batch_norm

// A normalization that no convolution may take is a product and a sum.
// APART:      core.mul
// APART:      core.add
// APART:      core.mul
// APART:      core.add
// APART-NEXT: return

// LOG: 1 fuse-linear/fuse-into-producer on core.batch_norm: {{.*}}; from 'norm_a', 'conv_a'
// LOG: 2 fuse-linear/fuse-into-producer on core.batch_norm: {{.*}}; from 'norm_b', 'conv_b'

// COUNT: 1 rewrites 1 skipped fuse-linear/fuse-into-producer

// LOC: core.conv {{.*}} loc(fused["conv_a", "norm_a"])
// LOC: core.conv {{.*}} loc(fused["conv_b", "norm_b"])

func.func @main(%x : tensor<1x1x5xf32>) -> tensor<1x2x3xf32> {
  %w = core.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
  %u = core.constant dense<1.0> : tensor<2x2x2xf32>
  %s = core.constant dense<[2.0, 4.0]> : tensor<2xf32>
  %m = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  %v = core.constant dense<[4.0, 1.0]> : tensor<2xf32>
  %b = core.constant dense<[0.0, 0.5]> : tensor<2xf32>
  %c = core.conv %x, %w strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x1x5xf32>, tensor<2x1x2xf32>) -> tensor<1x2x4xf32> loc("conv_a")
  %y = core.batch_norm %c, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x4xf32> loc("norm_a")
  %d = core.conv %y, %u strides [1] dilations [1] pads [0] [0] groups 1 : (tensor<1x2x4xf32>, tensor<2x2x2xf32>) -> tensor<1x2x3xf32> loc("conv_b")
  %z = core.batch_norm %d, %s, %b, %m, %v axis 1 {epsilon = 0.0 : f64} : (tensor<1x2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<1x2x3xf32> loc("norm_b")
  func.return %z : tensor<1x2x3xf32>
}
