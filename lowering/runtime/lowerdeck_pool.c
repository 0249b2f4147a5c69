/*
 * Worker threads. Who waits spins for a while, then offers its core to others, then sleeps.
 *
 * Other threads of this or other processes may keep cores busy. A worker that offered its core to one
 * that never does the same would get it back milliseconds later, so workers spin through the usual
 * pauses between loops and between runs. What a run needs is never left waiting for a core:
 * - no run waits for a worker that has not come to it;
 * - a worker does not work on the core of the thread that it works for;
 * - that thread, if it waits for a worker that has lost its core, lends it its own.
 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* where threads run */
#elif !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "lowerdeck_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/*
 * Each thread's share of a loop is cut into parts, so that others can take over what is left of it if
 * the thread has no core at the moment. More parts would be smaller, and what one of them leaves in the
 * cache is of less use for the next.
 */
enum { PARTS_OF_A_SHARE = 2 };

enum { CACHE_LINE = 64, PAUSES_A_LOOK = 8 };

/* Nanoseconds after which a waiting thread yields, and after which it sleeps. */
typedef struct patience {
  int64_t spin, awake;
} patience;

/* Who is waited for so long at a barrier, or by any of more threads than cores, has probably no core. */
static const patience SHORT = {10000, 50000};
static const patience IN_RUN = {100000, 150000};
/* The next run may come soon. */
static const patience BETWEEN_RUNS = {100000, 200000};

/*
 * Nanoseconds after which the first thread asks whether the worker that it waits for runs, and for which
 * it watches it.
 */
enum { TIME_BEFORE_WATCH = 20000, WATCH_TIME = 5000 };

/* What one thread writes and others read again and again is on lines of its own. */
typedef union padded_word {
  uint64_t value;
  char padding[2 * CACHE_LINE];
} padded_word;

struct lowerdeck_team {
  int threads;
  int statuses[2]; /* by turns, so that nobody still reads the one that others set next */
  void *shared;
  padded_word arrived;
  padded_word generation;
  padded_word sleepers;
  pthread_mutex_t mutex; /* guards the sleep of threads */
  pthread_cond_t wake;
  struct share *shares; /* of each thread */
  struct worker *workers;
  int core; /* where the first thread was when the run began, or -1 */
  bool has_cores; /* one for each thread */
};

typedef struct share {
  /* What others read when they find no part left is on one line: to read another one takes as long. */
  uint64_t taken; /* the number of a loop, and how many parts of the thread's share are taken */
  uint64_t hands; /* twice the number of a loop; one less while the thread may have a part in hand */
  uint64_t meets; /* how many the thread has come to in this run */
  char padding[2 * CACHE_LINE - 3 * sizeof(uint64_t)];
  padded_word loops; /* how many the thread has come to */
  padded_word inside; /* odd while the thread is in a run, or asks whether it may enter one */
} share;

typedef struct worker {
  struct lowerdeck_pool *pool;
  pthread_t thread;
  int number;
} worker;

struct lowerdeck_pool {
  lowerdeck_team team;
  pthread_mutex_t turn; /* held during a run */
  padded_word run; /* the number of the current run */
  padded_word gate; /* the number of the run that workers may enter, or 0 */
  bool ends;
  lowerdeck_job job;
  void *context;
};

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* The number of the core that the calling thread is on, or -1 if that cannot be told. */
static int current_core(void) {
#if defined(__linux__)
  return sched_getcpu();
#else
  return -1;
#endif
}

/* Whether the calling thread may run on so many cores. */
static bool has_cores(int count) {
#if defined(__linux__)
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores) >= count;
#endif
#if defined(_WIN32)
  return pthread_num_processors_np() >= count;
#else
  return sysconf(_SC_NPROCESSORS_ONLN) >= count;
#endif
}

#if defined(__linux__)
/* Have a thread run on some of the cores that it may run on; it stays there if it may run on more again. */
static void move(pthread_t thread, const cpu_set_t *cores, const cpu_set_t *all) {
  if (pthread_setaffinity_np(thread, sizeof *cores, cores) == 0) {
    pthread_setaffinity_np(thread, sizeof *all, all);
  }
}

/* Have a thread that may run on several cores leave one of them. */
static void move_off(pthread_t thread, int core, const cpu_set_t *all) {
  cpu_set_t others = *all;
  if (core < 0 || core >= CPU_SETSIZE) return;
  CPU_CLR((size_t)core, &others);
  if (CPU_COUNT(&others) != 0) move(thread, &others, all);
}
#endif

