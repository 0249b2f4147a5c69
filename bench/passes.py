"""
What each optional pass does to models, and that it does not change their results.

    python -m bench.passes [FOLDER | MODEL | tf1 | caffe | forms=REGEX ...]
                           [--only PASS,...] [--quick] [--jobs N | --ray [ADDRESS]]

For every model, and every optional pass that makes a rewrite in it: the outputs with that pass
alone, and with all passes but that one, are those of the legalized module, in the interpreter.
Passes on loops and memory are tried through C instead, and C is also compared with all optional
passes and without any. "Those" means the tolerance of `--check-each`; errors are printed in units
of it, and one above 1 makes the exit status 1. Printed are a table of the models (operations,
FLOPs, parameters and bytes moved, when legalized and when optimized), one of the passes (models
and rewrites), and the passes that fire nowhere. A pass that records no rewrites counts each time
it changes the module.

A folder stands for its NAME.onnx, with inputs "input:<tensor>" in NAME.npz if that is there; tf1
and caffe for the cases of the corpus (see corpus.py), and forms=REGEX for operators by their names
in operator_forms.py. Other inputs are random. `--quick` leaves out
C, and passes on loops and memory with it. Matrix products of the interpreter are those of BLAS.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from bench.measuring import text_table
from bench.rewrites import (
    ALL,
    CORE,
    FORM,
    LOOPS,
    REFUSALS,
    RewriteCounter,
    Subject,
    default_models,
    subjects,
)
from lowerdeck.compiler import import_and_lower, load
from lowerdeck.dialects.interpret import core_linear, run_module
from lowerdeck.engines import LostTask
from lowerdeck.lowering import compile_to_c
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.statistics import Statistics, statistics_of, symbol_sizes
from lowerdeck.tools.compare import Results, largest_error
from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs
from models.campaign import add_options, engine_of, main_of
from models.operator_forms import forms

INTERPRETED = ("optimized", "kernels")
"""Phases of which the interpreter runs the modules in about the time of the model."""


@dataclass
class Study:
    """What was found of one model."""

    name: str
    refusal: str = ""
    before: Statistics | None = None
    after: Statistics | None = None
    fires: Counter[str] = field(default_factory=Counter[str])
    """Rewrites by pass, with all passes."""
    alone: Counter[str] = field(default_factory=Counter[str])
    """Rewrites of each pass, without the others."""
    errors: dict[str, float] = field(default_factory=dict[str, float])
    """By what was tried, in units of what is allowed."""


class _Trial:
    """Runs one model in many ways."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.legal, _ = import_and_lower(subject.path, "legal", subject.options())
        given = subject.inputs
        self.inputs = sample_inputs(inputs_of(self.legal)) if given is None else given
        self.expected = interpreted(self.legal, self.inputs)

    def lower(self, phase: str, disable: Iterable[str]) -> tuple[ModuleOp, Counter[str]]:
        """The module at the end of a phase without some passes, and the rewrites made."""
        context = LowerdeckContext(options=self.subject.options(disable))
        module, counter = self.legal.clone(), RewriteCounter(context)
        run_to_phase(context, module, phase, counter, after="legal")
        return module, counter.rewrites

    def statistics(self, phase: str) -> Statistics:
        """The counts at the end of a phase, with all passes."""
        module = self.legal if phase == "legal" else self.lower(phase, ())[0]
        shapes = {name: array.shape for name, array in self.inputs.items()}
        return statistics_of(module, symbol_sizes(module, shapes))

    def interpret(self, phase: str, disable: Iterable[str]) -> tuple[float, Counter[str]]:
        """The error of the interpreted module, and the rewrites."""
        module, rewrites = self.lower(phase, disable)
        return largest_error(interpreted(module, self.inputs), self.expected), rewrites

    def compile(self, disable: Iterable[str]) -> float:
        """The error of the C."""
        from lowerdeck.model_folders import build_artifact

        context = LowerdeckContext(options=self.subject.options(disable))
        module, _ = import_and_lower(self.subject.path, "imported", self.subject.options())
        artifact = compile_to_c(context, module, "model")
        with tempfile.TemporaryDirectory(prefix="passes-") as folder:
            build_artifact(artifact, folder)
            return largest_error(dict(load(folder)(self.inputs)), self.expected)


def interpreted(module: ModuleOp, inputs: Mapping[str, NDArray[Any]]) -> Results:
    """The results of a module, with matrix products of BLAS."""
    with patch.object(core_linear, "matrix_product", np.matmul), np.errstate(all="ignore"):
        return run_module(module, inputs)


def study(subject: Subject, names: Sequence[str], quick: bool) -> Study:
    """Try passes on a model, one after the other."""
    found = Study(subject.name)
    try:
        trial = _Trial(subject)
        found.before, found.after = trial.statistics("legal"), trial.statistics("optimized")
        _, found.fires = trial.lower(INTERPRETED[-1] if quick else "scheduled", ())
        if not quick:
            found.errors["C, all passes"] = trial.compile(())
            found.errors["C, no pass"] = trial.compile(ALL)
    except REFUSALS as error:
        found.refusal = str(error).splitlines()[0]
        return found
    for name in names:
        if name in LOOPS:
            if not quick and found.fires[name]:
                found.errors[f"{name} alone, C"] = trial.compile(set(ALL) - {name})
                found.errors[f"all but {name}, C"] = trial.compile({name})
            continue
        phase = INTERPRETED[name in FORM]
        module, rewrites = trial.lower(phase, set(ALL) - {name})
        if rewrites[name]:
            found.alone[name] = rewrites[name]
            error = largest_error(interpreted(module, trial.inputs), trial.expected)
            found.errors[f"{name} alone"] = error
        if found.fires[name]:
            found.errors[f"all but {name}"], _ = trial.interpret(phase, {name})
    return found


