/* Worker threads for compiled models. One pool may serve several models; runs on it take turns. */
#ifndef LOWERDECK_POOL_H
#define LOWERDECK_POOL_H

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

/* What every thread of a run calls: its team, its number from 0, and how many there are. */
typedef void (*lowerdeck_job)(void *context, lowerdeck_team *team, int64_t thread, int64_t threads);

/* Call `job` in every thread of the pool (in the caller alone if it is NULL) and wait for all. */
void lowerdeck_pool_run(lowerdeck_pool *pool, lowerdeck_job job, void *context);

/* Wait for all threads of the team; what they wrote before is visible after. */
void lowerdeck_team_barrier(lowerdeck_team *team);

/* A barrier that gives every thread a status other than 0 if one of them came with one. */
int lowerdeck_team_agree(lowerdeck_team *team, int status);

/* A barrier that gives every thread the pointer that thread 0 came with. */
void *lowerdeck_team_share(lowerdeck_team *team, int64_t thread, void *pointer);

#ifdef __cplusplus
}
#endif

#endif
