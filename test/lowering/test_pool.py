"""The pool of threads: every part of a loop is taken once, and who has nothing to do sleeps."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lowerdeck.lowering.emit_c.interface import RUNTIME

from .forms import EVERY_FORM  # noqa: TID251  (these are tests, not the folder of sources)

PROGRAM = r"""
#define _GNU_SOURCE
#include "lowerdeck_pool.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* TIMES is 1, or 4 for as many runs as find what is rare. */
enum { LOOPS = 75 * TIMES, MOST_PARTS = 64 };

static int taken[LOOPS][MOST_PARTS], wrong;

static double seconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void rest(double time) {
  const struct timespec pause = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};
  nanosleep(&pause, NULL);
}

/* Threads that come late leave their parts to the others. */
static void job(void *context, lowerdeck_team *team, int64_t thread) {
  const int late = *(const int *)context;
  for (int k = 0; k < LOOPS; k++) {
    if (k % 64 == 5 && thread == late) rest(0.002);
    lowerdeck_parts parts = lowerdeck_team_loop(team, thread);
    while (lowerdeck_team_take(&parts)) {
      if (parts.number < 0 || parts.number >= parts.count || parts.count > MOST_PARTS) wrong = 1;
      taken[k][parts.number]++;
    }
    if (k % 3 == 0) continue; /* not everybody has to meet between two loops */
    lowerdeck_team_barrier(team);
    const int status = lowerdeck_team_agree(team, 0);
    if (status != 0) wrong = 1;
    for (int n = 0; thread == 0 && n < parts.count; n++) {
      if (taken[k][n] != 1) wrong = 1;
    }
  }
}

static void run(lowerdeck_pool *pool, int late) {
  memset(taken, 0, sizeof taken);
  lowerdeck_pool_run(pool, job, &late);
  for (int k = 0; k < LOOPS; k++) {
    int sum = 0;
    for (int n = 0; n < MOST_PARTS; n++) sum += taken[k][n];
    if (sum == 0 || (sum > 1 && sum % 2 != 0)) wrong = 1;
  }
}

/* A run of nothing ends whether or not others come to it, and they find the next one. */
static void run_nothing(void *context, lowerdeck_team *team, int64_t thread) {
  (void)team;
  if (thread == 0) ++*(int *)context;
}

static void hold(void *context, lowerdeck_team *team, int64_t thread) {
  (void)team;
  int *const inside = (int *)context;
  __atomic_add_fetch(inside, 1, __ATOMIC_SEQ_CST);
  if (thread != 0) rest(0.001);
  if (thread == 0) rest(0.0005); /* so that others come */
  __atomic_sub_fetch(inside, 1, __ATOMIC_SEQ_CST);
}

enum { WIDTH = 64, STEPS = 500 * TIMES };

static int64_t rows[STEPS + 1][WIDTH], bonus[STEPS + 1];
static int done;

/* Each row is made of the one before, and of what the first thread does in between. */
static void chain(void *context, lowerdeck_team *team, int64_t thread) {
  const int late = *(const int *)context;
  if (late != 0 && thread == late) {
    /* Nobody waits for a thread that has nothing in hand. */
    for (int k = 0; k < 10000 && !__atomic_load_n(&done, __ATOMIC_ACQUIRE); k++) rest(0.001);
    if (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) wrong = 2;
  }
  for (int k = 0; k < STEPS; k++) {
    if (thread == 0) bonus[k] = k == 0 ? 1 : bonus[k - 1] + rows[k][WIDTH - 1] % 3;
    lowerdeck_team_meet(team, thread);
    lowerdeck_parts parts = lowerdeck_team_loop(team, thread);
    while (lowerdeck_team_take(&parts)) {
      /* The first thread waits for who is slow with a part. */
      if (late == 0 && k % 256 == 7 && thread != 0) rest(0.002);
      const int64_t begin = WIDTH * parts.number / parts.count;
      const int64_t end = WIDTH * (parts.number + 1) / parts.count;
      for (int64_t n = begin; n < end; n++) {
        rows[k + 1][n] = (rows[k][(n + 17) % WIDTH] * 5 + bonus[k] + n) % 1009;
      }
    }
    lowerdeck_team_meet(team, thread);
  }
  if (thread == 0) __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}

static int64_t run_chain(lowerdeck_pool *pool, int late) {
  memset(&rows[1], 0, sizeof rows - sizeof rows[0]);
  done = 0;
  lowerdeck_pool_run(pool, chain, &late);
  int64_t sum = 0;
  for (int n = 0; n < WIDTH; n++) sum = sum * 31 % 1000003 + rows[STEPS][n];
  return sum;
}

