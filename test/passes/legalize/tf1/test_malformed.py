"""Nodes of TensorFlow with ranks and lists of lengths that their operators do not take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import DenseArrayBase

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.tf1.signatures import signature_of
from lowerdeck.frontends.tf1.graph_pb2 import DataType, GraphDef
from lowerdeck.frontends.tf1.import_ import import_graph
from lowerdeck.passes.legalize.tf1.ranks import RANKS
from lowerdeck.passes.legalize.walk import LegalizationError


def graph_of(op: str, shapes: Sequence[Sequence[int]], attributes: Mapping[str, Any]) -> GraphDef:
    """A graph of one node `y` whose inputs are placeholders of floats."""
    graph = GraphDef()
    for number, shape in enumerate(shapes):
        node = graph.node.add(name=f"x{number}", op="Placeholder")
        node.attr["dtype"].type = DataType.DT_FLOAT
        node.attr["shape"].shape.unknown_rank = False
        for size in shape:
            node.attr["shape"].shape.dim.add(size=size)
    node = graph.node.add(name="y", op=op, input=[f"x{k}" for k in range(len(shapes))])
    node.attr["T"].type = DataType.DT_FLOAT
    for name, value in attributes.items():
        if isinstance(value, str):
            node.attr[name].s = value.encode()
        else:
            node.attr[name].list.i.extend(value)
    return graph


def refusal(path: Path, graph: GraphDef) -> str:
    (file := path / "graph.pb").write_bytes(graph.SerializeToString())
    with pytest.raises(LegalizationError, match="node 'y'") as error:
        import_and_lower(str(file), "legal", CompileOptions())
    return str(error.value)


LISTS: Sequence[list[int]] = ([], [1], [1, 1, 1], [1, 1, 1, 1, 1], [1, 0, 1, 1], [1, -2, 1, 1])


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("numbers", LISTS)
@pytest.mark.parametrize("name", ["ksize", "strides"])
def test_pools(name: str, numbers: list[int], padding: str, tmp_path: Path) -> None:
    lists = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], name: numbers}
    for op in ("MaxPool", "AvgPool"):
        graph = graph_of(op, [[1, 4, 4, 2]], {**lists, "padding": padding})
        assert f"found {numbers}, expected 4 numbers" in refusal(tmp_path, graph)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("numbers", LISTS)
@pytest.mark.parametrize("name", ["strides", "dilations"])
def test_convolutions(name: str, numbers: list[int], padding: str, tmp_path: Path) -> None:
    if name == "dilations" and not numbers:
        return  # as if it were not given
    lists = {"strides": [1, 1, 1, 1], "dilations": [1, 1, 1, 1], name: numbers}
    graph = graph_of("Conv2D", [[1, 4, 4, 2], [3, 3, 2, 5]], {**lists, "padding": padding})
    assert f"found {numbers}, expected 4 numbers" in refusal(tmp_path, graph)


def test_matrices(tmp_path: Path) -> None:
    assert "2 or more dimensions" in refusal(tmp_path, graph_of("Cholesky", [[4]], {}))


def test_ranks_are_those_of_inputs() -> None:
    for op, ranks in RANKS.items():
        signature = signature_of(op)
        assert signature is not None, op
        assert ranks.keys() <= {argument.name for argument in signature.inputs}, op


def test_long_lists_are_arrays(tmp_path: Path) -> None:
    times: list[float] = []
    for count in (50_000, 500_000):
        lists = {"ksize": [1] * count, "strides": [1, 1, 1, 1]}
        graph = graph_of("MaxPool", [[1, 4, 4, 2]], {**lists, "padding": "SAME"})
        start = time.process_time()
        module = import_graph(graph)
        times.append(time.process_time() - start)
        (op,) = (op for op in module.walk() if op.name == "tf1.MaxPool")
        assert isinstance(op.properties["ksize"], DenseArrayBase)
        assert len(refusal(tmp_path, graph)) < 2_000
    assert times[1] < 1.0 + 40 * times[0]
