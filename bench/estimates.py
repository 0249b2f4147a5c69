"""
Estimated beside measured cycles, kernel by kernel: is the model of costs right?

    python -m bench.estimates [FOLDER [NAME ...]] [--only REGEX] [--target T] [--seconds S]
                              [--candidates N] [--json F]

FOLDER holds NAME.onnx and NAME.npz as for `peers.py`; without it, the forms of
`operator_forms.py` are measured, those whose names fit the regular expression. Each model is
compiled for one thread so that it takes the time of its kernels; measured is the least time of a
call. The estimate is that of the schedule that a kernel was given; for kernels without schedules
it is the number of steps of their loops, by which it is decided what threads share. Per operator
and over all there is the rank correlation of the two (Spearman's), the same for the steps of all
kernels, and how many measured cycles an estimated one is. Beside it stands what `lowering/cost`
computes from finished loops and the machine, in absolute cycles. Kernels that are
too short, or whose sizes are open in the model, are left out.

`--candidates N` compiles up to N candidates of each kernel instead: the chosen one, the best of
each strategy, then more and more distant ones. The variants of a model run in turns. It prints how
much slower than the fastest one the chosen one is, and how many are within 10 % and 30 %; and the
same for the one that computed cycles would choose among them.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from bench.measuring import rank_correlation, text_table
from bench.reference import recorded_inputs
from lowerdeck.compiler import CompileOptions, Model, import_and_lower, load
from lowerdeck.dialects.buffer.entry_ops import CallOp
from lowerdeck.dialects.buffer.kernel import functions_of
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.lowering import emit
from lowerdeck.lowering.cost.cycles import cycles
from lowerdeck.lowering.loops.estimate import steps_of_block
from lowerdeck.lowering.pipeline import Observer, run_to_phase
from lowerdeck.lowering.strategies.base import Setting
from lowerdeck.lowering.strategies.facts import anchors_of
from lowerdeck.lowering.strategies.registry import candidates, described
from lowerdeck.model_folders import build_artifact
from lowerdeck.passes.machinery.structure import nameless_key
from lowerdeck.reading import model_name
from lowerdeck.tools.peak import MultiplyAdds
from lowerdeck.tune import kernel_of
from models.operator_forms import forms

SHORTEST = 0.5e-6
"""Seconds of a kernel that tell more than the clock does."""

NEAR, FAR = 1.1, 1.3
"""How much slower than the best candidate the chosen one may nearly always be, and ever."""

_ROUNDS = 4
_PACKED = "_pack_"
"""In the names of kernels that copy operands for another kernel: their time is its time."""

Inputs = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Way:
    """A candidate for a kernel."""

    cycles: float
    strategy: str
    schedule: str
    """With the shapes that it is for."""


@dataclass
class Known:
    """What the compiler has thought of a kernel."""

    kind: str
    """Its operator; of kernels of maps alone `map`."""
    is_open: bool
    """True if its estimates are for sizes that were assumed."""
    ways: list[Way]
    """The best first."""
    steps: float = 0
    """Of its loops."""
    computed: float = 0
    """Cycles of a call by `lowering/cost`, with those of copies that were made for it."""


@dataclass(frozen=True)
class Measured:
    """A kernel with the estimate for it."""

    model: str
    kernel: str
    kind: str
    schedule: str
    estimated: float
    cycles: float
    steps: float
    computed: float


@dataclass(frozen=True)
class Compared:
    """A kernel with the seconds of its candidates, the chosen one first."""

    model: str
    kernel: str
    kind: str
    times: Sequence[tuple[Way, float]]
    computed: Sequence[float]
    """What `lowering/cost` makes of each of them."""

    @property
    def ratio(self) -> float:
        """The time of the chosen one by that of the fastest."""
        return self.times[0][1] / min(seconds for _, seconds in self.times)

    @property
    def ratio_by_computed(self) -> float:
        """The same for the one that computed cycles would choose."""
        chosen = min(range(len(self.times)), key=lambda k: self.computed[k])
        return self.times[chosen][1] / min(seconds for _, seconds in self.times)

    @property
    def fastest(self) -> Way:
        """The one that should have been chosen."""
        return min(self.times, key=lambda own: own[1])[0]


@dataclass
class Thoughts(Observer):
    """Sees the candidates of kernels before one is chosen, and their loops in the end."""

    setting: Setting
    kernels: dict[str, Known] = field(default_factory=dict[str, Known])
    """By the name of the first of equal ones."""

    def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
        """Ask for candidates."""
        if pass_.name != "choose-strategies":
            return
        equal: set[Hashable] = set()
        for kernel in module.walk():
            if isinstance(kernel, KernelOp) and (key := nameless_key(kernel)) not in equal:
                equal.add(key)
                self.kernels[kernel.sym_name.data] = self._known(kernel)

    def after_phase(self, phase: str, module: ModuleOp) -> None:
        """Count the steps of loops."""
        if phase == "scheduled":
            self._compute(module)
        for name, function in functions_of(module).items() if phase == "scheduled" else ():
            if (kernel := kernel_of(name, self.kernels)) is not None:
                target = self.setting.target
                self.kernels[kernel].steps = steps_of_block(function.body.block, target)

    def _compute(self, module: ModuleOp) -> None:
        totals = {
            name: cycles(function, self.setting.target).total
            for name, function in functions_of(module).items()
        }
        calls: dict[str, int] = {}
        for call in module.walk():
            if not isinstance(call, CallOp):
                continue
            name = call.callee.root_reference.data
            own, is_copy, _ = name.partition(_PACKED)
            if (found := kernel_of(own, self.kernels)) is not None:
                self.kernels[found].computed += totals[name]
                calls[found] = calls.get(found, 0) + (0 if is_copy else 1)
        for name, count in calls.items():
            self.kernels[name].computed /= max(count, 1)

    def _known(self, kernel: KernelOp) -> Known:
        found = sorted(candidates(kernel, self.setting), key=lambda way: way.cycles)
        ways = [
            Way(way.cycles, way.schedule.strategy, described(kernel, way.schedule)) for way in found
        ]
        kind = "+".join(op.name.removeprefix("core.") for op in anchors_of(kernel))
        dims = (dim for value in (*kernel.inputs, *kernel.results) for dim in dims_of(value))
        return Known(kind or "map", any(dim.value is None for dim in dims), ways)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if the wrong candidates are chosen."""
    options = _parse(arguments)
    compiling = CompileOptions(target=options.target, profile=True)
    per_second = MultiplyAdds().cycles_per_second()
    measured: list[Measured] = []
    compared: list[Compared] = []
    with tempfile.TemporaryDirectory() as scratch:
        for path, inputs in _models(options, Path(scratch)):
            print(f"{time.strftime('%H:%M:%S')} {path.stem}", file=sys.stderr, flush=True)
            if options.candidates:
                found = compare(path, inputs, compiling, options.candidates, options.seconds)
                compared += found
                for each in found:
                    print(f"  {each.kernel}: {each.ratio:.2f} by best", file=sys.stderr, flush=True)
            else:
                measured += measure(path, inputs, compiling, options.seconds, per_second)
    print(render_compared(compared) if options.candidates else render_measured(measured))
    if options.json:
        data = [asdict(each) for each in (*measured, *compared)]
        Path(options.json).write_text(json.dumps(data, indent=1) + "\n")
    return int(any(each.ratio > FAR for each in compared))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only", default="", metavar="REGEX", help="forms of operators, by name")
    parser.add_argument("--target", default="native", metavar="T")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each model or variant")
    parser.add_argument("--candidates", type=int, metavar="N", help="measure so many of a kernel")
    parser.add_argument("--json", metavar="F")
    return parser.parse_args(arguments)


