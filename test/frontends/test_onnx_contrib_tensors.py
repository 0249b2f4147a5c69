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
    factor,
    found_of,
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
        "w": factor(np.int8, 1, 6, 4 // groups, 3, 3),
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


def test_unique_numbers() -> None:
    x = np.array([2, 1, 1, 3, 4, 3, -1], np.float32)
    agree("Unique", {"x": x}, ("y", "idx", "counts"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_not_finite(dtype: Any) -> None:
    """Of two tensors, one of which has no dimensions."""
    x, y = np.ones((2, 3), dtype), np.array(1, dtype)
    for value in (1.0, np.inf, -np.inf, np.nan):
        for array in (x, y):
            array.flat[-1] = value
            is_nan, is_inf = np.isnan(value), np.isinf(value)
            cases: list[tuple[dict[str, Any], bool]] = [
                ({}, not (is_nan or is_inf)),
                ({"isnan_only": 1}, not is_nan),
                ({"isinf_only": 1}, not is_inf),
            ]
            for attributes, want in cases:
                found = found_of("IsAllFinite", {"a": x, "b": y}, **attributes)["y"]
                assert (found.dtype, found.shape, found.item()) == (np.bool_, (), want)
            array.flat[-1] = 1
    with pytest.raises(FrontendError, match="isinf_only and isnan_only, expected one"):
        import_model(model_of("IsAllFinite", {"x": x}, isinf_only=1, isnan_only=1))


@pytest.mark.parametrize(("dim", "size", "step"), [(-1, 3, 1), (1, 2, 3), (0, 4, 1), (-2, 1, 2)])
def test_windows(dim: int, size: int, step: int) -> None:
    agree("UnfoldTensor", {"x": normal(0, 4, 5, 7)}, dim=dim, size=size, step=step)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 8, 9])
def test_words_that_would_repeat(size: int) -> None:
    """Of 8 words; the second row has all of three twice."""
    ids = np.array([[4, 2, 4, 2, 4, 1, 4, 2], [1, 2, 3, 1, 2, 3, 1, 2]])
    agree("NGramRepeatBlock", {"ids": ids, "scores": normal(0, 2, 6)}, ngram_size=size)


def test_complex_products() -> None:
    a, b = normal(0, 2, 3, 2), normal(1, 3, 2)
    first, second = (one.view(np.complex64)[..., 0] for one in (a, b))
    for name, want in (("ComplexMul", first * second), ("ComplexMulConj", first * second.conj())):
        found = found_of(name, {"a": a, "b": b})["y"]
        np.testing.assert_allclose(found, np.stack([want.real, want.imag], -1), rtol=1e-5)


def test_spectra() -> None:
    x = normal(0, 2, 3, 10)
    want = np.fft.rfft(x)
    found = found_of("Rfft", {"x": x})["y"]
    np.testing.assert_allclose(found, np.stack([want.real, want.imag], -1), rtol=1e-4, atol=1e-5)
    with pytest.raises(FrontendError, match="found signal_ndim = 2, expected 1"):
        import_model(model_of("Rfft", {"x": x}, signal_ndim=2))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grids(mode: str) -> None:
    """Some places are outside of the image."""
    inputs = {"x": normal(0, 2, 3, 5, 6), "grid": normal(1, 2, 4, 3, 2)}
    for padding in ("zeros", "border", "reflection"):
        agree("GridSample", inputs, mode=mode, padding_mode=padding, tolerance=1e-4)
    agree("GridSample", inputs, mode=mode, align_corners=1, tolerance=1e-4)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("sizes", [(3, 4), (1, 5), (6, 1)])
def test_crops(mode: str, sizes: tuple[int, int]) -> None:
    """Some are turned around or beyond the image; places between pixels are halves, too."""
    regions = np.array(
        [[0, 0, 1, 1], [0.1, 0.7, 0.9, 0.2], [-0.3, 0.2, 0.6, 1.4], [0.25, 0.25, 0.5, 0.75]],
        np.float32,
    )
    inputs = {
        "x": normal(0, 2, 3, 5, 7),
        "regions": regions,
        "images": np.array([0, 1, 1, 0], np.int32),
        "sizes": np.array(sizes, np.int32),
    }
    model = model_of("CropAndResize", inputs, mode=mode, extrapolation_value=-3.5)
    model.graph.initializer.append(numpy_helper.from_array(inputs.pop("sizes"), "sizes"))
    del model.graph.input[-1]
    (want,) = by_onnxruntime(model, inputs)
    assert np.count_nonzero(want == -3.5) > 0
    found = result_of(model, inputs)["y"]
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
