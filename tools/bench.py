"""`lowerdeck bench`: how long a compiled model takes, and how much memory."""

from __future__ import annotations

import math
import os
import platform
import statistics
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.compiler import Model

_MIN_RUNS, _MAX_RUNS = 5, 1000
"""However long that takes; the latter of one stream."""

_PERCENTILES = (90, 95, 99)
"""Of the latency, that are reported."""

_BINS, _BIN_SHARE = 24, 99
"""Of a histogram, which ends at this percentile: few runs that are far above say little."""

_BARS, _PLAIN_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
"""Of no run, and of more and more; the others where stdout cannot say these."""


@dataclass(frozen=True)
class Measurement:
    """The times of all runs, in seconds, and what the model occupies."""

    model: str
    times: list[float]
    weights_bytes: int
    workspace_bytes: int
    shapes: Mapping[str, Sequence[int]]
    """Of the inputs that it was measured on."""
    seconds: float
    """From the first run to the last."""
    streams: int = 1
    """How many runs there were at any time."""

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "model": self.model,
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "inputs": {name: list(shape) for name, shape in self.shapes.items()},
            "runs": len(self.times),
            "streams": self.streams,
            "runs_per_second": len(self.times) / self.seconds,
            "latency_ms": {
                "min": min(self.times) * 1e3,
                "median": statistics.median(self.times) * 1e3,
                **{f"p{share}": percentile(self.times, share) * 1e3 for share in _PERCENTILES},
                "mean": statistics.fmean(self.times) * 1e3,
                "max": max(self.times) * 1e3,
            },
            "histogram": [
                {"from_ms": low * 1e3, "to_ms": high * 1e3, "runs": count}
                for low, high, count in histogram(self.times)
            ],
            "weights_bytes": self.weights_bytes,
            "workspace_bytes": self.workspace_bytes,
        }

    def text(self) -> str:
        """As lines for a person."""
        data = self.data()
        latency: Mapping[str, float] = data["latency_ms"]
        shares = ", ".join(f"{latency[f'p{share}']:.3f} ms p{share}" for share in _PERCENTILES)
        streams = f" in {self.streams} streams" if self.streams > 1 else ""
        each = " for each stream" if self.streams > 1 else ""
        return "\n".join(
            [
                f"latency    {latency['median']:.3f} ms median, {latency['min']:.3f} ms best, "
                f"{latency['max']:.3f} ms worst of {len(self.times)} runs",
                f"           {shares}, {latency['mean']:.3f} ms mean",
                *self._histogram_lines(),
                f"throughput {data['runs_per_second']:.1f} runs a second{streams}",
                f"weights    {self.weights_bytes:,} bytes",
                f"workspace  {self.workspace_bytes:,} bytes{each}",
            ]
        )

    def _histogram_lines(self) -> list[str]:
        bins = histogram(self.times)
        counts = [count for *_, count in bins]
        (_, end, _), above = bins[-2], counts.pop()
        if not any(counts) or end == min(self.times):
            return []
        heights = _BARS if _can_print(_BARS) else _PLAIN_BARS
        steps = len(heights) - 1
        # A bin with any run shows.
        bars = "".join(heights[-(-count * steps // max(counts))] for count in counts)
        return [
            f"           {min(self.times) * 1e3:.3f} ms |{bars}| {end * 1e3:.3f} ms, "
            f"{above} runs above"
        ]


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def measure(
    model: Model, inputs: Mapping[str, NDArray[Any]], seconds: float = 2.0, streams: int = 1
) -> Measurement:
    """
    Times of runs that take about so many seconds, in as many threads as there are streams; one run
    before them does not count.
    """
    model(inputs)
    if streams == 1:
        times, length = _times(model, inputs, perf_counter() + seconds, _MAX_RUNS)
    else:
        times, length = _times_of_streams(model, inputs, seconds, streams)
    shapes = {name: array.shape for name, array in inputs.items()}
    workspace = model.workspace_for(shapes)
    return Measurement(
        model.name, times, model.weights_size, workspace, shapes, length, streams=streams
    )


def _times(
    model: Model, inputs: Mapping[str, NDArray[Any]], end: float, most: float
) -> tuple[list[float], float]:
    """Times of runs one after the other, and from the first to the last."""
    times: list[float] = []
    first = perf_counter()
    while len(times) < _MIN_RUNS or (perf_counter() < end and len(times) < most):
        start = perf_counter()
        model(inputs)
        times.append(perf_counter() - start)
    return times, perf_counter() - first


def _times_of_streams(
    model: Model, inputs: Mapping[str, NDArray[Any]], seconds: float, streams: int
) -> tuple[list[float], float]:
    """Times of runs of all streams, and from the first of any to the last."""
    barrier = threading.Barrier(streams + 1)

    def stream() -> list[float]:
        barrier.wait()
        return _times(model, inputs, perf_counter() + seconds, math.inf)[0]

    with ThreadPoolExecutor(streams) as executor:
        futures = [executor.submit(stream) for _ in range(streams)]
        barrier.wait()
        first = perf_counter()
        times = [time for future in futures for time in future.result()]
        return times, perf_counter() - first


def histogram(times: Sequence[float]) -> list[tuple[float, float, int]]:
    """
    How many of the times there are from one to the next: bins of equal width up to a percentile
    that leaves few out, and one for those above.
    """
    low, high, most = min(times), percentile(times, _BIN_SHARE), max(times)
    width = (high - low) / _BINS
    counts = [0] * _BINS
    for time in times:
        if time <= high:
            counts[min(int((time - low) / width), _BINS - 1) if width else 0] += 1
    bins = [(low + k * width, low + (k + 1) * width, count) for k, count in enumerate(counts)]
    return [*bins, (high, most, len(times) - sum(counts))]


def percentile(times: Sequence[float], share: int) -> float:
    """The least of the times that `share` percent of them do not exceed (nearest rank)."""
    ordered = sorted(times)
    return ordered[max(math.ceil(len(ordered) * share / 100) - 1, 0)]
