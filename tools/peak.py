"""
How many floating-point operations this machine makes in registers, and what it reads from memory:
what shares are shares of.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from mmap import mmap
from pathlib import Path

from lowerdeck.build import BuildError, require_compiler
from lowerdeck.lowering.targets import target_named

CHAINS = 12
"""Sums that do not wait for each other: more than units times latency, fewer than registers."""

_SECONDS = 0.001
"""
Of one measurement. Where other programs run, too, the system takes a processor away for some
milliseconds at a time: among many short measurements some are whole, as are the best of kernels.
"""

READ_BYTES = 1 << 28
"""More than caches hold."""

_PAGES = 1 << 16
"""Bytes of some pages."""

LASTING = 0.5
"""Seconds for all measurements of one figure."""

_STARTING = 10
"""How many times longer several threads are measured, of which the last is awake late."""


_READING = (
    "float read_run(const float *data, int64_t count) {",
    "  vector a = {0}, b = a, c = a, d = a;",
    "  const vector *const from = (const vector *)data;",
    "  for (int64_t i = 0; i + 4 <= count * 4 / BYTES; i += 4) {",
    "    a += from[i];",
    "    b += from[i + 1];",
    "    c += from[i + 2];",
    "    d += from[i + 3];",
    "  }",
    "  return (a + b + c + d)[0];",
    "}",
)
"""Sums up floats; the address is a multiple of the size of a vector."""


def fma_source(chains: int = CHAINS) -> str:
    """
    C of `fma_lanes()`, of `fma_run(count)`, which makes multiply-adds on full vectors in registers,
    and of `read_run(data, count)`, which reads floats.
    """
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
            *_READING,
            "",
        ]
    )


class MultiplyAdds:
    """
    Runs multiply-adds, and reads memory, on several threads. BuildError if there is no C compiler.
    """

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
            source, path = Path(folder, "fma.c"), Path(folder, "libfma.so")
            source.write_text(fma_source())
            flags = ["-O2", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared"]
            command = [*require_compiler(), *flags, str(source), "-o", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(f"{' '.join(command)} failed:\n{done.stderr}")
            library = ctypes.CDLL(str(path))
        self._run = library.fma_run
        self._run.argtypes = [ctypes.c_int64, ctypes.c_float]
        self._run.restype = ctypes.c_float
        self._read = library.read_run
        self._read.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self._read.restype = ctypes.c_float
        self._lanes: int = library.fma_lanes()

    def peak_flops(self, threads: int, seconds: float | None = None) -> float:
        """
        Floating-point operations a second on this many threads: the best of what is measured in
        about so many seconds, `LASTING` if none are given.
        """
        least = _SECONDS * (_STARTING if threads > 1 else 1)
        count = 1 << 12
        while self._seconds_of(count, 1) < least:
            count *= 2
        best = self._seconds_of(count, threads)
        end = time.perf_counter() + (LASTING if seconds is None else seconds)
        while time.perf_counter() < end:
            best = min(best, self._seconds_of(count, threads))
        return 2 * CHAINS * self._lanes * count * threads / best

    def cycles_per_second(self) -> float:
        """Of a core, from the multiply-adds that it makes in registers."""
        native = target_named("native")
        per_cycle = 2 * native.lanes * native.machine.multiply_adds_per_cycle
        return self.peak_flops(1) / per_cycle

    def bandwidth(self, threads: int, seconds: float | None = None) -> float:
        """
        Bytes a second that this many threads read from memory, each its own part: the best of what
        is measured in about so many seconds, `LASTING` if none are given.
        """
        count = READ_BYTES // threads // _PAGES * _PAGES
        with mmap(-1, count * threads) as memory:
            # Pages that nothing has written to are all one page of zeros.
            for _ in range(count * threads // _PAGES):
                memory.write(bytes(_PAGES))
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))

            def read(thread: int) -> None:
                self._read(address + thread * count, count // 4)

            best = _seconds(read, threads)
            end = time.perf_counter() + (LASTING if seconds is None else seconds)
            while time.perf_counter() < end:
                best = min(best, _seconds(read, threads))
        return count * threads / best

    def _seconds_of(self, count: int, threads: int) -> float:
        return _seconds(lambda thread: self._run(count, 0.5), threads)


def _seconds(work: Callable[[int], None], threads: int) -> float:
    """What it takes until each of the threads, which are told their number, is done."""
    if threads == 1:
        start = time.perf_counter()
        work(0)
        return time.perf_counter() - start
    barrier = threading.Barrier(threads + 1)

    def one(number: int) -> None:
        barrier.wait()
        work(number)

    workers = [threading.Thread(target=one, args=(k,)) for k in range(threads)]
    for worker in workers:
        worker.start()
    # Before they begin, lest they seem faster than they are.
    start = time.perf_counter()
    barrier.wait()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start
