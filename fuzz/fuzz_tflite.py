"""
Random TensorFlow Lite models, by the interpreter and as C, beside LiteRT's reference kernels.

    python -m fuzz.fuzz_tflite --graphs 2000 --seed S [--jobs N | --ray [ADDRESS]]
        [--litert PYTHON] [--out FOLDER] [--interpret]

Each graph of `tflite_graphs` is written as a file, read, legalized and run in the interpreter of
core, and compiled to C, of which one run of gcc compiles many (not with `--interpret`); models that
remember are called several times. `--litert` names a Python that has ai-edge-litert
(`run_in_litert`). Integers have to be equal, floats to be close to one another. Where the reference
kernels alone differ, the graph is counted as `disputed` if the optimized ones give what core gives,
or if each operator alone does on the values that core has: LiteRT's kernels at times write beyond
their tensors, into what others have computed.

The first graph of each kind with which something is wrong is run with all its tensors as outputs,
to say which operator differs first; `--out` is the folder for its file. The exit status is 1 if a
graph is computed wrong or something crashes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from fuzz.fuzzing import (
    QUICK,
    Batch,
    Mismatch,
    Outcome,
    Tally,
    Way,
    batches_of,
    build,
    deal,
    flags_of,
    outcome_of,
    settle,
    way_of,
)
from fuzz.tflite_graphs import Array, Program, random_program
from fuzz.tflite_nodes import RECIPES
from lowerdeck.binding import Binding
from lowerdeck.dialects.interpret.calls import Calls
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.frontends.tflite.import_ import import_model
from lowerdeck.lowering import emit
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from models.campaign import add_options, engine_of, main_of

_RELATIVE, _ABSOLUTE = 2e-4, 1e-5
"""How far floats may be apart, of the largest of a tensor, and in any case."""
_STEP = 0.05
"""The same where a bit may become a step of bytes, which goes on from there."""
_LITERT_SECONDS = 20

_FINE = ("ok", "alone", "invalid", "disputed")
"""Beside `ok`: LiteRT does not run it, nobody takes it, and its kernels do not agree."""

Results = Sequence[Mapping[str, Any]]
"""The outputs of each call."""


@dataclass(frozen=True)
class Ready:
    """A graph whose C is there, and what it is to give."""

    seed: int
    feeds: Sequence[Mapping[str, Array]]
    relative: float
    """How far floats may be apart."""
    artifact: CArtifact
    core: Results
    litert: Results | None
    is_disputed: bool = False
    """True if what is expected is not what the reference kernels gave."""


def tolerance(program: Program) -> float:
    """How far floats of a graph may be apart, of the largest of a tensor."""
    return _STEP if program.requantizes else _RELATIVE


def compare(way: str, found: Results, want: Results, relative: float) -> None:
    """Mismatch if results differ in type or shape, integers at all, floats by more than a bit."""
    if text := difference_of(found, want, relative):
        raise Mismatch(f"{way}: {text}")


def difference_of(found: Results, want: Results, relative: float) -> str:
    """Where the first difference is; empty if there is none."""
    for call, (got, wanted) in enumerate(zip(found, want, strict=True)):
        for name, value in wanted.items():
            if text := difference(np.asarray(got[name]), value, relative):
                return f"call {call}, {name}: {text}"
    return ""


def difference(got: Array, want: Array, relative: float = _RELATIVE) -> str:
    """How a tensor differs; empty if it does not."""
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
    if want.dtype.kind != "f":
        if not (count := int((got != want).sum())):
            return ""
        place = _first(got != want)
        return f"{count} of {want.size} integers: {got[place]} at {place}, expected {want[place]}"
    # Reference kernels clamp what has no activation to the largest floats, XNNPACK does not.
    limit = np.finfo(want.dtype).max
    want = np.where(np.isinf(got) & (want == np.copysign(limit, got)), got, want)
    finite = np.abs(want[np.isfinite(want)])
    room = _ABSOLUTE + relative * float(finite.max(initial=0))
    with np.errstate(invalid="ignore"):
        near = np.isclose(got, want, rtol=relative, atol=room, equal_nan=True)
    if near.all():
        return ""
    place = _first(~near)
    return f"{int((~near).sum())} of {want.size} floats: {got[place]} at {place}, {want[place]}"


def _first(wrong: Array) -> tuple[int, ...]:
    """The place of the first true element; of a scalar, none."""
    return tuple(int(k[0]) for k in np.nonzero(wrong)) if wrong.ndim else ()


# Ways


def in_litert(programs: Mapping[int, Program], folder: Path, python: str) -> None:
    """Let LiteRT compute all graphs; where its process ends, the next one goes on."""
    for seed, program in programs.items():
        arrays = {f"{k}/{n}": v for k, feed in enumerate(program.feeds) for n, v in feed.items()}
        np.savez(folder / f"{seed}.npz", **cast(Any, arrays))
    command = [python, str(Path(__file__).with_name("run_in_litert.py")), str(folder)]
    for _ in programs:
        try:
            done = subprocess.run(
                command, capture_output=True, check=False, timeout=_LITERT_SECONDS
            )
        except subprocess.TimeoutExpired:
            continue
        if not done.returncode:
            return


def answers(path: Path) -> Results | None:
    """What LiteRT gave; None if it runs the file not."""
    if not path.exists():
        return None
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    calls: dict[str, dict[str, Any]] = {}
    for key, array in arrays.items():
        call, _, name = key.partition("/")
        calls.setdefault(call, {})[name] = array
    return [calls[call] for call in sorted(calls)] or None


def interpreted(calls: Calls, feeds: Sequence[Mapping[str, Array]]) -> Results:
    """What the interpreter gives for the calls."""
    with np.errstate(all="ignore"):
        return [calls(feed) for feed in feeds]


@dataclass(frozen=True)
class Judged:
    """A graph whose legalized form gives the results."""

    module: ModuleOp
    context: LowerdeckContext
    core: Results
    litert: Results | None
    is_disputed: bool


def legal(path: Path, way: Way = QUICK) -> tuple[ModuleOp, LowerdeckContext]:
    """A file in core."""
    module = import_model(path)
    context = LowerdeckContext(options=CompileOptions(target=way.target, threads=way.threads))
    register_dialects(context)
    run_to_phase(context, module, "legal")
    return module, context


def judged(path: Path, program: Program, way: Way, litert: str | None) -> Judged:
    """A graph in the interpreter of core; Mismatch if it gives something else."""
    want = answers(path.with_suffix(".out.npz"))
    module, context = legal(path, way)
    core = interpreted(Calls(module), program.feeds)
    is_disputed = False
    if want is not None and litert is not None:
        try:
            compare("core", core, want, tolerance(program))
        except Mismatch:
            want = answers(path.with_suffix(".quick.npz"))
            if want is None or difference_of(core, want, tolerance(program)):
                want = None
                if not agrees_by_operators(program, litert):
                    raise
            is_disputed = True
    return Judged(module, context, core, want, is_disputed)


def agrees_by_operators(program: Program, litert: str) -> bool:
    """True if each operator alone gives what core does, of the values that core has."""
    with tempfile.TemporaryDirectory(prefix="fuzz-tflite-") as name:
        folder = Path(name)
        whole = folder / "wide.tflite"
        whole.write_bytes(program.wide().data)
        results = interpreted(Calls(legal(whole)[0]), program.feeds)
        whole.unlink()
        parts = dict(enumerate(program.parts(results)))
        for number, part in parts.items():
            (folder / f"{number}.tflite").write_bytes(part.data)
        in_litert(parts, folder, litert)
        for number in parts:
            want = answers(folder / f"{number}.out.npz")
            if want is None or difference_of(results, want, tolerance(program)):
                return False
    return True


def lowered(item: Judged, program: Program, seed: int) -> Ready:
    """The C of a graph."""
    run_to_phase(item.context, item.module, "scheduled", after="legal")
    artifact = emit(item.context, item.module, f"g{seed}")
    relative = tolerance(program)
    return Ready(seed, program.feeds, relative, artifact, item.core, item.litert, item.is_disputed)


def run_c(item: Ready, library: Path, threads: int) -> None:
    """Mismatch if the C gives something else."""
    binding = Binding(str(library.parent), item.artifact.metadata, str(library), threads)
    state = binding.new_state() if binding.states else None
    names = [info.name for info in binding.outputs]
    found: list[Mapping[str, Any]] = []
    for feed in item.feeds:
        given = [feed[info.name] for info in binding.inputs]
        found.append(dict(zip(names, binding.run(given, state), strict=True)))
    wanted = [{name: call[name] for name in names} for call in item.core]
    for results in (wanted, item.litert):
        if results is not None:
            compare("C", found, results, item.relative)


# Checks


def check(
    programs: Mapping[int, Program], way: Way, litert: str | None, *, as_c: bool
) -> list[Outcome]:
    """What becomes of graphs, by seed."""
    alone = "ok" if litert is None else "alone"
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="fuzz-tflite-") as name:
        folder = Path(name)
        for seed, program in programs.items():
            (folder / f"{seed}.tflite").write_bytes(program.data)
        if litert is not None:
            in_litert(programs, folder, litert)
        ready: list[Ready] = []
        for seed, program in programs.items():
            path = folder / f"{seed}.tflite"

            def prepare(path: Path = path, seed: int = seed) -> None:
                item = judged(path, programs[seed], way, litert)
                if as_c:
                    ready.append(lowered(item, programs[seed], seed))
                else:
                    found.append(Outcome(seed, _right(item, alone)))

            outcome = outcome_of(seed, prepare)
            if outcome is not None:
                is_invalid = outcome.status == "refused" and path.with_suffix(".no").exists()
                found.append(Outcome(seed, "invalid", outcome.message) if is_invalid else outcome)
        found += _run(ready, way, folder, alone)
        return found


def _right(item: Ready | Judged, alone: str) -> str:
    """The status of a graph that is right; `alone` where LiteRT does not run it."""
    return "disputed" if item.is_disputed else "ok" if item.litert is not None else alone


def _run(ready: Sequence[Ready], way: Way, folder: Path, alone: str) -> list[Outcome]:
    """Run C."""
    if not ready:
        return []
    library = build([item.artifact for item in ready], folder, flags_of(ready[0].artifact, way))
    found: list[Outcome] = []
    for item in ready:
        outcome = outcome_of(item.seed, lambda item=item: run_c(item, library, way.threads))
        found.append(outcome or Outcome(item.seed, _right(item, alone)))
    return found


def first_difference(program: Program, litert: str) -> str:
    """The operator that is the first to differ, if the interpreter does."""
    with tempfile.TemporaryDirectory(prefix="fuzz-tflite-") as name:
        path = Path(name) / "0.tflite"
        path.write_bytes(program.wide().data)
        in_litert({0: program}, Path(name), litert)
        want = answers(path.with_suffix(".out.npz"))
        if want is None:
            return "not run with all its tensors"
        found = interpreted(Calls(legal(path)[0]), program.feeds)
    for got, wanted in zip(found, want, strict=True):
        for name in sorted(wanted, key=lambda text: int(text[1:])):
            if text := difference(np.asarray(got[name]), wanted[name], tolerance(program)):
                return f"{program.maker[name]} gives {name}: {text}"
    return "not with all its tensors"


def _batch(batch: Batch, litert: str | None, *, as_c: bool) -> list[Outcome]:
    settle()
    programs = {seed: random_program(seed, RECIPES) for seed in batch.seeds}
    outcomes: list[Outcome] = []
    for outcome in check(programs, way_of(batch.seeds[0]), litert, as_c=as_c):
        if outcome.status not in _FINE and outcome.kind not in batch.known:
            text = outcome.message
            if outcome.status == "wrong" and litert is not None:
                text = f"{first_difference(programs[outcome.seed], litert)}\n{text}"
            files = {".tflite": programs[outcome.seed].data}
            outcome = replace(outcome, shrunk=replace(outcome, message=text, files=files))
        outcomes.append(outcome)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """Check graphs and print a line for each with which something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="that of the first graph")
    add_options(parser)
    parser.add_argument("--litert", help="a Python that has ai-edge-litert")
    parser.add_argument("--out", type=Path, help="the folder for graphs that are not as expected")
    parser.add_argument("--interpret", action="store_true", help="do not compile C")
    options = parser.parse_args(arguments)
    tally = Tally(_FINE, options.out)
    batches = batches_of(options.seed, options.graphs)
    work = partial(_batch, litert=options.litert, as_c=not options.interpret)
    deal(engine_of(options), work, batches, tally)
    return tally.conclude()


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