/*
 * Where no core is idle, systems wake a thread on the core of who woke it, and may leave both there for
 * long, though then they do nothing at once.
 */
static void leave_core_of_first(lowerdeck_team *team) {
#if defined(__linux__)
  const int core = __atomic_load_n(&team->core, __ATOMIC_RELAXED);
  if (core < 0 || core >= CPU_SETSIZE || core != current_core()) return;
  cpu_set_t all;
  if (pthread_getaffinity_np(pthread_self(), sizeof all, &all) != 0) return;
  if (CPU_COUNT(&all) >= team->threads) move_off(pthread_self(), core, &all);
#else
  (void)team;
#endif
}

static uint64_t now_at(const uint64_t *word) {
  return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool has_changed(const uint64_t *word, uint64_t old) {
  return now_at(word) != old;
}

/* Spin until a word is no longer `old`, at most for some nanoseconds: whether it has changed. */
static bool spin(const uint64_t *word, uint64_t old, int64_t time) {
  const int64_t end = now() + time;
  do {
    for (int k = 0; k < PAUSES_A_LOOK; k++) {
      if (has_changed(word, old)) return true;
      pause_briefly();
    }
  } while (now() < end);
  return false;
}

/* Wait until a word that only grows is no longer `old`. */
static void wait_for_change(lowerdeck_team *team, const uint64_t *word, uint64_t old, patience most) {
  const int64_t start = now();
  int64_t waited = 0;
  if (!team->has_cores && most.spin > SHORT.spin) most.spin = SHORT.spin;
  while (waited < most.awake) {
    for (int k = 0; k < PAUSES_A_LOOK; k++) {
      if (has_changed(word, old)) return;
      pause_briefly();
    }
    if (waited > most.spin) sched_yield();
    waited = now() - start;
  }
  pthread_mutex_lock(&team->mutex);
  __atomic_add_fetch(&team->sleepers.value, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(word, __ATOMIC_SEQ_CST) == old) {
    pthread_cond_wait(&team->wake, &team->mutex);
  }
  __atomic_sub_fetch(&team->sleepers.value, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&team->mutex);
}

/* After a change of what others wait for: either they see it or we see that they sleep. */
static void wake_sleepers(lowerdeck_team *team) {
  if (__atomic_load_n(&team->sleepers.value, __ATOMIC_SEQ_CST) == 0) return;
  pthread_mutex_lock(&team->mutex);
  pthread_cond_broadcast(&team->wake);
  pthread_mutex_unlock(&team->mutex);
}

static void change(lowerdeck_team *team, uint64_t *word, uint64_t value) {
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
  wake_sleepers(team);
}

#if defined(__linux__)
/* Whether a thread computes; true if that cannot be told. */
static bool is_running(pthread_t thread, const uint64_t *word, uint64_t old) {
  clockid_t clock;
  struct timespec before, after;
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &before) != 0) return true;
  if (spin(word, old, WATCH_TIME) || clock_gettime(clock, &after) != 0) return true;
  return before.tv_nsec != after.tv_nsec || before.tv_sec != after.tv_sec;
}
#endif

/* The first thread waits for a worker: if that has lost its core, it gets this one. */
static void wait_for_worker(lowerdeck_team *team, int number, const uint64_t *word, uint64_t old) {
  if (spin(word, old, TIME_BEFORE_WATCH)) return;
#if defined(__linux__)
  const pthread_t thread = team->workers[number - 1].thread;
  const int core = current_core();
  cpu_set_t all, own;
  if (core >= 0 && core < CPU_SETSIZE && !is_running(thread, word, old) &&
      pthread_getaffinity_np(thread, sizeof all, &all) == 0 && CPU_ISSET((size_t)core, &all)) {
    const patience none = {0, 0};
    CPU_ZERO(&own);
    CPU_SET((size_t)core, &own);
    move(thread, &own, &all);
    wait_for_change(team, word, old, none);
    /* Else it waits here for its turn, only to find then that it has to leave. */
    move_off(thread, current_core(), &all);
    return;
  }
#else
  (void)number;
#endif
  wait_for_change(team, word, old, IN_RUN);
}

void lowerdeck_team_barrier(lowerdeck_team *team) {
  if (team->threads == 1) return;
  const uint64_t generation = __atomic_load_n(&team->generation.value, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&team->arrived.value, 1, __ATOMIC_ACQ_REL) == (uint64_t)team->threads) {
    __atomic_store_n(&team->arrived.value, 0, __ATOMIC_RELAXED);
    change(team, &team->generation.value, generation + 1);
    return;
  }
  wait_for_change(team, &team->generation.value, generation, SHORT);
}

