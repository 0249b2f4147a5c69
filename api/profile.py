"""Where the time of a compiled model goes: clocks around its kernels, and what they have shown."""

from __future__ import annotations

import ctypes
import re
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lowerdeck.metadata import Dimension, Symbols

Array = NDArray[Any]

_MIN_PROFILED_RUNS = 5

PARTS_SHIM = """
/* Of one run at a time: when threads began and ended the parts of loops that they took. */
#include "lowerdeck_pool.h"

struct {
  int64_t (*parts)[2]; /* `capacity` of each thread; NULL: none are wanted */
  int64_t capacity;
  int64_t (*counts)[8]; /* the first of each; apart, for each thread writes its own */
} lowerdeck_binding_parts;

bool __real_lowerdeck_team_take(lowerdeck_parts *parts);
bool __wrap_lowerdeck_team_take(lowerdeck_parts *parts);

bool __wrap_lowerdeck_team_take(lowerdeck_parts *parts) {
  const int64_t capacity = lowerdeck_binding_parts.capacity;
  if (lowerdeck_binding_parts.parts == NULL) return __real_lowerdeck_team_take(parts);
  int64_t (*const own)[2] = lowerdeck_binding_parts.parts + parts->thread * capacity;
  int64_t *const count = lowerdeck_binding_parts.counts[parts->thread];
  /* Who asks for the next part is done with the one before. */
  if (*count < capacity && own[*count][0] != 0) {
    own[*count][1] = lowerdeck_binding_clock();
    *count += 1;
  }
  const bool is_taken = __real_lowerdeck_team_take(parts);
  if (is_taken && *count < capacity) own[*count][0] = lowerdeck_binding_clock();
  return is_taken;
}
"""
"""For models of several threads that are profiled, with `PARTS_FLAG`."""

PARTS_FLAG = "-Wl,--wrap=lowerdeck_team_take"
"""Lets the code of the model call what the shim has in place of a function."""

_MAX_EVENTS = 1 << 18
"""Marks of a traced run; those of a longer one are not kept."""

_MAX_PARTS = 1 << 14
"""Parts of loops of one thread in such a run."""


