"""Quantized operators bit for bit: ONNX Runtime, integer arithmetic of numpy, and the C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import helper

import lowerdeck
from models.signed_bytes import random_bytes

Array = NDArray[Any]


Node = tuple[str, Mapping[str, Array], int, Mapping[str, Any]]
"""Operator, inputs, number of outputs, attributes."""


def check(op_type: str, inputs: Mapping[str, Array], outputs: int = 1, **attributes: Any) -> Array:
    """The first output; all are equal to ONNX Runtime's."""
    return check_all([(op_type, inputs, outputs, attributes)])[0]


def check_all(cases: Sequence[Node]) -> list[Array]:
    """The same of several nodes, which are one model."""
    nodes: list[onnx.NodeProto] = []
    given: dict[str, Array] = {}
    for k, (op_type, inputs, outputs, attributes) in enumerate(cases):
        named = {f"{name}{k}": array for name, array in inputs.items()}
        names = [f"y{k}_{n}" for n in range(outputs)]
        nodes.append(helper.make_node(op_type, list(named), names, **attributes))
        given |= named
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in given.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for node in nodes for name in node.output]
    graph = helper.make_graph(nodes, "g", infos, results)
    opset = [helper.make_opsetid("", 17)]
    model = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opset, ir_version=8)
    )
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in results]
    expected = dict(zip(names, session.run(names, given), strict=True))
    found = lowerdeck.compile(model, cache=False)(given)
    for name, want in expected.items():
        assert found[name].dtype == want.dtype
        np.testing.assert_array_equal(found[name], want, err_msg=name)
    return [expected[node.output[0]] for node in nodes]


VECTORS: Sequence[Sequence[float]] = (
    [0.0, 255.0, 0.5, 1.5, 2.5, 127.5, 128.5, 254.5],  # scale 1: ties
    [-128.0, 127.0, -0.5, 0.5, -1.5, 63.5],
    [3.0, 4.0, 5.0],  # 0 is always in the range
    [-3.0, -4.0],
    [0.0, 0.0],  # a scale of 0
    [1e-30, 2e-30],
    [-1.25, 0.75, 0.1, 0.2, -0.3],
)


def test_dynamic_quantize() -> None:
    arrays = [np.array(values, np.float32) for values in VECTORS]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        arrays.append(rng.normal(rng.normal(), 3, (7, 33)).astype(np.float32))
    check_all([("DynamicQuantizeLinear", {"x": array}, 3, {}) for array in arrays])


@pytest.mark.parametrize("dtypes", [(np.uint8, np.int8), (np.uint8, np.uint8)])
def test_matmul_integer(dtypes: tuple[Any, Any]) -> None:
    cases: list[Node] = []
    exact: list[Array] = []
    for m, k, n in ((1, 4, 3), (5, 130, 17), (16, 64, 32)):
        rng = np.random.default_rng(0)
        a, b = random_bytes(rng, dtypes[0], 2, m, k), random_bytes(rng, dtypes[1], k, n)
        a_zero, b_zero = random_bytes(rng, dtypes[0]), random_bytes(rng, dtypes[1], n)
        for zeros in ({}, {"p": np.array(a_zero), "q": b_zero}):
            cases.append(("MatMulInteger", {"a": a, "b": b, **zeros}, 1, {}))
        exact += [
            a.astype(np.int64) @ b.astype(np.int64),
            (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - b_zero),
        ]
    for found, expected in zip(check_all(cases), exact, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("group", [1, 2])
def test_conv_integer(group: int) -> None:
    """What pads an image is its zero point."""
    rng = np.random.default_rng(0)
    x, w = random_bytes(rng, np.uint8, 2, 4, 9, 7), random_bytes(rng, np.uint8, 6, 4 // group, 3, 3)
    inputs = {"x": x, "w": w, "p": np.array(131, np.uint8), "q": np.array(77, np.uint8)}
    check("ConvInteger", inputs, pads=[1, 0, 1, 2], strides=[2, 1], group=group)


def scale(value: float) -> Array:
    return np.array(value, np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_qlinear_matmul(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    inputs = {
        "a": random_bytes(rng, dtype, 6, 40),
        "as": scale(0.02),
        "az": np.array(3, dtype),
        "b": random_bytes(rng, dtype, 40, 12),
        "bs": scale(0.013),
        "bz": np.array(5, dtype),
        "ys": scale(0.11),
        "yz": np.array(7, dtype),
    }
    check("QLinearMatMul", inputs)


@pytest.mark.parametrize("group", [1, 4])
def test_qlinear_conv(group: int) -> None:
    """A scale for each filter, and a bias."""
    rng = np.random.default_rng(0)
    inputs = {
        "x": random_bytes(rng, np.uint8, 1, 4, 8, 9),
        "xs": scale(0.05),
        "xz": np.array(120, np.uint8),
        "w": random_bytes(rng, np.int8, 8, 4 // group, 3, 3),
        "ws": rng.random(8, np.float32) * 0.02 + 0.001,
        "wz": np.zeros(8, np.int8),
        "ys": scale(0.4),
        "yz": np.array(100, np.uint8),
        "b": rng.integers(-1000, 1000, 8, np.int32),
    }
    check("QLinearConv", inputs, pads=[1, 1, 1, 1], group=group)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quantize(dtype: Any) -> None:
    """Halves go to even numbers, before the zero point is added."""
    x = np.concatenate([np.arange(-150, 150) / 2, [1e9, -1e9]]).astype(np.float32)
    check_all(
        [
            ("QuantizeLinear", {"x": x, "s": scale(step), "z": np.array(zero, dtype)}, 1, {})
            for zero in (0, 1, 4)
            for step in (0.5, 0.3)
        ]
    )