/*
 * Nobody waits for a worker but for one that has a part in hand, of a loop before: who has found no part
 * left sees all that were taken, and a worker that is late, because it has no core, finds none either.
 * For the first thread, which does more than its parts, all others wait.
 */
void lowerdeck_team_meet(lowerdeck_team *team, int64_t thread) {
  if (team->threads == 1) return;
  share *const own = &team->shares[thread];
  const uint64_t done = 2 * own->loops.value, mine = own->meets + 1;
  change(team, &own->meets, mine);
  for (uint64_t past; thread != 0 && (past = now_at(&team->shares[0].meets)) < mine;) {
    wait_for_change(team, &team->shares[0].meets, past, IN_RUN);
  }
  for (int k = 1; k < team->threads; k++) {
    const uint64_t *const hands = &team->shares[k].hands;
    for (uint64_t old; k != thread && (old = now_at(hands)) % 2 != 0 && old < done;) {
      if (thread == 0) wait_for_worker(team, k, hands, old);
      else wait_for_change(team, hands, old, IN_RUN);
    }
  }
}

int lowerdeck_team_agree(lowerdeck_team *team, int status) {
  if (team->threads == 1) return status;
  /* All are at the same barrier, and nobody gets past the next one before this has been read. */
  const uint64_t generation = __atomic_load_n(&team->generation.value, __ATOMIC_ACQUIRE);
  int *const agreed = &team->statuses[generation % 2];
  if (status != 0) __atomic_store_n(agreed, status, __ATOMIC_RELAXED);
  lowerdeck_team_barrier(team);
  return __atomic_load_n(agreed, __ATOMIC_RELAXED);
}

void *lowerdeck_team_share(lowerdeck_team *team, int64_t thread, void *pointer) {
  if (team->threads == 1) return pointer;
  if (thread == 0) team->shared = pointer;
  lowerdeck_team_barrier(team);
  void *const shared = team->shared;
  /* Nobody may store the next one before all have read this. */
  lowerdeck_team_barrier(team);
  return shared;
}

/*
 * The word of a thread holds a loop's number and how many parts of the thread's share of it are taken.
 * Whoever comes first to a loop, the owner or another thread, begins to count.
 */
static bool take_part_of(uint64_t *word, uint64_t loop, uint64_t parts, int64_t *part) {
  uint64_t old = now_at(word);
  for (;;) {
    /* The owner is further on only if nothing was left here. */
    if (old >> 32 > loop) return false;
    const uint64_t taken = old >> 32 == loop ? old & 0xffffffffu : 0;
    if (taken == parts) return false;
    const uint64_t new = loop << 32 | (taken + 1);
    if (__atomic_compare_exchange_n(word, &old, new, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      *part = (int64_t)taken;
      return true;
    }
  }
}

lowerdeck_parts lowerdeck_team_loop(lowerdeck_team *team, int64_t thread) {
  lowerdeck_parts parts = {team, thread, 0, 0, 0, 1};
  if (team->threads > 1) {
    share *const own = &team->shares[thread];
    parts.loop = ++own->loops.value;
    /* Whoever sees a part taken by this thread sees that it is in hand. */
    __atomic_store_n(&own->hands, 2 * parts.loop - 1, __ATOMIC_RELEASE);
    parts.count = (int64_t)team->threads * PARTS_OF_A_SHARE;
  }
  return parts;
}

bool lowerdeck_team_take(lowerdeck_parts *parts) {
  const int64_t threads = parts->team->threads;
  if (threads == 1) return parts->from++ == 0;
  for (; parts->from < threads; parts->from++) {
    const int64_t owner = (parts->thread + parts->from) % threads;
    int64_t part;
    if (take_part_of(&parts->team->shares[owner].taken, parts->loop, PARTS_OF_A_SHARE, &part)) {
      parts->number = owner * PARTS_OF_A_SHARE + part;
      return true;
    }
  }
  change(parts->team, &parts->team->shares[parts->thread].hands, 2 * parts->loop);
  return false;
}

/*
 * A run ends when its caller is through, and with it all parts and barriers. A worker that has not come
 * by then, because it has no core, is not waited for: it finds the gate closed.
 */
static void leave(lowerdeck_team *team, share *own) {
  change(team, &own->inside.value, own->inside.value + 1);
}

/* Either the worker sees that the gate is closed, or the first thread that the worker is inside. */
static bool enter(lowerdeck_pool *pool, share *own, uint64_t run) {
  __atomic_store_n(&own->inside.value, own->inside.value + 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->gate.value, __ATOMIC_SEQ_CST) == run) return true;
  leave(&pool->team, own);
  return false;
}