/* A thread that looks at what was agreed does not see what another one brings to the next time. */
static void decide(void *context, lowerdeck_team *team, int64_t thread) {
  (void)context;
  if (lowerdeck_team_agree(team, 0) != 0) __atomic_store_n(&wrong, 4, __ATOMIC_RELAXED);
  lowerdeck_team_barrier(team);
  if (lowerdeck_team_agree(team, 0) != 0) __atomic_store_n(&wrong, 4, __ATOMIC_RELAXED);
  if (lowerdeck_team_agree(team, thread == 0 ? 5 : 0) != 5) {
    __atomic_store_n(&wrong, 4, __ATOMIC_RELAXED);
  }
}

/* Threads that were moved to another core may run where they might before. */
static void look_where(void *context, lowerdeck_team *team, int64_t thread) {
  (void)team;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  if (!CPU_EQUAL(&cores, (const cpu_set_t *)context)) __atomic_store_n(&wrong, 6, __ATOMIC_RELAXED);
  if (thread == 0) rest(0.0005); /* so that others come */
}

int main(void) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 2;
  run(NULL, -1);
  const int64_t expected = run_chain(NULL, -1);
  for (int threads = 1; threads <= 4; threads++) {
    lowerdeck_pool *const pool = lowerdeck_pool_create(threads);
    if (pool == NULL) return 2;
    for (int late = -1; late < threads; late++) run(pool, late);
    for (int late = -1; late < (threads > 1 ? 2 : 0); late++) {
      if (threads > 2 && late == 1) continue; /* others may have a part and no core */
      if (run_chain(pool, late) != expected) wrong = 3;
    }
    for (int k = 0; k < 750 * TIMES && threads > 1; k++) lowerdeck_pool_run(pool, decide, NULL);
    int runs = 0, inside = 0;
    for (int k = 0; k < 5000 * TIMES; k++) lowerdeck_pool_run(pool, run_nothing, &runs);
    if (runs != 5000 * TIMES) wrong = 5;
    for (int k = 0; k < 12 * TIMES; k++) {
      lowerdeck_pool_run(pool, hold, &inside);
      if (inside != 0) wrong = 5;
      lowerdeck_pool_run(pool, look_where, &cores);
    }
    double used = 1;
    /* To fall asleep takes some time on a core, which others may have. */
    for (int turn = 0; turn < 30 && used > 0.01; turn++) {
      rest(0.02);
      const double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
      rest(0.1);
      used = (seconds(CLOCK_PROCESS_CPUTIME_ID) - start) / 0.1;
    }
    if (used > 0.01) fprintf(stderr, "an idle pool of %d uses %g of a core\n", threads, used);
    if (used > 0.01) return 3;
    run(pool, 0); /* and to wake up */
    lowerdeck_pool_destroy(pool);
  }
  for (int k = 0; k < 750 * TIMES; k++) {
    /* Workers that come to no run end, too. */
    int runs = 0;
    lowerdeck_pool *const pool = lowerdeck_pool_create(3);
    if (pool == NULL) return 2;
    lowerdeck_pool_run(pool, run_nothing, &runs);
    lowerdeck_pool_destroy(pool);
    if (runs != 1) wrong = 5;
  }
  lowerdeck_pool_destroy(NULL);
  if (wrong == 1) fprintf(stderr, "a part was taken twice or not at all\n");
  if (wrong == 2) fprintf(stderr, "a thread waits for one that has nothing to do\n");
  if (wrong == 3) fprintf(stderr, "a part was read before it was finished\n");
  if (wrong == 4) fprintf(stderr, "threads do not agree\n");
  if (wrong == 6) fprintf(stderr, "a thread may no longer run where it might\n");
  if (wrong == 5) fprintf(stderr, "a run ends before all have left it, or is not made\n");
  return wrong;
}
"""


@pytest.mark.parametrize(
    ("sanitizer", "one_core"),
    [(None, False), (None, True), ("thread", False), ("address,undefined", False)],
)
def test_pool(tmp_path: Path, sanitizer: str | None, one_core: bool) -> None:
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = ["-std=c99", "-O2", "-g", "-Wall", "-Wextra", "-Werror", f"-I{RUNTIME}"]
    flags.append(f"-DTIMES={4 if EVERY_FORM else 1}")
    flags += [f"-fsanitize={sanitizer}"] if sanitizer else []
    sources = ["main.c", str(RUNTIME / "lowerdeck_pool.c")]
    command = ["gcc", *flags, *sources, "-o", "pool", "-lpthread"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cores = sorted(os.sched_getaffinity(0))
    done = subprocess.run(
        ["./pool"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
        preexec_fn=(lambda: os.sched_setaffinity(0, cores[:1])) if one_core else None,
    )
    assert done.returncode == 0, done.stderr
