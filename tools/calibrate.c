/*
 * What a core does in a cycle: small loops, each of which is bound by one thing.
 *
 * BYTES is the size of a vector. Each function does its work so many times; `timed` gives the
 * seconds of one call.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef float vector __attribute__((vector_size(BYTES)));
typedef float vector_at __attribute__((vector_size(BYTES), aligned(4), may_alias));

#if defined(__x86_64__) || defined(__i386__)
#define IN_REGISTER "x"
#elif defined(__aarch64__)
#define IN_REGISTER "w"
#else
#define IN_REGISTER "m"
#endif
/* The compiler may know neither what a value is nor that nobody reads it. */
#define USE(value) __asm__ volatile("" : : IN_REGISTER(value))
#define HIDE(value) __asm__ volatile("" : "+" IN_REGISTER(value))
#define TIMES_4(x) x x x x
#define TIMES_16(x) TIMES_4(TIMES_4(x))

typedef struct {
  int64_t count;
  char *data;
  int64_t bytes;
  int64_t step;
} work;

static void add_chain(const work *w) {
  uint64_t sum = (uint64_t)w->count, one = 1;
  __asm__ volatile("" : "+r"(one));
  for (int64_t i = 0; i < w->count; ++i) {
    TIMES_16(sum += one; __asm__ volatile("" : "+r"(sum));)
  }
}

static void multiply_add_chain(const work *w) {
  vector a = {0}, h = a + 0.5f;
  HIDE(h);
  for (int64_t i = 0; i < w->count; ++i) {
    TIMES_4(a = a * h + h; HIDE(a);)
  }
}

#define SUMS(s, x) s(0, x) s(1, x) s(2, x) s(3, x) s(4, x) s(5, x) s(6, x) s(7, x) s(8, x) s(9, x)
#define DEFINE(k, x) vector a##k = x + (float)k; HIDE(a##k);
#define MULTIPLY_ADD(k, x) a##k = a##k * x + x; HIDE(a##k);
#define DIVIDE(k, x) a##k = x / a##k; HIDE(a##k);
#define FINISH(k, x) USE(a##k);

static void multiply_adds(const work *w) {
  vector h = {0};
  h += 0.5f;
  HIDE(h);
  SUMS(DEFINE, h)
  for (int64_t i = 0; i < w->count; ++i) { SUMS(MULTIPLY_ADD, h) }
  SUMS(FINISH, h)
}

static void divisions(const work *w) {
  vector h = {0};
  h += 1.5f;
  HIDE(h);
  SUMS(DEFINE, h)
  for (int64_t i = 0; i < w->count; ++i) { SUMS(DIVIDE, h) }
  SUMS(FINISH, h)
}

#define LOAD(k, x) vector a##k = ((const vector_at *)w->data)[k];
#define STORE(k, x) ((vector_at *)w->data)[k] = a##k;

/* Ten sums in memory, of `step` products each. */
static void loops(const work *w) {
  vector h = {0};
  h += 0.5f;
  HIDE(h);
  for (int64_t i = 0; i < w->count; ++i) {
    SUMS(LOAD, h)
    for (int64_t k = 0; k < w->step; ++k) { SUMS(MULTIPLY_ADD, h) }
    SUMS(STORE, h)
  }
}

/* Loads of vectors `step` bytes apart, from memory of `bytes` bytes. */
static void loads(const work *w) {
  for (int64_t i = 0; i < w->count; ++i) {
    const char *const end = w->data + w->bytes;
    for (const char *p = w->data; p < end; p += 8 * w->step) {
      const int64_t s = w->step;
      const vector_at a = *(const vector_at *)p, b = *(const vector_at *)(p + s);
      USE(a);
      USE(b);
      const vector_at c = *(const vector_at *)(p + 2 * s), d = *(const vector_at *)(p + 3 * s);
      USE(c);
      USE(d);
      const vector_at e = *(const vector_at *)(p + 4 * s), f = *(const vector_at *)(p + 5 * s);
      USE(e);
      USE(f);
      const vector_at g = *(const vector_at *)(p + 6 * s), h = *(const vector_at *)(p + 7 * s);
      USE(g);
      USE(h);
    }
  }
}

/* The same side by side. */
static void near_loads(const work *w) {
  for (int64_t i = 0; i < w->count; ++i) {
    const char *const end = w->data + w->bytes;
    for (const vector_at *p = (const vector_at *)w->data; (const char *)p < end; p += 16) {
#define NEAR(k, x) { const vector_at v = p[k]; USE(v); }
      SUMS(NEAR, p)
      NEAR(10, p) NEAR(11, p) NEAR(12, p) NEAR(13, p) NEAR(14, p) NEAR(15, p)
    }
  }
}

/* Runs of `lines` lines, `step` bytes apart, column after column of these. */
static inline void columns(const work *w, int64_t lines) {
  const char *const end = w->data + w->bytes;
  for (int64_t i = 0; i < w->count; ++i) {
    for (int64_t column = 0; column + lines * 64 <= w->step; column += lines * 64) {
      for (const char *p = w->data + column; p + lines * 64 <= end; p += w->step) {
        for (int64_t k = 0; k < lines; ++k) {
          const vector_at one = *(const vector_at *)(p + k * 64);
          USE(one);
        }
      }
    }
  }
}

