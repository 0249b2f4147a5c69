"""
Random programs through every pass of `core` alone, and through all of them.

    python -m fuzz.fuzz_passes --programs 10000 [--seed S] [--only PASS,...] [--out FOLDER]
        [--jobs N | --ray [ADDRESS]]
    python -m fuzz.fuzz_passes --graphs 2000 [...]

Programs of `core_programs`, made by hypothesis, and the graphs of `fuzz_onnx`, legalized, are run
by the interpreter before and after each pass, and after the passes of `optimized` in their order.
What comes out has to be valid, and its results those of before: bit for bit after passes that
promise it, else within the tolerance of `--check-each`. Results that differ by more are compared
with runs in which every float has an error of a few last bits: what these errors explain is counted
as rounding. Graphs are also compared with onnx.reference and onnxruntime, before and after all
passes.

A module that a pass computes wrong, or that it fails in, is shrunk, printed with the pass and its
patterns, and written to `--out` as .mlir beside .npz with its inputs, one of each kind. The exit
status is 1 if there is any.
"""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import hypothesis
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from fuzz import onnx_graphs
from fuzz.core_programs import Array, random_program
from fuzz.fuzz_onnx import Witnesses, cause_of_death
from fuzz.fuzzing import BATCH_SECONDS, REFUSALS, Mismatch
from fuzz.onnx_graphs import Program
from fuzz.onnx_witnesses import Unsupported
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import MulOp
from lowerdeck.dialects.core.index_maps import MovesElements
from lowerdeck.dialects.core.types import (
    element_type,
    is_float,
    numpy_dtype,
    static_shape,
)
from lowerdeck.dialects.frameworks import LEGALIZATION
from lowerdeck.dialects.interpret import InterpretError, Value, run_module
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.engines import Engine, LostTask
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.lowering.pipeline import ALL_PASSES, run_to_phase
from lowerdeck.passes.fold.fast_math import FastMathPass
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.contracts import check_contract
from lowerdeck.passes.machinery.driver import PassGroup
from lowerdeck.passes.machinery.options import CompileOptions
from lowerdeck.passes.machinery.pipeline import PASSES, passes_of_phase
from lowerdeck.passes.machinery.stages import Stage
from lowerdeck.tools.compare import Results, difference
from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs
from lowerdeck.tools.shrink_ir import variants
from lowerdeck.tools.shrinking import shrink
from models.campaign import add_options, engine_of, main_of

EVERY = tuple(
    name
    for name in PASSES
    if name not in LEGALIZATION and not issubclass(PASSES[name](), PassGroup | Stage | FastMathPass)
)
"""The passes that are tried alone: those that promise to keep results."""

RANDOMS = st.randoms(use_true_random=True) | st.randoms(use_true_random=False)
"""Even draws, and those of hypothesis, which likes extremes and repeats itself."""

ALL = "all"
"""What the passes of `optimized`, one after the other, are called."""

EXACT = frozenset(
    {
        "cse",
        "dce",
        "fold-constants",
        "fold-identities",
        "fold-control-flow",
        "fold-symbols",
        "fix-input-sizes",
        "simplify-arithmetic",
        "simplify-movement",
        "reorder-binary",
        "infer-shapes",
        "cancel-transpose",
        "count-iterations",
        "loop-to-scan",
        "hoist-invariants",
        "unroll-loops",
    }
)
"""Passes after which results have the same bits."""

_MAX_STEPS = 20_000
_BATCH = 100
"""Programs of a task; hypothesis starts anew with each."""
_GRAPHS = 10
_NOISES = 6
"""Runs with errors, whose results say how much rounding explains."""
_MOST_SHRUNK = 40


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a pass."""

    name: str
    """That of the pass, or `all`."""
    kind: str
    """crashes, invalid (its result), fails (to run), differs."""
    message: str
    patterns: str
    """Those that the pass has applied."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What findings of one mistake have in common."""
        first = self.message.partition("\n")[0]
        return self.name, self.kind, self.patterns if self.kind == "differs" else first[:60]


