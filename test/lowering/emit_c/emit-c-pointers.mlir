// RUN: opt-tool %s --for-target=c99 --compile-to=c | filecheck %s

// Buffers that take turns at one place are one pointer, and a reshape has no name of its own. A
// weight that one call reads stands there; one that two read is a pointer.
// CHECK:      const float *const w = (const float *)(weights + 64);
// CHECK-NEXT: float *const [[B:b.*]] = (float *)(workspace + 0);
// CHECK-NEXT: {{.*}}add_0(x0, w, [[B]]);
// CHECK-NEXT: float *const [[C:b.*]] = (float *)(workspace + 64);
// CHECK-NEXT: {{.*}}softmax_0([[B]], (const float *)(weights + 128), [[C]]);
// CHECK-NEXT: {{.*}}softmax_0([[C]], w, [[B]]);
// CHECK-NEXT: {{.*}}softmax_2([[B]]);
// CHECK-NEXT: {{.*}}softmax_3([[B]], {{x0.*}});
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = core.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %v = core.constant dense<[5.0, 6.0, 7.0, 8.0]> : tensor<4xf32>
  %p = core.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a = core.softmax %p axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %q = core.add %a, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b = core.softmax %q axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  %r = core.add %b, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %s = core.reshape %r [2, 2] : (tensor<4xf32>) -> tensor<2x2xf32>
  %c = core.softmax %s axis 1 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %t = core.reshape %c [4] : (tensor<2x2xf32>) -> tensor<4xf32>
  %d = core.softmax %t axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}
