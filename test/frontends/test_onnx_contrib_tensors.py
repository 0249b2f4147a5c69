"""Older forms of standard operators, and images with channels last, beside ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    agree,
    by_onnxruntime,
    model_of,
    normal,
    quantized,
    result_of,
    scale,
)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_dimensions(axis: int) -> None:
    agree("ExpandDims", {"x": normal(0, 2, 3), "axis": np.array(axis, np.int32)})


def test_selections() -> None:
    x = normal(0, 4, 5)
    for upper in (0, 1):
        agree("Trilu", {"x": x}, upper=upper)
        agree("Trilu", {"x": x, "k": np.array(-1, np.int64)}, upper=upper)
    agree("GatherND", {"x": x, "indices": np.array([[[0], [3]], [[1], [1]]])})


def test_ranges() -> None:
    for dtype in (np.int32, np.int64, np.float32):
        start, limit, delta = (np.array(value, dtype) for value in (1, 8, 3))
        agree("Range", {"start": start, "limit": limit})
        agree("Range", {"start": start, "limit": limit, "delta": delta})
        agree("Range", {"start": start.reshape(1), "limit": limit.reshape(1)})


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pads(mode: str) -> None:
    """As a vector or a row, which may be negative."""
    inputs = {"x": normal(0, 4, 5), "pads": np.array([1, 2, 0, -1])}
    agree("Pad", inputs, mode=mode)
    agree("Pad", {**inputs, "pads": inputs["pads"].reshape(1, 4)}, mode=mode)
    if mode == "constant":
        agree("Pad", {**inputs, "value": np.array([2.5], np.float32)}, mode=mode)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances(metric: str) -> None:
    inputs = {"a": normal(0, 3, 6), "b": normal(1, 4, 6)}
    agree("CDist", inputs, metric=metric)
    with pytest.raises(FrontendError, match="'metric' is 'cosine', expected one of euclidean"):
        import_model(model_of("CDist", inputs, metric="cosine"))


def test_products() -> None:
    inputs = {"a": normal(0, 2, 5, 4), "b": normal(1, 2, 6, 5)}
    agree("TransposeMatMul", inputs, alpha=0.3, transA=1, transB=1)


def convolution(dtype: Any, *, groups: int, by_channel: bool, has_bias: bool, **more: Any) -> Any:
    """A model with a filter as a weight, and its input."""
    feeds: dict[str, Array] = {
        "x": quantized(dtype, 0, 2, 7, 6, 4),
        "x_scale": scale(0.02),
        "x_zero": np.array(5, dtype),
        "w": quantized(np.int8, 1, 6, 4 // groups, 3, 3),
        "w_scale": np.asarray(np.abs(normal(2, *((6,) if by_channel else ()))) / 99 + 0.001),
        "w_zero": np.zeros((6,) if by_channel else (), np.int8),
        "y_scale": scale(0.11),
        "y_zero": np.array(9, dtype),
    }
    feeds["w_scale"] = feeds["w_scale"].astype(np.float32)
    if has_bias:
        feeds["b"] = np.random.default_rng(3).integers(-900, 900, 6, np.int32)
    if not more.get("channels_last"):
        feeds["x"] = np.moveaxis(feeds["x"], -1, 1).copy()
    model: ModelProto = model_of("QLinearConv", feeds, group=groups, **more)
    x, *weights = feeds
    model.graph.initializer.extend(numpy_helper.from_array(feeds[name], name) for name in weights)
    del model.graph.input[1:]
    return model, {x: feeds[x]}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(dtype: Any, channels_last: int, groups: int) -> None:
    """A number in the middle between two steps may go either way."""
    windows: dict[str, Any] = {"pads": [1, 0, 1, 2], "strides": [2, 1], "kernel_shape": [3, 3]}
    for is_full in (False, True):
        model, feeds = convolution(
            dtype,
            groups=groups,
            by_channel=is_full,
            has_bias=is_full,
            channels_last=channels_last,
            **windows,
        )
        (want,) = by_onnxruntime(model, feeds)
        found = result_of(model, feeds)["y"]
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        difference = np.abs(found.astype(int) - want.astype(int))
        assert difference.max() <= 1
        assert np.count_nonzero(difference) <= difference.size / 100


def test_filters_that_are_computed() -> None:
    model, _ = convolution(np.uint8, groups=1, by_channel=False, has_bias=False)
    model.graph.node.insert(0, helper.make_node("Identity", ["w"], ["same"]))
    model.graph.node[1].input[3] = "same"
    with pytest.raises(FrontendError, match="the input 'W' computed, expected a weight"):
        import_model(model)
