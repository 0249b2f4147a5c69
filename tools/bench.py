"""`lowerdeck bench`: how long a compiled model takes, and how much memory."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.compiler import Model

_MIN_RUNS, _MAX_RUNS = 5, 1000
"""However long that takes."""

_PERCENTILES = (90, 95, 99)
"""Of the latency, that are reported."""


@dataclass(frozen=True)
class Measurement:
    """The times of all runs, in seconds, and what the model occupies."""

    model: str
    times: list[float]
    weights_bytes: int
    workspace_bytes: int
    shapes: Mapping[str, Sequence[int]]
    """Of the inputs that it was measured on."""

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "model": self.model,
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "inputs": {name: list(shape) for name, shape in self.shapes.items()},
            "runs": len(self.times),
            "runs_per_second": len(self.times) / sum(self.times),
            "latency_ms": {
                "min": min(self.times) * 1e3,
                "median": statistics.median(self.times) * 1e3,
                **{f"p{share}": percentile(self.times, share) * 1e3 for share in _PERCENTILES},
                "mean": statistics.fmean(self.times) * 1e3,
                "max": max(self.times) * 1e3,
            },
            "weights_bytes": self.weights_bytes,
            "workspace_bytes": self.workspace_bytes,
        }

    def text(self) -> str:
        """As lines for a person."""
        data = self.data()
        latency: Mapping[str, float] = data["latency_ms"]
        shares = ", ".join(f"{latency[f'p{share}']:.3f} ms p{share}" for share in _PERCENTILES)
        return "\n".join(
            [
                f"latency    {latency['median']:.3f} ms median, {latency['min']:.3f} ms best, "
                f"{latency['max']:.3f} ms worst of {len(self.times)} runs",
                f"           {shares}, {latency['mean']:.3f} ms mean; "
                f"{data['runs_per_second']:.1f} runs a second",
                f"weights    {self.weights_bytes:,} bytes",
                f"workspace  {self.workspace_bytes:,} bytes",
            ]
        )


def measure(model: Model, inputs: Mapping[str, NDArray[Any]], seconds: float = 2.0) -> Measurement:
    """Times of runs that take about so many seconds; one before them does not count."""
    model(inputs)
    times: list[float] = []
    end = perf_counter() + seconds
    while len(times) < _MIN_RUNS or (perf_counter() < end and len(times) < _MAX_RUNS):
        start = perf_counter()
        model(inputs)
        times.append(perf_counter() - start)
    shapes = {name: array.shape for name, array in inputs.items()}
    workspace = model.workspace_for(shapes)
    return Measurement(model.name, times, model.weights_size, workspace, shapes)


def percentile(times: Sequence[float], share: int) -> float:
    """The least of the times that `share` percent of them do not exceed (nearest rank)."""
    ordered = sorted(times)
    return ordered[max(math.ceil(len(ordered) * share / 100) - 1, 0)]
