/* Small functions that generated code calls; not for users. */
#ifndef LOWERDECK_RUNTIME_H
#define LOWERDECK_RUNTIME_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "lowerdeck.h"

/*
 * A kernel stays a function of its own: if it became a part of its only caller, then its innermost
 * loops would lose registers to whatever else goes on there.
 */
#if defined(__GNUC__)
#define LOWERDECK_KERNEL static __attribute__((noinline))
#elif defined(_MSC_VER)
#define LOWERDECK_KERNEL static __declspec(noinline)
#else
#define LOWERDECK_KERNEL static
#endif

/* What C before C99, and Microsoft's without /std:c11, call otherwise. */
#if defined(__cplusplus) || !defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L
#define restrict __restrict
#endif

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#define LOWERDECK_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#elif defined(__BIG_ENDIAN__) || defined(__s390__) || defined(__sparc) || defined(_AIX)
#define LOWERDECK_BIG_ENDIAN 1
#else
#define LOWERDECK_BIG_ENDIAN 0
#endif

/* Weights in the C: numbers of eight bytes, made of elements of 1, 2 or 4 bytes, the first one last. */
#if LOWERDECK_BIG_ENDIAN
#define LOWERDECK_SWAP_4(x) ((x) << 32 | (uint64_t)(x) >> 32)
#define LOWERDECK_SWAP_2(x) \
  (((x) & UINT64_C(0x0000ffff0000ffff)) << 16 | ((x) >> 16 & UINT64_C(0x0000ffff0000ffff)))
#define LOWERDECK_SWAP_1(x) \
  (((x) & UINT64_C(0x00ff00ff00ff00ff)) << 8 | ((x) >> 8 & UINT64_C(0x00ff00ff00ff00ff)))
#define LOWERDECK_WORD_4(x) LOWERDECK_SWAP_4(UINT64_C(x))
#define LOWERDECK_WORD_2(x) LOWERDECK_SWAP_4(LOWERDECK_SWAP_2(UINT64_C(x)))
#define LOWERDECK_WORD_1(x) LOWERDECK_SWAP_4(LOWERDECK_SWAP_2(LOWERDECK_SWAP_1(UINT64_C(x))))
#define LOWERDECK_WORDS_4(a, b, c, d) \
  LOWERDECK_WORD_4(a), LOWERDECK_WORD_4(b), LOWERDECK_WORD_4(c), LOWERDECK_WORD_4(d)
#define LOWERDECK_WORDS_2(a, b, c, d) \
  LOWERDECK_WORD_2(a), LOWERDECK_WORD_2(b), LOWERDECK_WORD_2(c), LOWERDECK_WORD_2(d)
#define LOWERDECK_WORDS_1(a, b, c, d) \
  LOWERDECK_WORD_1(a), LOWERDECK_WORD_1(b), LOWERDECK_WORD_1(c), LOWERDECK_WORD_1(d)
#else
#define LOWERDECK_WORDS_4(a, b, c, d) a, b, c, d
#define LOWERDECK_WORDS_2(a, b, c, d) a, b, c, d
#define LOWERDECK_WORDS_1(a, b, c, d) a, b, c, d
#endif

static inline uint32_t lowerdeck_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float lowerdeck_from_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t lowerdeck_f64_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline double lowerdeck_f64_from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline float lowerdeck_bf16_to_f32(lowerdeck_bf16 h) {
  return lowerdeck_from_bits((uint32_t)h << 16);
}

static inline lowerdeck_bf16 lowerdeck_f32_to_bf16(float x) {
  uint32_t bits = lowerdeck_bits(x);
  if (x != x) return (lowerdeck_bf16)((bits >> 16) | 0x40u);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return (lowerdeck_bf16)(bits >> 16);
}

