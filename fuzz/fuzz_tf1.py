"""
Random graphs of TensorFlow 1, every one computed in three ways.

    python -m fuzz.fuzz_tf1 --graphs 5000 --seed S [--jobs N | --ray [ADDRESS]]
        [--out FOLDER] [--record FOLDER]

Each graph of `tf1_graphs` runs as the executor of TensorFlow runs it, cycles included; raised and
legalized, in the interpreter of core; and as C, of which one run of gcc compiles many. Every
`--onnx`th runs in onnxruntime, too, as exported. All results have to be equal, bit for bit.

The first graph of each kind with which something is wrong is shrunk as long as the same thing is
wrong with it, and written to `--out` as .pbtxt with its fetches and what was found in its first
lines. A refusal has to name node, frame and predicate; its graph is kept, too. `--record` writes
every graph with its inputs and results, for `run_in_tensorflow.py` to compare with TensorFlow
itself.

The exit status is 1 if a graph is computed wrong or something crashes.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from google.protobuf import text_format
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
    settle,
)
from fuzz.tf1_graphs import Array, Program, Size, random_program
from lowerdeck.binding import Binding
from lowerdeck.dialects.interpret import InterpretError, run_module
from lowerdeck.dialects.registry import register_dialects
from lowerdeck.exporters.onnx import export_onnx
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef, NodeDef
from lowerdeck.frontends.tf1.import_ import import_graph
from lowerdeck.lowering import emit
from lowerdeck.lowering.emit_c.module import CArtifact
from lowerdeck.lowering.pipeline import run_to_phase
from lowerdeck.passes.machinery.context import LowerdeckContext
from models.campaign import add_options, engine_of, main_of

_MAX_STEPS = 100_000

_PLACES = re.compile(r"in (no frame|frame '[^']*'( > '[^']*')*)|fetch '")
"""What a refusal by control flow has to say beside the node."""


Results = list[Mapping[str, Array]]


def imported(program: Program) -> ModuleOp:
    """The graph as a module of tf1."""
    return import_graph(cast(Any, program.graph), outputs=program.fetches)


def expected(program: Program) -> Results:
    """What the executor of TensorFlow gives; InterpretError if the graph is not well-formed."""
    module = imported(program)
    return [
        cast("Mapping[str, Array]", run_module(module, feed, max_steps=_MAX_STEPS))
        for feed in program.feeds
    ]


def compare(way: str, found: Mapping[str, Any], want: Mapping[str, Array]) -> None:
    """Mismatch if results differ in type, shape or any element."""
    for name, value in want.items():
        got = np.asarray(found[name])
        same = (got.dtype, got.shape) == (value.dtype, value.shape)
        if not same or not np.array_equal(got, value):
            raise Mismatch(f"{way}: {name} is {got.dtype} {got}, expected {value.dtype} {value}")


def lowered(program: Program, name: str, want: Results) -> CArtifact:
    """The C of a graph whose legalized form gives the results; Mismatch if it does not."""
    module, context = imported(program), LowerdeckContext()
    register_dialects(context)
    run_to_phase(context, module, "legal")
    for feed, results in zip(program.feeds, want, strict=True):
        compare("core", run_module(module, feed, max_steps=_MAX_STEPS), results)
    run_to_phase(context, module, "scheduled", after="legal")
    return emit(context, module, name)


def run_onnx(program: Program, want: Results) -> None:
    """Mismatch if onnxruntime gives something else for the exported graph."""
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    module, context = imported(program), LowerdeckContext()
    register_dialects(context)
    run_to_phase(context, module, "optimized")
    runtime: Any = onnxruntime
    settings = runtime.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        export_onnx(module, path)
        session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    used = [value.name for value in session.get_inputs()]
    for feed, results in zip(program.feeds, want, strict=True):
        found = session.run(names, {name: feed[name] for name in used})
        compare("onnx", dict(zip(names, found, strict=True)), results)


# C


def run_c(artifact: CArtifact, program: Program, library: Path, want: Results) -> None:
    """Mismatch if the C gives something else."""
    binding = Binding(str(library.parent), artifact.metadata, str(library))
    for feed, results in zip(program.feeds, want, strict=True):
        found = binding.run([feed[info.name] for info in binding.inputs])
        names = [info.name for info in binding.outputs]
        compare("C", dict(zip(names, found, strict=True)), results)


# Checks


def check(programs: Mapping[int, Program], onnx: int = 0) -> list[Outcome]:
    """What becomes of graphs by seed; every `onnx`th is exported, too."""
    found: list[Outcome] = []
    ready: list[tuple[int, Program, CArtifact, Results]] = []
    for seed, program in programs.items():

        def prepare(seed: int = seed, program: Program = program) -> None:
            want = expected(program)
            ready.append((seed, program, lowered(program, f"g{seed}", want), want))
            if onnx and not seed % onnx:
                run_onnx(program, want)

        if (outcome := outcome_of(seed, prepare)) is not None:
            found.append(outcome)
            ready = [item for item in ready if item[0] != seed]
    if not ready:
        return found
    with tempfile.TemporaryDirectory(prefix="fuzz-tf1-") as folder:
        library = build([artifact for _, _, artifact, _ in ready], Path(folder))
        for seed, program, artifact, want in ready:
            outcome = outcome_of(
                seed, lambda a=artifact, p=program, w=want: run_c(a, p, library, w)
            )
            found.append(outcome or Outcome(seed, "ok"))
    return found


def names_place(outcome: Outcome) -> bool:
    """True if each line of a refusal names a node, and where that is."""
    return all("node '" in line and _PLACES.search(line) for line in outcome.message.splitlines())


# Shrinking


def shrink(program: Program, outcome: Outcome, onnx: int = 0) -> Program:
    """A smaller graph with the same outcome, as small as single steps lead to."""

    def is_same(candidate: Program) -> bool:
        try:
            expected(candidate)
        except (InterpretError, FrontendError):
            return False
        return check({outcome.seed: candidate}, onnx)[0].kind == outcome.kind

    # What the reference itself does not run has nothing to be compared with, however small.
    changed = is_same(program)
    while changed:
        changed = False
        for candidate in _smaller(program):
            if is_same(candidate):
                program, changed = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Graphs that are smaller by a little."""
    for fetch in program.fetches if len(program.fetches) > 1 else ():
        yield _needed(replace(program, fetches=(fetch,)))
    nodes = {node.name: node for node in program.graph.node}
    for name, node in nodes.items():
        for at, ref in enumerate(node.input):
            rest = [*node.input[:at], *node.input[at + 1 :]]
            if ref.startswith("^"):
                yield _changed(program, name, rest)
            elif node.op == "Merge" and len(node.input) > 1:
                yield _changed(program, name, rest)
            if not ref.startswith("^") and _types(node) & _types(nodes[_node_of(ref)]):
                yield _bypassed(program, node, ref)


