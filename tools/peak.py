"""How many floating-point operations this machine makes in registers: what shares are shares of."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from lowerdeck.build import BuildError, require_compiler

CHAINS = 12
"""Sums that do not wait for each other: more than units times latency, fewer than registers."""

_SECONDS = 0.001
"""
Of one measurement. Where other programs run, too, the system takes a processor away for some
milliseconds at a time: among many short measurements some are whole, as are the best of kernels.
"""

_STARTING = 10
"""How many times longer several threads are measured, of which the last is awake late."""


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


class MultiplyAdds:
    """Runs multiply-adds on several threads. BuildError if there is no C compiler."""

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
        self._lanes: int = library.fma_lanes()

    def peak_flops(self, threads: int, seconds: float = 0.5) -> float:
        """
        Floating-point operations a second on this many threads: the best of what is measured in
        about so many seconds.
        """
        least = _SECONDS * (_STARTING if threads > 1 else 1)
        count = 1 << 12
        while self._seconds(count, 1) < least:
            count *= 2
        best = self._seconds(count, threads)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            best = min(best, self._seconds(count, threads))
        return 2 * CHAINS * self._lanes * count * threads / best

    def _seconds(self, count: int, threads: int) -> float:
        if threads == 1:
            start = time.perf_counter()
            self._run(count, 0.5)
            return time.perf_counter() - start
        barrier = threading.Barrier(threads + 1)

        def work() -> None:
            barrier.wait()
            self._run(count, 0.5)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        # Before they begin, lest they seem faster than they are.
        start = time.perf_counter()
        barrier.wait()
        for worker in workers:
            worker.join()
        return time.perf_counter() - start
