"""Nodes of TensorFlow with ranks and lists of lengths that their operators do not take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase

from lowerdeck.compiler import CompileOptions, import_and_lower
from lowerdeck.dialects.tf1.signatures import signature_of
from lowerdeck.frontends.tf1.graph_pb2 import DataType, GraphDef, NodeDef
from lowerdeck.frontends.tf1.import_ import import_graph
from lowerdeck.passes.legalize.tf1.ranks import ONE, RANKS
from lowerdeck.passes.legalize.walk import LegalizationError

TYPES = {
    "float": DataType.DT_FLOAT,
    "int32": DataType.DT_INT32,
    "int64": DataType.DT_INT64,
    "bool": DataType.DT_BOOL,
    "uint8": DataType.DT_UINT8,
}


def placeholder(graph: GraphDef, name: str, shape: Sequence[int], dtype: DataType) -> str:
    """Add an input; its name."""
    node = graph.node.add(name=name, op="Placeholder")
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.unknown_rank = False
    for size in shape:
        node.attr["shape"].shape.dim.add(size=size)
    return name


def given(graph: GraphDef, name: str, value: Any) -> str:
    """Add an array as a constant, or an input of floats of this shape; its name."""
    if isinstance(value, list):
        return placeholder(graph, name, cast("list[int]", value), DataType.DT_FLOAT)
    node = graph.node.add(name=name, op="Const")
    dtype = TYPES[str(value.dtype).replace("float32", "float")]
    tensor = node.attr["value"].tensor
    node.attr["dtype"].type = tensor.dtype = dtype
    tensor.tensor_content = value.tobytes()
    for size in value.shape:
        tensor.tensor_shape.dim.add(size=size)
    return name


def graph_of(op: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> GraphDef:
    """A graph of one node `y` of floats; its inputs are arrays, or shapes of placeholders."""
    graph = GraphDef(versions={"producer": 27})
    names = [given(graph, f"x{number}", value) for number, value in enumerate(inputs)]
    node = graph.node.add(name="y", op=op, input=names)
    node.attr["T"].type = DataType.DT_FLOAT
    for name, value in attributes.items():
        set_attribute(node, name, value)
    return graph


def set_attribute(node: NodeDef, name: str, value: Any) -> None:
    """Give a node an attribute; types are texts that begin with a sign."""
    match value:
        case bool():
            node.attr[name].b = value
        case int():
            node.attr[name].i = value
        case float():
            node.attr[name].f = value
        case str() if value.startswith("="):
            node.attr[name].type = TYPES[value[1:]]
        case str():
            node.attr[name].s = value.encode()
        case _:
            node.attr[name].list.i.extend(value)


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


INTS = np.array([1, 2], np.int32)
ONES = np.ones(1, np.int32)
SCALAR = np.array(1, np.int32)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "expected"),
    [
        ("Roll", [[3, 4], INTS, ONES], {}, "2 shifts, expected 1"),
        ("StridedSlice", [[3, 4], INTS, ONES, INTS], {}, "1 numbers as 'end', expected 2"),
        ("StridedSlice", [[3, 4], INTS, INTS, INTS], {"ellipsis_mask": -1}, "one ellipsis"),
        ("ConcatOffset", [SCALAR, INTS, ONES], {"N": 2}, "shapes of [1, 2] dimensions"),
        ("UnravelIndex", [ONES, np.ones(0, np.int32)], {}, "found 0 dimensions"),
        ("UnravelIndex", [ONES, np.ones(300, np.int32)], {}, "found 300 dimensions"),
        ("DataFormatVecPermute", [SCALAR], {"T": "=int32"}, "1 to 2 dimensions"),
        ("BatchToSpaceND", [[4, 2, 2], ONES, np.ones((2, 2), np.int32)], {}, "the shape [1, 2]"),
        ("BatchToSpaceND", [[4], ONES, np.ones((1, 2), np.int32)], {}, "blocks of 1 dimensions"),
        ("Pad", [[4, 4], np.ones((1, 2), np.int32)], {}, "the shape [2, 2]"),
        ("LinSpace", [[2], [], SCALAR], {}, "2 numbers as 'start', expected one"),
        ("FakeQuantWithMinMaxArgs", [[2]], {"num_bits": 1 << 62}, "expected 2 to 16"),
        ("QuantizeAndDequantizeV2", [[2], [], []], {"num_bits": 5000}, "expected 1 to 61"),
        ("SegmentMax", [np.ones(2, np.bool_), INTS], {"T": "=bool"}, "i1 has no numbers"),
        ("QuantizeV2", [[2], [], []], {"T": "=float"}, "levels of type f32, expected integers"),
        ("AudioSpectrogram", [[9, 1]], {"window_size": 1 << 40, "stride": 1}, "a window of"),
        ("Mfcc", [[1, 2, 9], SCALAR], {"filterbank_channel_count": 1 << 40}, "channels"),
        ("Mfcc", [[1, 2, 9], SCALAR], {"lower_frequency_limit": 9e9}, "expected positive ones"),
        ("MaxPool", [[4, 4]], {"ksize": [1, 2], "strides": [1, 2], "padding": "SAME"}, "4 dim"),
    ],
)
def test_nodes(
    op: str, inputs: Sequence[Any], attributes: Mapping[str, Any], expected: str, tmp_path: Path
) -> None:
    signature = signature_of(op)
    assert signature is not None
    types = {name for name, a in signature.attrs.items() if a.kind == "type" and not a.has_default}
    graph = graph_of(op, inputs, {**dict.fromkeys(types - {"T"}, "=int32"), **attributes})
    if "T" not in types:
        del graph.node[-1].attr["T"]
    assert expected in refusal(tmp_path, graph)


def test_arrays_of_less_than_nothing(tmp_path: Path) -> None:
    graph = GraphDef()
    size = given(graph, "size", np.array(-1, np.int32))
    array = graph.node.add(name="array", op="TensorArrayV3", input=[size])
    array.attr["dtype"].type = DataType.DT_FLOAT
    lengths = given(graph, "lengths", np.array([1, 1], np.int64))
    inputs = ["array", given(graph, "x", [2]), lengths, "array:1"]
    node = graph.node.add(name="y", op="TensorArraySplitV3", input=inputs)
    node.attr["T"].type = DataType.DT_FLOAT
    assert "an array of -1 elements" in refusal(tmp_path, graph)


def test_other_ranks_of_every_operator(tmp_path: Path) -> None:
    """One graph has each operator once for each of its inputs that has a rank."""
    graph, expected = GraphDef(versions={"producer": 27}), dict[str, str]()
    for op, ranks in RANKS.items():
        signature = signature_of(op)
        assert signature is not None
        arguments = [
            argument
            for argument in signature.inputs
            if argument.number_attr is None or not signature.attrs[argument.number_attr].has_default
        ]
        required = {k: v.kind for k, v in signature.attrs.items() if not v.has_default}
        if any(argument.list_attr for argument in arguments):
            continue
        for wrong in ranks:
            node = NodeDef(name=f"{op}_{wrong}", op=op)
            for name, kind in required.items():
                if kind == "type":
                    node.attr[name].type = DataType.DT_FLOAT
                elif kind in REQUIRED:
                    set_attribute(node, name, REQUIRED[kind])
            for argument in arguments:
                dtype = argument.dtype or _type_of(node, signature.attrs, argument.type_attr)
                if dtype not in TYPES:
                    break
                rank = ranks.get(argument.name, 1)
                least = 0 if rank == ONE else rank if isinstance(rank, int) else rank.start
                shape = [1] * (least if argument.name != wrong else _other(rank))
                name = placeholder(graph, f"{node.name}_{argument.name}", shape, TYPES[dtype])
                node.input.append(name)
            if len(node.input) == len(arguments):
                graph.node.append(node)
                expected[node.name] = f"found '{wrong}' of type"
    (file := tmp_path / "graph.pb").write_bytes(graph.SerializeToString())
    with pytest.raises(LegalizationError) as error:
        import_and_lower(str(file), "legal", CompileOptions())
    lines = str(error.value).splitlines()
    told = {line.partition("node '")[2].partition("'")[0]: line for line in lines}
    assert len(expected) > 200
    for name, text in expected.items():
        assert text in told.get(name, "nothing"), (name, told.get(name))


REQUIRED = {"int": 1, "list(int)": [1, 1, 1, 1], "string": "SAME", "float": 1.0, "bool": False}


def _type_of(node: NodeDef, attributes: Mapping[str, Any], name: str | None) -> str:
    assert name is not None
    default = attributes[name].default
    return str(default) if attributes[name].has_default else "float"


def _other(rank: Any) -> int:
    """A number of dimensions that an operator does not take."""
    if rank == ONE:
        return 2
    if isinstance(rank, int):
        return rank + 1
    return rank.start - 1 if rank.start else rank.stop


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
