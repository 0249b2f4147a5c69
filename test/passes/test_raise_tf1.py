"""Raised functions compute what TensorFlow's executor computes from the graph."""

from __future__ import annotations

import runpy
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.dialects.core import Core
from lowerdeck.dialects.interpret import run_module
from lowerdeck.dialects.tf1 import tf1_dialect
from lowerdeck.dialects.tf1.ops import GraphOp, Tf1Op
from lowerdeck.frontends import load_model
from lowerdeck.passes.contracts import check_contract
from lowerdeck.passes.control_flow import RaiseTf1ControlFlowPass
from lowerdeck.passes.provenance import source_location

from .tf1_programs import random_graph  # noqa: TID251  (these are tests)

Arrays = Mapping[str, Any]

_ROOT = Path(__file__).parents[2]
_CORPUS: Any = runpy.run_path(str(_ROOT / "bench" / "corpus.py"))

_LEFT = ("Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "Placeholder", "Assert")


def corpus_cases() -> list[Any]:
    """A parameter for each model of TensorFlow; one that skips where there is no corpus."""
    folder = _CORPUS["corpus_folder"]()
    if folder is None:
        reason = f"no corpus; {_CORPUS['PATH_VARIABLE']} names its folder"
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    return [pytest.param(case, id=case.name) for case in _CORPUS["load_cases"](folder, "tf1")]


def written_graphs() -> list[Any]:
    """The graphs of the textual tests."""
    found: list[Any] = []
    for name in ("branches", "loops", "arrays"):
        text = (Path(__file__).parent / f"raise-tf1-{name}.mlir").read_text()
        for number, chunk in enumerate(text.split("// -----\n")):
            if (
                "ControlTrigger" not in chunk
            ):  # which the interpreter, without dead tokens, waits for
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


@pytest.mark.parametrize("case", corpus_cases())
def test_models_of_the_corpus(case: Any) -> None:
    module = load_model(str(case.model), outputs=case.outputs)
    function = raised(module)
    for inputs, expected in case.samples():
        found = run_module(function, inputs)
        assert_same(found, run_module(module, inputs))
        assert case.difference(found, expected) == ""


@pytest.mark.parametrize("case", corpus_cases())
def test_names_and_order_of_nodes_mean_nothing(case: Any) -> None:
    module = load_model(str(case.model), outputs=case.outputs)
    expected = str(raised(module))
    assert str(raised(shuffled(module, Random(case.name)))) == expected


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


def chain(count: int) -> ModuleOp:
    """`count` conditionals one after another, each on a predicate of its own."""
    lines = ['%x0 = tf1.Placeholder {dtype = #tf1.dtype<float>} : () -> tensor<*xf32> loc("x")']
    binary = "{T = #tf1.dtype<float>} : (tensor<*xf32>, tensor<*xf32>)"
    for k in range(count):
        lines += [
            f"%p{k} = tf1.Less %x{k}, %x0 {binary} -> tensor<*xi1>",
            f"%f{k}, %t{k} = tf1.Switch %x{k}, %p{k} {{T = #tf1.dtype<float>}} : "
            "(tensor<*xf32>, tensor<*xi1>) -> (tensor<*xf32>, tensor<*xf32>)",
            f"%n{k} = tf1.Neg %t{k} {{T = #tf1.dtype<float>}} : (tensor<*xf32>) -> tensor<*xf32>",
            f"%x{k + 1}, %i{k} = tf1.Merge %f{k}, %n{k} {{T = #tf1.dtype<float>, N = 2 : i64}} : "
            "(tensor<*xf32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xi32>)",
        ]
    lines.append(f'tf1.fetch %x{count} : tensor<*xf32> {{names = ["y"]}}')
    return parsed("tf1.graph @main {\n" + "\n".join(lines) + "\n}")


def test_long_chains_take_linear_time_and_no_recursion() -> None:
    times: list[float] = []
    for count in (300, 1500):
        module = chain(count)
        start = process_time()
        RaiseTf1ControlFlowPass().apply(Context(), module)
        times.append(process_time() - start)
        assert sum(op.name == "core.if" for op in module.walk()) == count
    assert times[1] < 12 * times[0] + 0.5


def test_all_problems_are_listed() -> None:
    text = (Path(__file__).parent / "raise-tf1-refusals.mlir").read_text()
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
