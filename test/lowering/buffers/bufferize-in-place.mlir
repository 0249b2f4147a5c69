// RUN: opt-tool %s --pass-pipeline=form-kernels,fuse-epilogue,bufferize --split-input-file | filecheck %s

// What is scattered into a carried value changes it where it lies: no copy of it in the kernel, nor
// in the loop. A read before that sees the old elements.
// CHECK-LABEL: buffer.kernel @gather_0
// CHECK-NOT:     in_place
// CHECK-LABEL: buffer.kernel @scatter_nd_0
// CHECK:       } {in_place = #builtin.int<0>}
// CHECK-LABEL: buffer.entry
// CHECK:       %[[HOME:.*]] = buffer.alloc {{.*}} : !buffer.ref<[8] x f32>
// CHECK-NEXT:  buffer.copy %{{.*}}, %[[HOME]]
// CHECK:       buffer.loop trip
// CHECK-NOT:   buffer.copy
// CHECK:       buffer.call @gather_0(%[[HOME]],
// CHECK-NOT:   buffer.copy
// CHECK:       buffer.call @scatter_nd_0({{.*}}, %[[HOME]])
// CHECK-NOT:   buffer.copy
// CHECK:       buffer.yield
// CHECK:       buffer.copy %[[HOME]], %{{.*}}
func.func @main(%x: tensor<8xf32>, %at: tensor<1x1xi64>, %from: tensor<1xi64>, %n: tensor<i64>) -> tensor<8xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<8xf32> -> tensor<8xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<8xf32>):
    %e = core.gather %v, %from axis 0 : (tensor<8xf32>, tensor<1xi64>) -> tensor<1xf32>
    %w = core.scatter_nd none %v, %at, %e : (tensor<8xf32>, tensor<1x1xi64>, tensor<1xf32>) -> tensor<8xf32>
    core.yield %w : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}

// -----

// One after the other, with a read of what the first one made.
// CHECK-LABEL: buffer.kernel @scatter_nd_0
// CHECK:       } {in_place = #builtin.int<0>}
// CHECK-LABEL: buffer.entry
// CHECK:       %[[HOME:.*]] = buffer.alloc {{.*}} : !buffer.ref<[8] x f32>
// CHECK:       buffer.loop trip
// CHECK:       buffer.call @scatter_nd_0({{.*}}, %[[HOME]])
// CHECK:       buffer.call @gather_0(%[[HOME]],
// CHECK:       buffer.call @scatter_nd_{{.}}({{.*}}, %[[HOME]])
// CHECK-NOT:   buffer.copy
// CHECK:       buffer.yield
func.func @main(%x: tensor<8xf32>, %at: tensor<1x1xi64>, %u: tensor<1xf32>, %from: tensor<1xi64>, %n: tensor<i64>) -> tensor<8xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<8xf32> -> tensor<8xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<8xf32>):
    %w = core.scatter_nd none %v, %at, %u : (tensor<8xf32>, tensor<1x1xi64>, tensor<1xf32>) -> tensor<8xf32>
    %e = core.gather %w, %from axis 0 : (tensor<8xf32>, tensor<1xi64>) -> tensor<1xf32>
    %z = core.scatter_nd add %w, %at, %e : (tensor<8xf32>, tensor<1x1xi64>, tensor<1xf32>) -> tensor<8xf32>
    core.yield %z : tensor<8xf32>
  }
  func.return %r : tensor<8xf32>
}

// -----