def _models(options: argparse.Namespace, scratch: Path) -> Iterator[tuple[Path, Inputs]]:
    if options.folder is not None:
        folder = Path(options.folder)
        for name in options.names or sorted(path.stem for path in folder.glob("*.onnx")):
            yield folder / f"{name}.onnx", recorded_inputs(str(folder / f"{name}.npz"))
        return
    for name, form in forms().items():
        if re.search(options.only, name):
            model, inputs = form.build()
            path = scratch / f"{name}.onnx"
            path.write_bytes(model.SerializeToString())
            yield path, inputs


# One model


def compiled(
    path: Path, options: CompileOptions, folder: Path
) -> tuple[Model, Mapping[str, Known]]:
    """A model, and what the compiler has thought of its kernels."""
    module, context = import_and_lower(str(path), "imported", options)
    thoughts = Thoughts(Setting.of(options))
    run_to_phase(context, module, "scheduled", thoughts, after="imported")
    folder.mkdir()
    build_artifact(emit(context, module, model_name(str(path))), str(folder))
    return load(folder), thoughts.kernels


def times_of(
    model: Model, inputs: Inputs, kernels: Mapping[str, Known], seconds: float
) -> dict[str, float]:
    """Seconds of one call, by kernel; with those of the copies that were made for it."""
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for entry in model.profile(inputs, seconds=seconds).kernels:
        own, is_copy, _ = entry.kernel.partition(_PACKED)
        if (name := kernel_of(own, kernels)) is not None:
            sums[name] = sums.get(name, 0.0) + entry.seconds
            counts[name] = counts.get(name, 0) + (0 if is_copy else entry.calls)
    return {name: total / counts[name] for name, total in sums.items() if counts[name]}


