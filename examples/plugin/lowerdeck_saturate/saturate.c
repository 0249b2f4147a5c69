/* com.acme.Saturate: y = x / (1 + |x| / limit). */
static void acme_saturate(const float *x, const int64_t *x_dims, int64_t x_rank, float *y,
                          const int64_t *y_dims, int64_t y_rank, double limit) {
  int64_t count = 1;
  for (int64_t axis = 0; axis < x_rank; axis++) count *= x_dims[axis];
  const float scale = (float)(1 / limit);
  for (int64_t i = 0; i < count; i++) y[i] = x[i] / (1 + fabsf(x[i]) * scale);
  (void)y_dims;
  (void)y_rank;
}
