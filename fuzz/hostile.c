/*
 * Runs one compiled model on hostile arguments, a drawn call for each number: hostile SEED FROM TO
 * [WEIGHTS]. Everything the model is given is a heap block of exactly the bytes it may touch, so that
 * sanitizers see the next one; its workspace begins as garbage. What the model may say is checked;
 * what is wrong with that is printed as "finding: ...", and the rest is left to the sanitizers.
 *
 * `hostile_model.h` is made by c_harness.py: the model's ports as a table.
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum kind { BOOL, SIGNED, UNSIGNED, F16, BF16, F32, F64 };

typedef struct port {
  const char *name;
  size_t offset; /* of its struct in the arguments */
  int rank;
  size_t item;
  enum kind kind;
  int64_t low, high; /* where numbers have to stay, if low <= high */
} port;

typedef struct symbol {
  int input, axis; /* where it is a whole dimension first */
  int count;
  int64_t usual[8]; /* sizes that make sense */
} symbol;

#include "hostile_model.h"
#include "lowerdeck_runtime.h"
#if IS_PARALLEL
#include "lowerdeck_pool.h"
#endif

/* One more, so that no table is empty. */
enum { INPUTS = INPUT_COUNT + 1, OUTPUTS = OUTPUT_COUNT + 1, SYMBOLS = SYMBOL_COUNT + 1, AXES = 16 };

static const int64_t LARGEST = 1 << 24;  /* bytes of a tensor that is really there */
static const int64_t LARGE_SIZE = 4096;  /* a dimension below it is one for which sizes are computed */
static const int SECONDS_A_RUN = 10;

/* Random numbers: splitmix64. */

typedef struct rng {
  uint64_t state;
} rng;

