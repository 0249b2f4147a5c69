/* Worker threads for compiled models. One pool may serve several models; runs on it take turns. */
#ifndef LOWERDECK_POOL_H
#define LOWERDECK_POOL_H

#include <stdbool.h>

#include "lowerdeck.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pool of `threads` threads, the caller of a run being one of them; NULL if they cannot be had. */
lowerdeck_pool *lowerdeck_pool_create(int threads);

/* End the threads. No run may be under way. NULL is allowed. */
void lowerdeck_pool_destroy(lowerdeck_pool *pool);

/* The rest is for generated code. */

typedef struct lowerdeck_team lowerdeck_team;

/* What the threads of a run call: with their team and their number from 0, which is the caller's. */
typedef void (*lowerdeck_job)(void *context, lowerdeck_team *team, int64_t thread);

/*
 * Call `job` in the threads of the pool (in the caller alone if it is NULL), and wait until none is in
 * it any more. A thread that has not come before the caller is through is left out: all loops are done.
 */
void lowerdeck_pool_run(lowerdeck_pool *pool, lowerdeck_job job, void *context);

/* The parts of a loop that a thread takes: its own, then what others have left. */
typedef struct lowerdeck_parts {
  lowerdeck_team *team;
  int64_t thread;
  uint64_t loop;
  int64_t from;
  int64_t number, count; /* the part that was taken, and how many there are */
} lowerdeck_parts;

/* Come to the next loop that threads share; all of them come to the same ones in the same order. */
lowerdeck_parts lowerdeck_team_loop(lowerdeck_team *team, int64_t thread);

/* Take a part of the loop; false if none is left. */
bool lowerdeck_team_take(lowerdeck_parts *parts);

/* Wait for all threads of the team; what they wrote before is visible after. */
void lowerdeck_team_barrier(lowerdeck_team *team);

/*
 * Wait until all parts of the loops before are finished, and all that thread 0 did before; what was
 * written before is visible after. Nobody waits for a thread that is late and has no part in hand, so
 * such a thread may be behind, and must not read memory but in parts that it takes.
 */
void lowerdeck_team_meet(lowerdeck_team *team, int64_t thread);

/* A barrier that gives every thread a status other than 0 if one of them came with one. */
int lowerdeck_team_agree(lowerdeck_team *team, int status);

/* A barrier that gives every thread the pointer that thread 0 came with. */
void *lowerdeck_team_share(lowerdeck_team *team, int64_t thread, void *pointer);

#ifdef __cplusplus
}
#endif

#endif
