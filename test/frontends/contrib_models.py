"""Models of one operator of ONNX Runtime's own domain, and what ONNX Runtime computes for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray
from onnx import ModelProto, helper
from xdsl.context import Context

from lowerdeck.dialects.interpret import run_module
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from models.signed_bytes import random_bytes

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


def by_onnxruntime(model: Any, feeds: Mapping[str, Array]) -> list[Array]:
    """On one thread: with more, batches are quantized in parts."""
    options = cast(Any, onnxruntime).SessionOptions()
    options.intra_op_num_threads = 1
    session = cast(Any, onnxruntime).InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(feeds))


def quantized(dtype: Any, seed: int, *shape: int) -> Array:
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def factor(dtype: Any, seed: int, *shape: int) -> Array:
    """Of products: only such bytes as ONNX Runtime computes them exactly with."""
    return random_bytes(np.random.default_rng(seed), dtype, *shape)


def scale(value: float) -> Array:
    return np.array(value, np.float32)


def result_of(model: ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What the interpreter computes for the legalized model."""
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    return cast(dict[str, Array], run_module(module, dict(feeds)))


def results_of(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: Sequence[str],
    **attributes: Any,
) -> tuple[dict[str, Array], list[Array]]:
    """What is found, and ONNX Runtime's; None is an absent input, "" an absent output."""
    model, feeds = _with_outputs(op_type, inputs, outputs, **attributes)
    return result_of(model, feeds), by_onnxruntime(model, feeds)


def found_of(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: Sequence[str] = ("y",),
    **attributes: Any,
) -> dict[str, Array]:
    """What is found for an operator without a kernel in ONNX Runtime."""
    return result_of(*_with_outputs(op_type, inputs, outputs, **attributes))


def _with_outputs(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: Sequence[str],
    **attributes: Any,
) -> tuple[ModelProto, dict[str, Array]]:
    """A model, and the inputs that are there."""
    feeds = {name: array for name, array in inputs.items() if array is not None}
    names = [name if name in feeds else "" for name in inputs]
    node = helper.make_node(op_type, names, outputs, domain="com.microsoft", **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in feeds.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "g", infos, results)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), feeds


def agree(
    op_type: str,
    inputs: Mapping[str, Array | None],
    outputs: Sequence[str] = ("y",),
    tolerance: float = 1e-5,
    **attributes: Any,
) -> None:
    """Integers are equal, floats but for rounding errors."""
    found, expected = results_of(op_type, inputs, outputs, **attributes)
    for name, want in zip(filter(None, outputs), expected, strict=True):
        assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape), name
        allowed = 0 if want.dtype.kind in "iu" else tolerance
        np.testing.assert_allclose(found[name], want, rtol=allowed, atol=allowed, err_msg=name)


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