static inline float lowerdeck_f16_to_f32(lowerdeck_f16 h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return lowerdeck_from_bits(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return lowerdeck_from_bits(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  const float magnitude = (float)mantissa * 5.9604644775390625e-8f; /* 2^-24 */
  return sign != 0 ? -magnitude : magnitude;
}

static inline lowerdeck_f16 lowerdeck_f32_to_f16(float x) {
  const uint32_t bits = lowerdeck_bits(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (lowerdeck_f16)(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return (lowerdeck_f16)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) { /* subnormal: multiples of 2^-24, halves to even */
    const float scaled = lowerdeck_from_bits(magnitude) * 16777216.0f;
    return (lowerdeck_f16)(sign | (uint32_t)rintf(scaled));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return (lowerdeck_f16)(sign | ((rounded - 0x38000000u) >> 13));
}

/* Double to float so that a second rounding gives what one would: to odd. */
static inline float lowerdeck_f64_to_odd(double x) {
  const float nearest = (float)x;
  const uint32_t bits = lowerdeck_bits(nearest);
  if ((double)nearest == x || x != x || (bits & 0x7f800000u) == 0x7f800000u) return nearest;
  /* Truncate toward zero, then set the last bit. */
  const bool too_large = fabs((double)nearest) > fabs(x);
  return lowerdeck_from_bits((too_large ? bits - 1u : bits) | 1u);
}

static inline lowerdeck_f16 lowerdeck_f64_to_f16(double x) {
  return lowerdeck_f32_to_f16(lowerdeck_f64_to_odd(x));
}

static inline lowerdeck_bf16 lowerdeck_f64_to_bf16(double x) {
  return lowerdeck_f32_to_bf16(lowerdeck_f64_to_odd(x));
}

/* NaN if one operand is. */
static inline float lowerdeck_max_f32(float a, float b) { return a > b || a != a ? a : b; }
static inline float lowerdeck_min_f32(float a, float b) { return a < b || a != a ? a : b; }
static inline double lowerdeck_max_f64(double a, double b) { return a > b || a != a ? a : b; }
static inline double lowerdeck_min_f64(double a, double b) { return a < b || a != a ? a : b; }

/*
 * Rounded once where the processor can. Compilers may take a * b + c apart again where they vectorize
 * a sum in its order, so that some columns of a product would be rounded in another way than others.
 */
#if defined(FP_FAST_FMAF)
static inline float lowerdeck_fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
#else
static inline float lowerdeck_fma_f32(float a, float b, float c) { return a * b + c; }
#endif
#if defined(FP_FAST_FMA)
static inline double lowerdeck_fma_f64(double a, double b, double c) { return fma(a, b, c); }
#else
static inline double lowerdeck_fma_f64(double a, double b, double c) { return a * b + c; }
#endif

/* A literal that compilers do not compare with the range of a narrower type to warn of it. */
static inline int64_t lowerdeck_number(int64_t x) { return x; }

static inline int64_t lowerdeck_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t lowerdeck_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* The same for indices of targets that have no longer ones. */
static inline int32_t lowerdeck_min_32(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t lowerdeck_max_32(int32_t a, int32_t b) { return a > b ? a : b; }

static inline int32_t lowerdeck_floordiv_32(int32_t a, int32_t b) {
  const int32_t quotient = b == 0 ? 0 : a / b;
  return b != 0 && a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

static inline int32_t lowerdeck_mod_32(int32_t a, int32_t b) {
  return b == 0 ? a : a - lowerdeck_floordiv_32(a, b) * b;
}

/* A size that is beyond int64_t, and what is computed from it; it is less than every size. */
#define LOWERDECK_BEYOND INT64_MIN

static inline bool lowerdeck_beyond(int64_t a, int64_t b) {
  return a == LOWERDECK_BEYOND || b == LOWERDECK_BEYOND;
}

static inline int64_t lowerdeck_add(int64_t a, int64_t b) {
  if (lowerdeck_beyond(a, b)) return LOWERDECK_BEYOND;
  if (b > 0 ? a > INT64_MAX - b : a < -INT64_MAX - b) return LOWERDECK_BEYOND;
  return a + b;
}

static inline int64_t lowerdeck_mul(int64_t a, int64_t b) {
  if (lowerdeck_beyond(a, b)) return LOWERDECK_BEYOND;
  const int64_t p = a < 0 ? -a : a, q = b < 0 ? -b : b;
  return q != 0 && p > INT64_MAX / q ? LOWERDECK_BEYOND : a * b;
}

/* Two sizes are equal, or one is not more than the other one, and they are sizes. */
static inline bool lowerdeck_equal(int64_t a, int64_t b) { return a == b && a != LOWERDECK_BEYOND; }
static inline bool lowerdeck_within(int64_t a, int64_t b) { return a <= b && a != LOWERDECK_BEYOND; }

/* What compilers may rely on. */
#if defined(__GNUC__)
#define LOWERDECK_KNOWN(condition) \
  do { \
    if (!(condition)) __builtin_unreachable(); \
  } while (0)
#else
#define LOWERDECK_KNOWN(condition) ((void)0)
#endif

/* Rounded toward minus infinity; a zero divisor, which only an empty dimension gives, gives zero. */
static inline int64_t lowerdeck_floordiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return lowerdeck_mul(a, -1);
  const int64_t quotient = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? quotient - 1 : quotient;
}

static inline int64_t lowerdeck_mod(int64_t a, int64_t b) {
  if (b == 0) return a;
  const int64_t rest = b == -1 ? 0 : a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* The same, and extrema, of sizes that may be beyond int64_t. */
static inline int64_t lowerdeck_size_floordiv(int64_t a, int64_t b) {
  return lowerdeck_beyond(a, b) ? LOWERDECK_BEYOND : lowerdeck_floordiv(a, b);
}

static inline int64_t lowerdeck_size_mod(int64_t a, int64_t b) {
  return lowerdeck_beyond(a, b) ? LOWERDECK_BEYOND : lowerdeck_mod(a, b);
}

static inline int64_t lowerdeck_size_min(int64_t a, int64_t b) { return lowerdeck_min(a, b); }
static inline int64_t lowerdeck_size_max(int64_t a, int64_t b) {
  return lowerdeck_beyond(a, b) ? LOWERDECK_BEYOND : lowerdeck_max(a, b);
}

/* Integer division by zero gives zero; the one overflow wraps. */
static inline int64_t lowerdeck_div_s64(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? (int64_t)(0u - (uint64_t)a) : a / b;
}

static inline int64_t lowerdeck_rem_s64(int64_t a, int64_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

static inline uint64_t lowerdeck_div_u64(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
static inline uint64_t lowerdeck_rem_u64(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }

/* a to the power b modulo 2^64; a negative exponent rounds the reciprocal toward zero. */
static inline int64_t lowerdeck_ipow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 != 0 ? -1 : 1) : 0;
  uint64_t result = 1, base = (uint64_t)a;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) result *= base;
    base *= base;
  }
  return (int64_t)result;
}

/* Toward zero; what does not fit becomes the nearest number that does, NaN zero. */
static inline int64_t lowerdeck_to_signed(double x, int width) {
  const double limit = ldexp(1.0, width - 1);
  if (x != x) return 0;
  if (x >= limit) return (int64_t)(((uint64_t)1 << (width - 1)) - 1);
  if (x <= -limit) return -(int64_t)(((uint64_t)1 << (width - 1)) - 1) - 1;
  return (int64_t)x;
}

static inline uint64_t lowerdeck_to_unsigned(double x, int width) {
  const double limit = ldexp(1.0, width);
  if (!(x > 0)) return 0;
  if (x >= limit) return width == 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1;
  return (uint64_t)x;
}

/* An index from data into a dimension of `bound` elements; sets the status if it is outside. */
static inline int64_t lowerdeck_index(int64_t index, int64_t bound, int *status) {
  const int64_t resolved = index < 0 ? index + bound : index;
  if (resolved >= 0 && resolved < bound) return resolved;
  *status = LOWERDECK_ERROR_INDEX_OUT_OF_RANGE;
  return 0;
}

/* The bytes of an array; -1 if a dimension is negative or the number is beyond all memory. It is,
   too, where only another dimension, which is zero, makes it none: sizes are computed with all. */
static inline int64_t lowerdeck_bytes(const int64_t *dims, int rank, int64_t item_size) {
  int64_t bytes = item_size;
  bool is_empty = false;
  for (int k = 0; k < rank; k++) {
    if (dims[k] < 0) return -1;
    is_empty |= dims[k] == 0;
    if (dims[k] == 0) continue;
    if (bytes > (INT64_MAX >> 8) / dims[k]) return -1;
    bytes *= dims[k];
  }
  return is_empty ? 0 : bytes;
}

/* Copy what may be nothing, from or to nowhere; compilers warn where they see NULL for one. */
static inline void lowerdeck_copy(void *target, const void *source, int64_t size) {
  if (size > 0 && target != NULL && source != NULL) memcpy(target, source, (size_t)size);
}

/* Memory from the caller's allocator: a list, so that whole scopes are released at once. */
typedef struct lowerdeck_block {
  struct lowerdeck_block *previous;
  unsigned char padding[64 - sizeof(void *)];
} lowerdeck_block;

typedef struct lowerdeck_memory {
  const lowerdeck_allocator *allocator;
  lowerdeck_block *last;
} lowerdeck_memory;

static inline void *lowerdeck_allocate(lowerdeck_memory *memory, int64_t size) {
  lowerdeck_block *const block = (lowerdeck_block *)memory->allocator->allocate(
      memory->allocator->context, sizeof(lowerdeck_block) + (size_t)size);
  if (block == NULL) return NULL;
  block->previous = memory->last;
  memory->last = block;
  return block + 1;
}

static inline void lowerdeck_release(lowerdeck_memory *memory, lowerdeck_block *mark) {
  while (memory->last != mark) {
    lowerdeck_block *const block = memory->last;
    memory->last = block->previous;
    memory->allocator->release(memory->allocator->context, block);
  }
}

/* Release what was allocated since `mark`, but for `count` pieces of memory. */
static inline void lowerdeck_keep(
    lowerdeck_memory *memory, lowerdeck_block *mark, void *const *kept, int count) {
  lowerdeck_block **link = &memory->last;
  while (*link != mark) {
    lowerdeck_block *const block = *link;
    int k = 0;
    while (k < count && kept[k] != (void *)(block + 1)) k++;
    if (k < count) {
      link = &block->previous;
    } else {
      *link = block->previous;
      memory->allocator->release(memory->allocator->context, block);
    }
  }
}

/* Release one piece of memory, which is among those allocated last. */
static inline void lowerdeck_free(lowerdeck_memory *memory, void *address) {
  lowerdeck_block **link = &memory->last;
  while ((void *)(*link + 1) != address) link = &(*link)->previous;
  lowerdeck_block *const block = *link;
  *link = block->previous;
  memory->allocator->release(memory->allocator->context, block);
}

#endif