static void close_gate(lowerdeck_pool *pool) {
  lowerdeck_team *const team = &pool->team;
  __atomic_store_n(&pool->gate.value, 0, __ATOMIC_SEQ_CST);
  for (int k = 1; k < team->threads; k++) {
    const uint64_t *const inside = &team->shares[k].inside.value;
    const uint64_t old = __atomic_load_n(inside, __ATOMIC_SEQ_CST);
    if (old % 2) wait_for_worker(team, k, inside, old);
  }
}

static void *work(void *context) {
  worker *const self = (worker *)context;
  lowerdeck_pool *const pool = self->pool;
  share *const own = &pool->team.shares[self->number];
  for (uint64_t seen = 0;;) {
    wait_for_change(&pool->team, &pool->run.value, seen, BETWEEN_RUNS);
    /* In this order: who has seen the last change of the number sees that the pool ends. */
    seen = __atomic_load_n(&pool->run.value, __ATOMIC_ACQUIRE);
    if (__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE)) return NULL;
    leave_core_of_first(&pool->team);
    if (!enter(pool, own, seen)) continue;
    pool->job(pool->context, &pool->team, self->number);
    leave(&pool->team, own);
  }
}

static void end_workers(lowerdeck_pool *pool, int count) {
  __atomic_store_n(&pool->ends, true, __ATOMIC_RELEASE);
  change(&pool->team, &pool->run.value, pool->run.value + 1);
  for (int k = 0; k < count; k++) pthread_join(pool->team.workers[k].thread, NULL);
  pthread_cond_destroy(&pool->team.wake);
  pthread_mutex_destroy(&pool->team.mutex);
  pthread_mutex_destroy(&pool->turn);
  free(pool->team.shares);
  free(pool->team.workers);
  free(pool);
}

lowerdeck_pool *lowerdeck_pool_create(int threads) {
  if (threads < 1) return NULL;
  lowerdeck_pool *const pool = (lowerdeck_pool *)calloc(1, sizeof *pool);
  if (pool == NULL) return NULL;
  pool->team.threads = threads;
  pool->team.has_cores = has_cores(threads);
  pool->team.shares = (share *)calloc((size_t)threads, sizeof *pool->team.shares);
  pool->team.workers = (worker *)calloc((size_t)threads, sizeof *pool->team.workers);
  if (pool->team.workers == NULL || pool->team.shares == NULL) {
    free(pool->team.shares);
    free(pool->team.workers);
    free(pool);
    return NULL;
  }
  pthread_mutex_init(&pool->turn, NULL);
  pthread_mutex_init(&pool->team.mutex, NULL);
  pthread_cond_init(&pool->team.wake, NULL);
  for (int k = 0; k < threads - 1; k++) {
    worker *const next = &pool->team.workers[k];
    next->pool = pool;
    next->number = k + 1;
    if (pthread_create(&next->thread, NULL, work, next) != 0) {
      end_workers(pool, k);
      return NULL;
    }
  }
  return pool;
}

void lowerdeck_pool_destroy(lowerdeck_pool *pool) {
  if (pool != NULL) end_workers(pool, pool->team.threads - 1);
}

void lowerdeck_pool_run(lowerdeck_pool *pool, lowerdeck_job job, void *context) {
  if (pool == NULL) {
    lowerdeck_team alone = {.threads = 1};
    job(context, &alone, 0);
    return;
  }
  lowerdeck_team *const team = &pool->team;
  pthread_mutex_lock(&pool->turn);
  pool->job = job;
  pool->context = context;
  __atomic_store_n(&team->core, current_core(), __ATOMIC_RELAXED);
  team->statuses[0] = team->statuses[1] = 0;
  for (int k = 0; k < team->threads; k++) {
    share *const each = &team->shares[k];
    each->taken = each->hands = each->meets = each->loops.value = 0;
  }
  const uint64_t run = pool->run.value + 1;
  __atomic_store_n(&pool->gate.value, run, __ATOMIC_RELEASE);
  change(team, &pool->run.value, run);
  job(context, team, 0);
  close_gate(pool);
  pthread_mutex_unlock(&pool->turn);
}
