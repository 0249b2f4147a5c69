"""Operators of diffusion models and of images with channels last, for which there is no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.passes.legalize.walk import LegalizationError

from .contrib_models import (  # noqa: TID251  (these are tests, not the folder of sources)
    Array,
    by_onnxruntime,
    found_of,
    model_of,
    normal,
    result_of,
)


def erf(x: Array) -> Array:
    """The error function, by a sum of the numbers' own size."""
    steps = (np.arange(4000) + 0.5) / 4000
    return 2 / np.sqrt(np.pi) * x * np.exp(-((x[..., None] * steps) ** 2)).mean(axis=-1)


def close(found: Array, want: Array, tolerance: float = 1e-5) -> None:
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=tolerance, atol=tolerance)


def test_residuals() -> None:
    x, bias, skip = normal(0, 2, 3, 4), normal(1, 4), normal(2, 2, 3, 4)
    close(found_of("BiasAdd", {"x": x, "b": bias, "s": skip})["y"], x + bias + skip)


def test_gates() -> None:
    x, bias = normal(0, 2, 3, 8), normal(1, 8)
    left, right = np.split(x + bias, 2, axis=-1)
    want = left * right * 0.5 * (1 + erf(right / np.sqrt(2)))
    close(found_of("BiasSplitGelu", {"x": x, "b": bias})["y"], want)
    with pytest.raises(LegalizationError, match="cannot reshape 18 elements"):
        found_of("BiasSplitGelu", {"x": normal(0, 2, 3, 3), "b": normal(1, 3)})


def group_norm(x: Array, gamma: Array, beta: Array, groups: int, epsilon: float) -> Array:
    """Of an image with channels last, with SiLU."""
    parts = x.astype(np.float64).reshape(len(x), -1, groups, x.shape[-1] // groups)
    center = parts.mean(axis=(1, 3), keepdims=True)
    spread = parts.var(axis=(1, 3), keepdims=True)
    y = ((parts - center) / np.sqrt(spread + epsilon)).reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_group_norm(dtype: Any) -> None:
    """Weights may be of f32 where images are of f16."""
    x, gamma, beta = normal(0, 2, 5, 3, 8).astype(dtype), normal(1, 8), normal(2, 8)
    tolerance = 1e-5 if dtype == np.float32 else 2e-3
    inputs = {"x": x, "gamma": gamma, "beta": beta}
    attributes: dict[str, Any] = {"groups": 4, "activation": 1, "epsilon": 0.1}
    want = group_norm(x, gamma, beta, 4, 0.1)
    close(found_of("GroupNorm", inputs, **attributes)["y"], want, tolerance)
    inputs["x"] = np.moveaxis(x, -1, 1).copy()
    found = found_of("GroupNorm", inputs, channels_last=0, **attributes)["y"]
    assert found.dtype == dtype
    close(found, np.moveaxis(want, -1, 1), tolerance)


def test_group_norm_without_an_activation() -> None:
    x, gamma, beta = normal(0, 2, 5, 3, 8), normal(1, 8), normal(2, 8)
    inputs = {"x": x, "gamma": gamma, "beta": beta}
    y = found_of("GroupNorm", inputs, groups=2, activation=0)["y"]
    close(y / (1 + np.exp(-y)), group_norm(x, gamma, beta, 2, 1e-5))
    with pytest.raises(FrontendError, match="found activation 2, expected 0"):
        import_model(model_of("GroupNorm", inputs, groups=2, activation=2))


@pytest.mark.parametrize("sides", [(5, 3), (1, 1), ()])
@pytest.mark.parametrize("has_bias", [False, True])
def test_skip_group_norm(sides: tuple[int, ...], has_bias: bool) -> None:
    """What is added is an image, one pixel or a row."""
    x, skip = normal(0, 2, 5, 3, 8), normal(3, 2, *sides, 8)
    inputs = {"x": x, "gamma": normal(1, 8), "beta": normal(2, 8), "skip": skip}
    total = x + (skip if sides else skip[:, None, None])
    if has_bias:
        inputs["bias"] = normal(4, 8)
        total = total + inputs["bias"]
    attributes: dict[str, Any] = {"groups": 4, "activation": 1}
    found = found_of("SkipGroupNorm", inputs, ("y", "s"), **attributes)
    close(found["s"], total)
    close(found["y"], group_norm(total, inputs["gamma"], inputs["beta"], 4, 1e-5))
    with pytest.raises(FrontendError, match="what is added has channels last"):
        import_model(model_of("SkipGroupNorm", inputs, channels_last=0, **attributes))


def by_standard(op_type: str, inputs: dict[str, Array], **attributes: Any) -> Array:
    """What ONNX Runtime computes for a standard operator on the image with channels first."""
    model = model_of(op_type, {**inputs, "x": np.moveaxis(inputs["x"], -1, 1)}, **attributes)
    model.graph.node[0].domain = ""
    x = np.moveaxis(inputs["x"], -1, 1).copy()
    (found,) = by_onnxruntime(model, {**inputs, "x": x})
    return np.moveaxis(found, 1, -1)


CONV: dict[str, Any] = {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2]}


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("has_shape", [False, True])
def test_convolutions(has_bias: bool, has_shape: bool) -> None:
    """The rank is that of the kernel, or of a filter that is a weight."""
    inputs = {"x": normal(0, 2, 7, 6, 4), "w": normal(1, 6, 2, 3, 2)}
    if has_bias:
        inputs["b"] = normal(2, 6)
    attributes = CONV | ({"kernel_shape": [3, 2]} if has_shape else {})
    want = by_standard("Conv", inputs, **attributes)
    model = model_of("NhwcConv", inputs, **attributes)
    if not has_shape:
        with pytest.raises(FrontendError, match="the input 'W' computed, expected a weight"):
            import_model(model)
        model.graph.initializer.append(numpy_helper.from_array(inputs["w"], "w"))
    feeds = inputs if has_shape else {name: inputs[name] for name in inputs if name != "w"}
    if not has_shape:
        del model.graph.input[1]
    close(result_of(model, feeds)["y"], want, 1e-4)


