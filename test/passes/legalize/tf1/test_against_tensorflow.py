"""Legalized operators give TensorFlow's numbers, with shapes that are known and that are not."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowerdeck.dialects.core.names import value_names
from lowerdeck.dialects.interpret import Value, find_function, run_module
from lowerdeck.frontends.tf1.graph_pb2 import DT_FLOAT, DT_RESOURCE, DT_STRING, GraphDef
from lowerdeck.frontends.tf1.import_ import import_graph
from lowerdeck.passes.control_flow.raise_tf1 import RaiseTf1ControlFlowPass
from lowerdeck.passes.legalize.tf1 import LegalizeTf1Pass

Array = NDArray[Any]

EXPECTED = Path(__file__).parent / "expected"
TOPICS = sorted(path.stem for path in EXPECTED.glob("*.npz"))
KNOWN = ("arrays", "convolution", "movement", "pooling")
"""Those that are tested with known shapes, too, beside the graphs of the corpus."""
TOLERANCE = {2: 2e-3, 4: 1e-5, 8: 1e-12}
"""The relative and absolute error of floats, by their bytes."""


@dataclass(frozen=True)
class Recorded:
    """What `make_expected.py` wrote of a topic."""

    graph: bytes
    feeds: dict[str, Array]
    expected: dict[str, Array]


@cache
def _recorded(topic: str) -> Recorded:
    with np.load(EXPECTED / f"{topic}.npz") as entries:
        graph, index, data = (entries[name].tobytes() for name in ("graph", "index", "data"))
    named: dict[str, Array] = {}
    start = 0
    for name, dtype, shape in json.loads(index):
        count = math.prod(shape)
        array = np.frombuffer(data, dtype, count, start)
        named[name] = array.reshape(shape)
        start += array.nbytes
    return Recorded(graph, _with_prefix(named, "in:"), _with_prefix(named, "out:"))


def _with_prefix(named: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {n.removeprefix(prefix): array for n, array in named.items() if n.startswith(prefix)}


@pytest.mark.parametrize(
    ("topic", "is_known"),
    [
        pytest.param(
            topic,
            is_known,
            id=f"{topic}-{'known' if is_known else 'unknown'}",
            # Where shapes are known, nearly all that is done is done where they are not, too.
            marks=[pytest.mark.slow] * (is_known and topic not in KNOWN),
        )
        for topic in TOPICS
        for is_known in (False, True)
    ],
)
def test_numbers(topic: str, is_known: bool) -> None:
    """All cases of a topic at once, in one module: that is many times faster than one by one."""
    recorded = _recorded(topic)
    found = _results(recorded, is_known)
    wrong = {
        case: difference
        for case, expected in recorded.expected.items()
        if (difference := _difference(np.asarray(found[case]), expected))
    }
    assert wrong == {}


@pytest.mark.parametrize("topic", ["arrays", "function_lists", "gradients", "lists"])
def test_graphs(topic: str) -> None:
    """The interpreter runs graphs, and what is done with lists in them, as TensorFlow does."""
    recorded = _recorded(topic)
    module = import_graph(
        GraphDef.FromString(recorded.graph), outputs=list(recorded.expected), input_shapes=None
    )
    feeds = {f"{name}:0": array for name, array in recorded.feeds.items()}
    found = run_module(module, feeds).values()
    pairs = zip(found, recorded.expected.items(), strict=True)
    assert {c: d for f, (c, e) in pairs if (d := _difference(np.asarray(f), e))} == {}


@pytest.mark.parametrize("version", ["", "V2"])
def test_older_arrays(version: str) -> None:
    """All versions of the operators on TensorArrays mean the same, in the interpreter, too."""
    recorded = _recorded("arrays")
    older = replace(recorded, graph=_with_older_arrays(recorded.graph, version))
    found = _results(older, False)
    assert list(found) == list(recorded.expected)
    for case, expected in recorded.expected.items():
        assert _difference(np.asarray(found[case]), expected) == ""
    module = import_graph(GraphDef.FromString(older.graph), outputs=list(found))
    feeds = {f"{name}:0": array for name, array in recorded.feeds.items()}
    pairs = zip(run_module(module, feeds).values(), recorded.expected.values(), strict=True)
    assert [d for f, e in pairs if (d := _difference(np.asarray(f), e))] == []


_FORWARDING = frozenset({"Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"})


def _with_older_arrays(serialized: bytes, version: str) -> bytes:
    """
    The graph with TensorArrays of version "" or "V2": handles are strings, references in the first
    one, and the first flow is a constant that waits for the handle.
    """
    graph = GraphDef.FromString(serialized)
    makers = {node.name for node in graph.node if node.op == "TensorArrayV3"}
    for node in graph.node:
        if node.op.startswith("TensorArray"):
            node.op = node.op.removesuffix("V3") + version
            node.attr.pop("identical_element_shapes", None)
        elif node.op in _FORWARDING and node.attr["T"].type == DT_RESOURCE:
            node.attr["T"].type = DT_STRING
            node.op = node.op if version else f"Ref{node.op}"
        for index, name in enumerate(node.input):
            if name.removesuffix(":1") in makers and name.endswith(":1"):
                node.input[index] = f"{name.removesuffix(':1')}/first_flow"
    for name in makers:
        flow = graph.node.add(name=f"{name}/first_flow", op="Const", input=[f"^{name}"])
        flow.attr["dtype"].type = DT_FLOAT
        flow.attr["value"].tensor.dtype = DT_FLOAT
        flow.attr["value"].tensor.float_val.append(0)
    return graph.SerializeToString()


def _results(recorded: Recorded, is_known: bool) -> dict[str, Value]:
    feeds, expected = recorded.feeds, recorded.expected
    shapes = {name: array.shape for name, array in feeds.items()} if is_known else None
    module = import_graph(
        GraphDef.FromString(recorded.graph), outputs=list(expected), input_shapes=shapes
    )
    RaiseTf1ControlFlowPass().apply(Context(), module)
    LegalizeTf1Pass().apply(Context(), module)
    module.verify()
    found = run_module(module, _needed(module, feeds)).values()
    return dict(zip(expected, found, strict=True))


def _needed(module: ModuleOp, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """The inputs that this case has, by the names of tensors."""
    function = find_function(module, "main")
    names = value_names(function.arg_attrs, len(function.body.block.args))
    return {name: feeds[name.partition(":")[0]] for name in names}


def _difference(found: Array, expected: Array) -> str:
    """How two arrays differ; empty if they do not."""
    types = [f"{array.dtype}{list(array.shape)}" for array in (found, expected)]
    if types[0] != types[1]:
        return f"{types[0]}, expected {types[1]}"
    if expected.dtype.kind != "f":
        same = np.array_equal(found, expected)
    else:
        tolerance = TOLERANCE[expected.dtype.itemsize]
        wide = expected.astype(np.float64)
        near = np.isclose(found.astype(np.float64), wide, tolerance, tolerance / 100, True)
        same = bool(near.all())
    return "" if same else f"{found.tolist()}, expected {expected.tolist()}"