class Subject:
    """A module, its inputs, and its results."""

    def __init__(self, module: ModuleOp, feeds: Sequence[Mapping[str, Array]]) -> None:
        self.module = module
        self.feeds: list[Mapping[str, Array]] = []
        """Those on which it runs; if there are none, passes may refuse it."""
        self.expected: list[Results] = []
        for feed in feeds:
            try:
                self.expected.append(interpreted(module, feed))
                self.feeds.append(feed)
            except InterpretError:
                continue
        self._copy: ModuleOp | None = None
        self._noisy: list[list[Results]] | None = None
        self.rewrites: Counter[str] = Counter()
        """By pass."""
        self.rounded = 0
        """Comparisons that only errors of floats explain."""

    def findings(self, names: Sequence[str]) -> Iterator[Finding]:
        """What is wrong with passes."""
        for name in names:
            if (found := self.check(name)) is not None:
                yield found

    def check(self, name: str) -> Finding | None:
        """What is wrong with a pass, or with all; None if nothing is."""
        # A copy that passes have left as it is serves the next one.
        module, self._copy = self._copy or self.module.clone(), None
        context = LowerdeckContext(options=CompileOptions())
        recorder = context.recorder
        kind = "crashes"

        def finding(message: str) -> Finding:
            applied = sorted({f"{own}/{pattern}" for own, pattern in recorder.statistics})
            return Finding(name, kind, message, ", ".join(applied))

        try:
            for each in passes_of_phase("optimized") if name == ALL else [name]:
                ALL_PASSES[each]()().apply(context, module)
            for (own, _), count in recorder.statistics.items():
                self.rewrites[own if name != ALL else ALL] += count
            if not recorder.rewrites and module.is_structurally_equivalent(self.module):
                self._copy = module
                return None
            kind = "invalid"
            module.verify()
            check_contract(module, "optimized")
            kind = "fails"
            found = [interpreted(module, feed) for feed in self.feeds]
        except Exception as error:  # whatever it is, it is what is looked for
            if not self.feeds and isinstance(error, PassFailedException):
                return None
            text = "".join(traceback.format_exception(error, limit=-3))
            return finding(f"{type(error).__name__}: {error}"[:300] + f"\n{text[-2000:]}")
        kind = "differs"
        for run, results in enumerate(found):
            if (text := self.difference(name, run, results)) is not None:
                return finding(text)
        return None

    def difference(self, name: str, run: int, found: Results) -> str | None:
        """How results of one of the runs, after a pass, differ from those of before; or None."""
        expected = self.expected[run]
        if name in EXACT:
            return bit_difference(found, expected)
        if (text := difference(found, expected)) is None:
            return None
        if self._noisy is None:
            modules = [noisy(self.module, seed) for seed in range(_NOISES)]
            self._noisy = [[interpreted(m, feed) for m in modules] for feed in self.feeds]
        if any(
            not _is_explained(found[k], expected[k], [n[k] for n in self._noisy[run]])
            for k in expected
        ):
            return text
        self.rounded += 1
        return None