def measure(
    path: Path, inputs: Inputs, options: CompileOptions, seconds: float, per_second: float
) -> list[Measured]:
    """The kernels of a model that are long enough, of known sizes."""
    with tempfile.TemporaryDirectory() as scratch:
        model, kernels = compiled(path, options, Path(scratch, "model"))
        times = times_of(model, inputs, kernels, seconds)
    return [
        Measured(
            path.stem,
            name,
            known.kind,
            known.ways[0].schedule if known.ways else "",
            known.ways[0].cycles if known.ways else known.steps,
            times[name] * per_second,
            known.steps,
            known.computed,
        )
        for name, known in kernels.items()
        if times.get(name, 0.0) > SHORTEST and not known.is_open
    ]


def compare(
    path: Path, inputs: Inputs, options: CompileOptions, most: int, seconds: float
) -> list[Compared]:
    """The kernels of a model that have several candidates, all of whose kernels change at once."""
    with tempfile.TemporaryDirectory() as scratch:
        first, kernels = compiled(path, options, Path(scratch, "0"))
        times = times_of(first, inputs, kernels, seconds)
        samples = {
            name: sample(known.ways, most)
            for name, known in kernels.items()
            if times.get(name, 0.0) > SHORTEST
        }
        models, thoughts = [first], [kernels]
        for number in range(1, max((len(ways) for ways in samples.values()), default=1)):
            asked = {n: ways[number].schedule for n, ways in samples.items() if number < len(ways)}
            variant = replace(options, schedules=asked)
            model, thought = compiled(path, variant, Path(scratch, str(number)))
            models.append(model)
            thoughts.append(thought)
        least: list[dict[str, float]] = [{} for _ in models]
        for _ in range(_ROUNDS if len(models) > 1 else 0):
            for model, own in zip(models, least, strict=True):
                for name, now in times_of(model, inputs, kernels, seconds / _ROUNDS).items():
                    own[name] = min(now, own.get(name, now))
    return [
        Compared(
            path.stem,
            name,
            kernels[name].kind,
            [(way, own[name]) for way, own in zip(ways, least) if name in own],
            [known[name].computed for own, known, _ in zip(least, thoughts, ways) if name in own],
        )
        for name, ways in samples.items()
        if len(ways) > 1
    ]


def sample(ways: Sequence[Way], most: int) -> list[Way]:
    """
    Up to `most` candidates: the chosen one, the best one of each strategy, then those whose rank
    grows by a constant factor, so that all of them are covered and the nearest best.
    """
    known = list({way.schedule: way for way in reversed(ways)}.values())[::-1]
    if not known:
        return []
    firsts = {way.strategy: way for way in reversed(known)}
    steps = max(most, 2) - 1
    near = [known[round(math.pow(len(known), k / steps)) - 1] for k in range(steps + 1)]
    chosen = {way.schedule: way for way in (*known[:1], *reversed(firsts.values()), *near)}
    # Where ranks meet, the next ones in order take their places.
    chosen |= {way.schedule: way for way in known if way.schedule not in chosen}
    return list(chosen.values())[:most]


# The report


