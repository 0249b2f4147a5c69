// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels,parallelize,instrument | filecheck %s

// What threads wait for behind a call belongs to it: the mark comes after the barrier.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.mark{{$}}
// CHECK:         @softmax_0
// CHECK-NOT:     buffer.mark
// CHECK:         buffer.barrier
// CHECK-NEXT:    buffer.mark {slot = #builtin.int<0>,
// CHECK:         @softmax_1
// CHECK:         buffer.mark {slot = #builtin.int<1>,
// CHECK-NEXT:    buffer.return
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = core.softmax %x axis 0 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = core.softmax %y axis 1 : (tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}
