/* A static pool: workers spin for a short while after a run, then yield, then sleep. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif

#include "lowerdeck_pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SPINS = 4000, YIELDS = 200, CACHE_LINE = 64 };

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/* The counter and the generation are on lines of their own: waiting threads read only the latter. */
struct lowerdeck_team {
  int threads;
  char padding0[CACHE_LINE - sizeof(int)];
  int arrived;
  char padding1[CACHE_LINE - sizeof(int)];
  unsigned generation;
  char padding2[CACHE_LINE - sizeof(unsigned)];
  int status;
  void *shared;
};

typedef struct worker {
  struct lowerdeck_pool *pool;
  pthread_t thread;
  int number;
} worker;

struct lowerdeck_pool {
  lowerdeck_team team;
  pthread_mutex_t turn; /* held during a run */
  pthread_mutex_t mutex; /* guards the sleep of workers */
  pthread_cond_t wake;
  unsigned run; /* number of the current run */
  bool ends;
  lowerdeck_job job;
  void *context;
  worker *workers;
};

static void initialize_team(lowerdeck_team *team, int threads) {
  team->threads = threads;
  team->arrived = 0;
  team->generation = 0;
  team->status = 0;
  team->shared = NULL;
}

void lowerdeck_team_barrier(lowerdeck_team *team) {
  if (team->threads == 1) return;
  const unsigned generation = __atomic_load_n(&team->generation, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&team->arrived, 1, __ATOMIC_ACQ_REL) == team->threads) {
    __atomic_store_n(&team->arrived, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&team->generation, generation + 1, __ATOMIC_RELEASE);
    return;
  }
  for (int spins = 0; __atomic_load_n(&team->generation, __ATOMIC_ACQUIRE) == generation; spins++) {
    if (spins < SPINS) {
      pause_briefly();
    } else {
      sched_yield();
    }
  }
}

int lowerdeck_team_agree(lowerdeck_team *team, int status) {
  if (team->threads == 1) return status;
  if (status != 0) __atomic_store_n(&team->status, status, __ATOMIC_RELAXED);
  lowerdeck_team_barrier(team);
  return __atomic_load_n(&team->status, __ATOMIC_RELAXED);
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

/* Wait for a run after `seen`; false if the pool ends. */
static bool wait_for_run(lowerdeck_pool *pool, unsigned seen) {
  for (int spins = 0; spins < SPINS + YIELDS; spins++) {
    if (__atomic_load_n(&pool->run, __ATOMIC_ACQUIRE) != seen) {
      return !__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE);
    }
    if (spins < SPINS) {
      pause_briefly();
    } else {
      sched_yield();
    }
  }
  pthread_mutex_lock(&pool->mutex);
  while (__atomic_load_n(&pool->run, __ATOMIC_ACQUIRE) == seen) {
    pthread_cond_wait(&pool->wake, &pool->mutex);
  }
  pthread_mutex_unlock(&pool->mutex);
  return !__atomic_load_n(&pool->ends, __ATOMIC_ACQUIRE);
}

static void *work(void *context) {
  worker *const self = (worker *)context;
  lowerdeck_pool *const pool = self->pool;
  unsigned seen = 0;
  while (wait_for_run(pool, seen)) {
    seen = __atomic_load_n(&pool->run, __ATOMIC_ACQUIRE);
    pool->job(pool->context, &pool->team, self->number, pool->team.threads);
    lowerdeck_team_barrier(&pool->team);
  }
  return NULL;
}

static void start_run(lowerdeck_pool *pool) {
  pthread_mutex_lock(&pool->mutex);
  __atomic_add_fetch(&pool->run, 1, __ATOMIC_RELEASE);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->mutex);
}

static void end_workers(lowerdeck_pool *pool, int count) {
  __atomic_store_n(&pool->ends, true, __ATOMIC_RELEASE);
  start_run(pool);
  for (int k = 0; k < count; k++) pthread_join(pool->workers[k].thread, NULL);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->mutex);
  pthread_mutex_destroy(&pool->turn);
  free(pool->workers);
  free(pool);
}

lowerdeck_pool *lowerdeck_pool_create(int threads) {
  if (threads < 1) return NULL;
  lowerdeck_pool *const pool = (lowerdeck_pool *)calloc(1, sizeof *pool);
  if (pool == NULL) return NULL;
  pool->workers = (worker *)calloc((size_t)threads, sizeof *pool->workers);
  if (pool->workers == NULL) {
    free(pool);
    return NULL;
  }
  initialize_team(&pool->team, threads);
  pthread_mutex_init(&pool->turn, NULL);
  pthread_mutex_init(&pool->mutex, NULL);
  pthread_cond_init(&pool->wake, NULL);
  for (int k = 0; k < threads - 1; k++) {
    worker *const next = &pool->workers[k];
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
    lowerdeck_team alone;
    initialize_team(&alone, 1);
    job(context, &alone, 0, 1);
    return;
  }
  pthread_mutex_lock(&pool->turn);
  pool->job = job;
  pool->context = context;
  pool->team.status = 0;
  start_run(pool);
  job(context, &pool->team, 0, pool->team.threads);
  lowerdeck_team_barrier(&pool->team);
  pthread_mutex_unlock(&pool->turn);
}
