"""Verdicts on real models: errors, sets of inputs, tables, and quantized models node by node."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from bench.real_models import Result, bound_run, error_of, input_sets, summary, table
from bench.rounding import MADE, cut, rounded_names, steps_apart, with_outputs


def test_error_is_relative_to_the_largest_value() -> None:
    want = np.array([0.0, -20.0], np.float32)
    assert error_of(np.array([0.01, -20.0], np.float32), want) < 6e-4
    assert error_of(np.array([np.nan, -20.0], np.float32), want) == math.inf
    assert error_of(want[:1], want) == math.inf
    assert error_of(want.astype(np.float64), want) == math.inf
    same = np.array([np.nan, np.inf, 1], np.float32)
    assert error_of(same, same) == 0


def test_integers_are_equal_and_angles_are_angles() -> None:
    whole = np.array([1, 2], np.int64)
    assert error_of(whole, whole) == 0
    assert error_of(whole + 1, whole) == math.inf
    angle = np.array([math.pi], np.float32)
    assert error_of(-angle, angle) > 1
    assert error_of(-angle, angle, angle=True) < 1e-6


def test_sets_of_inputs_in_order(tmp_path: Path) -> None:
    for name in ("m.onnx", "m.npz", "m.2.npz", "m.1.npz", "m.x.npz", "m2.npz"):
        (tmp_path / name).touch()
    names = [path.name for path in input_sets(tmp_path / "m.onnx")]
    assert names == ["m.npz", "m.1.npz", "m.2.npz"]


def test_summary() -> None:
    results = [
        Result("a", "passed", ours_seconds=1.0, peer_seconds=4.0),
        Result("b", "slower", ours_seconds=2.0, peer_seconds=1.0),
        Result("c", "refused", "no | op"),
    ]
    assert summary(results) == (
        "3 models: 1 passed, 1 slower, 1 refused; "
        "speed 1.41 on average (geometric mean), at least 0.50 (b)"
    )
    assert "no \\| op" in table(results)


@pytest.mark.parametrize("rank", [1, 2])
def test_outputs_of_another_rank_than_declared_can_be_timed(tmp_path: Path, rank: int) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    shape = helper.make_tensor_value_info("s", TensorProto.INT64, ["r"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"] * rank)
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x, shape], [y]), opset_imports=opsets, ir_version=8
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    run = bound_run(path, {"x": np.ones((1, 2), np.float32), "s": np.array([1, 2])})
    for _ in range(3):
        run()


def test_rounded_numbers_become_inputs_and_outputs() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]))
    names = rounded_names(model)
    assert names == ["q", "s", "z"]
    assert [v.name for v in with_outputs(model, names).graph.output] == ["y", "q", "s", "z"]
    values = {
        "q": np.array([1, 2], np.uint8),
        "s": np.array(0.5, np.float32),
        "z": np.array(1, np.uint8),
    }
    graph = cut(model, values).graph
    assert [value.name for value in graph.input] == ["x", "q", "s", "z"]
    assert [value.name for value in graph.output] == ["y", *(name + MADE for name in values)]
    assert list(graph.node[1].input) == ["q", "s", "z"]
    assert steps_apart(values["q"], np.array([2, 2], np.uint8)) == (1, 1)
