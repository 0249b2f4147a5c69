"""`lowerdeck bench`: how long a compiled model takes, and how much memory."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.compiler import Model

_MIN_RUNS, _MAX_RUNS = 5, 1000
"""However long that takes."""


@dataclass(frozen=True)
class Measurement:
    """The times of all runs, in seconds, and what the model occupies."""

    model: str
    times: list[float]
    weights_bytes: int
    workspace_bytes: int | str

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "model": self.model,
            "machine": platform.machine(),
            "cpus": os.cpu_count(),
            "runs": len(self.times),
            "latency_ms": {
                "min": min(self.times) * 1e3,
                "median": statistics.median(self.times) * 1e3,
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
        workspace = self.workspace_bytes
        size = f"{workspace:,}" if isinstance(workspace, int) else workspace
        return "\n".join(
            [
                f"latency    {latency['median']:.3f} ms median, {latency['min']:.3f} ms best, "
                f"{latency['max']:.3f} ms worst of {len(self.times)} runs",
                f"weights    {self.weights_bytes:,} bytes",
                f"workspace  {size} bytes",
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
    return Measurement(model.name, times, model.weights_size, model.workspace_size)
