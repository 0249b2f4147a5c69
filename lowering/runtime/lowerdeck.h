/* What all compiled models share: status codes and the allocator. */
#ifndef LOWERDECK_H
#define LOWERDECK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LOWERDECK_ABI 1

/* Half precision, as its bits: IEEE binary16, and bfloat16 (the upper half of a float). */
typedef uint16_t lowerdeck_f16;
typedef uint16_t lowerdeck_bf16;

/* What NAME_run returns. */
enum {
  LOWERDECK_OK = 0,
  LOWERDECK_ERROR_NULL = 1,              /* a pointer that is needed is NULL */
  LOWERDECK_ERROR_INPUT_DIMS = 2,        /* an input's dimensions are not those of the model */
  LOWERDECK_ERROR_OUTPUT_CAPACITY = 3,   /* an output is too small; its dimensions are written */
  LOWERDECK_ERROR_OVERLAP = 4,           /* an output overlaps an input, an output or the workspace */
  LOWERDECK_ERROR_WORKSPACE_SIZE = 5,    /* the workspace is too small */
  LOWERDECK_ERROR_WEIGHTS_SIZE = 6,      /* the weights are shorter than the model's */
  LOWERDECK_ERROR_WEIGHTS_MAGIC = 7,     /* these are not weights */
  LOWERDECK_ERROR_WEIGHTS_VERSION = 8,   /* the weights are of another ABI or byte order */
  LOWERDECK_ERROR_WEIGHTS_MODEL = 9,     /* the weights are those of another model or target */
  LOWERDECK_ERROR_ALIGNMENT = 10,        /* a pointer is not aligned to its elements */
  LOWERDECK_ERROR_NO_ALLOCATOR = 11,     /* sizes depend on data, so an allocator is needed */
  LOWERDECK_ERROR_OUT_OF_MEMORY = 12,    /* the allocator returned NULL */
  LOWERDECK_ERROR_SHAPE_MISMATCH = 13,   /* sizes computed from data do not fit together */
  LOWERDECK_ERROR_INDEX_OUT_OF_RANGE = 14 /* an index from data lies outside of its dimension */
};

/* A short English description of a status code; never NULL. */
static inline const char *lowerdeck_status_text(int status) {
  static const char *const texts[] = {
      "ok",
      "a pointer that is needed is NULL",
      "an input's dimensions are not those of the model",
      "an output is too small",
      "an output overlaps an input, another output or the workspace",
      "the workspace is too small",
      "the weights are shorter than the model's",
      "the weights do not begin as weights do",
      "the weights were written for another ABI or another byte order",
      "the weights are those of another model or target",
      "a pointer is not aligned to its elements",
      "sizes depend on data, so an allocator is needed",
      "the allocator is out of memory",
      "sizes computed from data do not fit together",
      "an index from data lies outside of its dimension",
  };
  if (status < 0 || status >= (int)(sizeof texts / sizeof texts[0])) return "unknown status";
  return texts[status];
}

/* The number of elements of a tensor; 0 if there are none, or as many as no memory holds. */
static inline int64_t lowerdeck_elements(const int64_t *dims, int rank) {
  int64_t count = 1;
  for (int k = 0; k < rank; k++) {
    if (dims[k] <= 0 || count > (INT64_MAX >> 8) / dims[k]) return 0;
    count *= dims[k];
  }
  return count;
}

/* A dimension of an input that may be left out: without data and dimension, that of the default. */
static inline int64_t lowerdeck_given(const void *data, int64_t dim, int64_t of_default) {
  return data == NULL && dim == 0 ? of_default : dim;
}

/* Where elements lie, and bytes. */
typedef struct lowerdeck_span {
  const void *data;
  int64_t size;
} lowerdeck_span;

static inline int lowerdeck_overlap(const lowerdeck_span *a, const lowerdeck_span *b) {
  const uintptr_t p = (uintptr_t)a->data, q = (uintptr_t)b->data;
  if (a->size <= 0 || b->size <= 0) return 0;
  return p < q + (uintptr_t)b->size && q < p + (uintptr_t)a->size;
}

/* The first of the first `written` spans that overlaps a later one of all `count`; `written` if none. */
static inline int lowerdeck_first_overlap(const lowerdeck_span *spans, int written, int count) {
  for (int a = 0; a < written; a++) {
    for (int b = a + 1; b < count; b++) {
      if (lowerdeck_overlap(&spans[a], &spans[b])) return a;
    }
  }
  return written;
}

/* Memory for values whose size depends on data. `allocate` returns memory aligned as by malloc, or
   NULL; `release` takes back what it returned. Calls come from the thread that called NAME_run. */
typedef struct lowerdeck_allocator {
  void *(*allocate)(void *context, size_t size);
  void (*release)(void *context, void *memory);
  void *context;
} lowerdeck_allocator;

/* Worker threads, owned by the caller and shared between models; see lowerdeck_pool.h. */
typedef struct lowerdeck_pool lowerdeck_pool;

#ifdef __cplusplus
}
#endif

#endif
