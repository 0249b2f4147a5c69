"""Damaged files of TensorFlow graphs give one clear error, whatever is wrong with them."""

from __future__ import annotations

import random
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from lowerdeck.frontends import load_model
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef

from .tf1_graphs import (  # noqa: TID251  (these are tests, not the folder of sources)
    FLOAT,
    const,
    doubling_loop,
    graph,
    node,
)

ENOUGH_KILOBYTES = 64 << 10


def model() -> bytes:
    """A graph with a loop, and weights that stay in the file."""
    proto = doubling_loop()
    proto.node.extend([const("w", np.zeros(300)), node("z", "Neg", "w", T=FLOAT)])
    return proto.SerializeToString()


def text() -> bytes:
    return text_format.MessageToString(doubling_loop()).encode()


def functions() -> bytes:
    """A graph with functions, one of which has types by attributes."""
    folder = Path(__file__).parents[1] / "end_to_end" / "functions"
    return (folder / "placeholders.pb").read_bytes() + (folder / "nested_branches.pb").read_bytes()


def imports(path: Path, data: bytes) -> bool:
    """Whether a file is imported; any error but ours fails the test."""
    path.write_bytes(data)
    try:
        load_model(path).verify()
    except FrontendError as error:
        return not error.problems
    return True


@pytest.mark.parametrize(("data", "suffix"), [(model(), ".pb"), (text(), ".pbtxt")])
def test_files_that_end_too_early(data: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"cut{suffix}"
    assert imports(path, data)
    step = max(1, len(data) // 200)
    results = [imports(path, data[:size]) for size in range(0, len(data) - 1, step)]
    # What ends after a whole node is a graph that lacks nodes, and perhaps no needed one.
    assert sum(results) < len(results) // 10


@pytest.mark.parametrize(
    ("data", "suffix"), [(model(), ".pb"), (text(), ".pbtxt"), (functions(), ".pb")]
)
def test_files_with_flipped_bits(data: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"flipped{suffix}"
    generator = random.Random(7)
    slowest = 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(generator.choice((1, 1, 3))):
            damaged[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        start = time.perf_counter()
        imports(path, bytes(damaged))
        slowest = max(slowest, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert slowest < 5
    assert peak - before < ENOUGH_KILOBYTES


@pytest.mark.parametrize(
    "data",
    [b"\n", b"\n\xff\xff\xff\xff\x0f", b"\n" * 50, b"\x00" * 50, b"node {", b"node { name: 'x' }}"],
)
def test_what_is_no_graph_at_all(data: bytes, tmp_path: Path) -> None:
    assert not imports(tmp_path / "odd.pb", data)


def test_nesting_is_limited(tmp_path: Path) -> None:
    deep = b"a {" * 5000 + b"}" * 5000
    assert not imports(tmp_path / "deep.pbtxt", deep)
    message = b""
    for _ in range(3000):
        size = len(message)
        message = (
            b"\x0a" + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + message
        )
    assert not imports(tmp_path / "deep.pb", message)


def test_an_empty_file_and_one_that_is_not_there(tmp_path: Path) -> None:
    assert not imports(tmp_path / "empty.pb", b"")
    with pytest.raises(FrontendError, match="cannot be read"):
        load_model(tmp_path / "missing.pb")


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "odd.pbtxt"
    path.write_bytes(b'node { name: "\xff" }')
    with pytest.raises(FrontendError, match="is not UTF-8 text from byte 14 on"):
        load_model(path)


@pytest.mark.parametrize("count", [-1, 1 << 20, 1 << 62])
def test_counts_of_inputs(count: int, tmp_path: Path) -> None:
    proto = GraphDef(node=[const("x", np.zeros(2)), node("y", "AddN", "x", T=FLOAT)])
    proto.node[1].attr["N"].i = count
    (path := tmp_path / "graph.pb").write_bytes(proto.SerializeToString())
    with pytest.raises(FrontendError, match="node 'y' \\(AddN\\)") as error:
        load_model(path)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("name", ["9" * 5000, "x:" + "9" * 5000, f"y_{'9' * 5000}"])
def test_names_of_many_digits(name: str, tmp_path: Path) -> None:
    proto = GraphDef(node=[const(name, np.zeros(2)), node("y", "Neg", name, T=FLOAT)])
    imports(tmp_path / "graph.pb", proto.SerializeToString())


@pytest.mark.parametrize("attributes", [{}, {"T": FLOAT}, {"T": FLOAT, "index": 0}])
def test_argument_of_no_function(attributes: dict[str, Any], tmp_path: Path) -> None:
    """What stands for an argument in a function's body is an operator like any other in a graph."""
    proto = graph(node("x", "_Arg", **attributes), node("y", "Neg", "x", T=FLOAT))
    path = tmp_path / "m.pb"
    path.write_bytes(proto.SerializeToString())
    if "index" in attributes:
        assert "tf1._Arg" in str(load_model(path))
    else:
        with pytest.raises(
            FrontendError, match=r"node 'x' \(_Arg\): the attribute '\w+' is missing"
        ):
            load_model(path)