def _types(node: NodeDef) -> set[int]:
    return {a.type for key, a in node.attr.items() if key in ("T", "dtype")} or {0}


def _node_of(ref: str) -> str:
    return ref.removeprefix("^").partition(":")[0]


def _changed(program: Program, name: str, inputs: Sequence[str]) -> Program:
    """The graph with other inputs of a node."""
    graph = GraphDef.FromString(program.graph.SerializeToString())
    for node in graph.node:
        if node.name == name:
            node.input[:] = inputs
            if node.op == "Merge":
                node.attr["N"].i = sum(not ref.startswith("^") for ref in inputs)
    return _needed(replace(program, graph=graph))


def _bypassed(program: Program, node: NodeDef, ref: str) -> Program:
    """The graph in which whoever reads a node reads one of its inputs."""
    graph = GraphDef.FromString(program.graph.SerializeToString())
    for user in graph.node:
        for at, used in enumerate(user.input):
            if _node_of(used) == node.name:
                user.input[at] = f"^{_node_of(ref)}" if used.startswith("^") else ref
    full = ref if ":" in ref else f"{ref}:0"
    fetches = dict.fromkeys(full if _node_of(f) == node.name else f for f in program.fetches)
    return _needed(replace(program, graph=graph, fetches=tuple(fetches)))


def _needed(program: Program) -> Program:
    """The graph without what its fetches do not need; placeholders stay."""
    nodes = {node.name: node for node in program.graph.node}
    seen: set[str] = set()
    stack = [_node_of(ref) for ref in program.fetches]
    while stack:
        name = stack.pop()
        if name not in seen:
            seen.add(name)
            stack += [_node_of(ref) for ref in nodes[name].input]
    graph = GraphDef(versions=program.graph.versions)
    graph.node.extend(n for n in program.graph.node if n.name in seen or n.op == "Placeholder")
    return replace(program, graph=graph)


# Files


def as_text(program: Program, outcome: Outcome) -> str:
    """The graph as text, with what was found in comments."""
    lines = [outcome.status, *outcome.message.splitlines(), f"fetches: {list(program.fetches)}"]
    lines += [f"feed: { {k: v.tolist() for k, v in feed.items()} }" for feed in program.feeds]
    comment = "".join(f"# {line}\n" for line in lines)
    return comment + text_format.MessageToString(program.graph)


def record(seeds: Iterable[int], folder: Path) -> None:
    """Graphs with inputs and results, for TensorFlow; names of frames are used once."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        program = random_program(seed, Size(reuses_names=False))
        (folder / f"{seed}.pb").write_bytes(program.graph.SerializeToString())
        arrays: dict[str, Array] = {}
        for number, (feed, want) in enumerate(zip(program.feeds, expected(program), strict=True)):
            arrays |= {f"{number}/in/{name}": value for name, value in feed.items()}
            arrays |= {f"{number}/out/{name}": np.asarray(value) for name, value in want.items()}
        np.savez(folder / f"{seed}.npz", **cast(Any, arrays))


def _batch(batch: Batch, onnx: int) -> list[Outcome]:
    settle()
    programs = {seed: random_program(seed) for seed in batch.seeds}
    return [
        outcome
        if outcome.status == "ok" or outcome.kind in batch.known
        else _shrunk(programs[outcome.seed], outcome, onnx)
        for outcome in check(programs, onnx)
    ]


def _shrunk(program: Program, outcome: Outcome, onnx: int) -> Outcome:
    text = as_text(shrink(program, outcome, onnx), outcome)
    if outcome.status == "refused" and not names_place(outcome):
        outcome = replace(outcome, about="no node, frame and predicate")
    return replace(outcome, shrunk=replace(outcome, files={".pbtxt": text.encode()}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Check graphs and print a line for each with which something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="that of the first graph")
    add_options(parser)
    parser.add_argument("--onnx", type=int, default=20, help="export every Nth graph; 0 for none")
    parser.add_argument("--out", type=Path, help="the folder for graphs that are not as expected")
    parser.add_argument("--record", type=Path, help="write graphs and results, check nothing")
    options = parser.parse_args(arguments)
    if options.record is not None:
        record(range(options.seed, options.seed + options.graphs), options.record)
        return 0
    tally = Tally(out=options.out)
    batches = batches_of(options.seed, options.graphs)
    deal(engine_of(options), partial(_batch, onnx=options.onnx), batches, tally)
    return tally.conclude()


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
