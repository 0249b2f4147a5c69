"""
Random quantized ONNX graphs, which are to give the same bytes on every target.

    python -m fuzz.fuzz_quantized --graphs 400 --seed S [--ways TARGET[:COMPILER[:THREADS]] ...]
        [--jobs N | --ray [ADDRESS]] [--out FOLDER]

Each graph of `quantized_graphs` is run in the interpreter when it is optimized, and compiled to C
for each target that runs here, of which one run of a compiler compiles many. All have to give the
same integers. Those of the graph as it is imported may differ by one step, for floats there are
rounded. What differs is written to `--out` as .onnx beside .npz with its input. The exit status is
1 if a graph is computed wrong or something crashes.
"""

from __future__ import annotations

import argparse
import io
import shutil
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
    Batch,
    Mismatch,
    Outcome,
    Tally,
    batches_of,
    build,
    deal,
    outcome_of,
)
from fuzz.quantized_graphs import Program, random_program
from lowerdeck.binding import Binding
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.lowering import emit
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.strategies.exact_winograd import ExactWinograd
from lowerdeck.lowering.targets import GCC_FLAGS, obstacle
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from models.campaign import add_options, engine_of, main_of

WAYS = (
    "x86-64-amx",
    "x86-64-zen4",
    "x86-64-vnni:clang:2",
    "x86-64-v4:gcc:2",
    "x86-64-v3",
    "x86-64-v3:clang:2",
    "x86-64:clang",
    "c99",
)
_STEPS = 1
"""By which integers may differ from those of floats, for each operator on the way."""

Results = Mapping[str, Any]


@dataclass(frozen=True)
class CWay:
    """What a graph is compiled for, by which compiler, and with how many threads."""

    target: str
    compiler: str = "gcc"
    threads: int = 1

    @staticmethod
    def of(text: str) -> CWay:
        """As on the command line."""
        target, *rest = text.split(":")
        compiler, threads = [*rest, *("gcc", "1")[len(rest) :]]
        return CWay(target, compiler, int(threads))

    def __str__(self) -> str:
        return f"{self.target}, {self.compiler}, {self.threads} thread(s)"


@dataclass(frozen=True)
class Ready:
    """A graph that is optimized, and what it gives."""

    module: ModuleOp
    want: Results


def prepared(program: Program) -> Ready:
    """A graph up to the phase that all targets share; Mismatch if it is far from the imported."""
    module, context = import_model(program.model), _context("c99")
    run_to_phase(context, module, "legal")
    with np.errstate(all="ignore"):
        before = run_module(module, program.feed)
        run_to_phase(context, module, "optimized", after="legal")
        after = run_module(module, program.feed)
    room = _STEPS * len(program.model.graph.node)
    for name, value in before.items():
        apart = np.abs(np.asarray(value).astype(np.int64) - np.asarray(after[name]))
        if apart.max(initial=0) > room:
            raise Mismatch(f"optimized: {name}: {int(apart.max())} steps apart")
    return Ready(module, after)


def optimized_results(path: str, feed: Results) -> Results:
    """What the interpreter gives for a file when it is optimized."""
    module, context = import_model(path), _context("c99")
    run_to_phase(context, module, "optimized")
    with np.errstate(all="ignore"):
        return run_module(module, feed)


def _context(target: str, threads: int = 1) -> LowerdeckContext:
    # With threads Winograd's algorithm is asked for: graphs are too small for it to be faster.
    strategy = (ExactWinograd.name,) if threads > 1 else ()
    options = CompileOptions(target=target, threads=threads, strategy=strategy)
    context = LowerdeckContext(options=options)
    register_dialects(context)
    return context


def compiled(item: Ready, way: CWay, name: str) -> CArtifact:
    """The C for a target."""
    module, context = item.module.clone(), _context(way.target, way.threads)
    run_to_phase(context, module, "scheduled", after="optimized")
    return emit(context, module, name)