def interpreted(module: ModuleOp, feed: Mapping[str, Array]) -> Results:
    """The results of a module, in any of the shapes that numpy warns about."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run_module(module, feed, max_steps=_MAX_STEPS)


def bit_difference(found: Results, expected: Results) -> str | None:
    """What differs between two runs, or None: types, shapes and bits; all NaNs are one."""
    for name, reference in expected.items():
        value = found[name]
        assert isinstance(value, np.ndarray)
        assert isinstance(reference, np.ndarray)
        if (value.dtype, value.shape) != (reference.dtype, reference.shape):
            return difference(found, expected)
        if _bits(value) != _bits(reference):
            return difference(found, expected) or f"output '{name}' differs in its last bits"
    return None


def _bits(array: NDArray[Any]) -> bytes:
    if array.dtype.kind in "fV":
        array = np.where(array != array, array.dtype.type(1), array)
    return array.tobytes()


# Rounding


def noisy(module: ModuleOp, seed: int) -> ModuleOp:
    """The module with a relative error of a few last bits in every float that is computed."""
    random = np.random.default_rng(seed)
    copy = module.clone()
    for op in list(copy.walk()):
        if isinstance(op, ConstantOp | MovesElements) or op.regions:
            continue
        for result in op.results:
            if is_float(element_type(result)):
                _disturb(op, result, random)
    return copy


def _disturb(op: Operation, value: SSAValue, random: np.random.Generator) -> None:
    dtype = numpy_dtype(element_type(value))
    epsilon = {8: 1e-15, 4: 5e-7}.get(dtype.itemsize, 2e-3 if dtype.kind == "f" else 1e-2)
    factors = 1 + epsilon * random.uniform(-1, 1, static_shape(value) or ())
    factor = ConstantOp.of(factors.astype(dtype))
    product = MulOp.create(operands=[value, factor.result], result_types=[value.type])
    value.replace_uses_with_if(product.results[0], lambda use: use.operation is not product)
    Rewriter.insert_op([factor, product], InsertPoint.after(op))


def _is_explained(found: Value, expected: Value, noises: Sequence[Value]) -> bool:
    """True if errors change each element that differs about as much, or its meaning."""
    assert isinstance(found, np.ndarray)
    assert isinstance(expected, np.ndarray)
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return False
    others = [np.asarray(other) for other in noises]
    if any(other.shape != expected.shape for other in others):
        return True  # a size depends on a last bit
    with np.errstate(all="ignore"):
        wide, reference = found.astype(np.float64), expected.astype(np.float64)
        spread = np.zeros(expected.shape)
        for other in others:
            apart = np.abs(other.astype(np.float64) - reference)
            is_same = (other == expected) | ((other != other) & (expected != expected))
            spread = np.maximum(spread, np.where(is_same, 0.0, np.nan_to_num(apart, nan=np.inf)))
        same = (wide == reference) | (np.isnan(wide) & np.isnan(reference))
        if expected.dtype.kind in "biu":
            return bool((same | (spread > 0)).all())
        scale = np.nan_to_num(np.abs(reference), posinf=0.0).max(initial=1.0)
        small = {8: 1e-9, 4: 1e-4}.get(expected.dtype.itemsize, 1e-1) * scale
        return bool((same | (np.abs(wide - reference) <= 16 * spread + small)).all())


# Shrinking


def shrunk(subject: Subject, finding: Finding) -> tuple[Subject, Finding]:
    """The smallest module in which a pass makes the same mistake."""
    best = [(subject, finding)]

    def is_interesting(module: ModuleOp) -> bool:
        try:
            check_contract(module, "optimized")
            smaller = Subject(module, [_fitting(module, feed) for feed in subject.feeds])
            found = smaller.check(finding.name)
        except Exception:  # a variant that makes no sense
            return False
        if found is None or found.kind != finding.kind:
            return False
        best[0] = smaller, found
        return True

    shrink(subject.module, variants, is_interesting, key=str, max_trials=600)
    return best[0]


def _fitting(module: ModuleOp, feed: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs of a variant: those of before, and others for what has become one."""
    found = sample_inputs(inputs_of(module))
    for name, array in found.items():
        own = feed.get(name)
        if own is not None and (own.ndim, own.dtype) == (array.ndim, array.dtype):
            found[name] = own
    return found


# The whole


Key = tuple[str, str, str]


@dataclass(frozen=True)
class Told:
    """A finding as it is told, with the smallest module."""

    key: Key
    title: str
    finding: Finding
    module: str
    feed: Mapping[str, Array]


@dataclass(frozen=True)
class Part:
    """What one task is about: a batch of programs, or graphs."""

    kind: str
    """program or graph."""
    first: int
    count: int
    seed: int
    known: frozenset[Key] = frozenset()
    """Findings that need not be told."""

    def halves(self) -> list[Part]:
        """Two smaller ones; none of what cannot be divided."""
        if self.kind != "graph" or self.count < 2:
            return []
        half = self.count // 2
        return [
            replace(self, count=half),
            replace(self, first=self.first + half, count=self.count - half),
        ]


