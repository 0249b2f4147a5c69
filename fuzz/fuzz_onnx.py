"""
Random ONNX graphs, computed by the interpreter and as C, beside onnx.reference and onnxruntime.

    python -m fuzz.fuzz_onnx --graphs 20000 --seed S --jobs 2 [--out FOLDER]

Each graph of `onnx_graphs` is legalized and run in the interpreter of core, and compiled to C, of
which one run of gcc compiles many; the C runs in a process of its own. Where sizes are symbols it
runs on other sizes, too. The interpreter and C agree always; what differs from a witness is judged
node by node (`onnx_witnesses`): who is right where witnesses differ is written down in
`onnx_differences`, and how much rounding explains is found by trial.

A graph with which something is wrong is shrunk as long as the same thing is wrong with it, and
written to `--out` as .onnx beside .npz with its inputs, one of each kind.

The exit status is 1 if a graph is computed wrong, crashes the compiler or itself, ends the process
while no witness does so, or if its C does not compile.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
from xdsl.dialects.builtin import ModuleOp

from fuzz import onnx_shrinking
from fuzz.fuzzing import BATCH, Mismatch, Outcome, Way, build, flags_of, outcome_of, way_of
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

_MAX_STEPS = 100_000
_RUN_SECONDS = 20
_STEP_SECONDS = 300
_SHRUNK_PER_BATCH = 2

BAD = ("wrong", "crashed", "uncompilable", "hangs", "lost")
"""Statuses that are faults of the compiler."""

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


def check(programs: Mapping[int, Program], way: Way, notes: Any = None) -> list[Outcome]:
    """What becomes of graphs, by seed."""
    outcomes: list[Outcome] = []
    ready: list[Ready] = []
    for seed, program in programs.items():
        if notes is not None:
            notes.send(("at", seed))
        found = prepare(seed, program, way)
        if isinstance(found, Outcome):
            outcomes.append(found)
        else:
            ready.append(found)
    if notes is not None:
        notes.send(("at", None))
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
                        found = binding.run([run.feed[info.name] for info in binding.inputs])
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


def _batch(seeds: Sequence[int], out: Path | None, notes: Any) -> None:
    """Check the graphs of seeds, in a process of its own."""
    sys.setrecursionlimit(10_000)
    gc.disable()
    # What is there before is not to be looked through after each graph.
    gc.freeze()
    programs: dict[int, Program] = {}
    for seed in seeds:
        notes.send(("at", seed))
        programs[seed] = random_program(seed)
    way = way_of(seeds[0])
    outcomes = check(programs, way, notes)
    for outcome in outcomes:
        notes.send(("outcome", outcome, operators(programs[outcome.seed])))
    kept = [o for o in outcomes if o.status in BAD or o.status == "refused"]
    kept += [o for o in outcomes if "undecided" in o.message and o.status == "differs"]
    for number, outcome in enumerate(kept if out is not None else ()):
        program = programs[outcome.seed]
        if outcome.status in BAD and number < _SHRUNK_PER_BATCH:
            program, outcome = onnx_shrinking.shrink(program, outcome, _checker(way, notes))
        write(program, outcome, cast(Path, out))
    notes.send(("done",))


def _checker(way: Way, notes: Any) -> Any:
    def run(program: Program, seed: int) -> Outcome:
        notes.send(("at", None))
        return check({seed: program}, way)[0]

    return run


def operators(program: Program) -> list[str]:
    """The operators of a graph."""
    return sorted({node.op_type for node in program.model.graph.node} - {"Constant"})


def write(program: Program, outcome: Outcome, folder: Path) -> None:
    """The graph and its inputs, unless there is one of the kind."""
    folder.mkdir(parents=True, exist_ok=True)
    ops = "_".join(operators(program)[:4])
    kind = re.sub(r"[^A-Za-z0-9]+", "-", outcome.kind)[:60]
    base = folder / f"{outcome.status}-{ops}-{kind.partition('-')[2][:40]}"
    if base.with_suffix(".onnx").exists():
        return
    cast(Any, onnx).save(program.model, base.with_suffix(".onnx"))
    np.savez(base.with_suffix(".npz"), **cast(Any, dict(program.feed)))
    if program.other is not None:
        np.savez(base.with_suffix(".other.npz"), **cast(Any, dict(program.other)))
    text = f"seed {outcome.seed}\n{outcome.message}\n\n{onnx.printer.to_text(program.model)}\n"
    base.with_suffix(".txt").write_text(text)


class Pool:
    """Processes that each check a batch; one that ends early takes one graph with it."""

    def __init__(self, jobs: int, out: Path | None) -> None:
        self.jobs, self.out = jobs, out
        self.context = get_context("fork")
        self.running: dict[Any, tuple[Any, list[int], float]] = {}

    def outcomes(self, batches: list[list[int]]) -> Iterator[tuple[Outcome, list[str]]]:
        """What becomes of all graphs, as it is found."""
        waiting = batches[::-1]
        at: dict[Any, int | None] = {}
        while waiting or self.running:
            while waiting and len(self.running) < self.jobs:
                at[self._start(waiting.pop())] = None
            for pipe in cast("list[Any]", connection.wait(list(self.running), 5)):
                try:
                    note: tuple[Any, ...] = pipe.recv()
                except EOFError:
                    note = ("gone",)
                child, left, _ = self.running[pipe]
                self.running[pipe] = child, left, time.monotonic()
                if note[0] == "at":
                    at[pipe] = note[1]
                elif note[0] == "outcome":
                    left.remove(note[1].seed)
                    yield note[1], note[2]
                else:
                    if note[0] == "gone" and left:
                        yield from self._lost(left, at[pipe], waiting)
                    self._end(pipe)
            for pipe, (child, _, last) in list(self.running.items()):
                if time.monotonic() - last > _STEP_SECONDS:
                    child.kill()

    def _start(self, seeds: list[int]) -> Any:
        ours, theirs = self.context.Pipe()
        child = self.context.Process(target=_batch, args=(seeds, self.out, theirs))
        child.start()
        theirs.close()
        self.running[ours] = child, list(seeds), time.monotonic()
        return ours

    def _end(self, pipe: Any) -> None:
        child, _, _ = self.running.pop(pipe)
        pipe.close()
        child.join()

    def _lost(
        self, left: list[int], seed: int | None, waiting: list[list[int]]
    ) -> Iterator[tuple[Outcome, list[str]]]:
        """Each graph is tried alone, but the one that is known to end a process."""
        alone = left[0] if len(left) == 1 else seed
        if alone in left:
            yield Outcome(alone, *cause_of_death(alone)), []
        waiting += [[other] for other in left if other != alone]


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
    """Check graphs and print a line for each with which something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--graphs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0, help="that of the first graph")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="the folder for graphs that are not as expected")
    options = parser.parse_args(arguments)
    batches: dict[int, list[int]] = {}
    for seed in range(options.seed, options.seed + options.graphs):
        batches.setdefault(seed // BATCH, []).append(seed)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    unnamed = 0
    for outcome, ops in Pool(options.jobs, options.out).outcomes(list(batches.values())):
        counts[outcome.status] += 1
        if outcome.status == "differs":
            causes.update(outcome.message.split("; "))
            if "undecided" in outcome.message:
                print(f"{outcome.seed}: {outcome.message} ({' '.join(ops)})", flush=True)
        elif outcome.status != "ok":
            kinds[outcome.kind] += 1
            unnamed += outcome.status == "refused" and not names_nodes(outcome)
            message = outcome.message.rstrip().replace("\n", "\n    ")
            print(f"{outcome.seed}: {outcome.status} ({' '.join(ops)}): {message}", flush=True)
        if not counts.total() % 400:
            print(f"{counts.total()} of {options.graphs}", file=sys.stderr, flush=True)
    _summarize(counts, kinds, causes, unnamed)
    return int(any(counts[status] for status in BAD))


def names_nodes(outcome: Outcome) -> bool:
    """True if each line of a refusal names a node."""
    return all("node '" in line for line in outcome.message.splitlines())


def _summarize(
    counts: Counter[str], kinds: Counter[str], causes: Counter[str], unnamed: int
) -> None:
    print()
    for kind, count in kinds.most_common():
        print(f"{count:6} {kind}")
    print("Differences from a witness, by cause:")
    for cause, count in causes.most_common():
        print(f"{count:6} {cause}")
    print(", ".join(f"{count} {status}" for status, count in counts.most_common()), end="; ")
    share = 100 * counts["refused"] / max(counts.total(), 1)
    print(f"{share:.2f} % refused, {unnamed} of these name no node")


if __name__ == "__main__":
    sys.exit(main())
