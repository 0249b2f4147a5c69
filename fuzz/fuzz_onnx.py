"""
Random ONNX graphs, computed by the interpreter and as C, beside onnx.reference and onnxruntime.

    python -m fuzz.fuzz_onnx --graphs 20000 --seed S [--jobs N | --ray [ADDRESS]] [--out FOLDER]

Each graph of `onnx_graphs` is legalized and run in the interpreter of core, and compiled to C, of
which one run of gcc compiles many; the C runs in a process of its own. Where sizes are symbols it
runs on other sizes, too. The interpreter and C agree always; what differs from a witness is judged
node by node (`onnx_witnesses`): who is right where witnesses differ is written down in
`onnx_differences`, and how much rounding explains is found by trial.

The first graph of each kind with which something is wrong is shrunk as long as the same thing is
wrong with it, told, and written to `--out` as .onnx beside .npz with its inputs.

The exit status is 1 if a graph is computed wrong, crashes the compiler or itself, ends the process
while no witness does so, or if its C does not compile.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from xdsl.dialects.builtin import ModuleOp

from fuzz import onnx_shrinking
from fuzz.fuzzing import (
    BAD,
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
from fuzz.onnx_differences import NOBODY, UNPROMISED, doubt, is_array
from fuzz.onnx_graphs import Program, random_program
from fuzz.onnx_witnesses import (
    EITHER_ZERO,
    EXACT,
    Judgement,
    Unsupported,
    close,
    evaluate,
    names_read,
    onnxruntime_model,
)
from lowerdeck.binding import Binding, RunError
from lowerdeck.dialects.interpret import InterpretError, run_module
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.lowering import emit
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions
from models.campaign import add_options, engine_of, main_of

_MAX_STEPS = 100_000
_RUN_SECONDS = 20
_STEP_SECONDS = 300

Results = Mapping[str, Any]


# One graph


class Witnesses:
    """What others say of a graph."""

    def __init__(self, program: Program, is_other: bool = False) -> None:
        """Unsupported if nobody computes it; `is_other` if nobody chose the sizes to fit."""
        self.program, self.is_other = program, is_other
        names = [value.name for value in program.model.graph.output]
        self.reference: Results = evaluate(program.model, program.feed)
        opset, nodes = program.opset, program.model.graph.node
        whos = ("reference", "onnxruntime", NOBODY, UNPROMISED)
        doubts = [doubt(who, node, opset, self.reference) for who in whos for node in nodes]
        self.causes = [cause for cause in dict.fromkeys(doubts) if cause]
        """Witnesses that are not heard of a node."""
        unknown, self.unpromised = self._made_of(NOBODY), self._made_of(UNPROMISED)
        self.names = [name for name in names if name not in unknown | self.unpromised]
        """The results of which others say what they are."""
        self.runtime: Results | None = None
        if not any(cause.startswith("onnxruntime") for cause in self.causes):
            with suppress(Unsupported):
                found = onnxruntime_model(program.model, program.feed)
                # Of what is empty or constant in a branch it gives nothing at times.
                if not any(value is None for value in found):
                    self.runtime = dict(zip(names, found, strict=True))
        self._judgement: Judgement | None = None

    def _made_of(self, witness: str) -> set[str]:
        """What depends on nodes of which nobody else is heard."""
        found: set[str] = set()
        for node in self.program.model.graph.node:
            is_open = doubt(witness, node, self.program.opset, self.reference)
            if is_open or found & set(names_read(node)):
                found.update(node.output)
        return found

    def judgement(self) -> Judgement:
        """What is right, node by node."""
        if self._judgement is None:
            self._judgement = Judgement(self.program.model, self.program.feed)
        return self._judgement

    def other(self) -> Judgement:
        """What is right if onnxruntime is, where it is heard."""
        return Judgement(self.program.model, self.program.feed, by_runtime=True)

    def check(self, way: str, found: Results) -> list[str]:
        """What explains differences from a witness; Mismatch if nothing does."""
        both = (self.reference, self.reference if self.runtime is None else self.runtime)
        if all(close(found[k], w[k]) for w in both for k in self.names):
            self._check_zeros(way, found)
            return []
        judgement = self.judgement()
        for name in self.names:
            if judgement.accepts(name, found[name]):
                continue
            near = [close(found[name], w[name]) for w in both]
            if (judgement.undecided and any(near)) or self.other().accepts(name, found[name]):
                continue
            raise Mismatch(self._described(way, name, found[name]))
        return [f"undecided: {op}" for op in judgement.undecided] or ["rounding"]

    def compare(self, found: Results, core: Results) -> None:
        """Mismatch if C gives something else than the interpreter, rounding apart."""
        for name, want in core.items():
            if name in self.unpromised:
                continue
            if not close(found[name], want) and not self.judgement().agree(name, found[name], want):
                raise Mismatch(
                    f"C: {self._maker(name)} gives another value than the interpreter\n"
                    f"{name} is {_shown(found[name])}\nexpected {_shown(want)}"
                )

    def _maker(self, name: str) -> str:
        nodes = self.program.model.graph.node
        return next(node.op_type for node in nodes if name in node.output)

    def _check_zeros(self, way: str, found: Results) -> None:
        """Mismatch if nothing is rounded, and zeros have other signs than by both witnesses."""
        ops = {node.op_type for node in self.program.model.graph.node}
        if self.runtime is None or not ops <= EXACT - EITHER_ZERO:
            return
        for name in self.names:
            want = self.reference[name]
            if want.dtype.kind not in "biu" and np.array_equal(
                np.signbit(want), np.signbit(self.runtime[name])
            ):
                same = (np.signbit(found[name]) == np.signbit(want)) | (want != 0)
                if not same.all():
                    raise Mismatch(self._described(f"{way}, signs of zeros", name, found[name]))

    def _described(self, way: str, name: str, found: Any) -> str:
        want = self.judgement().values[name]
        said = "nobody" if self.runtime is None else _shown(self.runtime[name])
        return (
            f"{way}: {self._maker(name)} gives another value\n{name} is {_shown(found)}\nexpected "
            f"{_shown(want)}\nonnxruntime {said}\nundecided: {self.judgement().undecided}"
        )


def _shown(value: Any) -> str:
    if is_array(value):
        return f"{value.dtype}{list(value.shape)} {np.array2string(value, threshold=60)}"
    return str(value)


@dataclass(frozen=True)
class Run:
    """A graph on some inputs, as witnesses and the interpreter have it."""

    feed: Results
    witnesses: Witnesses
    core: Results | None
    """None if sizes do not fit together."""
    causes: Sequence[str]

    def check(self, found: Results | None) -> list[str]:
        """What explains differences of C from witnesses; Mismatch if nothing does."""
        if found is None:
            return ["other sizes that do not fit together"]
        if self.core is None:
            # C need not find it of what nothing else reads; then everything else is right.
            return [*self.causes, *self.witnesses.check("C", found), "sizes that nothing reads"]
        causes = [*self.causes, *self.witnesses.check("C", found)]
        self.witnesses.compare(found, self.core)
        return causes


def lowered(name: str, way: Way, witnesses: Sequence[Witnesses]) -> tuple[CArtifact, Sequence[Run]]:
    """The C of a graph, and what it is to give, by inputs."""
    module = import_model(witnesses[0].program.model)
    context = LowerdeckContext(options=CompileOptions(target=way.target, threads=way.threads))
    register_dialects(context)
    run_to_phase(context, module, "legal")
    runs = [_interpreted(module, item) for item in witnesses]
    run_to_phase(context, module, "scheduled", after="legal")
    return emit(context, module, name), runs


def _interpreted(module: ModuleOp, witnesses: Witnesses) -> Run:
    feed = witnesses.program.feed
    try:
        with np.errstate(all="ignore"):
            found = run_module(module, feed, max_steps=_MAX_STEPS)
    except InterpretError:
        # Both take sizes that the specification does not allow, onnxruntime of what is empty.
        is_open = any(is_array(value) and value.size == 0 for value in feed.values())
        is_open |= any(cause.startswith(NOBODY) for cause in witnesses.causes)
        if not witnesses.is_other or (witnesses.runtime is not None and not is_open):
            raise
        return Run(feed, witnesses, None, [])
    return Run(feed, witnesses, found, [*witnesses.causes, *witnesses.check("core", found)])


@dataclass(frozen=True)
class Ready:
    """A graph whose C is there."""

    seed: int
    artifact: CArtifact
    runs: Sequence[Run]


def prepare(seed: int, program: Program, way: Way) -> Ready | Outcome:
    """The C of a graph, or what became of it before that."""
    try:
        witnesses = [Witnesses(program)]
        if program.other is not None:
            witnesses.append(Witnesses(Program(program.model, program.other), True))
        cast(Any, onnx.checker).check_model(program.model)
    except Unsupported as error:
        return Outcome(seed, "invalid", f"nobody computes it: {error}")
    except onnx.checker.ValidationError as error:
        return Outcome(seed, "invalid", f"the checker says: {error}")
    found: list[Ready] = []

    def run() -> None:
        found.append(Ready(seed, *lowered(f"g{seed}", way, witnesses)))

    return outcome_of(seed, run) or found[0]


def check(programs: Mapping[int, Program], way: Way) -> list[Outcome]:
    """What becomes of graphs, by seed."""
    outcomes: list[Outcome] = []
    ready: list[Ready] = []
    for seed, program in programs.items():
        found = prepare(seed, program, way)
        if isinstance(found, Outcome):
            outcomes.append(found)
        else:
            ready.append(found)
    return outcomes + _built_and_run(ready, way)


def _built_and_run(ready: Sequence[Ready], way: Way) -> list[Outcome]:
    if not ready:
        return []
    flags = flags_of(ready[0].artifact, way)
    with tempfile.TemporaryDirectory(prefix="fuzz-onnx-") as folder:
        try:
            library = build([item.artifact for item in ready], Path(folder), flags)
        except RuntimeError as error:
            if len(ready) == 1:
                return [Outcome(ready[0].seed, "uncompilable", _complaint(str(error)))]
            half = len(ready) // 2
            return _built_and_run(ready[:half], way) + _built_and_run(ready[half:], way)
        return list(_run_all(ready, library, way))


def _complaint(text: str) -> str:
    """What gcc says, its first error first."""
    errors = [line for line in text.splitlines() if "error" in line]
    first = re.sub(r".*?error: ", "gcc: ", errors[0]) if errors else "gcc fails"
    return f"{first}\n{text}"


def _run_all(ready: Sequence[Ready], library: Path, way: Way) -> Iterator[Outcome]:
    """Run graphs in a process of their own, and in another one after each that ends it."""
    at = 0
    while at < len(ready):
        ours, theirs = get_context("fork").Pipe()
        child = os.fork()
        if not child:
            ours.close()
            _run_in_child(ready[at:], library, way, theirs)
        theirs.close()
        try:
            while at < len(ready):
                if not ours.poll(_RUN_SECONDS):
                    os.kill(child, signal.SIGKILL)
                    yield Outcome(ready[at].seed, "hangs", "the C does not end")
                    at += 1
                    break
                kind, value = ours.recv()
                yield _judged(ready[at], kind, value)
                at += 1
        except EOFError:
            yield Outcome(ready[at].seed, "crashed", "C: the process ends")
            at += 1
        finally:
            ours.close()
            os.waitpid(child, 0)


def _run_in_child(ready: Sequence[Ready], library: Path, way: Way, pipe: Any) -> None:
    try:
        for item in ready:
            try:
                binding = Binding(
                    str(library.parent), item.artifact.metadata, str(library), way.threads
                )
                names = [info.name for info in binding.outputs]
                results: list[Results | None] = []
                for run in item.runs:
                    try:
                        # An initializer that is an input, too, is left out.
                        found = binding.run([run.feed.get(info.name) for info in binding.inputs])
                    except (RunError, ValueError):  # of sizes, of those of inputs
                        if run.core is not None:
                            raise
                        results.append(None)
                        continue
                    results.append(dict(zip(names, found, strict=True)))
                pipe.send(("results", results))
            except Exception as error:  # sent to who knows what it belongs to
                pipe.send(("error", f"C: {type(error).__name__}: {error}"))
    finally:
        os._exit(0)


def _judged(item: Ready, kind: str, value: Any) -> Outcome:
    if kind == "error":
        return Outcome(item.seed, "crashed", value)
    causes: list[str] = []

    def judge() -> None:
        for run, results in zip(item.runs, value, strict=True):
            causes.extend(run.check(results))

    if found := outcome_of(item.seed, judge):
        return found
    shown = "; ".join(dict.fromkeys(causes))
    return Outcome(item.seed, "differs" if shown else "ok", shown)


# Batches


def check_batch(batch: Batch) -> list[Outcome]:
    """Check the graphs of seeds."""
    settle()
    programs = {seed: random_program(seed) for seed in batch.seeds}
    way = way_of(batch.seeds[0])
    known, outcomes = set(batch.known), list[Outcome]()
    for outcome in check(programs, way):
        program = programs[outcome.seed]
        if _is_told(outcome):
            outcome = replace(outcome, about=operators(program))
            if outcome.kind not in known:
                outcome = replace(outcome, shrunk=_shrunk(program, outcome, way))
            known.add(outcome.kind)
        outcomes.append(outcome)
    return outcomes


def _is_told(outcome: Outcome) -> bool:
    """True if a graph is to be looked at."""
    return outcome.status in (*BAD, "refused") or "undecided" in outcome.message


def _shrunk(program: Program, outcome: Outcome, way: Way) -> Outcome:
    """The outcome of the smallest graph, with its files; refusals are as good as they are."""
    if outcome.status in BAD:

        def run(candidate: Program, seed: int) -> Outcome:
            return check({seed: candidate}, way)[0]

        program, outcome = onnx_shrinking.shrink(program, outcome, run)
    return replace(outcome, about=operators(program), files=files_of(program))


def operators(program: Program) -> str:
    """The operators of a graph."""
    return " ".join(sorted({node.op_type for node in program.model.graph.node} - {"Constant"}))


def files_of(program: Program) -> dict[str, bytes]:
    """The graph and its inputs."""
    files = {".onnx": program.model.SerializeToString(), ".npz": _npz(program.feed)}
    if program.other is not None:
        files[".other.npz"] = _npz(program.other)
    return {**files, ".graph.txt": onnx.printer.to_text(program.model).encode()}


def _npz(arrays: Results) -> bytes:
    file = io.BytesIO()
    np.savez(file, **cast(Any, dict(arrays)))
    return file.getvalue()


class OnnxTally(Tally):
    """Knows beside that what explains differences from witnesses."""

    def __init__(self, out: Path | None) -> None:
        super().__init__(("ok", "differs"), out)
        self._explained: Counter[str] = Counter()
        self._unnamed = 0

    def add(self, outcome: Outcome) -> None:
        """One more outcome."""
        super().add(outcome)
        if outcome.status == "differs":
            self._explained.update(outcome.message.split("; "))
            if "undecided" in outcome.message:
                print(outcome.line, flush=True)
        self._unnamed += outcome.status == "refused" and not names_nodes(outcome)
        if not self.counts.total() % 400:
            print(f"{self.counts.total()} graphs", file=sys.stderr, flush=True)

    def conclude(self) -> int:
        """Print numbers; the exit status."""
        print("Differences from a witness, by cause:")
        for cause, count in self._explained.most_common():
            print(f"{count:6} {cause}")
        share = 100 * self.counts["refused"] / max(self.counts.total(), 1)
        print(f"{share:.2f} % refused, {self._unnamed} of these name no node")
        return super().conclude()


def died(seed: int) -> Outcome:
    """What becomes of a graph whose process ends."""
    return Outcome(seed, *cause_of_death(seed))


def cause_of_death(seed: int) -> tuple[str, str]:
    """Who ends the process of a graph: a witness, by itself, or the compiler."""
    child = get_context("fork").Process(target=_ask_witnesses, args=(seed,))
    child.start()
    child.join(_STEP_SECONDS)
    if child.exitcode is None:
        child.kill()
        return "invalid", "a witness does not end"
    if child.exitcode < 0:
        return "invalid", f"a witness dies of {signal.Signals(-child.exitcode).name}"
    return "lost", "the compiler ends the process, or does not end"


def _ask_witnesses(seed: int) -> None:
    """All that is asked of witnesses about a graph, without the compiler."""
    program = random_program(seed)
    for feed in (program.feed, program.other):
        if feed is not None:
            with suppress(Unsupported):
                judgement = Witnesses(Program(program.model, feed)).judgement()
                for name in judgement.values:
                    judgement.spread(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check graphs, and tell those with which something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--graphs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="that of the first graph")
    parser.add_argument("--out", type=Path, help="the folder for graphs that are not as expected")
    add_options(parser)
    options = parser.parse_args(arguments)
    tally = OnnxTally(options.out)
    deal(engine_of(options), check_batch, batches_of(options.seed, options.graphs), tally, died)
    return tally.conclude()


def names_nodes(outcome: Outcome) -> bool:
    """True if each line of a refusal names a node."""
    return all("node '" in line for line in outcome.message.splitlines())


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
