/* The processor's tiles of bytes in C, for processors without them: included before C for such. */
#ifndef LOWERDECK_EMULATED_TILES
#define LOWERDECK_EMULATED_TILES
/* For all that the files ask for that include it. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Instead of asking the system for them. */
#define LOWERDECK_SET_UP_TILES
static int lowerdeck_has_tiles = 1;

/* Of eight tiles: rows, and bytes in each. Without a shape, none can be used. */
static __thread struct {
  int is_set, rows[8], bytes[8];
  unsigned char data[8][16][64];
} emulated;

static inline void emulated_need(int holds) {
  if (!holds) abort();
}

static inline void emulated_configure(const void *memory) {
  const unsigned char *const bytes = memory;
  emulated_need(bytes[0] == 1 && bytes[1] == 0);
  memset(&emulated, 0, sizeof emulated);
  emulated.is_set = 1;
  for (int k = 0; k < 8; ++k) {
    emulated.rows[k] = bytes[48 + k];
    emulated.bytes[k] = bytes[16 + 2 * k] | bytes[17 + 2 * k] << 8;
    emulated_need(emulated.rows[k] <= 16 && emulated.bytes[k] <= 64);
    emulated_need(!emulated.rows[k] == !emulated.bytes[k]);
  }
}

static inline void emulated_release(void) { memset(&emulated, 0, sizeof emulated); }

static inline void emulated_zero(int t) {
  emulated_need(emulated.is_set && emulated.rows[t]);
  memset(emulated.data[t], 0, sizeof emulated.data[t]);
}

static inline void emulated_load(int t, const void *base, size_t stride) {
  emulated_zero(t);
  for (int row = 0; row < emulated.rows[t]; ++row)
    memcpy(emulated.data[t][row], (const char *)base + row * stride, (size_t)emulated.bytes[t]);
}

static inline void emulated_store(int t, void *base, size_t stride) {
  emulated_need(emulated.is_set && emulated.rows[t]);
  for (int row = 0; row < emulated.rows[t]; ++row)
    memcpy((char *)base + row * stride, emulated.data[t][row], (size_t)emulated.bytes[t]);
}

static inline void emulated_dot(int c, int a, int b, int is_unsigned_left) {
  emulated_need(emulated.is_set && emulated.rows[a] == emulated.rows[c]);
  emulated_need(emulated.bytes[b] == emulated.bytes[c] && emulated.rows[b]);
  emulated_need(emulated.bytes[a] == 4 * emulated.rows[b]);
  for (int i = 0; i < emulated.rows[c]; ++i)
    for (int j = 0; j < emulated.bytes[c] / 4; ++j) {
      uint32_t sum;
      memcpy(&sum, &emulated.data[c][i][4 * j], 4);
      for (int k = 0; k < emulated.bytes[a]; ++k) {
        const unsigned char x = emulated.data[a][i][k], y = emulated.data[b][k / 4][4 * j + k % 4];
        sum += (uint32_t)(is_unsigned_left ? x * (signed char)y : (signed char)x * y);
      }
      memcpy(&emulated.data[c][i][4 * j], &sum, 4);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#undef _tile_dpbsud
#define _tile_loadconfig emulated_configure
#define _tile_release emulated_release
#define _tile_zero emulated_zero
#define _tile_loadd emulated_load
#define _tile_stored emulated_store
#define _tile_dpbusd(c, a, b) emulated_dot(c, a, b, 1)
#define _tile_dpbsud(c, a, b) emulated_dot(c, a, b, 0)
#endif
