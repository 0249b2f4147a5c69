"""The interface of onnx.backend.base."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from lowerdeck import backend


def subtraction() -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Sub", ["a", "b"], ["c"])],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "ab"],
        [helper.make_tensor_value_info("c", TensorProto.FLOAT, [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


A, B = np.array([5, 7], np.float32), np.array([1, 2], np.float32)


def test_prepare_and_run() -> None:
    prepared = backend.prepare(subtraction())
    np.testing.assert_array_equal(prepared.run([A, B])[0], A - B)
    np.testing.assert_array_equal(prepared.run({"b": B, "a": A})[0], A - B)


def test_outputs_have_names() -> None:
    outputs = backend.run_model(subtraction(), [A, B])
    np.testing.assert_array_equal(outputs["c"], A - B)  # pyright: ignore


def test_tensor_protos_as_inputs() -> None:
    protos = [onnx.numpy_helper.from_array(array) for array in (A, B)]
    np.testing.assert_array_equal(backend.run_model(subtraction(), protos)[0], A - B)


def test_run_node() -> None:
    node = helper.make_node("Max", ["a", "b"], ["c"])
    outputs = backend.run_node(node, [A, -A], outputs_info=[(np.float32, (2,))])
    np.testing.assert_array_equal(outputs[0], A)
    np.testing.assert_array_equal(backend.run_node(node, [A, -A])[0], A)


def test_compatible_models() -> None:
    assert backend.is_compatible(subtraction())
    assert not backend.is_compatible(subtraction(), "CUDA")
    unknown = subtraction()
    unknown.graph.node[0].op_type = "Unknown"
    assert not backend.is_compatible(unknown)


def test_devices() -> None:
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
    with pytest.raises(ValueError, match="CUDA"):
        backend.prepare(subtraction(), "CUDA:0")