def model_table(studies: Sequence[Study]) -> str:
    """The models, before and after."""
    head = ("model", "ops", "->", "MFLOPs", "->", "params", "->", "MB moved", "->", "worst error")
    rows: list[list[str]] = []
    for one in studies:
        if one.before is None or one.after is None:
            rows.append([one.name, "refused", *[""] * (len(head) - 2)])
            continue
        pair = (one.before, one.after)
        # A tilde: a size or a number of iterations depends on data.
        marks = ["~" if s.inexact else "" for s in pair]
        rows.append(
            [
                one.name,
                *(f"{s.operations:,}" for s in pair),
                *(f"{m}{(s.flops or 0) / 1e6:,.2f}" for m, s in zip(marks, pair, strict=True)),
                *(f"{s.parameters:,}" for s in pair),
                *(
                    f"{m}{(s.bytes_moved or 0) / 1e6:,.2f}"
                    for m, s in zip(marks, pair, strict=True)
                ),
                f"{max(one.errors.values(), default=0):.2g}",
            ]
        )
    return text_table(head, rows)


def pass_table(studies: Sequence[Study], names: Sequence[str]) -> str:
    """The passes: where they fire, and the errors without and with them."""
    head = ("pass", "models", "rewrites", "alone: models", "rewrites", "error", "all but: error")
    rows: list[list[str]] = []
    for name in names:
        fires = [one.fires[name] for one in studies if one.fires[name]]
        alone = [one.alone[name] for one in studies if one.alone[name]]
        errors = [
            [e for one in studies for text, e in one.errors.items() if text.split(",")[0] == arm]
            for arm in (f"{name} alone", f"all but {name}")
        ]
        rows.append(
            [
                name,
                *(str(count) for part in (fires, alone) for count in (len(part), sum(part))),
                *(f"{max(part):.2g}" if part else "-" for part in errors),
            ]
        )
    return text_table(head, rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 if a pass changes results."""
    options = _parse(arguments)
    quick: bool = options.quick
    names = options.only.split(",") if options.only else [*CORE, *FORM, *([] if quick else LOOPS)]
    if unknown := [name for name in names if name not in ALL]:
        raise SystemExit(f"no optional passes: {', '.join(unknown)}; there are {', '.join(ALL)}")
    found: dict[str, Study] = {}
    with tempfile.TemporaryDirectory(prefix="passes-") as scratch:
        given = [*subjects(options.models, options.corpus, Path(scratch))]
        work = partial(_studied, names, quick)
        for subject, future in engine_of(options).deal(work, given):
            found[subject.name] = one = _outcome(subject, future)
            worst = max(one.errors.values(), default=0.0)
            text = (
                f"refused: {one.refusal[:80]}"
                if one.refusal
                else (f"{len(one.errors)} comparisons, worst error {worst:.2g}")
            )
            print(f"{one.name}: {text}", file=sys.stderr, flush=True)
    studies = [found[subject.name] for subject in given]
    print(model_table(studies), end="\n\n")
    print(pass_table(studies, names), end="\n\n")
    idle = [n for n in names if not any(one.fires[n] or one.alone[n] for one in studies)]
    print(f"fires nowhere: {', '.join(idle) or 'none'}")
    wrong = [(one.name, t, e) for one in studies for t, e in one.errors.items() if not e <= 1]
    for name, text, error in wrong:
        print(f"wrong: {name}: {text}: {error:.3g} times what is allowed")
    count = sum(len(one.errors) for one in studies)
    refused = sum(bool(one.refusal) for one in studies)
    print(f"{len(studies)} models, {refused} refused; {count} comparisons, {len(wrong)} wrong")
    return int(bool(wrong) or not count)


def _studied(names: Sequence[str], quick: bool, subject: Subject) -> Study:
    """`study`; on a node that does not see the file of an operator, it is written again."""
    if Path(subject.path).exists() or subject.name not in forms():
        return study(subject, names, quick)
    with tempfile.NamedTemporaryFile(prefix="passes-", suffix=".onnx") as file:
        file.write(forms()[subject.name].build()[0].SerializeToString())
        file.flush()
        return study(replace(subject, path=file.name), names, quick)


def _outcome(subject: Subject, future: Future[Study]) -> Study:
    """What was found; a process that ends is an error beyond all bounds."""
    try:
        return future.result()
    except LostTask as error:
        return Study(subject.name, errors={f"lost: {error}": math.inf})


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("models", nargs="*", default=default_models())
    parser.add_argument("--corpus", help="the folder with the cases")
    parser.add_argument("--only", metavar="PASS,...", help="try these passes")
    parser.add_argument("--quick", action="store_true", help="no C, nothing below kernels")
    add_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.exit(main_of(__spec__))