// The old elements are read after the new ones were made: two slots.
// CHECK-LABEL: buffer.kernel @scatter_nd_0
// CHECK-NOT:     in_place
// CHECK-LABEL: buffer.entry
// CHECK:       buffer.loop trip
// CHECK-NEXT:  ^{{.*}}(%[[V:[0-9]+]]: !buffer.ref<[8] x f32>, %[[W:[0-9]+]]: !buffer.ref<[8] x f32>,
// CHECK:       buffer.call @scatter_nd_0(%[[V]], {{.*}}, %[[W]])
// CHECK:       buffer.call @gather_0(%[[V]],
func.func @main(%x: tensor<8xf32>, %at: tensor<1x1xi64>, %u: tensor<1xf32>, %from: tensor<1xi64>, %n: tensor<i64>) -> (tensor<8xf32>, tensor<1xf32>) {
  %r, %s = core.loop trip %n : tensor<i64> carry %x, %u : tensor<8xf32>, tensor<1xf32> -> tensor<8xf32>, tensor<1xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<8xf32>, %t : tensor<1xf32>):
    %w = core.scatter_nd none %v, %at, %t : (tensor<8xf32>, tensor<1x1xi64>, tensor<1xf32>) -> tensor<8xf32>
    %e = core.gather %v, %from axis 0 : (tensor<8xf32>, tensor<1xi64>) -> tensor<1xf32>
    core.yield %w, %e : tensor<8xf32>, tensor<1xf32>
  }
  func.return %r, %s : tensor<8xf32>, tensor<1xf32>
}

// -----

// The kernel itself reads the old elements, reversed, as its updates, through a reshape.
// CHECK-LABEL: buffer.kernel @scatter_nd_0
// CHECK-NOT:     in_place
// CHECK-LABEL: buffer.entry
// CHECK:       buffer.loop trip
// CHECK-NEXT:  ^{{.*}}(%[[V:.*]]: !buffer.ref<[2, 1] x f32>, %[[W:.*]]: !buffer.ref<[2, 1] x f32>)
func.func @main(%x: tensor<2x1xf32>, %at: tensor<2x1x2xi64>, %n: tensor<i64>) -> tensor<2x1xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2x1xf32> -> tensor<2x1xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2x1xf32>):
    %f = core.reshape %v [2] : (tensor<2x1xf32>) -> tensor<2xf32>
    %u = core.reshape %f [2, 1] : (tensor<2xf32>) -> tensor<2x1xf32>
    %w = core.scatter_nd none %v, %at, %u : (tensor<2x1xf32>, tensor<2x1x2xi64>, tensor<2x1xf32>) -> tensor<2x1xf32>
    core.yield %w : tensor<2x1xf32>
  }
  func.return %r : tensor<2x1xf32>
}

// -----

// The old elements themselves are the updates.
// CHECK-LABEL: buffer.kernel @scatter_nd_0
// CHECK-NOT:     in_place
// CHECK-LABEL: buffer.entry
// CHECK:       buffer.loop trip
// CHECK-NEXT:  ^{{.*}}(%[[V:.*]]: !buffer.ref<[2, 1] x f32>, %[[W:.*]]: !buffer.ref<[2, 1] x f32>)
func.func @main(%x: tensor<2x1xf32>, %at: tensor<2x1x2xi64>, %n: tensor<i64>) -> tensor<2x1xf32> {
  %r = core.loop trip %n : tensor<i64> carry %x : tensor<2x1xf32> -> tensor<2x1xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<2x1xf32>):
    %w = core.scatter_nd none %v, %at, %v : (tensor<2x1xf32>, tensor<2x1x2xi64>, tensor<2x1xf32>) -> tensor<2x1xf32>
    core.yield %w : tensor<2x1xf32>
  }
  func.return %r : tensor<2x1xf32>
}

// -----

// The old elements go on in another value.
// CHECK-LABEL: buffer.kernel @scatter_nd_0
// CHECK-NOT:     in_place
// CHECK-LABEL: buffer.entry
// CHECK:       buffer.loop trip
func.func @main(%x: tensor<8xf32>, %at: tensor<1x1xi64>, %u: tensor<1xf32>, %n: tensor<i64>) -> (tensor<8xf32>, tensor<8xf32>) {
  %r, %s = core.loop trip %n : tensor<i64> carry %x, %x : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>, tensor<8xf32> {
  ^bb0(%i : tensor<i64>, %v : tensor<8xf32>, %before : tensor<8xf32>):
    %w = core.scatter_nd none %v, %at, %u : (tensor<8xf32>, tensor<1x1xi64>, tensor<1xf32>) -> tensor<8xf32>
    core.yield %w, %v : tensor<8xf32>, tensor<8xf32>
  }
  func.return %r, %s : tensor<8xf32>, tensor<8xf32>
}
