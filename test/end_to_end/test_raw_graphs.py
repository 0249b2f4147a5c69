"""Graphs written node by node, in forms that no function gives, compute what TensorFlow did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from fuzz.fuzz_tf1 import check
from fuzz.tf1_graphs import Program
from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.tf1.graph_pb2 import GraphDef
from lowerdeck.frontends.tf1.import_ import import_graph

_FOLDER = Path(__file__).parent / "raw_graphs"
_NAMES = sorted(path.stem for path in _FOLDER.glob("*.pbtxt"))


def _read(name: str) -> tuple[Program, list[Mapping[str, Any]]]:
    """A graph with its inputs, and what TensorFlow gave."""
    graph = text_format.Parse((_FOLDER / f"{name}.pbtxt").read_text(), GraphDef())
    data = json.loads((_FOLDER / f"{name}.json").read_text())
    feeds = tuple({n: _array(v) for n, v in run["inputs"].items()} for run in data["runs"])
    return Program(graph, tuple(data["outputs"]), feeds), [r["outputs"] for r in data["runs"]]


def _array(value: Any) -> Any:
    kinds = {bool: np.bool_, int: np.int32, float: np.float32}
    return np.array(value, kinds[type(value)])


@pytest.mark.parametrize("name", _NAMES)
def test_the_reference_gives_what_tensorflow_gave(name: str) -> None:
    program, expected = _read(name)
    path = str(_FOLDER / f"{name}.pbtxt")
    module = import_graph(path, outputs=program.fetches)
    for feed, wanted in zip(program.feeds, expected, strict=True):
        found = run_module(module, feed)
        for output, value in wanted.items():
            np.testing.assert_array_equal(np.asarray(found[output]), value, err_msg=output)


def test_core_c_and_onnx_give_the_same() -> None:
    programs = {number: _read(name)[0] for number, name in enumerate(_NAMES)}
    outcomes = check(programs, onnx=1)
    wrong = {_NAMES[o.seed]: (o.status, o.message) for o in outcomes if o.status != "ok"}
    assert wrong == {}