def render_measured(measured: Sequence[Measured]) -> str:
    """All kernels by operator, then the correlations."""
    kinds = _by_kind(measured)
    rows = [
        (
            each.kernel,
            each.model,
            kind,
            f"{each.estimated:.0f}",
            f"{each.cycles:.0f}",
            f"{each.cycles / max(each.estimated, 1):.2f}",
            f"{each.cycles / max(each.computed, 1):.2f}",
            each.schedule.rpartition(": ")[2] or "-",
        )
        for kind, own in kinds.items()
        for each in sorted(own, key=lambda m: m.cycles / max(m.estimated, 1))
    ]
    head = (
        *("kernel", "model", "operator", "estimated", "measured", "ratio", "by computed"),
        "schedule",
    )
    summary = (
        *("operator", "kernels", "rank correlation", "of steps", "of computed"),
        *("ratio p10", "median", "p90", "within 25 %"),
        *("by computed p10", "median", "p90", "within 25 %"),
    )
    groups = [*kinds.items(), ("all", list(measured))]
    return "\n\n".join(
        [text_table(head, rows), text_table(summary, [_summary(*group) for group in groups])]
    )


def _summary(kind: str, measured: Sequence[Measured]) -> tuple[str, ...]:
    taken, computed = [m.cycles for m in measured], [m.computed for m in measured]
    estimated = [m.estimated for m in measured]
    known = (estimated, [m.steps for m in measured], computed)
    correlations = (f"{rank_correlation(each, taken):.3f}" for each in known)
    shares = (*_shares(estimated, taken), *_shares(computed, taken))
    return (kind, str(len(measured)), *correlations, *shares)


def _shares(thought: Sequence[float], taken: Sequence[float]) -> Iterator[str]:
    """How many measured cycles one that was thought of is, and for how many kernels it is one."""
    ratios = np.array([c / max(t, 1) for t, c in zip(thought, taken)] or [np.nan])
    yield from (f"{value:.2f}" for value in np.percentile(ratios, [10, 50, 90]))
    yield f"{np.mean(np.abs(ratios - 1) <= 0.25):.0%}"


def _by_kind(measured: Iterable[Measured]) -> Mapping[str, list[Measured]]:
    found: dict[str, list[Measured]] = {}
    for each in sorted(measured, key=lambda m: m.kind):
        found.setdefault(each.kind, []).append(each)
    return found


def render_compared(compared: Sequence[Compared]) -> str:
    """The worst choices first."""
    rows = [
        (
            each.kernel,
            each.model,
            each.kind,
            str(len(each.times)),
            f"{each.times[0][1] * 1e6:.1f}",
            f"{each.ratio:.2f}",
            f"{_correlation(each, [way.cycles for way, _ in each.times]):.2f}",
            f"{each.ratio_by_computed:.2f}",
            f"{_correlation(each, each.computed):.2f}",
            each.times[0][0].schedule.rpartition(": ")[2],
            each.fastest.schedule.rpartition(": ")[2],
        )
        for each in sorted(compared, key=lambda c: -c.ratio)
    ]
    head = (
        *("kernel", "model", "operator", "tried", "us", "by best", "order"),
        *("by computed", "order", "chosen", "best"),
    )
    lines = [
        _chosen("estimates", [each.ratio for each in compared]),
        _chosen("computed cycles", [each.ratio_by_computed for each in compared]),
    ]
    return "\n".join([text_table(head, rows), "", *lines])


def _chosen(by: str, ratios: Sequence[float]) -> str:
    """How good the candidates are that are chosen by something."""
    near, far = (sum(ratio <= limit for ratio in ratios) for limit in (NEAR, FAR))
    count, worst = max(len(ratios), 1), max(ratios, default=1.0)
    mean = math.exp(sum(map(math.log, ratios)) / count)
    return (
        f"by {by}, {count} kernels: the chosen candidate of {near} ({near / count:.1%}) is within "
        f"{NEAR - 1:.0%} of the best, of {far} ({far / count:.1%}) within {FAR - 1:.0%}; "
        f"{mean:.3f} times the best (geometric mean), at most {worst:.2f}"
    )


def _correlation(each: Compared, thought: Sequence[float]) -> float:
    return rank_correlation(thought, [seconds for _, seconds in each.times])


if __name__ == "__main__":
    sys.exit(main())