def run_c(item: Ready, program: Program, artifact: CArtifact, library: Path, way: CWay) -> None:
    """Mismatch if the C gives something else."""
    binding = Binding(str(library.parent), artifact.metadata, str(library), way.threads)
    found = binding.run([program.feed[info.name] for info in binding.inputs], None)
    for info, value in zip(binding.outputs, found, strict=True):
        got, want = np.asarray(value), np.asarray(item.want[info.name])
        if got.dtype != want.dtype or got.shape != want.shape or (got != want).any():
            count = int((got != want).sum()) if got.shape == want.shape else -1
            raise Mismatch(f"{way}: {info.name}: {count} of {want.size}")


def check(programs: Mapping[int, Program], ways: Sequence[CWay]) -> list[Outcome]:
    """What becomes of graphs, by seed; one outcome each, the first that is not fine."""
    found: dict[int, Outcome] = {}
    ready: dict[int, Ready] = {}
    for seed, program in programs.items():

        def prepare(seed: int = seed, program: Program = program) -> None:
            ready[seed] = prepared(program)

        if (outcome := outcome_of(seed, prepare)) is not None:
            found[seed] = outcome
    for way in ways:
        artifacts: dict[int, CArtifact] = {}
        for seed, item in ready.items():

            def compile_(seed: int = seed, item: Ready = item, way: CWay = way) -> None:
                artifacts[seed] = compiled(item, way, f"g{seed}")

            if (outcome := outcome_of(seed, compile_)) is not None:
                found.setdefault(seed, outcome)
        if not artifacts:
            continue
        with tempfile.TemporaryDirectory(prefix="fuzz-quantized-") as name:
            all_ = list(artifacts.values())
            library = build(all_, Path(name), _flags(all_[0], way), way.compiler)
            for seed, artifact in artifacts.items():

                def run(
                    seed: int = seed,
                    artifact: CArtifact = artifact,
                    library: Path = library,
                    way: CWay = way,
                ) -> None:
                    run_c(ready[seed], programs[seed], artifact, library, way)

                if (outcome := outcome_of(seed, run)) is not None:
                    found.setdefault(seed, outcome)
    return [found.get(seed, Outcome(seed, "ok")) for seed in programs]


def _flags(artifact: CArtifact, way: CWay) -> list[str]:
    """The product's own with fewer optimizations, which take longest and are not what is tested."""
    flags = cast("Sequence[str]", artifact.metadata["cflags"])
    known = [flag for flag in flags if way.compiler == "gcc" or flag not in GCC_FLAGS]
    return ["-O1" if flag.startswith("-O") else flag for flag in known]


def _batch(batch: Batch, ways: Sequence[CWay]) -> list[Outcome]:
    programs = {seed: random_program(seed) for seed in batch.seeds}
    outcomes: list[Outcome] = []
    for outcome in check(programs, ways):
        if outcome.status in ("wrong", "crashed") and outcome.kind not in batch.known:
            program, arrays = programs[outcome.seed], io.BytesIO()
            np.savez(arrays, **cast(Any, program.feed))
            files = {".onnx": program.model.SerializeToString(), ".npz": arrays.getvalue()}
            outcome = replace(outcome, files=files)
        outcomes.append(outcome)
    return outcomes


def _that_run(ways: Sequence[CWay]) -> list[CWay]:
    """Those of which C runs here; the others are told."""
    found: list[CWay] = []
    for way in ways:
        missing = None if shutil.which(way.compiler) else f"{way.compiler} not found"
        if (reason := obstacle(way.target) or missing) is None:
            found.append(way)
        else:
            print(f"not compared: {way}: {reason}", file=sys.stderr)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Check graphs and print a line for each with which something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="that of the first graph")
    parser.add_argument("--ways", nargs="+", default=WAYS, metavar="TARGET[:COMPILER[:THREADS]]")
    parser.add_argument("--out", type=Path, help="the folder for graphs that are not as expected")
    add_options(parser)
    options = parser.parse_args(arguments)
    ways = _that_run([CWay.of(text) for text in options.ways])
    if not ways:
        parser.error("no C of these targets and compilers runs here")
    tally = Tally(out=options.out)
    batches = batches_of(options.seed, options.graphs)
    deal(engine_of(options), partial(_batch, ways=ways), batches, tally)
    return tally.conclude()


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