static uint64_t draw(rng *r) {
  uint64_t z = (r->state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static int64_t below(rng *r, int64_t bound) { return (int64_t)(draw(r) % (uint64_t)bound); }

static bool one_in(rng *r, int64_t count) { return below(r, count) == 0; }

/* Values. */

enum manner { NORMAL, SPRINKLED, SPECIAL, EQUAL, TINY, HUGE_ONES, BITS, MANNERS };

static double special(rng *r, enum kind kind) {
  const double tiny = kind == F64 ? 5e-324 : kind == F16 ? 6e-8 : 1e-45;
  const double huge = kind == F64 ? 1.7e308 : kind == F16 ? 65504.0 : 3.4e38;
  const double all[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0, 0.0, tiny, -tiny, huge,
                        -huge, 1.0, -1.0, 1e30, -1e19, 9.3e18, 2147483648.0, 0.5};
  return all[below(r, sizeof all / sizeof all[0])];
}

static int64_t special_integer(rng *r) {
  static const int64_t all[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_MAX - 1, -1, 0, 1, 2, -2, 3,
                                7, 8, -9, INT32_MIN, INT32_MAX, (int64_t)1 << 32, (int64_t)1 << 62,
                                -((int64_t)1 << 62), 127, 128, 255, 256, 32768, 65535, 1000000};
  return all[below(r, sizeof all / sizeof all[0])];
}

static double real(rng *r, enum kind kind, enum manner manner) {
  const double usual = (double)below(r, 4001) / 1000 - 2;
  switch (manner) {
    case SPRINKLED: return one_in(r, 8) ? special(r, kind) : usual;
    case SPECIAL: return special(r, kind);
    case TINY: return usual * (kind == F64 ? 1e-310 : kind == F16 ? 1e-6 : 1e-40);
    case HUGE_ONES: return usual * (kind == F64 ? 8e307 : kind == F16 ? 3e4 : 1.7e38);
    default: return usual;
  }
}

/* Small numbers are below `span`: one that fits indices into small dimensions, too. */
static int64_t integer(rng *r, const port *p, enum manner manner, int64_t span) {
  if (p->low <= p->high) return p->low + below(r, p->high - p->low + 1);
  switch (manner) {
    case SPRINKLED: return one_in(r, 8) ? special_integer(r) : below(r, span);
    case SPECIAL: return special_integer(r);
    case HUGE_ONES: return INT64_MAX - below(r, 100);
    case TINY: return below(r, 12) - 6;
    case BITS: return (int64_t)draw(r);
    default: return below(r, span);
  }
}

static void put(unsigned char *at, const port *p, rng *r, enum manner manner, int64_t span) {
  const bool is_bounded = p->low <= p->high;
  uint64_t bits = draw(r);
  if (p->kind == BOOL) {
    bits &= 1;
  } else if (p->kind == SIGNED || p->kind == UNSIGNED) {
    bits = (uint64_t)integer(r, p, manner, span);
  } else if (manner != BITS || is_bounded) {
    double x = is_bounded ? (double)(p->low + below(r, p->high - p->low + 1)) : real(r, p->kind, manner);
    const float single = p->kind == F64 ? 0 : (float)x;
    if (p->kind == F16) bits = lowerdeck_f32_to_f16(single);
    if (p->kind == BF16) bits = lowerdeck_f32_to_bf16(single);
    if (p->kind == F32) bits = lowerdeck_bits(single);
    if (p->kind == F64) memcpy(&bits, &x, sizeof x);
  }
  /* The machines that this runs on are little-endian. */
  memcpy(at, &bits, p->item);
}

static void fill(unsigned char *data, int64_t size, const port *p, rng *r) {
  const enum manner manner = one_in(r, 2) ? NORMAL : (enum manner)below(r, MANNERS);
  const int64_t span = 1 + below(r, 5);
  for (int64_t at = 0; at < size; at += (int64_t)p->item) {
    put(data + at, p, r, manner, span);
    if (manner == EQUAL && at > 0) memcpy(data + at, data, p->item);
  }
}

/* Memory of exactly so many bytes. */

typedef struct block {
  unsigned char *base, *data;
  int64_t size;
} block;

static block block_of(int64_t size, int64_t shift) {
  block result = {malloc((size_t)(size + shift)), NULL, size};
  if (result.base == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(3);
  }
  result.data = result.base + shift;
  return result;
}

static void scribble(block b, rng *r) {
  /* Bits of NaN, of infinity, of large numbers, of anything. */
  static const unsigned char patterns[] = {0xff, 0x7f, 0x80, 0x00};
  if (one_in(r, 2)) {
    memset(b.data, patterns[below(r, 4)], (size_t)b.size);
    return;
  }
  for (int64_t k = 0; k < b.size; k++) b.data[k] = (unsigned char)draw(r);
}

/* What is wrong with a call, on purpose. */

enum fault {
  NOTHING,
  NULL_ARGS,
  NULL_INPUT,
  NULL_OUTPUT,
  NULL_WEIGHTS,
  NULL_WORKSPACE,
  SMALL_CAPACITY,
  NEGATIVE_CAPACITY,
  OVERLAP_INPUT,
  OVERLAP_OUTPUT,
  OVERLAP_WORKSPACE,
  OVERLAP_WEIGHTS,
  SHORT_WORKSPACE,
  NO_WORKSPACE,
  SHORT_WEIGHTS,
  OTHER_WEIGHTS,
  MISALIGNED_INPUT,
  MISALIGNED_OUTPUT,
  MISALIGNED_WEIGHTS,
  NO_ALLOCATOR,
  FAILING_ALLOCATOR,
  FAULTS
};

static const char *const fault_names[] = {
    "nothing", "NULL arguments", "NULL input", "NULL output", "NULL weights", "NULL workspace",
    "small capacity", "negative capacity", "output over input", "output over output",
    "output over workspace", "output over weights", "short workspace", "no workspace",
    "short weights", "other weights", "misaligned input", "misaligned output", "misaligned weights",
    "no allocator", "failing allocator"};

static const int refusals[] = {
    [NOTHING] = LOWERDECK_OK,
    [NULL_ARGS] = LOWERDECK_ERROR_NULL,
    [NULL_INPUT] = LOWERDECK_ERROR_NULL,
    [NULL_OUTPUT] = LOWERDECK_ERROR_NULL,
    [NULL_WEIGHTS] = LOWERDECK_ERROR_NULL,
    [NULL_WORKSPACE] = LOWERDECK_ERROR_NULL,
    [SMALL_CAPACITY] = LOWERDECK_ERROR_OUTPUT_CAPACITY,
    [NEGATIVE_CAPACITY] = LOWERDECK_ERROR_OUTPUT_CAPACITY,
    [OVERLAP_INPUT] = LOWERDECK_ERROR_OVERLAP,
    [OVERLAP_OUTPUT] = LOWERDECK_ERROR_OVERLAP,
    [OVERLAP_WORKSPACE] = LOWERDECK_ERROR_OVERLAP,
    [OVERLAP_WEIGHTS] = LOWERDECK_ERROR_OVERLAP,
    [SHORT_WORKSPACE] = LOWERDECK_ERROR_WORKSPACE_SIZE,
    [NO_WORKSPACE] = LOWERDECK_ERROR_WORKSPACE_SIZE,
    [SHORT_WEIGHTS] = LOWERDECK_ERROR_WEIGHTS_SIZE,
    [OTHER_WEIGHTS] = 0, /* one of three */
    [MISALIGNED_INPUT] = LOWERDECK_ERROR_ALIGNMENT,
    [MISALIGNED_OUTPUT] = LOWERDECK_ERROR_ALIGNMENT,
    [MISALIGNED_WEIGHTS] = LOWERDECK_ERROR_ALIGNMENT,
    [NO_ALLOCATOR] = LOWERDECK_ERROR_NO_ALLOCATOR,
    [FAILING_ALLOCATOR] = LOWERDECK_ERROR_OUT_OF_MEMORY,
};

/* A call as drawn; callers share it, and what it points to. */
typedef struct plan {
  int number;
  uint64_t seed;
  int64_t symbols[SYMBOLS];
  int64_t dims[INPUTS][AXES];
  bool is_real;      /* all tensors are of sizes that can be there */
  bool is_beyond;    /* an input is not there in full, so that the run has to be refused */
  bool is_mutated;   /* a dimension is not what the others ask for */
  block inputs[INPUTS];
  block weights;
  int64_t sizes[OUTPUTS]; /* bytes of outputs; -1 if data decides */
  int64_t capacities[OUTPUTS];
  enum fault fault;
  int port; /* of the fault */
  bool applies; /* the fault, to this model and these sizes */
  int64_t failing; /* the number of the allocation that fails, -1 for none */
  int64_t shift;
} plan;

/* One caller's own memory and what came out. */
typedef struct call {
  const plan *plan;
  void *pool;
  uint64_t garbage;
  bool has_allocator;
  block outputs[OUTPUTS];
  block workspace;
  int64_t workspace_size;
  int status;
  int64_t dims[OUTPUTS][AXES];
  pthread_t thread;
  int64_t allocations, live, live_bytes;
  bool refused_memory, is_foreign;
} call;

static const unsigned char *weights_file;
static int findings;

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void finding(const plan *p, const char *what, const char *detail, int64_t number) {
  pthread_mutex_lock(&printing);
  findings++;
  printf("finding: run %d: %s%s%s (%" PRId64 ")\n", p->number, what, *detail ? ": " : "", detail, number);
  fflush(stdout);
  pthread_mutex_unlock(&printing);
}

static void *allocate(void *context, size_t size) {
  call *const c = (call *)context;
  if (!pthread_equal(c->thread, pthread_self())) c->is_foreign = true;
  const int64_t number = c->allocations++;
  const bool fails = number == c->plan->failing || size > (size_t)(4 * LARGEST) ||
                     c->live_bytes > 16 * LARGEST || number > 100000;
  unsigned char *const memory = fails ? NULL : (unsigned char *)malloc(size + 16);
  if (memory == NULL) {
    c->refused_memory = true;
    return NULL;
  }
  memset(memory + 16, (int)(c->garbage & 0xff), size);
  memcpy(memory, &size, sizeof size);
  c->live++;
  c->live_bytes += (int64_t)size;
  return memory + 16;
}

static void release(void *context, void *memory) {
  call *const c = (call *)context;
  if (!pthread_equal(c->thread, pthread_self())) c->is_foreign = true;
  if (memory == NULL) return;
  size_t size;
  memcpy(&size, (unsigned char *)memory - 16, sizeof size);
  c->live--;
  c->live_bytes -= (int64_t)size;
  free((unsigned char *)memory - 16);
}

/* Drawing a plan. */

static int64_t drawn_size(rng *r, const symbol *s) {
  static const int64_t odd[] = {0, 0, 1, 1, 2, 3, 5, 7, 9, 16, 17, 33, -1, 100};
  static const int64_t absurd[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 62, (int64_t)1 << 40,
                                   (int64_t)1 << 32, INT32_MAX, -((int64_t)1 << 33), 3037000500};
  if (one_in(r, 40)) return absurd[below(r, sizeof absurd / sizeof absurd[0])];
  if (s->count == 0 || one_in(r, 5)) return odd[below(r, sizeof odd / sizeof odd[0])];
  return s->usual[below(r, s->count)];
}

/* The bytes of a tensor: -1 if a dimension is negative, and more than the largest if it is too large. */
static int64_t real_bytes(const int64_t *dims, int rank, size_t item) {
  int64_t bytes = (int64_t)item;
  bool is_empty = false;
  for (int k = 0; k < rank; k++) {
    if (dims[k] < 0) return -1;
    is_empty |= dims[k] == 0;
  }
  if (is_empty) return 0;
  for (int k = 0; k < rank; k++) {
    if (bytes > LARGEST / dims[k]) return LARGEST + 1;
    bytes *= dims[k];
  }
  return bytes;
}

#include "hostile_sizes.h"

static void draw_dims(plan *p, rng *r) {
  bool is_small = true;
  for (int k = 0; k < SYMBOL_COUNT; k++) {
    p->symbols[k] = drawn_size(r, &symbols[k]);
    is_small &= p->symbols[k] > -LARGE_SIZE && p->symbols[k] < LARGE_SIZE;
  }
  memset(p->dims, 0, sizeof p->dims);
  if (is_small) {
    input_dims(p->symbols, p->dims);
  } else {
    const int64_t none[SYMBOLS] = {0};
    input_dims(none, p->dims);
    for (int k = 0; k < SYMBOL_COUNT; k++) p->dims[symbols[k].input][symbols[k].axis] = p->symbols[k];
  }
  if (INPUT_COUNT > 0 && one_in(r, 12)) {
    const int input = (int)below(r, INPUT_COUNT);
    if (inputs[input].rank > 0) {
      static const symbol any = {0, 0, 0, {0}};
      p->is_mutated = true;
      p->dims[input][below(r, inputs[input].rank)] = drawn_size(r, &any);
    }
  }
  /* As the model reads them. */
  for (int k = 0; k < SYMBOL_COUNT; k++) {
    p->symbols[k] = p->dims[symbols[k].input][symbols[k].axis];
    is_small &= p->symbols[k] > -LARGE_SIZE && p->symbols[k] < LARGE_SIZE;
  }
  p->is_real = is_small;
}

static void draw_memory(plan *p, rng *r) {
  for (int k = 0; k < INPUT_COUNT; k++) {
    const int64_t size = real_bytes(p->dims[k], inputs[k].rank, inputs[k].item);
    const bool is_there = size >= 0 && size <= LARGEST;
    p->is_beyond |= !is_there;
    const int64_t shift = one_in(r, 2) ? 0 : (int64_t)inputs[k].item * below(r, 16);
    p->inputs[k] = block_of(is_there ? size : 0, shift);
    fill(p->inputs[k].data, p->inputs[k].size, &inputs[k], r);
  }
  p->is_real &= !p->is_beyond;
  int64_t sizes[OUTPUTS] = {0};
  if (p->is_real) output_sizes(p->symbols, sizes);
  for (int k = 0; k < OUTPUT_COUNT; k++) {
    static const int64_t rooms[] = {4096, 4096, 4096, 4096, 4096, 64, 3, 0};
    const int64_t room = rooms[below(r, 8)];
    p->sizes[k] = sizes[k];
    p->capacities[k] = sizes[k] >= 0 ? sizes[k] / (int64_t)outputs[k].item : room;
    p->is_real &= sizes[k] <= LARGEST;
  }
  /* Room is a lie then. */
  const bool has_room = p->is_beyond && one_in(r, 2);
  for (int k = 0; k < OUTPUT_COUNT && !p->is_real; k++) {
    p->capacities[k] = has_room ? INT64_MAX / 16 : 0;
  }
}

static void draw_fault(plan *p, rng *r) {
  p->failing = -1;
  p->shift = 1 + below(r, 63);
  if (!p->is_real || !one_in(r, 3)) return;
  p->fault = (enum fault)below(r, FAULTS);
  switch (p->fault) {
    case NULL_INPUT:
    case MISALIGNED_INPUT:
      if (INPUT_COUNT == 0) break;
      p->port = (int)below(r, INPUT_COUNT);
      p->applies = p->inputs[p->port].size > 0 &&
                   (p->fault == NULL_INPUT || inputs[p->port].item > 1);
      break;
    case NULL_OUTPUT:
    case SMALL_CAPACITY:
    case NEGATIVE_CAPACITY:
    case MISALIGNED_OUTPUT:
    case OVERLAP_INPUT:
    case OVERLAP_OUTPUT:
    case OVERLAP_WORKSPACE:
    case OVERLAP_WEIGHTS:
      p->port = (int)below(r, OUTPUT_COUNT);
      p->applies = p->sizes[p->port] > 0;
      if (p->fault == MISALIGNED_OUTPUT) p->applies &= outputs[p->port].item > 1;
      if (p->fault == OVERLAP_INPUT) p->applies &= INPUT_COUNT > 0 && p->inputs[0].size > 0;
      if (p->fault == OVERLAP_OUTPUT) {
        p->applies &= OUTPUT_COUNT > 1 && p->port != 0 && p->sizes[0] > 0;
      }
      if (p->fault == OVERLAP_WEIGHTS) p->applies &= WEIGHTS_SIZE > 0;
      break;
    case NULL_WEIGHTS:
    case SHORT_WEIGHTS:
    case OTHER_WEIGHTS:
    case MISALIGNED_WEIGHTS:
      p->applies = WEIGHTS_SIZE > 0;
      break;
    case NO_ALLOCATOR:
      p->applies = NEEDS_ALLOCATOR;
      break;
    case FAILING_ALLOCATOR:
      p->failing = below(r, 2) ? below(r, 4) : below(r, 40);
      break;
    default:
      p->applies = p->fault != NOTHING;
  }
  if (!p->applies && p->fault != FAILING_ALLOCATOR) p->fault = NOTHING;
}

static void draw_weights(plan *p, rng *r) {
  const int64_t size = WEIGHTS_SIZE;
  int64_t shift = 8 * below(r, 8);
  if (p->fault == MISALIGNED_WEIGHTS) shift += 1 + below(r, 7);
  const int64_t there = p->fault == SHORT_WEIGHTS ? below(r, size) : size;
  p->weights = block_of(there, shift);
  if (size == 0) return;
  memcpy(p->weights.data, weights_file, (size_t)there);
  if (p->fault == OTHER_WEIGHTS) p->weights.data[below(r, 64)] ^= (unsigned char)(1 << below(r, 8));
}

static uint64_t digest(const plan *p) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (int k = 0; k <= INPUT_COUNT; k++) {
    const block b = k < INPUT_COUNT ? p->inputs[k] : p->weights;
    for (int64_t at = 0; at < b.size; at++) hash = (hash ^ b.data[at]) * UINT64_C(0x100000001b3);
  }
  return hash;
}

/* A call. */

static unsigned char *field(ARGS *args, size_t offset) { return (unsigned char *)args + offset; }

static void set_pointer(ARGS *args, size_t offset, const void *pointer) {
  memcpy(field(args, offset), &pointer, sizeof pointer);
}

static void set_numbers(ARGS *args, size_t offset, const int64_t *numbers, int count) {
  memcpy(field(args, offset), numbers, (size_t)count * sizeof *numbers);
}

static void prepare_outputs(call *c, ARGS *args) {
  const plan *const p = c->plan;
  for (int k = 0; k < OUTPUT_COUNT; k++) {
    const bool is_it = k == p->port && p->applies;
    const int64_t item = (int64_t)outputs[k].item;
    int64_t capacity = p->capacities[k], shift = item * (p->shift % 8);
    if (is_it && p->fault == MISALIGNED_OUTPUT) shift += 1;
    c->outputs[k] = block_of(p->is_real ? capacity * item : 0, shift);
    memset(c->outputs[k].data, (int)(c->garbage & 0xff), (size_t)c->outputs[k].size);
    const void *data = c->outputs[k].data;
    if (is_it && p->fault == NULL_OUTPUT) data = NULL;
    if (is_it && p->fault == SMALL_CAPACITY) capacity -= 1;
    if (is_it && p->fault == NEGATIVE_CAPACITY) capacity = p->shift % 2 ? -1 : INT64_MIN;
    if (is_it && p->fault == OVERLAP_INPUT) data = p->inputs[0].data;
    if (is_it && p->fault == OVERLAP_OUTPUT) data = c->outputs[0].data;
    if (is_it && p->fault == OVERLAP_WEIGHTS) data = p->weights.data;
    if (is_it && p->fault == OVERLAP_WORKSPACE && c->workspace.size > 0) data = c->workspace.data;
    set_pointer(args, outputs[k].offset, data);
    set_numbers(args, outputs[k].offset + 8, &capacity, 1);
  }
}

static void prepare_workspace(call *c, ARGS *args) {
  const plan *const p = c->plan;
  rng r = {c->garbage};
  c->workspace_size = MODEL_WORKSPACE_SIZE(args);
  const bool is_there = p->is_real && c->workspace_size >= 0 && c->workspace_size <= 8 * LARGEST;
  int64_t size = is_there ? c->workspace_size : 0;
  if (p->fault == SHORT_WORKSPACE && size > 0) size = p->shift % 2 ? size - 1 : size / 2;
  if (p->fault == NO_WORKSPACE) size = 0;
  c->workspace = block_of(size, p->shift);
  scribble(c->workspace, &r);
  args->workspace = p->fault == NULL_WORKSPACE ? NULL : c->workspace.data;
  args->workspace_size = (size_t)size;
}

static void run(call *c) {
  const plan *const p = c->plan;
  ARGS args;
  memset(&args, 0, sizeof args);
  for (int k = 0; k < INPUT_COUNT; k++) {
    const bool is_it = k == p->port && p->applies;
    const unsigned char *data = p->inputs[k].data;
    if (is_it && p->fault == NULL_INPUT) data = NULL;
    if (is_it && p->fault == MISALIGNED_INPUT) data += 1;
    set_pointer(&args, inputs[k].offset, data);
    set_numbers(&args, inputs[k].offset + 8, p->dims[k], inputs[k].rank);
  }
  args.weights = p->fault == NULL_WEIGHTS ? NULL : p->weights.data;
  args.weights_size = (size_t)p->weights.size;
#if IS_PARALLEL
  args.pool = (lowerdeck_pool *)c->pool;
#endif
  c->thread = pthread_self();
  const lowerdeck_allocator allocator = {allocate, release, c};
  args.allocator = p->fault == NO_ALLOCATOR || !c->has_allocator ? NULL : &allocator;
  prepare_workspace(c, &args);
  prepare_outputs(c, &args);
  for (int k = 0; k < INPUT_COUNT && p->is_beyond && c->workspace_size == 0; k++) {
    /* Nothing else would keep it from reading what is not there. */
    set_pointer(&args, inputs[k].offset, NULL);
  }
  c->status = MODEL_RUN(p->fault == NULL_ARGS ? NULL : &args);
  for (int k = 0; k < OUTPUT_COUNT; k++) {
    memcpy(c->dims[k], field(&args, outputs[k].offset + 16), (size_t)outputs[k].rank * 8);
  }
}

static void *run_in_thread(void *c) {
  run((call *)c);
  return NULL;
}

static void release_memory(call *c) {
  for (int k = 0; k < OUTPUT_COUNT; k++) free(c->outputs[k].base);
  free(c->workspace.base);
}

/* Judging. */

static void judge_status(const call *c) {
  const plan *const p = c->plan;
  const char *const name = fault_names[p->fault];
  const bool fits_not = c->status == LOWERDECK_ERROR_INPUT_DIMS ||
                        c->status == LOWERDECK_ERROR_SHAPE_MISMATCH;
  if (c->status < 0 || c->status > LOWERDECK_ERROR_INDEX_OUT_OF_RANGE) {
    finding(p, "status that is not documented", name, c->status);
  } else if (!p->is_real) {
    const bool is_accepted = c->status == LOWERDECK_OK && p->is_beyond;
    if (is_accepted) finding(p, "accepts what is beyond all memory", name, c->status);
  } else if (p->applies) {
    const bool is_void = (p->fault == NULL_WORKSPACE || p->fault == SHORT_WORKSPACE ||
                          p->fault == NO_WORKSPACE || p->fault == OVERLAP_WORKSPACE) &&
                         c->workspace_size <= 0;
    const bool is_weights = p->fault == OTHER_WEIGHTS && c->status >= LOWERDECK_ERROR_WEIGHTS_MAGIC &&
                            c->status <= LOWERDECK_ERROR_WEIGHTS_MODEL;
    const bool is_overlap = p->fault >= OVERLAP_INPUT && p->fault <= OVERLAP_WEIGHTS &&
                            c->status == LOWERDECK_ERROR_ALIGNMENT;
    const bool is_short = p->fault == SHORT_WORKSPACE && c->status == LOWERDECK_ERROR_NULL;
    if (c->status != refusals[p->fault] && !fits_not && !is_void && !is_weights && !is_overlap &&
        !is_short) {
      finding(p, "other status for", name, c->status);
    }
  } else {
    bool is_late = false;
    for (int k = 0; k < OUTPUT_COUNT; k++) is_late |= p->sizes[k] < 0;
    const bool is_known = c->status == LOWERDECK_OK || fits_not ||
                          c->status == LOWERDECK_ERROR_INDEX_OUT_OF_RANGE ||
                          (c->status == LOWERDECK_ERROR_OUT_OF_MEMORY && c->refused_memory) ||
                          (c->status == LOWERDECK_ERROR_OUTPUT_CAPACITY && is_late) ||
                          (c->status == LOWERDECK_ERROR_NO_ALLOCATOR && !c->has_allocator);
    if (!is_known) finding(p, "refuses good arguments", name, c->status);
    if (c->refused_memory && c->status == LOWERDECK_OK) finding(p, "has no memory", name, 0);
  }
}

static void judge(const call *c) {
  judge_status(c);
  if (c->live != 0) finding(c->plan, "keeps memory of the allocator", "", c->live);
  if (c->is_foreign) finding(c->plan, "calls the allocator from another thread", "", 0);
  if (c->status != LOWERDECK_OK) return;
  for (int k = 0; k < OUTPUT_COUNT; k++) {
    const int64_t size = real_bytes(c->dims[k], outputs[k].rank, outputs[k].item);
    if (size < 0 || size > c->plan->capacities[k] * (int64_t)outputs[k].item) {
      finding(c->plan, "dimensions beyond the capacity", outputs[k].name, size);
    }
  }
}

/* Two runs of the same call give the same. */
static void compare(const call *a, const call *b) {
  if (a->status != b->status) {
    const bool is_memory = a->refused_memory || b->refused_memory;
    if (!is_memory) finding(a->plan, "two statuses of one call", "", a->status * 100 + b->status);
    return;
  }
  if (a->status != LOWERDECK_OK) return;
  for (int k = 0; k < OUTPUT_COUNT; k++) {
    const int64_t size = real_bytes(a->dims[k], outputs[k].rank, outputs[k].item);
    if (memcmp(a->dims[k], b->dims[k], sizeof a->dims[k]) != 0) {
      finding(a->plan, "two shapes of one call", outputs[k].name, 0);
    } else if (size > 0 && size <= a->outputs[k].size &&
               memcmp(a->outputs[k].data, b->outputs[k].data, (size_t)size) != 0) {
      finding(a->plan, "two results of one call", outputs[k].name, 0);
    }
  }
}

static void limit_time(void) {
  struct rusage usage;
  struct rlimit limit;
  getrusage(RUSAGE_SELF, &usage);
  getrlimit(RLIMIT_CPU, &limit);
  const rlim_t used = (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  limit.rlim_cur = used + 2 + (rlim_t)SECONDS_A_RUN;
  setrlimit(RLIMIT_CPU, &limit);
}

static int statuses[LOWERDECK_ERROR_INDEX_OUT_OF_RANGE + 1];

static void run_number(int number, uint64_t seed, void *shared) {
  rng r = {seed * UINT64_C(0x100000001b3) + (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15)};
  static plan p;
  memset(&p, 0, sizeof p);
  p.number = number;
  draw_dims(&p, &r);
  draw_memory(&p, &r);
  draw_fault(&p, &r);
  draw_weights(&p, &r);
  const uint64_t before = digest(&p);
  void *pool = shared;
#if IS_PARALLEL
  lowerdeck_pool *own = NULL;
  if (one_in(&r, 8)) {
    own = lowerdeck_pool_create(1 + (int)below(&r, 4));
    pool = own;
  }
  if (one_in(&r, 8)) pool = NULL;
#endif
  /* The first call; the same with other garbage; and maybe one at the same time. */
  static call calls[3];
  memset(calls, 0, sizeof calls);
  const bool has_allocator = NEEDS_ALLOCATOR || one_in(&r, 2);
  const int count = one_in(&r, 16 / CALLERS) ? 3 : 2;
  for (int k = 0; k < count; k++) {
    calls[k].plan = &p;
    calls[k].garbage = draw(&r);
    calls[k].has_allocator = has_allocator;
    calls[k].pool = pool;
  }
  run(&calls[0]);
  pthread_t thread;
  const bool has_other = count == 3 && pthread_create(&thread, NULL, run_in_thread, &calls[2]) == 0;
  run(&calls[1]);
  if (has_other) pthread_join(thread, NULL);
  for (int k = 0; k < (has_other ? 3 : 2); k++) {
    judge(&calls[k]);
    if (k > 0) compare(&calls[0], &calls[k]);
  }
  const int status = calls[0].status;
  if (status >= 0 && status <= LOWERDECK_ERROR_INDEX_OUT_OF_RANGE) statuses[status]++;
#if IS_PARALLEL
  lowerdeck_pool_destroy(own);
#endif
  if (digest(&p) != before) finding(&p, "changes what it reads", "", 0);
  for (int k = 0; k < count; k++) release_memory(&calls[k]);
  for (int k = 0; k < INPUT_COUNT; k++) free(p.inputs[k].base);
  free(p.weights.base);
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const uint64_t seed = strtoull(argv[1], NULL, 10);
  const int from = atoi(argv[2]), to = atoi(argv[3]);
  unsigned char *const data = malloc(WEIGHTS_SIZE + 1);
  FILE *const file = argc > 4 ? fopen(argv[4], "rb") : NULL;
  if (data == NULL || (file == NULL && WEIGHTS_SIZE > 0)) return 2;
  if (file != NULL && fread(data, 1, WEIGHTS_SIZE, file) != WEIGHTS_SIZE) return 2;
  if (file != NULL) fclose(file);
  weights_file = data;
  void *pool = NULL;
#if IS_PARALLEL
  pool = lowerdeck_pool_create(2);
#endif
  for (int number = from; number < to; number++) {
    printf("run %d\n", number);
    fflush(stdout);
    limit_time();
    run_number(number, seed, pool);
  }
#if IS_PARALLEL
  lowerdeck_pool_destroy((lowerdeck_pool *)pool);
#endif
  free(data);
  printf("statuses:");
  for (int k = 0; k <= LOWERDECK_ERROR_INDEX_OUT_OF_RANGE; k++) printf(" %d", statuses[k]);
  printf("\n");
  return findings != 0;
}