static void pages(const work *w) { columns(w, 1); }

static void runs(const work *w) { columns(w, 16); }

static void stores(const work *w) {
  vector a = {0};
  HIDE(a);
  for (int64_t i = 0; i < w->count; ++i) {
    char *const end = w->data + w->bytes;
    for (char *p = w->data; p < end; p += 4 * sizeof a) {
      *(vector_at *)p = a;
      *(vector_at *)(p + sizeof a) = a;
      *(vector_at *)(p + 2 * sizeof a) = a;
      *(vector_at *)(p + 3 * sizeof a) = a;
      __asm__ volatile("" : : : "memory");
    }
  }
}

/* From the first half of memory to the second one. */
static void copies(const work *w) {
  const int64_t half = w->bytes / 2;
  for (int64_t i = 0; i < w->count; ++i) {
    for (int64_t k = 0; k < half; k += 2 * (int64_t)sizeof(vector)) {
      const vector_at a = *(const vector_at *)(w->data + k);
      const vector_at b = *(const vector_at *)(w->data + k + sizeof a);
      *(vector_at *)(w->data + half + k) = a;
      *(vector_at *)(w->data + half + k + sizeof a) = b;
    }
    __asm__ volatile("" : : : "memory");
  }
}

/* Each pass adds a vector to all of memory. */
static void updates(const work *w) {
  vector h = {0};
  HIDE(h);
  for (int64_t i = 0; i < w->count; ++i) {
    for (int64_t k = 0; k < w->bytes; k += 2 * (int64_t)sizeof(vector)) {
      *(vector_at *)(w->data + k) += h;
      *(vector_at *)(w->data + k + sizeof h) += h;
    }
    __asm__ volatile("" : : : "memory");
  }
}

/* Lines that nothing foretells, with 160 multiply-adds from one to the next. */
static void far_lines(const work *w) {
  vector h = {0};
  h += 0.5f;
  HIDE(h);
  SUMS(DEFINE, h)
  uint64_t random = 1;
  const uint64_t lines = (uint64_t)(w->bytes / 64);
  for (int64_t i = 0; i < w->count; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const float one = *(const float *)(w->data + (random >> 33) % lines * 64);
    __asm__ volatile("" : : IN_REGISTER(one));
    TIMES_16(SUMS(MULTIPLY_ADD, h))
  }
  SUMS(FINISH, h)
}

static struct timespec start;

static void begin(void) { clock_gettime(CLOCK_MONOTONIC, &start); }

/* Two threads meet, 4096 times: so often that it does not matter how one of them ends. */
static volatile int64_t turns[2][16];

static void *other_side(void *argument) {
  const int64_t count = *(const int64_t *)argument;
  for (int64_t i = 1; i <= count; ++i) {
    while (__atomic_load_n(&turns[0][0], __ATOMIC_ACQUIRE) < i) {
    }
    __atomic_store_n(&turns[1][0], i, __ATOMIC_RELEASE);
  }
  return NULL;
}

/* Each has a processor of its own: a thread that waits does not leave it. */
static void pin(pthread_t thread, cpu_set_t *allowed, int number) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, allowed) || number-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    (void)pthread_setaffinity_np(thread, sizeof one, &one);
    return;
  }
}

static void meetings(const work *w) {
  pthread_t thread;
  cpu_set_t allowed;
  int64_t count = 4096 * w->count;
  if (pthread_getaffinity_np(pthread_self(), sizeof allowed, &allowed) != 0) abort();
  turns[0][0] = turns[1][0] = 0;
  if (pthread_create(&thread, NULL, other_side, &count) != 0) abort();
  pin(pthread_self(), &allowed, 0);
  pin(thread, &allowed, 1);
  for (int64_t i = 1; i <= count; ++i) {
    __atomic_store_n(&turns[0][0], i, __ATOMIC_RELEASE);
    while (__atomic_load_n(&turns[1][0], __ATOMIC_ACQUIRE) < i) {
    }
    /* The first one comes late. */
    if (i == 1) begin();
  }
  pthread_join(thread, NULL);
  (void)pthread_setaffinity_np(pthread_self(), sizeof allowed, &allowed);
}

static void (*const kinds[])(const work *) = {
    add_chain, multiply_add_chain, multiply_adds, divisions, loops, loads,     near_loads,
    stores,    copies,             updates,       pages,     runs,      far_lines, meetings,
};

double timed(int kind, int64_t count, char *data, int64_t bytes, int64_t step) {
  const work w = {count, data, bytes, step};
  struct timespec end;
  begin();
  kinds[kind](&w);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

/* Memory of small pages, as that of weights is; NULL if there is none. */
char *memory(int64_t bytes) {
  char *const data = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return NULL;
#if defined(MADV_NOHUGEPAGE)
  (void)madvise(data, (size_t)bytes, MADV_NOHUGEPAGE);
#endif
  memset(data, 0, (size_t)bytes);
  return data;
}

void release(char *data, int64_t bytes) { (void)munmap(data, (size_t)bytes); }