class Fuzz:
    """Counts what becomes of programs, and keeps the first finding of each kind."""

    def __init__(self, names: Sequence[str], known: frozenset[Key] = frozenset()) -> None:
        self.names, self.known = names, known
        self.counts: Counter[str] = Counter()
        self.rewrites: Counter[str] = Counter()
        self.kinds: Counter[Key] = Counter()
        self.told: list[Told] = []

    def try_part(self, part: Part) -> None:
        """The programs or graphs of a task."""
        if part.kind == "program":
            self.try_programs(part)
        else:
            for number in range(part.first, part.first + part.count):
                self.try_graph(number)

    def try_module(
        self, module: ModuleOp, feeds: Sequence[Mapping[str, Array]], title: str
    ) -> Subject:
        """Each pass on a module."""
        subject = Subject(module, feeds)
        self.counts["cannot be run"] += not subject.feeds
        for finding in subject.findings(self.names):
            self.counts["findings"] += 1
            self.report(subject, finding, title)
        self.counts["programs"] += 1
        self.counts["explained by rounding"] += subject.rounded
        self.rewrites.update(subject.rewrites)
        return subject

    def report(self, subject: Subject, finding: Finding, title: str) -> None:
        """Keep a finding, with the smallest module, if it is the first of its kind."""
        key = finding.key
        self.kinds[key] += 1
        if self.kinds[key] > 1 or key in self.known:
            return
        if len(self.kinds) <= _MOST_SHRUNK:
            subject, finding = shrunk(subject, finding)
        feed = dict(subject.feeds[0]) if subject.feeds else {}
        self.told.append(Told(key, title, finding, str(subject.module), feed))

    def try_programs(self, part: Part) -> None:
        """A batch of programs of hypothesis."""

        @hypothesis.seed(part.seed * 100_003 + part.first)
        @hypothesis.settings(
            max_examples=part.count,
            phases=[hypothesis.Phase.generate],
            database=None,
            deadline=None,
            suppress_health_check=list(cast("Any", hypothesis.HealthCheck)),
        )
        @hypothesis.given(RANDOMS)
        def trial(random: Random) -> None:
            program = random_program(random)
            self.try_module(program.module, program.feeds, "program")

        trial()

    def try_graph(self, seed: int) -> None:
        """One graph: all passes, and what they give beside what others give."""
        program = onnx_graphs.random_program(seed)
        try:
            witnesses = [Witnesses(program)]
            if program.other is not None:
                witnesses.append(Witnesses(Program(program.model, program.other), is_other=True))
        except Unsupported:
            self.counts["nobody computes it"] += 1
            return
        context = LowerdeckContext(options=CompileOptions())
        register_dialects(context)
        try:
            module = import_model(program.model)
            run_to_phase(context, module, "legal")
        except REFUSALS:
            self.counts["refused"] += 1
            return
        subject = self.try_module(module, [w.program.feed for w in witnesses], f"graph {seed}")
        optimized = subject.module.clone()
        run_to_phase(context, optimized, "optimized", after="legal")
        for one in witnesses:
            if not any(feed is one.program.feed for feed in subject.feeds):
                continue
            for way, each in (("legal", subject.module), ("optimized", optimized)):
                try:
                    one.check(way, interpreted(each, one.program.feed))
                except Mismatch as error:
                    self.counts["findings"] += 1
                    finding = Finding(ALL, "differs from witnesses", str(error), "")
                    self.kinds[finding.key] += 1
                    feed = one.program.feed
                    self.told.append(Told(finding.key, f"graph {seed}", finding, str(each), feed))

    def add(self, other: Fuzz, out: Path | None) -> None:
        """What another process has found; what is new is printed, and written to `out`."""
        self.counts.update(other.counts)
        self.rewrites.update(other.rewrites)
        for told in other.told:
            if told.key not in self.known:
                self.known |= {told.key}
                _tell(told, len(self.known), out)
        self.kinds.update(other.kinds)

    def summary(self) -> str:
        """Rewrites by pass, and what was found."""
        lines = [f"{self.rewrites[name]:8} rewrites  {name}" for name in self.names]
        lines += [f"{n:8} times  {' '.join(key)}" for key, n in self.kinds.most_common()]
        idle = [name for name in self.names if not self.rewrites[name]]
        lines.append(f"fires nowhere: {', '.join(idle) or 'none'}")
        lines.append(", ".join(f"{number} {what}" for what, number in self.counts.items()))
        return "\n".join(lines)