def test_fused_convolutions() -> None:
    inputs = {"x": normal(0, 2, 7, 6, 4), "w": normal(1, 6, 2, 3, 2), "b": normal(2, 6)}
    attributes: dict[str, Any] = CONV | {"kernel_shape": [3, 2]}
    y = by_standard("Conv", inputs, **attributes)
    z = normal(3, *y.shape)
    function: dict[str, Any] = {"activation": "LeakyRelu", "activation_params": [0.3]}
    found = found_of("NhwcFusedConv", {**inputs, "z": z}, **attributes, **function)["y"]
    close(found, np.where(y + z > 0, y + z, 0.3 * (y + z)), 1e-4)
    found = found_of("NhwcFusedConv", inputs, **attributes)["y"]
    close(found, y, 1e-4)


def of_layout(op_type: str, inputs: dict[str, Array], **attributes: Any) -> Array:
    """What is found for an operator of the domain of layouts."""
    model = model_of(op_type, inputs, **attributes)
    model.graph.node[0].domain = "com.ms.internal.nhwc"
    model.opset_import.append(helper.make_opsetid("com.ms.internal.nhwc", 17))
    return result_of(model, inputs)["y"]


def test_standard_operators_with_channels_last() -> None:
    image = {"x": normal(0, 2, 7, 6, 4)}
    inputs = {**image, "w": normal(1, 6, 2, 3, 2), "b": normal(2, 6)}
    attributes: dict[str, Any] = CONV | {"kernel_shape": [3, 2]}
    found = of_layout("Conv", inputs, activation="Relu", **attributes)
    close(found, np.maximum(by_standard("Conv", inputs, **attributes), 0), 1e-4)
    window: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}
    for name, more in (
        ("MaxPool", {"ceil_mode": 1}),
        ("MaxPool", {"dilations": [2, 1]}),
        ("AveragePool", {"count_include_pad": 0}),
        ("AveragePool", {"count_include_pad": 1}),
    ):
        want = by_standard(name, image, **window, **more)
        close(of_layout(name, image, **window, **more), want)
        limits: dict[str, Any] = {"activation": "Clip", "activation_params": [-0.1, 0.2]}
        close(of_layout(name, image, **window, **more, **limits), np.clip(want, -0.1, 0.2))


@pytest.mark.parametrize("name", ["Relu", "LeakyRelu", "HardSigmoid"])
def test_products_with_an_activation(name: str) -> None:
    a, b = normal(0, 2, 5, 4), normal(1, 2, 6, 5)
    y = 0.3 * np.einsum("bji,bkj->bik", a, b)
    want: dict[str, Array] = {
        "Relu": np.maximum(y, 0),
        "LeakyRelu": np.where(y > 0, y, 0.2 * y),
        "HardSigmoid": np.clip(0.2 * y + 0.4, 0, 1),
    }
    parameters = {"HardSigmoid": {"activation_alpha": 0.2, "activation_beta": 0.4}}
    given: dict[str, Any] = parameters.get(name, {"activation_alpha": 0.2})
    common: dict[str, Any] = {"transA": 1, "transB": 1, "alpha": 0.3, "activation": name, **given}
    close(found_of("FusedMatMulActivation", {"a": a, "b": b}, **common)["y"], want[name])
    with pytest.raises(FrontendError, match="found activation 'Softmax', expected one of"):
        import_model(model_of("FusedMatMulActivation", {"a": a, "b": b}, activation="Softmax"))
