"""Simulated and stored quantization, by the largest size of what is quantized."""

from __future__ import annotations

from lowerdeck.passes.legalize.common.requantize import round_away
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _steps(builder: PaddleLegalizer) -> float:
    """The number of steps from zero to the largest size."""
    return float(2 ** (builder.integer("bit_length") - 1) - 1)


def _by_channel(x: TensorValue, scale: TensorValue, axis: int) -> TensorValue:
    """One scale for all, or one for each part along an axis."""
    single = all(dim == 1 for dim in scale.dims) or axis < 0
    return scale.reshape([1] * len(x.dims)) if single else scale.column(len(x.dims), axis)


def _quantized(builder: PaddleLegalizer, x: TensorValue, scale: TensorValue) -> TensorValue:
    """Whole numbers: halves go to even ones, or, of what is cut off first, away from zero."""
    steps = _steps(builder)
    if builder.integer("round_type") == 0:
        return (x * (steps / scale)).round().clip(-steps - 1, steps)
    return round_away(x.minimum(scale).maximum(-scale) * (steps / scale))


@legalizes("quantize_linear", "dequantize_linear")
def legalize_linear(builder: PaddleLegalizer) -> Results:
    """x * steps / scale as whole numbers, and the other way round."""
    x = builder.value("x")
    scale = builder.value("scale")
    if len(scale.dims) > 1:
        scale = scale.reshape([builder.total(scale.value)])
    element = scale.element
    wide = x if x.element == element else x.cast(element)
    factor = _by_channel(x, scale, builder.integer("quant_axis"))
    if builder.name == "quantize_linear":
        found = _quantized(builder, wide, factor)
    else:
        found = wide * factor / _steps(builder)
    return builder.results(y=builder.cast(found.value, builder.element()))


@legalizes(
    "fake_quantize_dequantize_moving_average_abs_max",
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_range_abs_max",
)
def legalize_moving(builder: PaddleLegalizer) -> Results:
    """By the scale of the training."""
    if not builder.flag("is_test"):
        builder.refuse("scales in training", "is_test", "call model.eval()")
    x, scale = builder.value("x"), builder.value("in_scale").reshape([])
    found = _quantized(builder, x, scale)
    if "dequantize" in builder.name:
        found = found * scale / _steps(builder)
    return builder.results(out=found.value, out_scale=scale.reshape([1]).value)


@legalizes(
    "fake_quantize_dequantize_abs_max",
    "fake_quantize_abs_max",
    "fake_channel_wise_quantize_dequantize_abs_max",
    "fake_channel_wise_quantize_abs_max",
)
def legalize_abs_max(builder: PaddleLegalizer) -> Results:
    """By the largest size, of all or of each channel."""
    x = builder.value("x")
    rank = len(x.dims)
    axis = builder.integer("quant_axis") if builder.has("quant_axis") else -1
    rest = [k for k in range(rank) if k != axis]
    scale = x.abs().reduce("max", rest, True)
    found = _quantized(builder, x, scale)
    if "dequantize" in builder.name:
        found = found * scale / _steps(builder)
    size = [x.dims[axis]] if axis >= 0 else [1]
    return builder.results(out=found.value, out_scale=scale.reshape(size).value)


@legalizes("fake_dequantize_max_abs", "moving_average_abs_max_scale")
def legalize_dequantize(builder: PaddleLegalizer) -> Results:
    """x * scale / range; the observer of scales changes nothing."""
    x = builder.value("x")
    if builder.name == "moving_average_abs_max_scale":
        return builder.results(out=x.value)
    scale = builder.value("scale").reshape([])
    return [(x.cast(scale.element) * scale / float(builder.number("max_range"))).value]
