"""A model that remembers, in C: instances side by side and in threads of their own, sanitized."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lowerdeck.compiler import CompileOptions, generate

COUNTER = Path(__file__).parents[1] / "frontends" / "tflite_models" / "counter.tflite"

PROGRAM = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "counter.h"

/* Each call adds 5 to the first element, which begins as 1. */
static int wrong(counter_state *state, int calls) {
  static const float x[4] = {1, 0, 0, 1};
  float sum[2];
  void *const workspace = malloc(COUNTER_WORKSPACE_SIZE);
  counter_args args = {.x = {x, {1, 4}}, .sum = {.data = sum, .capacity = 2}, .state = state};
  args.workspace = workspace;
  args.workspace_size = COUNTER_WORKSPACE_SIZE;
  const int status = counter_run(&args);
  free(workspace);
  return status != LOWERDECK_OK || sum[0] != 1 + 5 * (float)calls;
}

static void *own(void *result) {
  counter_state *const state = malloc(sizeof *state);
  counter_reset(state);
  for (int k = 1; k <= 1000; k++) *(int *)result += wrong(state, k);
  free(state);
  return NULL;
}

int main(void) {
  int found[4] = {0, 0, 0, 0};
  pthread_t threads[3];
  for (int k = 0; k < 3; k++) pthread_create(&threads[k], NULL, own, &found[k]);
  counter_state one, other;
  counter_reset(&one);
  counter_reset(&other);
  for (int k = 1; k <= 1000; k++) {
    found[3] += wrong(&one, k);
    if (k % 3 == 0) found[3] += wrong(&other, k / 3);
    if (k == 500) {
      /* What is begun again does not change the other one. */
      const counter_state kept = one;
      counter_reset(&one);
      found[3] += wrong(&one, 1);
      one = kept;
    }
  }
  for (int k = 0; k < 3; k++) pthread_join(threads[k], NULL);
  printf("%d %d %d %d\\n", found[0], found[1], found[2], found[3]);
  return 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_instances_do_not_meet(sanitizer: str, tmp_path: Path) -> None:
    options = CompileOptions(target="c99", embed_weights=True)
    generate(str(COUNTER), str(tmp_path), options)
    (tmp_path / "main.c").write_text(PROGRAM)
    command = ["gcc", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-g1"]
    command += ["-O0", f"-fsanitize={sanitizer}", "-fno-sanitize-recover", "-pthread", "-o", "main"]
    command += ["main.c", "counter.c", "counter_weights.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0 0 0 0\n"), done.stderr
