"""Models in double precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bench.peer_runs import largest_difference
from bench.reference import evaluate, main, recorded_inputs, recorded_outputs

FLOAT = TensorProto.FLOAT


@pytest.fixture
def model(tmp_path: Path) -> str:
    """y = (x - 1) w with a cast to float32 on the way, and whether y is positive."""
    nodes = [
        helper.make_node("Sub", ["x", "one"], ["d"]),
        helper.make_node("Cast", ["d"], ["c"], to=FLOAT),
        helper.make_node("MatMul", ["c", "w"], ["y"]),
        helper.make_node("Greater", ["y", "zero"], ["p"]),
    ]
    constants = {
        "one": np.array(1, np.float32),
        "zero": np.array(0, np.float32),
        "w": np.full((2, 1), 0.1, np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 2])],
        [
            helper.make_tensor_value_info("y", FLOAT, ["n", 1]),
            helper.make_tensor_value_info("p", TensorProto.BOOL, ["n", 1]),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    path = str(tmp_path / "m.onnx")
    opset = helper.make_opsetid("", 21)
    cast(Any, onnx).save(helper.make_model(graph, opset_imports=[opset], ir_version=10), path)
    return path


def test_all_of_it_is_double(model: str) -> None:
    x = np.array([[1.0000001, 3.3], [0.2, 1.5]], np.float32)
    found = evaluate(model, {"x": x})
    exact = (x.astype(np.float64) - 1) @ np.full((2, 1), np.float32(0.1), np.float64)
    assert found["y"].dtype == np.float64
    np.testing.assert_allclose(found["y"], exact, rtol=1e-15)
    np.testing.assert_array_equal(found["p"], exact > 0)


def test_files(model: str, tmp_path: Path) -> None:
    inputs, outputs = str(tmp_path / "i.npz"), str(tmp_path / "o.npz")
    np.savez(inputs, **cast(Any, {"input:x": np.ones((3, 2), np.float32), "other": np.zeros(1)}))
    assert list(recorded_inputs(inputs)) == ["x"]
    main([model, inputs, outputs])
    found = recorded_outputs(outputs)
    np.testing.assert_array_equal(found["y"], np.zeros((3, 1)))
    assert found["p"].dtype == np.bool_


def test_largest_difference() -> None:
    expected = {"a": np.array([1.0, 2.0, np.inf]), "b": np.array([3])}
    found = {"a": np.array([1.0, 2.5, np.inf], np.float32), "b": np.array([3])}
    assert largest_difference(found, expected) == 0.5
    assert largest_difference({**found, "b": np.array([5])}, expected) == 2
    assert largest_difference({**found, "b": np.array([3, 3])}, expected) == float("inf")


def test_no_number_is_as_bad_as_can_be() -> None:
    one, none = {"a": np.array([1.0])}, {"a": np.array([np.nan])}
    assert largest_difference(none, one) == largest_difference(one, none) == float("inf")
    assert largest_difference(none, none) == 0
    assert largest_difference({"a": np.array(2.0)}, {"a": np.array(np.inf)}) == float("inf")
