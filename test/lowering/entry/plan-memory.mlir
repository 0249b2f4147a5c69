// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize,lower-kernels,plan-memory --split-input-file | filecheck %s

// The first and the third buffer are never in use together; the second meets both.
// CHECK-LABEL: buffer.entry
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[0]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[64]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[0]>}
// CHECK: workspace = #core.dims<[128]>, weights = #builtin.int<64>, live = #builtin.int<128>, row_major = #builtin.int<32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = core.softmax %x axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %b = core.softmax %a axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %c = core.softmax %b axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %d = core.softmax %c axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// -----

// A value that is read at the end keeps its place.
// CHECK-LABEL: buffer.entry
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[0]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[64]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[128]>}
// CHECK: workspace = #core.dims<[192]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = core.softmax %x axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %b = core.softmax %a axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %c = core.softmax %b axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %d = core.softmax %c axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %e = core.add %d, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %e : tensor<4xf32>
}

// -----

// The next iteration reads %a again, so nothing in the body takes its place.
// CHECK-LABEL: buffer.entry
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[0]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[64]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[128]>}
// CHECK: buffer.loop
// CHECK:   buffer.alloc {dynamic = false, offset = #core.dims<[192]>}
func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
  %a = core.softmax %x axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<4xf32> -> tensor<4xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<4xf32>):
    %y = core.add %v, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %s = core.softmax %y axis 0 : (tensor<4xf32>) -> tensor<4xf32>
    %t = core.softmax %s axis 0 : (tensor<4xf32>) -> tensor<4xf32>
    core.yield %t : tensor<4xf32>
  }
  func.return %r : tensor<4xf32>
}

// -----

// Sizes that depend on dimensions share memory, too.
// CHECK-LABEL: buffer.entry
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[0]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[((n * 4 + 63) floordiv 64) * 64]>}
// CHECK: buffer.alloc {dynamic = false, offset = #core.dims<[0]>}
// CHECK: workspace = #core.dims<[((n * 4 + 63) floordiv 64) * 128]>
func.func @main(%x: tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>> {
  %a = core.softmax %x axis 0 : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
  %b = core.softmax %a axis 0 : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
  %c = core.softmax %b axis 0 : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
  %d = core.softmax %c axis 0 : (tensor<?xf32, #core.tensor<dims = [n]>>) -> tensor<?xf32, #core.tensor<dims = [n]>>
  func.return %d : tensor<?xf32, #core.tensor<dims = [n]>>
}

// -----

// Equal constants lie in the weights once.
// CHECK-LABEL: buffer.entry
// CHECK: buffer.weight {{.*}}offset = #core.dims<[64]>
// CHECK: buffer.weight {{.*}}offset = #core.dims<[64]>
// CHECK: buffer.weight {{.*}}offset = #core.dims<[128]>
// CHECK: weights = #builtin.int<192>
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %a = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %b = core.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %c = core.constant dense<[1.0, 3.0]> : tensor<2xf32>
  func.return %a, %b, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// What a layout pads counts as memory, but not in the values' own bytes.
// CHECK-LABEL: buffer.entry
// CHECK: workspace = #core.dims<[64]>, weights = #builtin.int<64>, live = #builtin.int<64>, row_major = #builtin.int<12>
buffer.entry ["x"] -> ["y"] {
^bb0(%x : !buffer.ref<[3] x f32>, %y : !buffer.ref<[3] x f32>):
  %a = buffer.alloc {dynamic = false, unpadded = #core.dims<[3]>} : !buffer.ref<[16] x f32>
  buffer.call @k(%x, %a) <[]> : (!buffer.ref<[3] x f32>, !buffer.ref<[16] x f32>)
  buffer.return
}