def _tell(told: Told, number: int, out: Path | None) -> None:
    finding = told.finding
    print(f"{number}. {told.title}: {finding.name} {finding.kind}: {finding.message}")
    print(f"patterns: {finding.patterns or 'none'}\n{told.module}", flush=True)
    for name, array in told.feed.items():
        print(f"{name} = {np.array2string(array, threshold=40)}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        stem = out / f"{number}-{finding.name}-{finding.kind.replace(' ', '-')}"
        stem.with_suffix(".mlir").write_text(f"{told.module}\n")
        cast("Any", np).savez(stem.with_suffix(".npz"), **told.feed)


def tried(names: Sequence[str], part: Part) -> Fuzz:
    """What becomes of the programs of a task."""
    fuzz = Fuzz(names, part.known)
    fuzz.try_part(part)
    return fuzz


def parts_of(programs: int, graphs: int, seed: int) -> list[Part]:
    """The tasks of a campaign."""
    found = [
        Part("program", start // _BATCH, min(_BATCH, programs - start), seed)
        for start in range(0, programs, _BATCH)
    ]
    end = seed + graphs
    for start in range(seed, end, _GRAPHS):
        found.append(Part("graph", start, min(_GRAPHS, end - start), seed))
    return found


def campaign(
    engine: Engine, names: Sequence[str], parts: Sequence[Part], out: Path | None = None
) -> Fuzz:
    """Everything that is found; a part whose process ends is halved until it is known where."""
    whole = Fuzz(names)
    while parts:
        halves: list[Part] = []
        tasks = (replace(part, known=whole.known) for part in parts)
        for part, future in engine.deal(partial(tried, names), tasks, seconds=BATCH_SECONDS):
            try:
                whole.add(future.result(), out)
            except LostTask:
                halves += part.halves()
                if part.count == 1 or part.kind == "program":
                    _lost(whole, part)
        parts = halves
    return whole


def _lost(fuzz: Fuzz, part: Part) -> None:
    """Count a part whose process ended: witnesses may end that of a graph."""
    status, message = "lost", "the process ends"
    if part.kind == "graph":
        status, message = cause_of_death(part.first)
    print(f"{part.kind} {part.first}: {message}", flush=True)
    fuzz.counts["findings" if status == "lost" else "nobody computes it"] += 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Try passes on programs, and print what is wrong with them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--programs", type=int, default=0, help="how many programs of core")
    parser.add_argument("--graphs", type=int, default=0, help="how many graphs of ONNX")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="PASS,...", help="try these passes")
    parser.add_argument("--out", type=Path, help="the folder for modules that are computed wrong")
    add_options(parser)
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else [*EVERY, ALL]
    if unknown := sorted({*names} - {*EVERY, ALL}):
        raise SystemExit(f"no passes of core: {', '.join(unknown)}; there are {', '.join(EVERY)}")
    if not options.programs + options.graphs:
        options.programs = _BATCH
    parts = parts_of(options.programs, options.graphs, options.seed)
    fuzz = campaign(engine_of(options), names, parts, options.out)
    print(fuzz.summary())
    return int(bool(fuzz.counts["findings"]) or not fuzz.counts["programs"])


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
