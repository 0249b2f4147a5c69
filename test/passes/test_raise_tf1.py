"""Raised functions compute what TensorFlow's executor computes from the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, Region
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.dialects.core import Core
from lowerdeck.dialects.core.types import i64
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.tf1 import tf1_dialect
from lowerdeck.dialects.tf1.ops import FetchOp, GraphOp, Tf1Op
from lowerdeck.frontends import load_model
from lowerdeck.passes.control_flow import RaiseTf1ControlFlowPass
from lowerdeck.passes.machinery.contracts import check_contract
from lowerdeck.passes.machinery.provenance import source_location
from models.corpus import Case

from .tf1_functions import random_functions  # noqa: TID251
from .tf1_programs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLOAT,
    Builder,
    random_graph,
)

Arrays = Mapping[str, Any]

_ROOT = Path(__file__).parents[2]

_LEFT = ("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "Placeholder", "Assert")


def written_graphs() -> list[Any]:
    """The graphs of the textual tests."""
    found: list[Any] = []
    for name in ("branches", "loops", "arrays", "functions"):
        text = (Path(__file__).parent / f"control_flow/raise-tf1-{name}.mlir").read_text()
        for number, chunk in enumerate(text.split("// -----\n")):
            found.append(pytest.param(chunk, id=f"{name}{number}"))
    return found


def parsed(text: str) -> ModuleOp:
    """The module of a text."""
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func

    context = Context()
    for dialect in (Builtin, Func, Core, tf1_dialect()):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def raised(module: ModuleOp) -> ModuleOp:
    """The module after the pass, which leaves `module` as it is."""
    copy = module.clone()
    RaiseTf1ControlFlowPass().apply(Context(), copy)
    copy.verify()
    check_contract(copy, "imported")  # also that values are defined before they are used
    for op in copy.walk():
        if isinstance(op, Tf1Op):
            assert not op.controls
            assert op.control is None
            assert op.op_type.removeprefix("Ref").removeprefix("_") not in (*_LEFT, "SwitchN")
    return copy


def inputs_of(module: ModuleOp, random: Random) -> dict[str, NDArray[Any]]:
    """Scalars for the inputs of the module's graph; loops that double them end."""
    found: dict[str, NDArray[Any]] = {}
    for op in graph_of(module).body.block.ops:
        if isinstance(op, Tf1Op) and op.op_type == "Placeholder":
            name = cast(Any, op.location).desc.data
            found[f"{name}:0"] = {
                "bool": np.array(random.random() < 0.5),
                "int32": np.array(random.randint(-1, 3), np.int32),
                "float": np.array(random.uniform(0.1, 0.9), np.float32),
            }[op.attr("dtype")]
    return found


def graph_of(module: ModuleOp) -> GraphOp:
    """The graph of a module."""
    return next(op for op in module.body.block.ops if isinstance(op, GraphOp))


