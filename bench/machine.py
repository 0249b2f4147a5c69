"""The machine: its peak of multiply-adds, what it is, and small C programs for measurements."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lowerdeck.build import compiler_version, require_compiler

CHAINS = 12
"""Sums that do not wait for each other: more than units times latency, fewer than registers."""

_SECONDS = 0.02

_RUNNER = """\
#define _POSIX_C_SOURCE 200809L
#include <time.h>

/* The seconds of one run, or -1 if it fails. */
double timed_run(int (*run)(void *), void *arguments) {
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  const int status = run(arguments);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (status != 0) return -1;
  return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}
"""

_PEAK_MEMORY = """\
#include <stdio.h>
#include <string.h>

/* The kernel's own account: what a parent is told includes the parent's memory before exec. */
__attribute__((destructor)) static void print_peak(void) {
  char line[256];
  FILE *const file = fopen("/proc/self/status", "r");
  if (file == NULL) return;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, "VmHWM:", 6) == 0) fputs(line, stderr);
  }
  fclose(file);
}
"""


def fma_source(chains: int = CHAINS) -> str:
    """C of `fma_lanes()` and of `fma_run(count)`: multiply-adds on full vectors in registers."""
    names = [f"a{k}" for k in range(chains)]
    return "\n".join(
        [
            "#include <stdint.h>",
            "#if defined(__AVX512F__)",
            "#define BYTES 64",
            "#elif defined(__AVX__)",
            "#define BYTES 32",
            "#else",
            "#define BYTES 16",
            "#endif",
            "typedef float vector __attribute__((vector_size(BYTES)));",
            "int fma_lanes(void) { return BYTES / 4; }",
            "float fma_run(int64_t count, float half) {",
            "  const vector zero = {0}, h = zero + half;",
            # All of them go to one, so that nothing ever is denormal or infinite.
            f"  vector {', '.join(f'{name} = zero + {k}' for k, name in enumerate(names))};",
            "  for (int64_t i = 0; i < count; i++) {",
            *[f"    {name} = {name} * h + h;" for name in names],
            "  }",
            f"  const vector sum = {' + '.join(names)};",
            "  return sum[0];",
            "}",
            "",
        ]
    )


class Native:
    """The C helpers, compiled into a folder."""

    def __init__(self, folder: str) -> None:
        sources = {"runner.c": _RUNNER, "fma.c": fma_source()}
        for name, text in sources.items():
            Path(folder, name).write_text(text)
        path = os.path.join(folder, "libhelpers.so")
        flags = ["-O2", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared"]
        _compile([*flags, *sources, "-o", path], folder)
        library = ctypes.CDLL(path)
        self._timed_run = library.timed_run
        self._timed_run.restype = ctypes.c_double
        self._fma_run = library.fma_run
        self._fma_run.argtypes = [ctypes.c_int64, ctypes.c_float]
        self._fma_run.restype = ctypes.c_float
        self._lanes: int = library.fma_lanes()

    def runner(self, run: Any, arguments: Any) -> Callable[[], float]:
        """A contender whose time is taken in C, around the call of `run` alone."""
        pointer = ctypes.cast(run, ctypes.c_void_p)

        def call() -> float:
            seconds: float = self._timed_run(pointer, arguments)
            if seconds < 0:
                raise RuntimeError("the run failed")
            return seconds

        return call

    def peak_flops(self, threads: int, repeats: int = 40) -> float:
        """Floating-point operations a second on this many threads: the best of several runs."""
        count = 1 << 16
        while self._fma_seconds(count, 1) < _SECONDS:
            count *= 2
        best = min(self._fma_seconds(count, threads) for _ in range(repeats))
        return 2 * CHAINS * self._lanes * count * threads / best

    def _fma_seconds(self, count: int, threads: int) -> float:
        barrier = threading.Barrier(threads + 1)

        def work() -> None:
            barrier.wait()
            self._fma_run(count, 0.5)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        # Before they begin, lest they seem faster than they are.
        start = time.perf_counter()
        barrier.wait()
        for worker in workers:
            worker.join()
        return time.perf_counter() - start


def _compile(arguments: Sequence[str], folder: str) -> None:
    command = [*require_compiler(), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")


def resident_of_example(folder: str, metadata: dict[str, Any]) -> int:
    """
    The bytes that the example program of a compiled model occupies at most, less those of a
    program that does nothing.
    """
    Path(folder, "peak_memory.c").write_text(_PEAK_MEMORY)
    Path(folder, "nothing.c").write_text("int main(void) { return 0; }\n")
    libraries = [f"-l{library}" for library in metadata["libraries"]]
    flags = [*metadata["cflags"], "-std=gnu99"]
    sources = ["example.c", "peak_memory.c", *metadata["sources"]]
    _compile([*flags, *sources, "-o", "example", *libraries], folder)
    _compile([*flags, "nothing.c", "peak_memory.c", "-o", "nothing", *libraries], folder)
    return _peak_of("./example", folder) - _peak_of("./nothing", folder)


def _peak_of(program: str, folder: str) -> int:
    done = subprocess.run([program], cwd=folder, capture_output=True, text=True, check=False)
    match = re.search(r"VmHWM:\s+(\d+) kB", done.stderr)
    if done.returncode or match is None:
        raise SystemExit(f"{folder}/{program} failed:\n{done.stderr}")
    return int(match[1]) * 1024


def description() -> dict[str, Any]:
    """What a table of measurements has to say about where it was made."""
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return {
        "cpu": cpu[1] if cpu is not None else platform.processor(),
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "compiler": compiler_version(tuple(require_compiler())).splitlines()[0],
        "load": os.getloadavg(),
    }
