"""
What each optional pass gains: models with it beside the same models without it.

    python -m bench.gains [FOLDER | MODEL | tf1 | caffe | forms=REGEX ...] [--only PASS,...]
                          [--models N] [--threads N] [--seconds S] [--json F]

The models are those of `passes.py`. Each is compiled with all passes to count the rewrites of each;
the N models in which a pass rewrites the largest part of the ops are then compiled without it, and
run in turns with what they are else. Printed is, for each pass, the model on which it gains most:
operations, FLOPs, parameters and bytes moved without the pass and with it, and the part of the time
that it saves, with a 95 % interval (a negative one: it takes longer). Where publications say what a
technique gains, that stands beside it. Passes without which nothing that follows is fast, such as
those that vectorize loops, are among them: the table says what they are worth, too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from bench.measuring import Gain, alternate, gain, plan_for, text_table, timed
from bench.peer_runs import load_ours
from bench.rewrites import ALL, REFUSALS, RewriteCounter, Subject, default_models, subjects
from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.lowering import compile_to_c
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.model_folders import build_artifact
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.statistics import Statistics, statistics_of, symbol_sizes
from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs

Inputs = Mapping[str, NDArray[Any]]

PUBLISHED: Mapping[str, str] = {
    "fuse-linear": "8.5 %, 11.7 % (convolution and batch normalization)",
    "move-stride": "5 % (ResNet-50 v1 beside v1.5, NVIDIA)",
}
"""What others report of a technique."""

FEWEST_OPS = 8
"""In a smaller model a pass says little of models."""


@dataclass(frozen=True)
class Fired:
    """A model and the rewrites in it."""

    subject: Subject
    inputs: Inputs
    operations: int
    rewrites: Mapping[str, int]


@dataclass(frozen=True)
class Gained:
    """A pass on the model that shows it best."""

    name: str
    model: str
    rewrites: int
    before: Statistics
    after: Statistics
    seconds: float
    gain: Gain


def fired(subject: Subject, threads: int) -> Fired | None:
    """The rewrites of each pass; None for a model that is refused."""
    try:
        legal, _ = import_and_lower(subject.path, "legal", subject.options())
        inputs = subject.inputs or sample_inputs(inputs_of(legal))
        context = LowerdeckContext(options=_options(subject, (), threads))
        module, counter = legal.clone(), RewriteCounter(context)
        run_to_phase(context, module, "scheduled", counter, after="legal")
    except REFUSALS:
        return None
    return Fired(subject, inputs, _statistics(legal, inputs).operations, counter.rewrites)


def measured(own: Fired, name: str, threads: int, seconds: float) -> Gained:
    """One pass on one model."""
    calls: dict[str, Any] = {}
    counts: dict[str, Statistics] = {}
    with tempfile.TemporaryDirectory(prefix="gains-") as scratch:
        for arm, disable in (("with", ()), ("without", (name,))):
            options = _options(own.subject, disable, threads)
            folder = Path(scratch, arm)
            folder.mkdir()
            module, context = import_and_lower(own.subject.path, "imported", options)
            build_artifact(compile_to_c(context, module, "model"), str(folder))
            calls[arm] = load_ours(str(folder), dict(own.inputs), threads)[1]
            module, _ = import_and_lower(own.subject.path, "optimized", options)
            counts[arm] = _statistics(module, own.inputs)
        contenders = {arm: timed(call) for arm, call in calls.items()}
        first = [min(run() for _ in range(3)) for run in contenders.values()]
        times = alternate(contenders, plan_for(first, seconds, 0.002))
    return Gained(
        name,
        own.subject.name,
        own.rewrites[name],
        counts["without"],
        counts["with"],
        float(np.median(times["with"])),
        gain(times["with"], times["without"]),
    )


def _options(subject: Subject, disable: Sequence[str], threads: int) -> CompileOptions:
    return CompileOptions(
        outputs=subject.outputs, disable=frozenset(disable), target="native", threads=threads
    )


def _statistics(module: ModuleOp, inputs: Inputs) -> Statistics:
    shapes = {name: array.shape for name, array in inputs.items()}
    return statistics_of(module, symbol_sizes(module, shapes))


def best_of(found: Sequence[Fired], name: str, most: int) -> Iterator[Fired]:
    """The models in which a pass makes the most of the ops."""
    where = [own for own in found if own.rewrites.get(name)]
    where.sort(key=lambda own: own.rewrites[name] / max(own.operations, FEWEST_OPS), reverse=True)
    yield from where[:most]


def table(gains: Sequence[Gained]) -> str:
    """The passes, the largest gain first."""
    head = ("pass", "model", "rewrites", "ops", "MFLOPs", "params", "MB moved", "us", "saves")
    rows = [
        [
            own.name,
            own.model,
            str(own.rewrites),
            *(
                f"{before:,.{digits}f} -> {after:,.{digits}f}"
                for before, after, digits in (
                    (own.before.operations, own.after.operations, 0),
                    ((own.before.flops or 0) / 1e6, (own.after.flops or 0) / 1e6, 1),
                    (own.before.parameters, own.after.parameters, 0),
                    ((own.before.bytes_moved or 0) / 1e6, (own.after.bytes_moved or 0) / 1e6, 1),
                )
            ),
            f"{own.seconds * 1e6:,.1f}",
            f"{own.gain.saved:.1%} ({own.gain.low:.1%} to {own.gain.high:.1%})",
            PUBLISHED.get(own.name, ""),
        ]
        for own in sorted(gains, key=lambda own: own.gain.saved, reverse=True)
    ]
    return text_table((*head, "published"), rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if no pass makes a rewrite."""
    options = _parse(arguments)
    names = options.only.split(",") if options.only else ALL
    if unknown := [name for name in names if name not in ALL]:
        raise SystemExit(f"no optional passes: {', '.join(unknown)}; there are {', '.join(ALL)}")
    with tempfile.TemporaryDirectory(prefix="gains-") as scratch:
        found: list[Fired] = []
        for subject in subjects(options.models, options.corpus, Path(scratch)):
            print(subject.name, file=sys.stderr, flush=True)
            if (own := fired(subject, options.threads)) is not None:
                found.append(own)
        gains: list[Gained] = []
        for name in names:
            each = [
                measured(own, name, options.threads, options.seconds)
                for own in best_of(found, name, options.count)
            ]
            if each:
                gains.append(best := max(each, key=lambda own: own.gain.saved))
                text = f"{name}: {best.gain.saved:.1%} of {best.model}"
                print(text, file=sys.stderr, flush=True)
    print(table(gains))
    idle = [name for name in names if not any(own.rewrites.get(name) for own in found)]
    print(f"\n{len(found)} models; fires nowhere: {', '.join(idle) or 'none'}")
    if options.json:
        Path(options.json).write_text(
            json.dumps([asdict(own) for own in gains], indent=1, default=sorted) + "\n"
        )
    return int(not gains)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("models", nargs="*", default=default_models())
    parser.add_argument("--corpus", help="the folder with the cases")
    parser.add_argument("--only", metavar="PASS,...", help="measure these passes")
    parser.add_argument("--models", dest="count", type=int, default=3, metavar="N")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each pair")
    parser.add_argument("--json", metavar="F")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.exit(main())
