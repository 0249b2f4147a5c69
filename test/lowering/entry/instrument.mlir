// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels,instrument --split-input-file | filecheck %s

// Between two calls one mark is enough; the mark that charges a slot says what it is.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.mark
// CHECK-NOT:     slot
// CHECK:         buffer.call @matmul_0
// CHECK-SAME:      multiply_adds = #core.dims<[n * 15]>
// CHECK-NEXT:    buffer.mark {slot = #builtin.int<0>
// CHECK-SAME:      bytes = #core.dims<[n * 32 + 60]>
// CHECK-SAME:      multiply_adds = #core.dims<[n * 15]>
// CHECK-SAME:      kernel = "matmul_0"
// CHECK-SAME:      nodes = ["product"]
// CHECK-NEXT:    buffer.call @softmax_0
// CHECK-NOT:       multiply_adds
// CHECK:         buffer.mark {slot = #builtin.int<1>
// CHECK-SAME:      bytes = #core.dims<[n * 24]>
// CHECK-SAME:      kernel = "softmax_0"
// CHECK-NEXT:    buffer.return
// CHECK-NEXT:  } {profile}
func.func @main(%x: tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, %w: tensor<5x3xf32>)
    -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {
  %p = core.matmul %x, %w : (tensor<?x5xf32, #core.tensor<dims = [n, 5]>>, tensor<5x3xf32>)
      -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>> loc("product")
  %y = core.softmax %p axis 1 : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>)
      -> tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
  func.return %y : tensor<?x3xf32, #core.tensor<dims = [n, 3]>>
}

// -----

// The loop's own time is nobody's: marks without a slot stand before the first call in its body
// and before the call behind it.
// CHECK-LABEL: buffer.entry
// CHECK:         buffer.loop
// CHECK:           buffer.mark{{$}}
// CHECK-NEXT:      buffer.call @add_0
// CHECK-NEXT:      buffer.mark {slot = #builtin.int<[[N:[0-9]+]]>,
// CHECK-NEXT:      buffer.yield
// CHECK:         buffer.mark{{$}}
// CHECK-NEXT:    buffer.call @softmax_0
// CHECK-NEXT:    buffer.mark {slot
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<4xf32>):
    %y = core.add %v, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    core.yield %y : tensor<4xf32>
  }
  %s = core.softmax %r axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %s : tensor<4xf32>
}

// -----

// The schedule of a kernel, for people.
// CHECK-LABEL: buffer.entry
// CHECK:         schedule = "direct tile x0=1,oc=2 order x0,oc prefetch 0 panels=3"
buffer.func @k {
^bb0(%x: !buffer.ref<[4] x f32>):
  buffer.return
} {symbols = [], outputs = #builtin.int<0>,
   schedule = #core.schedule<direct, tile {x0 = 1, oc = 2}, order [x0, oc], prefetch 0, panels = 3>}
buffer.entry ["x"] -> [] {
^bb0(%x: !buffer.ref<[4] x f32>):
  buffer.call @k(%x) <[]> : (!buffer.ref<[4] x f32>)
  buffer.return
}