def assert_same(found: Arrays, expected: Arrays) -> None:
    """The same tensors, bit for bit."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert np.asarray(found[name]).dtype == np.asarray(value).dtype
        np.testing.assert_array_equal(found[name], value, err_msg=name, strict=True)


def shuffled(module: ModuleOp, random: Random) -> ModuleOp:
    """The same graph: its nodes in any order, and all but its inputs renamed."""
    copy = module.clone()
    block = graph_of(copy).body.block
    *ops, fetch = block.ops
    for op in (*ops, fetch):
        op.detach()
    random.shuffle(ops)
    block.add_ops([*ops, fetch])
    for number, op in enumerate(ops):
        if isinstance(op, Tf1Op) and op.op_type != "Placeholder":
            op.location = source_location(f"{random.randint(0, 1 << 30)}_{number}")
    return copy


def test_models_of_the_corpus(tf1_case: Case) -> None:
    module = load_model(str(tf1_case.model), outputs=tf1_case.outputs)
    module.verify()
    function = raised(module)
    for inputs, expected in tf1_case.samples():
        graph = run_module(module, inputs)
        assert tf1_case.difference(graph, expected) == ""
        assert_same(run_module(function, inputs), graph)
    # Names and the order of nodes mean nothing.
    assert str(raised(shuffled(module, Random(tf1_case.name)))) == str(function)


@pytest.mark.parametrize("text", written_graphs())
def test_written_graphs(text: str) -> None:
    module = parsed(text)
    function = raised(module)
    random = Random(0)
    assert str(raised(shuffled(module, random))) == str(function)
    for _ in range(6):
        inputs = inputs_of(module, random)
        expected = run_module(module, inputs, max_steps=20_000)
        assert_same(run_module(function, inputs), expected)


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs(seed: int) -> None:
    module = random_graph(seed)
    function = raised(module)
    random = Random(seed)
    assert str(raised(shuffled(module, random))) == str(function)
    for _ in range(2):
        inputs = inputs_of(module, random)
        assert_same(run_module(function, inputs), run_module(module, inputs))


@pytest.mark.parametrize("seed", range(10))
def test_random_functions(seed: int) -> None:
    module = random_functions(seed)
    module.verify()
    function = raised(module)
    random = Random(seed)
    assert str(raised(shuffled(module, random))) == str(function)
    for _ in range(2):
        inputs = inputs_of(module, random)
        expected = run_module(module, inputs, max_steps=200_000)
        assert_same(run_module(function, inputs), expected)


def chain(count: int, one_sided: bool) -> ModuleOp:
    """
    `count` conditionals one after another, each on a predicate of its own; `one_sided` ones use
    the one before only where the predicate holds.
    """
    build = Builder(Random(0))
    x = build.node("Placeholder", [], dtype=FLOAT).results[0]
    value = x
    for number in range(count):
        limit = build.constant(number / count, FLOAT, [])
        left = x if one_sided else value
        predicate = build.node("Less", [left, limit], T=FLOAT).results[0]
        switch = build.node("Switch", [value, predicate], T=FLOAT)
        other = build.node("Switch", [x, predicate], T=FLOAT) if one_sided else switch
        changed = build.node("Tanh", [switch.results[1]], T=FLOAT).results[0]
        inputs = [other.results[0], changed]
        value = build.node("Merge", inputs, T=FLOAT, N=IntegerAttr(2, i64)).results[0]
    build.block.add_op(FetchOp([value], ["y"]))
    return ModuleOp([GraphOp("main", Region(build.block))])


def test_long_chains_take_linear_time_and_no_recursion() -> None:
    times: list[float] = []
    for count in (200, 1000):
        module = chain(count, one_sided=False)
        start = process_time()
        RaiseTf1ControlFlowPass().apply(Context(), module)
        times.append(process_time() - start)
        assert sum(op.name == "core.if" for op in module.walk()) == count
    assert times[1] < 12 * times[0] + 0.5


def test_branches_do_not_nest_without_end() -> None:
    module = chain(200, one_sided=True)
    function = raised(module)
    assert sum(op.name == "core.if" for op in function.walk()) == 200
    assert max(map(_depth, function.walk())) < 40
    for number in (-1.0, 0.5, 0.999, 2.0):
        inputs = {"n1_Placeholder:0": np.array(number, np.float32)}
        assert_same(run_module(function, inputs), run_module(module, inputs))


def _depth(op: Operation) -> int:
    parent = op.parent_op()
    return 0 if parent is None else 1 + _depth(parent)


def test_all_problems_are_listed() -> None:
    text = (Path(__file__).parent / "control_flow/raise-tf1-refusals.mlir").read_text()
    chunks = text.split("// -----\n")
    assert all(map(_is_refused, chunks))


def _is_refused(chunk: str) -> bool:
    try:
        raised(parsed(chunk))
    except PassFailedException as error:
        expected: Iterable[str] = (
            line.partition("node '")[2].partition("'")[0]
            for line in chunk.splitlines()
            if line.startswith("// CHECK") and "node '" in line
        )
        return all(f"node '{name}'" in str(error) for name in expected)
    return False


def test_calls_of_calls_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function calls the next one twice: their nodes double with each of them."""
    monkeypatch.setattr("lowerdeck.passes.control_flow.read._NODE_LIMIT", 1000)
    dtype, type_ = "[#tf1.dtype<float>]", "tensor<*xf32>"

    def call(result: str, name: str, value: str) -> str:
        attributes = f"{{f = @{name}, Tin = {dtype}, Tout = {dtype}}}"
        return f"%{result} = tf1.PartitionedCall %{value} {attributes} : ({type_}) -> {type_}"

    functions = [
        f"tf1.function @f{k} {{ ^bb0(%v : {type_}): {call('a', f'f{k + 1}', 'v')} "
        f"{call('b', f'f{k + 1}', 'a')} tf1.return %b : {type_} }}"
        for k in range(40)
    ]
    text = (
        f"tf1.graph @main {{ %x = tf1.Placeholder {{dtype = #tf1.dtype<float>}} : () -> {type_} "
        f'{call("y", "f0", "x")} tf1.fetch %y : {type_} {{names = ["y"]}} }}'
        f"{' '.join(functions)} tf1.function @f40 {{ ^bb0(%v : {type_}): tf1.return %v : {type_} }}"
    )
    with pytest.raises(PassFailedException, match="found over 1000 nodes with functions"):
        raised(parsed(text))
