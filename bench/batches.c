/*
 * A plain loop over a compiled model: what bench.batches compares with.
 *
 * Arguments: the weights file, a file of rows, the batch, the bytes of a row of results, seconds.
 * Calls the model over all rows, again and again until so many seconds are over, and prints rows a
 * second of processor time and of wall time. The model is MODEL, with the input `x` of floats and
 * the output `y`.
 */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define OF_MODEL(name) JOIN(MODEL, name)
#include HEADER

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void *read_file(const char *path, size_t *size) {
  FILE *const file = fopen(path, "rb");
  if (file == NULL) exit(2);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *const data = aligned_alloc(64, (*size + 64) / 64 * 64);
  if (data == NULL || fread(data, 1, *size, file) != *size) exit(2);
  fclose(file);
  return data;
}

int main(int count, char **arguments) {
  if (count != 6) return 2;
  OF_MODEL(_args) args = {.x = {.dims = {DIMS}}};
  size_t bytes, row_bytes = sizeof(float);
  args.weights = read_file(arguments[1], &args.weights_size);
  const char *const rows = read_file(arguments[2], &bytes);
  const int64_t batch = atoll(arguments[3]), result_bytes = atoll(arguments[4]);
  const double seconds = atof(arguments[5]);
  for (size_t k = 1; k < sizeof args.x.dims / sizeof *args.x.dims; k++) {
    row_bytes *= (size_t)args.x.dims[k];
  }
  const int64_t row_count = (int64_t)(bytes / row_bytes) / batch * batch;
  char *const results = aligned_alloc(64, (size_t)(row_count * result_bytes + 64) / 64 * 64);
  args.x.dims[0] = batch;
  args.y.capacity = batch * result_bytes / (int64_t)sizeof(float);
  args.workspace_size = (size_t)OF_MODEL(_workspace_size)(&args);
  args.workspace = aligned_alloc(64, (args.workspace_size + 64) / 64 * 64);
  if (results == NULL || args.workspace == NULL) return 2;
  const double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
  double done = 0;
  while (now(CLOCK_MONOTONIC) - wall < seconds) {
    for (int64_t row = 0; row < row_count; row += batch) {
      args.x.data = (const float *)(rows + (size_t)row * row_bytes);
      args.y.data = (float *)(results + row * result_bytes);
      if (OF_MODEL(_run)(&args) != LOWERDECK_OK) return 1;
      done += (double)batch;
    }
  }
  printf("%.9g %.9g\n", done / (now(CLOCK_PROCESS_CPUTIME_ID) - cpu),
         done / (now(CLOCK_MONOTONIC) - wall));
  return 0;
}
