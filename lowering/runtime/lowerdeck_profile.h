/* Times of the calls of a run, for models that were compiled to take them. */
#ifndef LOWERDECK_PROFILE_H
#define LOWERDECK_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A clock, and room for what a run adds to: for each slot nanoseconds and how often they were
   taken. */
typedef struct lowerdeck_profile {
  int64_t (*clock)(void); /* nanoseconds since any point in time */
  int64_t (*slots)[2];
} lowerdeck_profile;

/* Take the time; what has passed since `last` belongs to `slot` if that is not negative. */
static inline void lowerdeck_mark(const lowerdeck_profile *profile, int64_t *last, int64_t slot) {
  if (profile == NULL) return;
  const int64_t now = profile->clock();
  if (slot >= 0) {
    profile->slots[slot][0] += now - *last;
    profile->slots[slot][1] += 1;
  }
  *last = now;
}

#ifdef __cplusplus
}
#endif

#endif
