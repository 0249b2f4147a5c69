"""
The numbers of this machine, measured by small loops in C (`calibrate.c`).

Each loop is bound by one thing. The clock is a chain of additions, one a cycle, which is timed in
turns with each loop: what is measured is cycles, whatever frequency the processor runs at. Of many
short runs the fastest counts, for other programs only ever slow one down; the spread of a number is
how much longer the fastest run of most of the rounds takes. A number that spreads too far is not
kept: that of the shipped file is.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from statistics import median

from lowerdeck.build import BuildError, require_compiler
from lowerdeck.lowering.targets import compiler_flags, processor_name, target_named
from lowerdeck.lowering.targets.machine import Machine

ROUNDS = 7
"""Of which each gives a number; the least is the result."""

SECONDS = 0.25
"""Of the runs of one loop in one round."""

WIDEST = 0.3
"""The spread above which a number is not kept."""

_SHORTEST = 2e-4
"""Seconds of one run: much longer than it takes to read the clock."""

_ADDS, _SUMS, _MEETINGS = 16, 10, 4096
"""Additions, multiply-adds and meetings of threads of one iteration in `calibrate.c`."""

_KINDS = (
    *("add_chain", "multiply_add_chain", "multiply_adds", "divisions", "loops", "loads"),
    *("near_loads", "stores", "copies", "updates", "pages", "runs"),
    *("far_lines", "meetings"),
)

_FEW_PAGES = 512
"""Of which a TLB has all, and which are more than the streams that a prefetcher knows."""

_FAR_BYTES = 1 << 29
"""More than one core finds in its caches."""


@dataclass(frozen=True)
class Measured:
    """A number, and by how much most rounds are above it, as a share."""

    value: float
    spread: float


class Loops:
    """The loops, compiled for a target. BuildError if there is no C compiler."""

    def __init__(self, target: str, vector_bytes: int) -> None:
        with tempfile.TemporaryDirectory(prefix="lowerdeck-") as folder:
            path = Path(folder, "libcalibrate.so")
            with as_file(files("lowerdeck.tools") / "calibrate.c") as source:
                flags = [*compiler_flags(target), "-std=gnu99", "-fPIC", "-shared", "-lpthread"]
                command = [*require_compiler(), *flags, f"-DBYTES={vector_bytes}", str(source)]
                command += ["-o", str(path)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(f"{' '.join(command)} failed:\n{done.stderr}")
            library = ctypes.CDLL(str(path))
        number, size, address = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
        self._timed = library.timed
        self._timed.restype = ctypes.c_double
        self._timed.argtypes = [number, size, address, size, size]
        self._memory = library.memory
        self._memory.restype, self._memory.argtypes = address, [size]
        self._release = library.release
        self._release.argtypes = [address, size]

    @contextmanager
    def memory(self, size: int) -> Generator[int]:
        """The address of so many bytes. MemoryError."""
        address: int | None = self._memory(size)
        if address is None:
            raise MemoryError(f"{size} bytes for measurements")
        try:
            yield address
        finally:
            self._release(address, size)

    def cycles(self, kind: str, address: int = 0, size: int = 0, step: int = 0) -> Measured:
        """The cycles of one iteration of a loop."""
        number = _KINDS.index(kind)

        def run(count: int) -> float:
            return self._timed(number, count, address, size, step)

        count = 1
        while run(count) < _SHORTEST:
            count *= 2
        found = [self._one_round(run, count) for _ in range(ROUNDS)]
        return Measured(min(found), median(found) / min(found) - 1)

    def _one_round(self, run: Callable[[int], float], count: int) -> float:
        """In turns with the clock."""
        clock, adds, best = float("inf"), 1 << 13, float("inf")
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end or best == float("inf"):
            clock = min(clock, self._timed(0, adds, 0, 0, 0) / (adds * _ADDS))
            best = min(best, run(count) / count)
        return best / clock


def measure(target: str, tell: Callable[[str], None]) -> Machine:
    """
    The machine of this processor as code for a target uses it; what is not measured is that of the
    shipped file. `tell` is called with a line for each number.

    BuildError if there is no C compiler; MemoryError.
    """
    kind = target_named(target)
    loops = Loops(target, kind.vector_bytes)
    return Calibration(loops, kind.vector_bytes, kind.machine, tell).machine()


class Calibration:
    """Measures number after number; later ones use what earlier ones found."""

    def __init__(
        self, loops: Loops, vector_bytes: int, machine: Machine, tell: Callable[[str], None]
    ) -> None:
        self._loops, self._bytes, self.so_far, self._tell = loops, vector_bytes, machine, tell
        self._where = f"{processor_name()}, {time.strftime('%Y-%m-%d')}"

    def machine(self) -> Machine:
        """All that can be measured."""
        self._caches()
        self._units()
        self._near_memory()
        self._far_memory()
        if len(os.sched_getaffinity(0)) > 1:
            found = self._loops.cycles("meetings")
            self.keep_measured("barrier_cycles", Measured(found.value / _MEETINGS, found.spread))
        return self.so_far

    def keep_measured(self, name: str, found: Measured) -> None:
        """A number of `so_far`, unless it spreads too far."""
        if found.spread > WIDEST:
            text = f"{found.value:g} is not kept: its spread is {found.spread:.0%}"
            self._tell(f"{name:<28} {getattr(self.so_far, name):>12g}  {text}")
            return
        text = f"measured: {self._where}, spread {found.spread:.1%}"
        self._keep(name, _rounded(found.value), text)

    def _keep(self, name: str, value: float, source: str) -> None:
        self.so_far = self.so_far.but(source, **{name: value})
        self._tell(f"{name:<28} {value:>12g}  {source}")

    def _caches(self) -> None:
        """As the system has them."""
        for level, size, ways, line in reported_caches():
            source = f"measured: {self._where}, as the system reports, spread none"
            if level <= 2:
                self._keep(f"l{level}_bytes", size, source)
                self._keep(f"l{level}_ways", ways, source)
            if level == 1:
                self._keep("line_bytes", line, source)

    def _units(self) -> None:
        loops = self._loops
        one = loops.cycles("multiply_adds")
        self.keep_measured("multiply_adds_per_cycle", Measured(_SUMS / one.value, one.spread))
        chain = loops.cycles("multiply_add_chain")
        self.keep_measured("latency_cycles", Measured(chain.value / 4, chain.spread))
        divisions = loops.cycles("divisions")
        self.keep_measured("division_cycles", Measured(divisions.value / _SUMS, divisions.spread))
        with loops.memory(_SUMS * self._bytes) as data:
            short, long = (loops.cycles("loops", data, step=step) for step in (16, 32))
        entry = max(2 * short.value - long.value, 1.0)
        self.keep_measured("loop_cycles", Measured(entry, short.spread))

    def _near_memory(self) -> None:
        loops, machine, width = self._loops, self.so_far, self._bytes
        small = machine.l1_bytes // 2
        with loops.memory(small + 2 * machine.line_bytes) as data:
            vectors = small // width
            loads = loops.cycles("near_loads", data, small)
            self.keep_measured("loads_per_cycle", Measured(vectors / loads.value, loads.spread))
            stores = loops.cycles("stores", data, small)
            self.keep_measured("stores_per_cycle", Measured(vectors / stores.value, stores.spread))
            if width > 4:
                # Each of these lies in two lines, and not with half of a vector in each.
                step = max(width, machine.line_bytes)
                start = data + machine.line_bytes - width + 4
                split = loops.cycles("loads", start, small, step)
                self.keep_measured(
                    "split_load_cycles", Measured(split.value * step / small, split.spread)
                )
        size = machine.l2_bytes // 2
        with loops.memory(size) as data:
            lines = size // machine.line_bytes
            found = loops.cycles("loads", data, size, machine.line_bytes)
            self.keep_measured("l2_line_cycles", Measured(found.value / lines, found.spread))
            found = loops.cycles("copies", data, size)
            self.keep_measured(
                "l2_copy_bytes_per_cycle", Measured(size / found.value, found.spread)
            )

    def _far_memory(self) -> None:
        loops, machine = self._loops, self.so_far
        with loops.memory(_FAR_BYTES) as data:
            # Each is more than the L2 cache and less than what cores share.
            size = min(4 * machine.l2_bytes, _FAR_BYTES)
            found = loops.cycles("loads", data, size, machine.line_bytes)
            self.keep_measured("shared_bytes_per_cycle", Measured(size / found.value, found.spread))
            found = loops.cycles("updates", data, size)
            self.keep_measured(
                "l2_return_bytes_per_cycle", Measured(size / found.value, found.spread)
            )
            found = loops.cycles("loads", data, _FAR_BYTES, machine.line_bytes)
            self.keep_measured(
                "memory_bytes_per_cycle", Measured(_FAR_BYTES / found.value, found.spread)
            )
            self._shared_size(data)
            self._jumps(data)
            found = loops.cycles("far_lines", data, _FAR_BYTES)
            self.keep_measured("wait_cycles", Measured(found.value / (_ADDS * _SUMS), found.spread))

    def _jumps(self, data: int) -> None:
        """Of runs of 16 lines on few pages, and of single lines on more than the TLB has."""
        line = self.so_far.line_bytes
        step = _FAR_BYTES // _FEW_PAGES - line
        found = self._loops.cycles("runs", data, step * _FEW_PAGES, step)
        number = _FEW_PAGES * (step // 1024) * 16
        self.keep_measured("jump_line_cycles", Measured(found.value / number, found.spread))
        # Pages that are neighbors in memory, too, may share one entry.
        step = 4 * self.so_far.page_bytes + line
        rows = min(2 * self.so_far.far_pages, _FAR_BYTES // step)
        found = self._loops.cycles("pages", data, step * rows, step)
        each = found.value / (rows * (step // 64)) - line / self.so_far.memory_bytes_per_cycle
        self.keep_measured("walk_cycles", Measured(max(each, 1.0), found.spread))

    def _shared_size(self, data: int) -> None:
        """The largest of twofold sizes that is not read as slowly as memory is."""
        machine, size = self.so_far, 4 * self.so_far.l2_bytes
        limit = (machine.shared_bytes_per_cycle * machine.memory_bytes_per_cycle) ** 0.5
        spread = 0.0
        while 2 * size < _FAR_BYTES:
            found = self._loops.cycles("loads", data, 2 * size, machine.line_bytes)
            if 2 * size / found.value < limit:
                break
            size, spread = 2 * size, found.spread
        self.keep_measured("l3_bytes", Measured(size, spread))


def _rounded(value: float) -> float:
    """To two digits, so that runs agree and choices with them; bytes stay whole."""
    return value if value == int(value) else float(f"{value:.2g}")


def reported_caches() -> Iterator[tuple[int, int, int, int]]:
    """Level, bytes, ways and bytes of a line of the caches for data, as Linux reports them."""
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind = (folder / "type").read_text().strip()
            size = (folder / "size").read_text().strip()
            level, ways, line = (
                int((folder / name).read_text())
                for name in ("level", "ways_of_associativity", "coherency_line_size")
            )
        except (OSError, ValueError):
            continue
        if kind in ("Data", "Unified") and size.endswith("K") and ways > 0:
            yield level, int(size[:-1]) << 10, ways, line