class _Trace(ctypes.Structure):
    """`lowerdeck_binding_trace` of the shim."""

    _fields_ = [
        ("slots", ctypes.c_void_p),
        ("slot_count", ctypes.c_int64),
        ("counts", ctypes.c_void_p),
        ("events", ctypes.c_void_p),
        ("capacity", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("next", ctypes.c_int64),
    ]


class _Parts(ctypes.Structure):
    """`lowerdeck_binding_parts` of the shim."""

    _fields_ = [
        ("parts", ctypes.c_void_p),
        ("capacity", ctypes.c_int64),
        ("counts", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class KernelTimes:
    """One call of a kernel, or a copy, in profiled runs."""

    kernel: str
    """The kernel's name in the C without the model's, or `copy`."""
    nodes: Sequence[str]
    """What it comes from in the model."""
    shapes: str
    """Of the buffers: inputs -> outputs."""
    schedule: str
    lanes: int
    """Of its widest vectors: 1 if it works on scalars alone, 0 for a copy."""
    calls: int
    """In one run: more than one in a loop."""
    seconds: float
    """All calls of one run, in the run where they took least."""
    median: float
    multiply_adds: int | None
    """Of convolutions and matrix products, in one run; None if that depends on data."""
    bytes: int | None
    """The sizes of all the buffers that it reads and writes, in one run."""


class Part(NamedTuple):
    """What one thread has done of a kernel at a time, in seconds since the run began."""

    thread: int
    """0 is the one that called the model."""
    start: float
    end: float


@dataclass(frozen=True)
class KernelEvent:
    """One execution of a kernel; with threads, until the slowest one is done."""

    position: int
    """Of the call among the kernels of a `Profile`."""
    kernel: str
    start: float
    """Seconds since the run began."""
    end: float
    parts: Sequence[Part] = ()
    """Of the kernel, where threads share it."""


@dataclass(frozen=True)
class Profile:
    """Where the time of a run goes; the kernels are in the order of the program."""

    kernels: Sequence[KernelTimes]
    seconds: float
    """The shortest run."""
    median: float
    runs: int

    def scalar_kernels(self, share: float = 0.02) -> list[KernelTimes]:
        """
        The kernels without any vectors that take more than this share of the time of all kernels.

        For a target with vectors there should be none: what they do lacks a schedule.
        """
        least = share * sum(kernel.seconds for kernel in self.kernels)
        return [kernel for kernel in self.kernels if kernel.lanes == 1 and kernel.seconds > least]


class Call(Protocol):
    """A run that is made again and again: what `PreparedCall` is."""

    @property
    def arguments(self) -> ctypes.Array[ctypes.c_int64]:
        """What C is given."""
        ...

    def __call__(self) -> None:
        """Run."""
        ...


class Profiler:
    """Takes the times of the kernels of a library that was compiled for that."""

    def __init__(
        self, library: ctypes.CDLL, slots: Sequence[Mapping[str, Any]], threads: int, at: int
    ) -> None:
        self._library, self._slots, self._threads = library, slots, threads
        self._at = at
        """The position of the profile in the arguments."""

    def profile(self, call: Call, seconds: float, symbols: Symbols) -> Profile:
        """The times of kernels in runs that take about so many seconds, and five at least."""
        clock = ctypes.cast(self._library.lowerdeck_binding_clock, ctypes.c_void_p)
        slots = np.zeros((len(self._slots), 2), np.int64)
        profile = (ctypes.c_int64 * 2)(clock.value or 0, slots.ctypes.data)
        call.arguments[self._at] = ctypes.addressof(profile)
        call()
        whole: list[float] = []
        runs: list[Array] = []
        end = time.perf_counter() + seconds
        while len(runs) < _MIN_PROFILED_RUNS or time.perf_counter() < end:
            slots[:] = 0
            start = time.perf_counter()
            call()
            whole.append(time.perf_counter() - start)
            runs.append(slots.copy())
        return _profile_of(self._slots, np.array(runs), whole, symbols)

    def trace(self, call: Call, seconds: float) -> list[KernelEvent]:
        """The calls of kernels in the fastest of the runs that take about so many seconds."""
        count = len(self._slots)
        slots, counts = np.zeros((count, 2), np.int64), np.zeros(count, np.int64)
        events = np.zeros((_MAX_EVENTS, 2), np.int64)
        trace = _Trace.in_dll(self._library, "lowerdeck_binding_trace")
        trace.slots, trace.slot_count, trace.counts = slots.ctypes.data, count, counts.ctypes.data
        trace.events, trace.capacity = events.ctypes.data, _MAX_EVENTS
        clock = ctypes.cast(self._library.lowerdeck_binding_tracing_clock, ctypes.c_void_p)
        profile = (ctypes.c_int64 * 2)(clock.value or 0, slots.ctypes.data)
        call.arguments[self._at] = ctypes.addressof(profile)
        parts = np.zeros((self._threads, _MAX_PARTS, 2), np.int64)
        part_counts = np.zeros((self._threads, 8), np.int64)
        # A library of an earlier version has none.
        taking: _Parts | None = None
        if self._threads > 1 and hasattr(self._library, "lowerdeck_binding_parts"):
            taking = _Parts.in_dll(self._library, "lowerdeck_binding_parts")
            taking.capacity, taking.counts = _MAX_PARTS, part_counts.ctypes.data
            taking.parts = parts.ctypes.data
        best: Array | None = None
        best_parts: list[Array] = []
        end = time.perf_counter() + seconds
        runs = 0
        while runs < _MIN_PROFILED_RUNS or time.perf_counter() < end:
            slots[:] = counts[:] = part_counts[:] = 0
            parts[:] = 0
            trace.size = trace.next = 0
            call()
            runs += 1
            size = min(int(trace.size), _MAX_EVENTS)
            last = np.flatnonzero(slots[:, 1] != counts)
            if size and last.size:
                events[size - 1, 1] = last[0]
            length = events[size - 1, 0] - events[0, 0] if size else 0
            if best is None or length < best[-1, 0] - best[0, 0]:
                best = events[:size].copy() if size else None
                best_parts = [
                    own[:number].copy()
                    for own, number in zip(parts, part_counts[:, 0], strict=True)
                ]
        if taking is not None:
            taking.parts = None
        return [] if best is None else self._events(best, best_parts)

    def _events(self, marks: Array, parts: Sequence[Array]) -> list[KernelEvent]:
        """What lies between marks: the time before a mark belongs to the slot that it names."""
        slots = self._slots
        start = int(marks[0, 0])
        times = [int(marks[k, 0]) for k in range(len(marks))]
        # A thread may begin a part a little before the first thread takes the time.
        taken: dict[int, list[Part]] = {}
        for thread, own in enumerate(parts):
            for k in range(len(own)):
                begin, end = int(own[k, 0]), int(own[k, 1])
                place = bisect_right(times, (begin + end) // 2)
                # The last kernel ends for the first thread before others are through.
                part = Part(thread, (begin - start) / 1e9, (end - start) / 1e9)
                taken.setdefault(min(place, len(times) - 1), []).append(part)
        return [
            KernelEvent(
                int(slot),
                slots[int(slot)]["kernel"],
                (int(before) - start) / 1e9,
                (int(now) - start) / 1e9,
                taken.get(place, []),
            )
            for place, (before, (now, slot)) in enumerate(
                zip(marks[:-1, 0], marks[1:], strict=True), 1
            )
            if slot >= 0
        ]


def _profile_of(
    slots: Sequence[Mapping[str, Any]], runs: Array, whole: Sequence[float], symbols: Symbols
) -> Profile:
    """From nanoseconds and counts, by run and slot."""
    nanoseconds, counts = runs[..., 0], runs[..., 1].max(axis=0).tolist()
    least, middle = nanoseconds.min(axis=0).tolist(), np.median(nanoseconds, axis=0).tolist()
    kernels = [
        KernelTimes(
            slot["kernel"],
            slot["nodes"],
            _with_sizes(slot["shapes"], symbols),
            slot.get("schedule", ""),
            slot.get("lanes", 0),
            count,
            low * 1e-9,
            median * 1e-9,
            _times(slot.get("multiply_adds", 0), count, symbols),
            _times(slot["bytes"], count, symbols),
        )
        for slot, count, low, median in zip(slots, counts, least, middle, strict=True)
    ]
    return Profile(kernels, min(whole), float(np.median(whole)), len(whole))


def _with_sizes(shapes: str, symbols: Symbols) -> str:
    """Shapes with the sizes of a run in place of what is in brackets; data may decide others."""

    def value(match: re.Match[str]) -> str:
        dim = Dimension(match[1])
        return str(dim.evaluate(symbols)) if dim.symbols <= symbols.keys() else match[0]

    return re.sub(r"\[([^\]]+)\]", value, shapes)


def _times(number: int | str, count: int, symbols: Symbols) -> int | None:
    """A number of the description of a slot for all calls; None if it depends on data."""
    dim = number if isinstance(number, int) else Dimension(number)
    if isinstance(dim, Dimension):
        if not dim.symbols <= symbols.keys():
            return None
        dim = dim.evaluate(symbols)
    return dim * count
