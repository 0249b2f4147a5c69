"""
Random quantized ONNX graphs, which are to give the same bytes on every target.

    python -m fuzz.fuzz_quantized --graphs 400 --seed S [--ways TARGET[:COMPILER[:THREADS]] ...]
        [--jobs N | --ray [ADDRESS]] [--out FOLDER]

Each graph of `quantized_graphs` is run in the interpreter when it is optimized, and compiled to C
for each target that runs here or is emulated, of which one run of a compiler compiles many. All
have to give the same integers, and each of these has to be what float64 gives, or the other one
where that is near a tie (`quantized_steps`). Where a way does not say them, compilers, numbers of
threads and levels of optimization take turns, from batch to batch. What differs is written to
`--out` as .onnx beside .npz with its input. The exit status is 1 if a graph is computed wrong or
something crashes.

2000 graphs take about an hour of one core. aarch64 needs `qemu-user` and a compiler for it on
other machines; the tiles of AMX are emulated by a header where the processor has none.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

from fuzz.fuzzing import (
    BATCH,
    Batch,
    Mismatch,
    Outcome,
    Tally,
    batches_of,
    build,
    build_program,
    deal,
    outcome_of,
    settle,
)
from fuzz.quantized_graphs import Array, Program, random_program
from fuzz.quantized_steps import NEAR, steps_apart, with_all_bytes
from lowerdeck.binding import Binding
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.lowering import emit
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.lowering.strategies.exact_winograd import ExactWinograd
from lowerdeck.lowering.strategies.matrix_tiles import MatrixTiles
from lowerdeck.lowering.targets import GCC_FLAGS, obstacle, target_named
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from models import emulated
from models.campaign import add_options, engine_of
from models.campaign import main_of as campaign
from models.together import Result, main_of, results_of

WAYS = (
    "x86-64-amx",
    "x86-64-zen4",
    "x86-64-vnni",
    "x86-64-v4",
    "x86-64-v3",
    "x86-64",
    "aarch64",
    "c99",
)
_COMPILERS = ("gcc", "clang")
_LEVELS = ("-O0", "-O0", "-O0", "-O1")
"""Of optimization, in turn: higher ones take three times as long, and are not what is tested."""
TILES = Path(emulated.__file__).with_name("emulated_tiles.h")
_CAPACITY = 1 << 16
"""Elements of an output of a graph, at most."""

Results = Mapping[str, Any]


@dataclass(frozen=True)
class CWay:
    """What a graph is compiled for, by which compiler, and with how many threads."""

    target: str
    compiler: str = ""
    """Both, in turn, if none is said."""
    threads: int = 0
    """One and two in turn, if it is 0."""
    level: str = "-O1"

    @staticmethod
    def of(text: str) -> CWay:
        """As on the command line."""
        target, *rest = text.split(":")
        compiler, threads = [*rest, *("", "0")[len(rest) :]]
        return CWay(target, compiler, int(threads))

    def __str__(self) -> str:
        threads = f", {self.threads} thread(s)" if self.threads else ""
        return f"{self.target}{self.compiler and f', {self.compiler}'}{threads}"

    def at(self, turn: int) -> CWay:
        """What it is for a batch: in four of them, each compiler meets each number of threads."""
        compiler = self.compiler or _COMPILERS[turn % 2]
        threads = self.threads or 1 + turn // 2 % 2
        return replace(self, compiler=compiler, threads=threads, level=_LEVELS[turn // 4 % 4])

    @property
    def is_emulated(self) -> bool:
        """Whether another machine is emulated."""
        return self.target == "aarch64" and obstacle(self.target) is not None

    @property
    def has_emulated_tiles(self) -> bool:
        """Whether the tiles of this machine are emulated, all else of the target being there."""
        target = target_named(self.target)
        return target.isa.tiles is not None and obstacle(self.target) is not None

    @property
    def obstacle(self) -> str | None:
        """Why its code cannot run here; None if it can."""
        compilers = [self.compiler] if self.compiler else _COMPILERS
        missing = [compiler for compiler in compilers if shutil.which(compiler) is None]
        if missing:
            return f"{' and '.join(missing)} not found"
        if self.is_emulated:
            return emulated.obstacle()
        return obstacle("x86-64-vnni" if self.has_emulated_tiles else self.target)

    @property
    def command(self) -> list[str]:
        """The compiler."""
        if not self.is_emulated:
            return [self.compiler]
        if self.compiler == "clang":
            return ["clang", "--target=aarch64-linux-gnu", "-static"]
        return [emulated.COMPILER, "-static"]


@dataclass(frozen=True)
class Ready:
    """A graph that is optimized, and what it gives."""

    module: ModuleOp
    want: Results


def prepared(program: Program) -> Ready:
    """
    A graph up to the phase that all targets share; Mismatch if it is not what its definition says,
    or depends on what else is asked for.
    """
    module = import_model(program.model)
    found = _optimized(module, program.feed)
    every = optimized_results(with_all_bytes(program.model), program.feed)
    for name, value in found.items():
        if not np.array_equal(value, every[name]):
            raise Mismatch(f"optimized: {name} is another one where all bytes are outputs")
    for name, steps in steps_apart(program.model, {**program.feed, **every}).items():
        if steps > 0.5 + NEAR:
            raise Mismatch(f"optimized: {name}: {steps:.4f} steps from what float64 gives")
    return Ready(module, found)


def _optimized(module: ModuleOp, feed: Results) -> Results:
    run_to_phase(_context("c99"), module, "optimized")
    with np.errstate(all="ignore"):
        return run_module(module, feed)


def optimized_results(path: str | ModelProto, feed: Results) -> Results:
    """What the interpreter gives for a model when it is optimized."""
    return _optimized(import_model(path), feed)


def _context(target: str, threads: int = 1) -> LowerdeckContext:
    # With threads algorithms are asked for that graphs are too small for.
    strategy = (ExactWinograd.name, MatrixTiles.name) if threads > 1 else ()
    options = CompileOptions(target=target, threads=threads, strategy=strategy)
    context = LowerdeckContext(options=options)
    register_dialects(context)
    return context


def compiled(item: Ready, way: CWay, name: str) -> CArtifact:
    """The C for a target."""
    module, context = item.module.clone(), _context(way.target, way.threads)
    run_to_phase(context, module, "scheduled", after="optimized")
    return emit(context, module, name)


def run_all(
    artifacts: Mapping[int, CArtifact], programs: Mapping[int, Program], way: CWay
) -> Iterator[tuple[int, Callable[[], Sequence[Array]]]]:
    """What gives the outputs of each graph."""
    with tempfile.TemporaryDirectory(prefix="fuzz-quantized-") as name:
        folder, all_ = Path(name), list(artifacts.values())
        flags = _flags(all_[0], way)
        if way.is_emulated:
            results = _emulated(artifacts, programs, folder, [*way.command, *flags])
            for seed, result in zip(artifacts, results, strict=True):
                yield seed, partial(_outputs, result)
        else:
            library = build(all_, folder, flags, way.compiler)
            for seed, artifact in artifacts.items():
                yield seed, partial(_run, artifact, programs[seed].feed, library, way.threads)


def _run(artifact: CArtifact, feed: Results, library: Path, threads: int) -> Sequence[Array]:
    binding = Binding(str(library.parent), artifact.metadata, str(library), threads)
    return binding.run([feed[info.name] for info in binding.inputs], None)


def _outputs(result: Result) -> Sequence[Array]:
    status, outputs = result
    if status:
        raise Mismatch(f"status {status}")
    return outputs


def _emulated(
    artifacts: Mapping[int, CArtifact],
    programs: Mapping[int, Program],
    folder: Path,
    compiler: Sequence[str],
) -> list[Result]:
    """What a program gives that runs all graphs."""
    all_ = list(artifacts.values())
    inputs = {seed: [*programs[seed].feed.values()] for seed in artifacts}
    main = main_of([(artifacts[seed], arrays) for seed, arrays in inputs.items()], _CAPACITY)
    (folder / "main.c").write_text(main)
    data = (np.ascontiguousarray(array).tobytes() for arrays in inputs.values() for array in arrays)
    (folder / "inputs.bin").write_bytes(b"".join(data))
    program = build_program(all_, folder, compiler)
    subprocess.run([emulated.EMULATOR, str(program)], cwd=folder, check=True, capture_output=True)
    return results_of(all_, (folder / "outputs.bin").read_bytes())


def compare(want: Results, found: Sequence[Array], artifact: CArtifact, way: CWay) -> None:
    """Mismatch if the C gives something else."""
    ports = cast("Sequence[Mapping[str, str]]", artifact.metadata["outputs"])
    for port, value in zip(ports, found, strict=True):
        got, expected = np.asarray(value), np.asarray(want[port["name"]])
        is_like = got.dtype == expected.dtype and got.shape == expected.shape
        if not is_like or (got != expected).any():
            count = int((got != expected).sum()) if got.shape == expected.shape else -1
            raise Mismatch(f"{way}: {port['name']}: {count} of {expected.size}")


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
        for seed, run in run_all(artifacts, programs, way):

            def judge(
                seed: int = seed,
                run: Callable[[], Sequence[Array]] = run,
                artifact: CArtifact = artifacts[seed],
                way: CWay = way,
            ) -> None:
                compare(ready[seed].want, run(), artifact, way)

            if (outcome := outcome_of(seed, judge)) is not None:
                found.setdefault(seed, outcome)
    return [found.get(seed, Outcome(seed, "ok")) for seed in programs]


def _flags(artifact: CArtifact, way: CWay) -> list[str]:
    """The product's own with fewer optimizations."""
    flags = cast("Sequence[str]", artifact.metadata["cflags"])
    known = [flag for flag in flags if way.compiler == "gcc" or flag not in GCC_FLAGS]
    tiles = ["-include", str(TILES)] if way.has_emulated_tiles else []
    return [*(way.level if flag.startswith("-O") else flag for flag in known), *tiles]


def _batch(batch: Batch, ways: Sequence[CWay]) -> list[Outcome]:
    settle()
    programs = {seed: random_program(seed) for seed in batch.seeds}
    outcomes: list[Outcome] = []
    turns = [way.at(batch.seeds[0] // BATCH + k) for k, way in enumerate(ways)]
    for outcome in check(programs, turns):
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
        if (reason := way.obstacle) is None:
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
    sys.exit(campaign(__spec__))
