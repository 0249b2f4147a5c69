"""
How campaigns scale beyond the machines that there are: a simulation.

    python -m bench.scale [--dispatch MS] [--start S] [--failures PER_HOUR]

Independent tasks on nodes of some processors: one driver hands them out one after the other, which
takes it some time for each; a node takes a while to start, and may fail, with what it was at, which
runs again. That is all that is modelled: no network, no slow disk, no driver that fails. The times
of tasks are measured ones (see docs/scale.md), spread by a lognormal distribution.
"""

from __future__ import annotations

import argparse
import heapq
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from bench.measuring import markdown_table

NODES = (1, 10, 100, 1000)


@dataclass(frozen=True)
class Work:
    """A campaign."""

    name: str
    tasks: int
    seconds: float
    """Of a task, in the mean, on one processor."""
    spread: float = 0.3
    """Standard deviation of the logarithm."""
    is_alone: bool = False
    """Whether a task has a node for itself."""


@dataclass(frozen=True)
class Cluster:
    """Nodes, and what they cost."""

    nodes: int
    processors: int = 8
    dispatch: float = 1.6e-3
    """Seconds of the driver for each task."""
    start: float = 10.0
    """Seconds until a node takes its first task."""
    failures: float = 0.01
    """Of a node in an hour."""


WORKS = (
    Work("batch: 1e9 rows, 8 µs each, tasks of 8,192", 122_071, 0.066),
    Work("batch: 1e7 rows of 150 KB, 5 ms each, tasks of 111", 90_091, 0.56),
    Work("tune: 200 models", 200, 37.0, is_alone=True),
    Work("compile: 1,000 models for 3 targets", 3_000, 1.2, 0.8),
    Work("fuzz: 1,000,000 graphs, batches of 40", 25_000, 5.6),
)


def simulate(work: Work, cluster: Cluster, seed: int = 0) -> float:
    """Seconds until all tasks are done."""
    random = Random(seed)
    places = cluster.nodes if work.is_alone else cluster.nodes * cluster.processors
    mean = math.log(work.seconds) - work.spread**2 / 2
    free = [cluster.start] * min(places, work.tasks)
    per_second = cluster.failures / 3600
    driver, end, left = 0.0, 0.0, work.tasks
    while left:
        ready = heapq.heappop(free)
        driver = max(driver, ready) + cluster.dispatch
        done = driver + random.lognormvariate(mean, work.spread)
        if per_second and (fails := random.expovariate(per_second)) < done - driver:
            heapq.heappush(free, driver + fails + cluster.start)  # the task is handed out again
            continue
        left -= 1
        end = max(end, done)
        heapq.heappush(free, done)
    return end


def table(works: Sequence[Work], clusters: Sequence[Cluster]) -> str:
    """Hours or seconds on each cluster, and how much of the nodes' gain is left, as Markdown."""
    rows: list[list[str]] = []
    for work in works:
        times = [simulate(work, cluster) for cluster in clusters]
        one = times[0] * clusters[0].nodes
        rows.append(
            [work.name]
            + [
                f"{_time(seconds)} ({one / seconds / cluster.nodes:.0%})"
                for seconds, cluster in zip(times, clusters, strict=True)
            ]
        )
    return markdown_table(["", *(f"{c.nodes} nodes" for c in clusters)], rows)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 1000 else f"{seconds / 3600:.1f} h"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--dispatch", type=float, default=1.6, metavar="MS", help="for each task")
    parser.add_argument("--start", type=float, default=10.0, metavar="S", help="of a node")
    parser.add_argument("--processors", type=int, default=8, help="of a node")
    parser.add_argument(
        "--failures", type=float, default=0.01, metavar="PER_HOUR", help="of a node"
    )
    options = parser.parse_args(arguments)
    clusters = [
        Cluster(n, options.processors, options.dispatch / 1000, options.start, options.failures)
        for n in NODES
    ]
    print(table(WORKS, clusters))
    return 0


if __name__ == "__main__":
    sys.exit(main())
