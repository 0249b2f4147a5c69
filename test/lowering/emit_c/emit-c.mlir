// RUN: opt-tool %s --compile-to=c | filecheck %s

// A product with an epilogue, and a chain of maps: one C function each.
// CHECK:      LOWERDECK_KERNEL void {{.*}}matmul_0(const float *restrict x0, const float *restrict x1, float *restrict y0, int64_t n) {
// CHECK-NEXT:   for (int64_t i = 0; i < n; i += 1) {
// CHECK:          for (int64_t [[J:.*]] = 0; [[J]] < 2; [[J]] += 1) {
// CHECK-NEXT:       y0[i * 2 + [[J]]] = 0.0f;
// CHECK:      lowerdeck_max_f32(
// CHECK:      static int {{.*}}_driver(
// CHECK:      /* scores */
// CHECK:      return LOWERDECK_OK;
// CHECK:      int64_t {{.*}}_workspace_size(
// CHECK:      if (args->x_y.dims[1] != 3) return LOWERDECK_ERROR_INPUT_DIMS;
// CHECK:      const int64_t out_elements = lowerdeck_bytes((const int64_t[]){n, 2}, 2, 1);
// CHECK-NEXT: if (out_elements < 0) return LOWERDECK_ERROR_SHAPE_MISMATCH;
// CHECK-NEXT: if (args->out.capacity < out_elements) return LOWERDECK_ERROR_OUTPUT_CAPACITY;
// CHECK:      LOWERDECK_ERROR_WEIGHTS_MAGIC
func.func @main(%x: tensor<?x3xf32, #core.tensor<dims = [n, 3]>> {core.name = "x/y"}) -> (tensor<?x2xf32, #core.tensor<dims = [n, 2]>> {core.name = "out"}) {
  %w = core.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %zero = core.constant dense<0.0> : tensor<f32>
  %p = core.matmul %x, %w : (tensor<?x3xf32, #core.tensor<dims = [n, 3]>>, tensor<3x2xf32>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>> loc("scores")
  %r = core.max %p, %zero : (tensor<?x2xf32, #core.tensor<dims = [n, 2]>>, tensor<f32>) -> tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
  func.return %r : tensor<?x2xf32, #core.tensor<dims = [n, 2]>>
}
