"""The machine: what it is, and small C programs for measurements."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lowerdeck.build import compiler_version, require_compiler

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


class Native:
    """The C helpers, compiled into a folder."""

    def __init__(self, folder: str) -> None:
        Path(folder, "runner.c").write_text(_RUNNER)
        path = os.path.join(folder, "libhelpers.so")
        _compile(["-O2", "-fPIC", "-shared", "runner.c", "-o", path], folder)
        library = ctypes.CDLL(path)
        self._timed_run = library.timed_run
        self._timed_run.restype = ctypes.c_double

    def runner(self, run: Any, arguments: Any) -> Callable[[], float]:
        """A contender whose time is taken in C, around the call of `run` alone."""
        pointer = ctypes.cast(run, ctypes.c_void_p)

        def call() -> float:
            seconds: float = self._timed_run(pointer, arguments)
            if seconds < 0:
                raise RuntimeError("the run failed")
            return seconds

        return call


@contextmanager
def busy_core() -> Generator[int]:
    """Another process uses as much as it gets of one core, whose number this yields."""
    core = max(os.sched_getaffinity(0))
    text = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", text]) as process:
        try:
            yield core
        finally:
            process.kill()


def _compile(arguments: Sequence[str], folder: str) -> None:
    command = [*require_compiler(), *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")


class ProgramError(Exception):
    """A compiled program failed."""


def resident_of_example(folder: str, metadata: dict[str, Any], sizes: Sequence[int]) -> int:
    """
    The bytes that the example program of a compiled model occupies at most, less those of a
    program that does nothing; with sizes for the dimensions of inputs that are not known.
    ProgramError if it fails.
    """
    Path(folder, "peak_memory.c").write_text(_PEAK_MEMORY)
    Path(folder, "nothing.c").write_text("int main(void) { return 0; }\n")
    libraries = [f"-l{library}" for library in metadata["libraries"]]
    flags = [*metadata["cflags"], "-std=gnu99"]
    sources = ["example.c", "peak_memory.c", *metadata["sources"]]
    _compile([*flags, *sources, "-o", "example", *libraries], folder)
    _compile([*flags, "nothing.c", "peak_memory.c", "-o", "nothing", *libraries], folder)
    arguments = [f"{metadata['name']}.weights"] if _loads_weights(metadata) else []
    used = _peak_of(["./example", *arguments, *map(str, sizes)], folder)
    return used - _peak_of(["./nothing"], folder)


def _loads_weights(metadata: dict[str, Any]) -> bool:
    return bool(metadata["weights_size"]) and not metadata["embeds_weights"]


def _peak_of(command: Sequence[str], folder: str) -> int:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    match = re.search(r"VmHWM:\s+(\d+) kB", done.stderr)
    if done.returncode or match is None:
        raise ProgramError(f"{folder}: {' '.join(command)} failed:\n{done.stderr}")
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
