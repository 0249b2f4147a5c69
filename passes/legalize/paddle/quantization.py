"""Simulated and stored quantization, by the largest size of what is quantized."""

from __future__ import annotations

from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.quantization import Steps, by_channel, largest_size
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _steps(builder: PaddleLegalizer) -> Steps:
    to_even = builder.has("round_type") and builder.integer("round_type") == 0
    return Steps(builder.integer("bit_length"), to_even)


@legalizes("quantize_linear", "dequantize_linear")
def legalize_linear(builder: PaddleLegalizer) -> Results:
    """x * steps / scale as whole numbers, and the other way round."""
    x, scale, steps = builder.value("x"), builder.value("scale"), _steps(builder)
    scale = scale.reshape([product(scale.dims)]) if len(scale.dims) > 1 else scale
    wide, factor = x.cast(scale.element), by_channel(x, scale, builder.integer("quant_axis"))
    is_forth = builder.name == "quantize_linear"
    found = steps.quantized(wide, factor) if is_forth else steps.dequantized(wide, factor)
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
    steps, scale = _steps(builder), builder.value("in_scale").reshape([])
    found = steps.quantized(builder.value("x"), scale)
    found = steps.dequantized(found, scale) if "dequantize" in builder.name else found
    return builder.results(out=found.value, out_scale=scale.reshape([1]).value)


@legalizes(
    "fake_quantize_dequantize_abs_max",
    "fake_quantize_abs_max",
    "fake_channel_wise_quantize_dequantize_abs_max",
    "fake_channel_wise_quantize_abs_max",
)
def legalize_abs_max(builder: PaddleLegalizer) -> Results:
    """By the largest size, of all or of each channel."""
    x, steps = builder.value("x"), _steps(builder)
    axis = builder.integer("quant_axis") if builder.has("quant_axis") else -1
    scale = largest_size(x, [k for k in range(len(x.dims)) if k != axis])
    found = steps.quantized(x, scale)
    found = steps.dequantized(found, scale) if "dequantize" in builder.name else found
    size = [x.dims[axis]] if axis >= 0 else [1]
    return builder.results(out=found.value, out_scale=scale.reshape(size).value)


@legalizes("fake_dequantize_max_abs", "moving_average_abs_max_scale")
def legalize_dequantize(builder: PaddleLegalizer) -> Results:
    """x * scale / range; the observer of scales changes nothing."""
    x = builder.value("x")
    if builder.name == "moving_average_abs_max_scale":
        return builder.results(out=x.value)
    scale = builder.value("scale").reshape([])
    return (x.cast(scale.element) * scale / builder.real("max_range")).value


@legalizes("fake_channel_wise_dequantize_max_abs")
def legalize_dequantize_channels(builder: PaddleLegalizer) -> Results:
    """x * scale / range of each part along an axis; a second scale is one for all."""
    x, bits = builder.value("x"), builder.ints_of("quant_bits", len(builder.inputs("scales")))
    first, *others = (TensorValue.of(builder, scale) for scale in builder.inputs("scales"))
    axis = builder.integer("x_num_col_dims") if others else builder.integer("quant_axis")
    found = x.cast(first.element) * by_channel(x, first, axis) / Steps(bits[0], True).count
    for scale, count in zip(others, bits[1:], strict=False):
        found = found * scale.reshape([]) / Steps(count, True).count
    return found.value
