// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels,parallelize --split-input-file | filecheck %s

// Kernels too small to be shared: the entry function stays one for one thread.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.once
// CHECK-COUNT-3: buffer.call @softmax
// CHECK-NOT:     buffer.barrier
// CHECK:         buffer.return
func.func @main(%x: tensor<10x3xf32>) -> tensor<10x3xf32> {
  %a = core.softmax %x axis 0 : (tensor<10x3xf32>) -> tensor<10x3xf32>
  %b = core.softmax %a axis 1 : (tensor<10x3xf32>) -> tensor<10x3xf32>
  %c = core.softmax %b axis 0 : (tensor<10x3xf32>) -> tensor<10x3xf32>
  func.return %c : tensor<10x3xf32>
}

// -----

// A large one between small ones is waited for on both sides.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.once
// CHECK:           buffer.call @softmax
// CHECK:         }
// CHECK-NEXT:    buffer.barrier
// CHECK:         buffer.share
// CHECK:           buffer.call @matmul_0(%{{.*}}) <[part.number, part.count]>
// CHECK-NEXT:      buffer.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    buffer.barrier
// CHECK:         buffer.once
// CHECK:           buffer.call @softmax
// CHECK-NOT:     buffer.barrier
// CHECK:         buffer.return
func.func @main(%x: tensor<4096x16xf32>, %w: tensor<16x3xf32>) -> tensor<16x3xf32> {
  %a = core.softmax %w axis 0 : (tensor<16x3xf32>) -> tensor<16x3xf32>
  %b = core.matmul %x, %a : (tensor<4096x16xf32>, tensor<16x3xf32>) -> tensor<4096x3xf32>
  %c = core.slice %b [0, 0] [16, 3] [1, 1] : (tensor<4096x3xf32>) -> tensor<16x3xf32>
  %d = core.softmax %c axis 0 : (tensor<16x3xf32>) -> tensor<16x3xf32>
  func.return %d : tensor<16x3xf32>
}

// -----

// The same, but all is over soon: one thread.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.share
// CHECK:         buffer.call @matmul_0
// CHECK-NOT:     buffer.barrier
// CHECK:         buffer.return
func.func @main(%x: tensor<64x16xf32>, %w: tensor<16x3xf32>) -> tensor<16x3xf32> {
  %a = core.softmax %w axis 0 : (tensor<16x3xf32>) -> tensor<16x3xf32>
  %b = core.matmul %x, %a : (tensor<64x16xf32>, tensor<16x3xf32>) -> tensor<64x3xf32>
  %c = core.slice %b [0, 0] [16, 3] [1, 1] : (tensor<64x3xf32>) -> tensor<16x3xf32>
  %d = core.softmax %c axis 0 : (tensor<16x3xf32>) -> tensor<16x3xf32>
  func.return %d : tensor<16x3xf32>
}

// -----

// A run of some microseconds: nobody waits for a thread that is not awake, and one that is helps.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.share
func.func @main(%x: tensor<120x16xf32>, %w: tensor<16x3xf32>) -> tensor<120x3xf32> {
  %y = core.matmul %x, %w : (tensor<120x16xf32>, tensor<16x3xf32>) -> tensor<120x3xf32>
  func.return %y : tensor<120x3xf32>
}

// -----

// But at a branch all would wait for it.
// CHECK-LABEL: buffer.entry
// CHECK-NOT:     buffer.share
// CHECK:         buffer.if
func.func @main(%x: tensor<120x16xf32>, %w: tensor<16x3xf32>) -> tensor<1x3xf32> {
  %y = core.matmul %x, %w : (tensor<120x16xf32>, tensor<16x3xf32>) -> tensor<120x3xf32>
  %first = core.slice %y [0, 0] [1, 3] [1, 1] : (tensor<120x3xf32>) -> tensor<1x3xf32>
  %last = core.slice %y [119, 0] [1, 3] [1, 1] : (tensor<120x3xf32>) -> tensor<1x3xf32>
  %one = core.slice %y [7, 1] [1, 1] [1, 1] : (tensor<120x3xf32>) -> tensor<1x1xf32>
  %other = core.slice %y [9, 1] [1, 1] [1, 1] : (tensor<120x3xf32>) -> tensor<1x1xf32>
  %c = core.compare lt %one, %other : (tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<1x1xi1>
  %is_less = core.reshape %c [] : (tensor<1x1xi1>) -> tensor<i1>
  %r = core.if %is_less : tensor<i1> -> tensor<1x3xf32> {
    core.yield %first : tensor<1x3xf32>
  } else {
    core.yield %last : tensor<1x3xf32>
  }
  func.return %r : tensor<1x3xf32>
}
