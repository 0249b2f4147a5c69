// RUN: opt-tool %s --compile-to=c | filecheck %s

// A stride that is not a number has a name, equal ones the same; what begins alike is written alike.
// CHECK:      LOWERDECK_KERNEL void {{.*}}_0(const float *restrict x0, float *restrict y0, int64_t [[H:.*]], int64_t [[W:.*]]) {
// CHECK-NEXT:   const int64_t [[IMAGE:.*]] = [[H]] * [[W]] * 4;
// CHECK-NEXT:   const int64_t [[ROW:.*]] = [[W]] * 4;
// CHECK-NEXT:   const int64_t [[COLUMN:.*]] = [[H]] * 4;
// CHECK-NEXT:   for
// CHECK:        = x0[[[N:.*]] * [[IMAGE]] + [[J:.*]] * [[ROW]] + [[I:.*]] * 4 + [[C:.*]]];
// CHECK-NEXT:   y0[[[N]] * [[IMAGE]] + [[I]] * [[COLUMN]] + [[J]] * 4 + [[C]]] =
func.func @main(%x: tensor<2x?x?x4xf32, #core.tensor<dims = [2, h, w, 4]>>) -> tensor<2x?x?x4xf32, #core.tensor<dims = [2, w, h, 4]>> {
  %y = core.transpose %x [0, 2, 1, 3] : (tensor<2x?x?x4xf32, #core.tensor<dims = [2, h, w, 4]>>) -> tensor<2x?x?x4xf32, #core.tensor<dims = [2, w, h, 4]>>
  func.return %y : tensor<2x?x?x4xf32, #core.tensor<dims = [2, w, h, 4]>>
}
