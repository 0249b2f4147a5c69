"""What the measurements share: alternating runs, statistics, tables, memory."""

from __future__ import annotations

import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

Contender: TypeAlias = "Callable[[], float]"
"""One run; returns its seconds."""

MEGABYTE = 1e6
"""In bytes."""

_RESAMPLES = 2000
_RESAMPLES_AT_ONCE = 50


def timed(call: Callable[[], object]) -> Contender:
    """A call with the seconds that it took."""

    def run() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return run


# Alternating runs


@dataclass(frozen=True)
class Plan:
    """How contenders alternate: in each round each makes a block of runs, after some uncounted."""

    rounds: int
    block: int = 1
    uncounted: int = 0
    pause: float = 0.0
    """Seconds before each block, in which threads of the contender before go to sleep."""


def plan_for(estimates: Iterable[float], seconds: float, block_seconds: float = 0.02) -> Plan:
    """
    The plan that takes about `seconds` for runs of the estimated seconds.

    A block lasts at least `block_seconds` for the fastest contender. Before it there is a pause,
    and its first run, which finds the caches as another contender left them, is not counted. Five
    rounds are made in any case.
    """
    known = list(estimates)
    block = min(max(math.ceil(block_seconds / min(known)), 2), 1000)
    pause = 0.005
    round_seconds = sum(known) * (block + 1) + pause * len(known)
    return Plan(max(round(seconds / round_seconds), 5), block, 1, pause)


def alternate(contenders: Mapping[str, Contender], plan: Plan) -> dict[str, list[float]]:
    """
    The seconds of all counted runs, by contender.

    The order is drawn again for each round, so that each contender follows each other equally
    often: the state in which the previous one leaves the caches matters.
    """
    times: dict[str, list[float]] = {name: [] for name in contenders}
    rng = random.Random(0)
    for _ in range(plan.rounds):
        for name in rng.sample(list(contenders), len(contenders)):
            run = contenders[name]
            if plan.pause:
                time.sleep(plan.pause)
            for _ in range(plan.uncounted):
                run()
            times[name] += [run() for _ in range(plan.block)]
    return times


# Statistics


@dataclass(frozen=True)
class Summary:
    """Seconds of runs in a few numbers."""

    median: float
    p10: float
    minimum: float
    runs: int

    @staticmethod
    def of(times: Sequence[float]) -> Summary:
        """The summary of at least one run."""
        low, middle = np.percentile(times, [10, 50]).tolist()
        return Summary(middle, low, min(times), len(times))

    def data(self) -> dict[str, float | int]:
        """As JSON."""
        return asdict(self)


def median_interval(times: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """
    An interval that holds the median of the distribution with at least this probability.

    Its ends are order statistics, whatever the distribution is: between the k-th smallest and the
    k-th largest of n values lies the median unless fewer than k fall on one side of it, and how
    many do has a binomial distribution. It is everything where there are too few values.
    """
    n, ordered = len(times), sorted(times)
    tail, allowed = 0, (1 - confidence) / 2
    ways, k = 1, 0  # ways: n choose k
    scale = 2**n
    while (tail + ways) / scale <= allowed:
        tail += ways
        ways = ways * (n - k) // (k + 1)
        k += 1
    position = max(k - 1, 0)
    return ordered[position], ordered[n - 1 - position]


@dataclass(frozen=True)
class Gain:
    """The part of the slower median that the faster contender saves, and a 95 % interval."""

    saved: float
    low: float
    high: float


def gain(fast: Sequence[float], slow: Sequence[float], seed: int = 0) -> Gain:
    """
    What `fast` saves of `slow`, with a bootstrap interval.

    The times at one position come from one round, so rounds are drawn and not single times.
    """
    a, b = np.array(fast), np.array(slow)
    rng, found = np.random.default_rng(seed), list[float]()
    for _ in range(_RESAMPLES // _RESAMPLES_AT_ONCE):
        drawn = rng.integers(0, len(a), (_RESAMPLES_AT_ONCE, len(a)))
        found += (1 - np.median(a[drawn], 1) / np.median(b[drawn], 1)).tolist()
    low, high = np.percentile(found, [2.5, 97.5]).tolist()
    return Gain(float(1 - np.median(a) / np.median(b)), low, high)


def geometric_mean(values: Iterable[float]) -> float:
    """NaN if there are no values."""
    logarithms = [math.log(value) for value in values]
    return math.exp(math.fsum(logarithms) / len(logarithms)) if logarithms else math.nan


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """
    Spearman's: 1 where both put their values in the same order, NaN where there is no order.

    Equal values share the mean of their places.
    """
    a, b = _places(one), _places(other)
    size = math.sqrt(_product(a, a) * _product(b, b))
    return _product(a, b) / size if size else math.nan


def _product(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _places(values: Sequence[float]) -> list[float]:
    """From the middle on."""
    ordered, middle = sorted(values), (len(values) - 1) / 2
    ends = {value: place for place, value in enumerate(ordered)}
    starts = {value: place for place, value in reversed([*enumerate(ordered)])}
    return [(starts[value] + ends[value]) / 2 - middle for value in values]


# Tables


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns that line up: the first to the left, the others to the right."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The same in Markdown."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *rows])


# Memory


class PeakMemory:
    """Samples this process's anonymous memory from a thread."""

    def __init__(self) -> None:
        self._peak = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ends.wait(0.005):
            self._look()

    def _look(self) -> None:
        self._peak = max(self._peak, memory_status("RssAnon"))

    def stop(self) -> int:
        """The largest number of bytes seen."""
        self._ends.set()
        self._thread.join()
        self._look()
        return self._peak


def memory_status(field: str) -> int:
    """A number of bytes of this process in /proc: VmRSS, VmHWM, RssAnon, ..."""
    text = Path("/proc/self/status").read_text()
    match = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    assert match is not None
    return int(match[1]) * 1024
