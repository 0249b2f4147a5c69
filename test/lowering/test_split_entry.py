"""Entry functions in sections compute the same, and no function is longer than it may be."""

# Bodies of programs are lambdas, and numpy's limits have no types.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from xdsl.builder import ImplicitBuilder
from xdsl.ir import Block, Operation, Region, SSAValue

import lowerdeck
from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import OpenOutputOp, find_entry
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import i64, static_shape, tensor
from lowerdeck.lowering.emit_c import entry as emit_c_entry
from lowerdeck.lowering.emit_c.entry import EntryWriter
from lowerdeck.lowering.emit_c.module import CArtifact, emit_c
from lowerdeck.lowering.entry.parallelize import ParallelizePass, may_lag
from lowerdeck.lowering.entry.split_entry import SplitEntryPass
from lowerdeck.lowering.entry.statements import (
    statements,
    statements_of_block,
    statements_of_section,
)
from lowerdeck.lowering.pipeline import ALL_PASSES, run_to_phase
from lowerdeck.lowering.targets.base import MOST_STATEMENTS
from lowerdeck.passes.machinery.context import LowerdeckContext
from lowerdeck.passes.machinery.options import CompileOptions

from .programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    Program,
    Suite,
    module_of,
    typed,
)
from .test_changing_sizes import (  # noqa: TID251
    branches,
    chooses,
    collects,
    grows,
    numbers,
    rotates,
    swaps,
    trips,
    vector,
)
from .test_random_programs import STATE, ControlFlow  # noqa: TID251

LIMIT = 24
"""Entry functions of small programs are longer."""

_OF_ARGUMENTS = 40
"""More than the statements of an entry function for its ports."""


def printed_statements(
    artifact: CArtifact, name: str = r"\w+_(?:driver|section\w*)"
) -> dict[str, int]:
    """For each function of a run, or of another name, how many statements are printed."""
    functions = re.findall(
        rf"^(?:static|LOWERDECK_KERNEL) \w+ ({name})\([^\n]*\) \{{\n(.*?)^\}}",
        artifact.files[f"{artifact.name}.c"],
        re.MULTILINE | re.DOTALL,
    )
    return {name: statements_in(body) for name, body in functions}


def statements_in(c: str) -> int:
    """How many statements a piece of C has."""
    text = re.sub(r"\bfor \(.*?\) \{", "while ()", re.sub(r"/\*.*?\*/", "", c))
    return text.count(";") + len(re.findall(r"\b(?:if|while) \(", text))


def check_lengths(suite: Suite, limit: int) -> None:
    """What is printed is not longer than counted, and, unless it is one op, than allowed."""
    count = 0
    lowered = {artifact.name: (program.module, artifact) for program, artifact, _ in suite.lowered}
    for module, artifact in lowered.values():
        entry = find_entry(module)
        assert entry is not None
        sections = [op for op in entry.walk() if isinstance(op, entry_ops.SectionOp)]
        printed = printed_statements(artifact)
        own = printed.pop(f"{artifact.name}_driver")
        assert own <= statements_of_block(entry.body.block) + _OF_ARGUMENTS
        assert len(printed) == len(sections)
        for number, section in enumerate(sections):
            name = f"{artifact.name}_section{f'_{number + 1}' if number else ''}"
            assert printed[name] <= statements_of_section(section)
            work = [op for op in section.body.block.ops if not isinstance(op, entry_ops.WeightOp)]
            # The one that is not the end.
            assert len(work) == 2 or printed[name] <= limit
        count += len(sections)
    assert count > len(lowered)


def test_control_flow(tmp_path: Path) -> None:
    """Sections in loops and branches, what they give to others, and sections of sections."""
    suite = Suite(tmp_path)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        arrays = [
            np.asarray(rng.integers(-5, 6, static_shape(type_) or ())).astype(
                np.int64 if type_ == STATE[3] else np.int32
            )
            for type_ in STATE
        ]

        def body(*args: SSAValue, seed: int = seed) -> list[SSAValue]:
            return ControlFlow(seed).block(list(args), 2)[-4:]

        suite.add(STATE, body, *arrays, threads=1 + seed % 2, most_statements=LIMIT)
    suite.check()
    check_lengths(suite, LIMIT)


