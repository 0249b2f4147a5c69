"""Operators of ONNX Runtime's own domain, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
import pytest
from numpy.typing import NDArray
from onnx import helper

import lowerdeck
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model

Array = NDArray[Any]


def model_of(op_type: str, inputs: Mapping[str, Array], **attributes: Any) -> Any:
    node = helper.make_node(op_type, list(inputs), ["y"], domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    first = next(iter(inputs.values()))
    element = helper.np_dtype_to_tensor_dtype(first.dtype)
    result = helper.make_tensor_value_info("y", element, None)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos, [result])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def check(op_type: str, inputs: Mapping[str, Array], part: float = 0.01, **attributes: Any) -> None:
    """
    ONNX Runtime multiplies by quotients of scales, so a number in the middle may go either way:
    one step, of a part of the numbers.
    """
    model = model_of(op_type, inputs, **attributes)
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(None, dict(inputs))
    found = lowerdeck.compile(model, cache=False)(dict(inputs))["y"]
    assert found.dtype == expected.dtype
    difference = np.abs(found.astype(int) - expected.astype(int))
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= difference.size * part


def quantized(dtype: Any, seed: int, *shape: int) -> Array:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def scale(value: float) -> Array:
    return np.array(value, np.float32)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_arithmetic(op_type: str, dtype: Any) -> None:
    """The second operand is broadcast."""
    inputs = {
        "a": quantized(dtype, 0, 5, 4, 60),
        "as": scale(0.031),
        "az": np.array(11, dtype),
        "b": quantized(dtype, 1, 4, 60),
        "bs": scale(0.047),
        "bz": np.array(90, dtype),
        "cs": scale(0.11),
        "cz": np.array(40, dtype),
    }
    check(op_type, inputs)


def one_input(dtype: Any) -> dict[str, Array]:
    return {
        "x": quantized(dtype, 0, 3, 6, 50),
        "xs": scale(0.041),
        "xz": np.array(17, dtype),
        "ys": scale(0.0041),
        "yz": np.array(3, dtype),
    }


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_functions(dtype: Any) -> None:
    check("QLinearSigmoid", one_input(dtype))
    check("QLinearLeakyRelu", one_input(dtype) | {"ys": scale(0.05)}, alpha=0.2)


@pytest.mark.parametrize(("axis", "opset"), [(1, 11), (2, 11), (1, 13), (-1, 13)])
def test_softmax(axis: int, opset: int) -> None:
    """ONNX Runtime adds up powers from a table of rounded ones."""
    check("QLinearSoftmax", one_input(np.uint8), part=0.2, axis=axis, opset=opset)


def test_others_are_unknown() -> None:
    model = model_of("QLinearWhatever", one_input(np.uint8))
    with pytest.raises(FrontendError, match=r"'com\.microsoft\.QLinearWhatever' is unknown"):
        import_model(model)
