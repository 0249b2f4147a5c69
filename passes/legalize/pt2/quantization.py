"""Quantized tensors of PT2E: rounded to even, limited, and back."""

from __future__ import annotations

from lowerdeck.dialects.core.types import f32, f64, i64, ui8
from lowerdeck.passes.legalize.common.quantization import of_bytes, steps_between, to_steps
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _parameters(builder: Pt2Legalizer, x: TensorValue) -> tuple[TensorValue, TensorValue | None]:
    """Scale and zero point, which broadcast."""
    if not builder.has("axis"):
        zero = builder.operand("zero_point", i64).reshape([])
        return builder.operand("scale", f64).reshape([]), zero
    rank = len(x.dims)
    axis = builder.axis(builder.integer("axis"), rank)
    many = "s" if builder.has("scales") else ""
    scale = builder.value(f"scale{many}").cast(f64)
    zeros = builder.optional(f"zero_point{many}")
    zero = None if zeros is None else TensorValue.of(builder, zeros).cast(i64)
    return scale.column(rank, axis), None if zero is None else zero.column(rank, axis)


@legalizes("quantized_decomposed.quantize_per_tensor", "quantized_decomposed.quantize_per_channel")
def legalize_quantize(builder: Pt2Legalizer) -> Results:
    """clamp(round(x / scale) + zero), rounded to even, by the reciprocal of the scale in f32."""
    x = builder.value("input")
    scale, zero = _parameters(builder, x)
    low, high = (builder.integer(name) for name in ("quant_min", "quant_max"))
    return to_steps(x, scale, zero, low, high).cast(builder.get("dtype"))


@legalizes(
    "fake_quantize_per_tensor_affine",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine_cachemask",
    "fake_quantize_per_channel_affine_cachemask",
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
)
def legalize_fake(builder: Pt2Legalizer) -> Results:
    """The real numbers that quantized ones stand for, and which were not limited."""
    x = builder.value()
    scale, zero = _parameters(builder, x)
    assert zero is not None
    scale, zero = scale.cast(x.element), zero.cast(x.element)
    total = (x * (1 / scale)).round() + zero
    low, high = (float(builder.integer(name)) for name in ("quant_min", "quant_max"))
    found = (total.maximum(low).minimum(high) - zero) * scale
    inside = total.ge(low) & total.le(high)
    if builder.has("fake_quant_enabled"):
        found = builder.operand("fake_quant_enabled", i64).reshape([]).ne(0).where(found, x)
    return [found.value, inside.value][: len(builder.op.results)]


@legalizes(
    "quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_channel"
)
def legalize_dequantize(builder: Pt2Legalizer) -> Results:
    """(x - zero) * scale"""
    x = builder.value("input")
    scale, zero = _parameters(builder, x)
    element = builder.get("out_dtype") or f32
    y = of_bytes(builder, builder.input("input"), element)
    if zero is not None:
        y = y - zero.cast(element)
    return y * scale.cast(element)


@legalizes(
    "quantized_decomposed.choose_qparams.tensor",
    "quantized_decomposed.choose_qparams_symmetric.tensor",
)
def legalize_choice(builder: Pt2Legalizer) -> Results:
    """The scale and the zero point [1] with which all elements and zero can be quantized."""
    x = builder.value("input")
    least, most = (builder.integer(name) for name in ("quant_min", "quant_max"))
    is_symmetric = "symmetric" in builder.op.op_type
    scale, zero = steps_between(x, least, most, builder.number("eps"), is_symmetric=is_symmetric)
    if is_symmetric:
        zero = builder.known(128 if builder.get("dtype") == ui8 else 0, i64)
    return [scale.cast(f64).reshape([1]).value, zero.reshape([1]).value]