@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_from_data(tmp_path: Path, threads: int) -> None:
    """Buffers of the allocator, and symbols, that sections make for others."""
    suite = Suite(tmp_path)
    rule: dict[str, Any] = {"threads": threads, "most_statements": 8}
    for count in (0, 3):
        suite.on(grows, trips(count), numbers(2, 3), **rule)
        suite.on(swaps, trips(count), numbers(5), numbers(2), numbers(1), **rule)
        suite.on(rotates, trips(count), numbers(5), numbers(2), **rule)
        suite.on(collects, trips(count), numbers(2), **rule)
        suite.on(branches, trips(count), numbers(5), numbers(2), **rule)
    for flag in (True, False):
        values = np.array([1, 0, 2, 0, 0, 3], np.float32)
        suite.on(chooses, np.array(flag), values, numbers(2), **rule)
    dynamic = [typed(np.int64), vector("n"), vector("m"), vector("l")]
    suite.add(dynamic, swaps, trips(4), numbers(5), numbers(2), numbers(1), **rule)
    suite.check()
    check_lengths(suite, 8)


@pytest.mark.parametrize("threads", [1, 2])
def test_each_op_prints_no_more_than_is_counted(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    printed: set[type[Operation]] = set()

    def emit_and_count(op: Operation, w: EntryWriter) -> None:
        start = len(w.c.lines)
        emit(op, w)
        # What opens an output is counted with the arguments.
        count = _OF_ARGUMENTS if isinstance(op, OpenOutputOp) else statements(op)
        assert statements_in("\n".join(w.c.lines[start:])) <= count, op
        printed.add(type(op))

    emit = emit_c_entry.emit
    monkeypatch.setattr(emit_c_entry, "emit", emit_and_count)
    closed: list[tuple[Any, list[Any]]] = [
        (grows, [trips(3), numbers(2, 3)]),
        (swaps, [trips(3), numbers(5), numbers(2), numbers(1)]),
        (branches, [trips(3), numbers(5), numbers(2)]),
        (collects, [trips(3), numbers(2)]),
        (picks, [numbers(3, 8), trips(1)]),
        (chooses, [np.array(True), numbers(6), numbers(2)]),
    ]
    programs = [
        ([typed(value.dtype, *value.shape) for value in inputs], body, inputs)
        for body, inputs in closed
    ]
    opened = [vector("n"), vector("m")]
    programs.append((opened, lambda x, y: e.AddOp(x, y).result, [numbers(2), numbers(2)]))
    for types, body, inputs in programs:
        for limit in (MOST_STATEMENTS, 8):
            module = module_of(types, body)
            program = Program("p", module, inputs, threads=threads, most_statements=limit)
            program.lower([])
    missing = statements.registry.keys() - printed - {object, kernel.ReturnOp, entry_ops.MarkOp}
    assert {op.__name__ for op in missing} <= ({"ShareOp", "OnceOp"} if threads == 1 else set())


def test_scopes() -> None:
    """What a section in a loop takes from the allocator is given back by the loop."""
    marks: list[int] = []
    for limit in (MOST_STATEMENTS, 8):
        module = module_of([typed(np.int64), typed(np.float32, 2, 3)], grows)
        inputs = [trips(3), numbers(2, 3)]
        program = Program("p", module, inputs, most_statements=limit)
        program.expect()
        artifact, problems = program.lower([program])
        assert not problems
        marks.append(artifact.files["p.c"].count("lowerdeck_block *const mark"))
    assert marks[0] == marks[1] > 0


def picks(x: Any, k: Any) -> Any:
    """An index from data in every step."""
    for _ in range(6):
        row = GatherOp(x, k, 0).result
        x = SoftmaxOp(e.AddOp(x, row).result, 1).result
    return x


@pytest.mark.parametrize("threads", [1, 2])
def test_status(tmp_path: Path, threads: int) -> None:
    """What ends the run in a section ends it, and only that."""
    suite = Suite(tmp_path)
    types = [typed(np.float32, 3, 8), typed(np.int64)]
    for index in (0, -3, 3):
        suite.add(
            types,
            picks,
            np.arange(24, dtype=np.float32).reshape(3, 8) / 8,
            np.array(index),
            threads=threads,
            may_fail=True,
            most_statements=8,
        )
    suite.check()
    assert [status for status, _ in suite.outcomes()][:2] == [0, 0]
    check_lengths(suite, 8)


def chain(x: Any, length: int) -> Any:
    """Kernels in a row with constants, the first of which is used in all."""
    first = ConstantOp.of(np.arange(8, dtype=np.float32)).result
    for number in range(length):
        own = ConstantOp.of(np.full(8, number, np.float32)).result
        x = SoftmaxOp(e.AddOp(x, e.MulOp(first, own).result).result, 1).result
    return x


def test_long_chain(tmp_path: Path) -> None:
    """No function is longer than allowed, the entry function's own neither."""
    suite = Suite(tmp_path)
    x = np.arange(24, dtype=np.float32).reshape(3, 8)
    for threads in (1, 2):
        suite.on(lambda x: chain(x, 80), x, threads=threads, most_statements=60)
    suite.check()
    check_lengths(suite, 60)
    for _, artifact, _ in suite.lowered:
        assert max(printed_statements(artifact).values()) <= 60


def test_default_limit() -> None:
    """As long as an entry function may be, its C has no sections."""

    def lower(length: int) -> int:
        program = Program("p", module_of([typed(np.float32, 3, 8)], lambda x: chain(x, length)), [])
        context = LowerdeckContext()
        for name in ("form-kernels", "bufferize", "lower-kernels", "plan-memory", "split-entry"):
            ALL_PASSES[name]()().apply(context, program.module)
        return len(printed_statements(emit_c(program.module, "p", "c99")))

    assert lower(200) == 1
    assert lower(400) > 1


@pytest.mark.parametrize(("length", "kernels"), [(20, 1), (40, 2)])
def test_long_kernel(length: int, kernels: int) -> None:
    """What takes many statements is not put together as often as what takes few."""

    def body(x: SSAValue) -> SSAValue:
        for _ in range(length):
            x = e.ErfOp(x).result
        return x

    module = module_of([typed(np.float32, 5, 6, 7)], body)
    run_to_phase(LowerdeckContext(options=CompileOptions(target="x86-64-v4")), module, "scheduled")
    printed = printed_statements(emit_c(module, "p", "x86-64-v4"), r"p_erf\w+")
    assert len(printed) == kernels
    assert 1000 < max(printed.values()) <= 2000


def test_two_threads_and_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both go through sections: results are right, and each call of a kernel has its time."""
    nodes = [
        helper.make_node("Softmax", [f"v{k}"], [f"v{k + 1}"], name=f"s{k}", axis=k % 2)
        for k in range(16)
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, 64]) for name in ("v0", "v16")
    ]
    graph = helper.make_graph(nodes, "chain", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    monkeypatch.setitem(ALL_PASSES, "split-entry", lambda: partial(SplitEntryPass, LIMIT))
    compiled = lowerdeck.compile(model, profile=True, cache=False, threads=2)
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    profile = compiled.profile({"v0": x})
    assert len(profile.kernels) == 16
    (found,) = compiled(x)
    for k in range(16):
        x = np.exp(x) / np.exp(x).sum(k % 2, keepdims=True)
    np.testing.assert_allclose(found, x, rtol=1e-5)


@pytest.mark.parametrize("computed", [False, True])
def test_late_threads(computed: bool) -> None:
    """What a section gets is an input or it is not, as without sections."""

    def body(x: SSAValue, trips: SSAValue) -> list[SSAValue]:
        if computed:
            trips = e.AddOp(trips, trips).result
        block = Block(arg_types=[tensor(i64, []), x.type])
        with ImplicitBuilder(block):
            YieldOp([chain(block.args[1], 20)])
        return [LoopOp(trips, None, [x], Region(block)).results[0]]

    module = module_of([typed(np.float32, 20, 8), typed(np.int64)], body)
    context = LowerdeckContext()
    for name in ("form-kernels", "bufferize", "lower-kernels"):
        ALL_PASSES[name]()().apply(context, module)
    ParallelizePass(worth=64).apply(context, module)
    ALL_PASSES["plan-memory"]()().apply(context, module)
    SplitEntryPass(LIMIT).apply(context, module)
    entry = find_entry(module)
    assert entry is not None
    loops = [op for op in entry.walk() if isinstance(op, entry_ops.LoopOp)]
    assert all(isinstance(loop.parent_op(), entry_ops.SectionOp) for loop in loops)
    assert may_lag(entry) is not computed
