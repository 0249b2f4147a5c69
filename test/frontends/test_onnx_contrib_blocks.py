"""Numbers of few bits in blocks, and quantized arithmetic, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    agree,
    by_onnxruntime,
    found_of,
    model_of,
    normal,
    quantized,
    result_of,
    scale,
)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_products_of_integers(dtype: Any) -> None:
    """The second operand is broadcast; zero points may be absent."""
    a, b = quantized(dtype, 0, 2, 3, 4), quantized(dtype, 1, 3, 1)
    zeros = np.array(7, dtype), np.array(100, dtype)
    for first, second in ((None, None), (zeros[0], None), zeros):
        inputs = {"a": a, "az": first, "b": b, "bz": second}
        want = (a.astype(np.int32) - (0 if first is None else 7)) * (
            b.astype(np.int32) - (0 if second is None else 100)
        )
        found = found_of("MulInteger", inputs)["y"]
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16])
def test_wide_quantization(dtype: Any) -> None:
    zero = np.array(-300 if dtype == np.int16 else 300, dtype)
    inputs = {"x": normal(0, 3, 4) * 20, "s": scale(0.001), "z": zero}
    agree("QuantizeLinear", inputs)
    q = quantized(dtype, 1, 3, 4)
    agree("DequantizeLinear", {**inputs, "x": q})
    scales = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    agree("DequantizeLinear", {"x": q, "s": scales, "z": zero.repeat(4)}, axis=1)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize(("n", "k", "block"), [(4, 24, 16), (3, 13, 16), (5, 32, 64)])
def test_products_with_codes(kind: int, n: int, k: int, block: int) -> None:
    """Blocks end inside rows, and the last one, or the last byte, is not full."""
    inputs = {
        "A": normal(0, 2, 3, k),
        "B": quantized(np.uint8, 1, (n * k + 1) // 2),
        "absmax": np.abs(normal(2, -(-n * k // block))),
    }
    attributes: dict[str, Any] = {"K": k, "N": n, "block_size": block, "quant_type": kind}
    agree("MatMulBnb4", inputs, tolerance=1e-4, **attributes)
    by_unit = found_of("MatMulBnb4", {**inputs, "A": np.eye(k, dtype=np.float32)}, **attributes)
    a = normal(3, 2, n)
    found = found_of("MatMulBnb4", {**inputs, "A": a}, transB=0, **attributes)["y"]
    np.testing.assert_allclose(found, a @ by_unit["y"].T, rtol=1e-4, atol=1e-4)
    with pytest.raises(FrontendError, match="of type 2 in blocks of"):
        import_model(model_of("MatMulBnb4", inputs, **{**attributes, "quant_type": 2}))


def table(bits: int, *, has_zeros: bool, dims: tuple[int, ...]) -> tuple[ModelProto, Array]:
    """A model with a table of numbers in blocks of 16, of which the last is not full, and rows."""
    blocks = -(-dims[-1] // 16)
    feeds: dict[str, Array] = {
        "data": quantized(np.uint8, 0, *dims[:-1], dims[-1] * bits // 8),
        "indices": np.array([[2, -1, 0], [4, 2, -5]]),
        "scales": np.abs(normal(1, *dims[:-1], blocks)) / 20,
    }
    if has_zeros:
        feeds["zeros"] = quantized(np.uint8, 2, *dims[:-1], -(-blocks * bits // 8))
    attributes = {"bits": bits, "block_size": 16, "quantize_axis": len(dims) - 1}
    model: ModelProto = model_of("GatherBlockQuantized", feeds, **attributes)
    model.graph.output[0].type.tensor_type.elem_type = 1
    for name in ("data", "scales", "zeros"):
        if name in feeds:
            model.graph.initializer.append(numpy_helper.from_array(feeds[name], name))
    index = model.graph.input[1]
    del model.graph.input[:]
    model.graph.input.append(index)
    return model, feeds["indices"]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_tables_in_blocks(bits: int, has_zeros: bool) -> None:
    for dims in ((5, 40), (5, 3, 32)):
        model, indices = table(bits, has_zeros=has_zeros, dims=dims)
        (want,) = by_onnxruntime(model, {"indices": indices})
        found = result_of(model, {"indices": indices})["y"]
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


def test_indices_out_of_tables() -> None:
    """Zeros, of which nothing else is made."""
    model, indices = table(4, has_zeros=True, dims=(5, 40))
    far = indices.copy()
    far[0, 1], far[1, 2] = 5, -6
    found, inside = (result_of(model, {"indices": one})["y"] for one in (far, indices))
    inside[0, 1] = inside[1, 2] = 0
    np.testing.assert_array_equal(found, inside)


def test_tables_that_are_refused() -> None:
    model, _ = table(4, has_zeros=False, dims=(5, 40))
    model.graph.node[0].attribute[2].i = 0
    with pytest.raises(FrontendError, match="expected the first and the last"):
        import_model(model)
    model.graph.node[0].attribute[2].i = 1
    for tensor in model.graph.initializer:
        if tensor.name == "data":
            tensor.data_type, tensor.dims[1] = 21, 40
    with pytest.raises(FrontendError, match="found a table of another type, expected u8"):
        import_model(model)
