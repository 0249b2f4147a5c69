"""
The search for precisions within a budget, against random choices.

    python -m bench.budget [NAME ...] [--metric METRIC] [--most VALUE] [--choices N]

The networks are those of `bench.accuracy`, with its samples. `lowerdeck.quantize` with the budget
chooses a precision for each layer. Each of the random choices has, for each layer, f32, bytes or
two bytes, with the same odds; those that lose more than the budget on fresh samples are left out.
What is left and what the search has found run in turn, in one thread. A table has the seconds of
the search, what its choice loses on fresh samples, and its time beside that of f32 and of the
fastest choice.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lowerdeck
from bench.accuracy import CASES, Case, cases_of, outputs_of
from bench.measuring import Summary, alternate, markdown_table, plan_for, timed
from lowerdeck.budgets import METRICS, Budget
from lowerdeck.passes.machinery.ranges import LayerRange, Ranges
from models.campaign import main_of

_PRECISIONS = (("f32", 1), ("int8", 1), ("int8", 2))
"""Of one layer, with the bytes that an input becomes."""

_SAMPLES = 8
"""Fresh ones that a timed run goes through."""


@dataclass(frozen=True)
class Row:
    """What was found for one network."""

    network: str
    searched: float
    """Seconds that the search took."""
    lost: float
    """On fresh samples."""
    choices: int
    """Random ones that meet the budget."""
    f32: float
    """Seconds of a run, as all that follow."""
    auto: float
    best: float
    """The fastest choice; infinite if none meets the budget."""

    def cells(self) -> list[str]:
        """As text."""
        times = [f"{1e6 * each:.1f}" for each in (self.f32, self.auto, self.best)]
        found = [self.network, f"{self.searched:.1f}", f"{100 * self.lost:.2f}", str(self.choices)]
        return [*found, *times, f"{self.best / self.auto:.2f}"]


_HEAD = ("network", "search s", "lost %", "choices", "f32 us", "auto us", "best us", "best / auto")


def random_choices(ranges: Ranges, count: int) -> Iterator[Ranges]:
    """So many different choices of precisions, as far as there are such, the same each time."""
    choose, known = random.Random(0), set[tuple[tuple[str, int], ...]]()
    ways = len(_PRECISIONS) ** len(ranges.layers)
    while len(known) < min(count, ways):
        choice = tuple(choose.choice(_PRECISIONS) for _ in ranges.layers)
        if choice not in known:
            known.add(choice)
            yield replace(ranges, layers=tuple(map(_chosen, ranges.layers, choice)))


def _chosen(layer: LayerRange, choice: tuple[str, int]) -> LayerRange:
    return replace(layer, precision=choice[0], bytes=choice[1])


def measured(name: str, case: Case, budget: Budget, count: int, seconds: float) -> Row:
    """The search's choice for a network and random ones, for what samples it has."""

    def compiled(ranges: Ranges | None) -> Any:
        how: dict[str, Any] = {} if ranges is None else {"precision": "auto", "ranges": ranges}
        return lowerdeck.compile(case.model, threads=1, **how, **case.options)

    def outputs(model: Any) -> list[dict[str, Any]]:
        return [{"": each} for each in outputs_of(model, case.fresh)]

    samples = case.calibration
    start = time.perf_counter()
    drop = (budget.name, budget.most)
    found = lowerdeck.quantize(case.model, samples, max_drop=drop, **case.options)
    searched = time.perf_counter() - start
    models = {"f32": compiled(None), "auto": compiled(found)}
    want = outputs(models["f32"])
    lost = budget.lost(want, outputs(models["auto"]))
    plain = lowerdeck.quantize(case.model, samples, **case.options)
    for number, ranges in enumerate(random_choices(plain, count)):
        model = compiled(ranges)
        if budget.lost(want, outputs(model)) <= budget.most:
            models[str(number)] = model
    fresh = case.fresh[:_SAMPLES]
    contenders = {key: timed(lambda m=m: [m(x) for x in fresh]) for key, m in models.items()}
    plan = plan_for([min(run() for _ in range(3)) for run in contenders.values()], seconds)
    times = {
        key: Summary.of(each).median / len(fresh)
        for key, each in alternate(contenders, plan).items()
    }
    f32, auto = times.pop("f32"), times.pop("auto")
    best = min(times.values(), default=float("inf"))
    return Row(name, searched, lost, len(times), f32, auto, best)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--metric", choices=[*METRICS], default="error")
    parser.add_argument("--most", type=float, default=0.02, help="what may be lost (%(default)s)")
    parser.add_argument("--choices", type=int, default=50, metavar="N")
    parser.add_argument("--time", type=float, default=20, help="seconds of alternating runs")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="where packages are")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in CASES]:
        parser.error(f"unknown: {', '.join(unknown)}")
    budget, rows = Budget.of(options.metric, options.most), list[Row]()
    for name, case in cases_of(options.names, options.packages):
        rows.append(measured(name, case, budget, options.choices, options.time))
        print(*rows[-1].cells(), file=sys.stderr)
    print(markdown_table(_HEAD, [row.cells() for row in rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
