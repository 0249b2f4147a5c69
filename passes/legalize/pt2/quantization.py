"""Quantized tensors of PT2E: rounded to even, limited, and back."""

from __future__ import annotations

from lowerdeck.dialects.core.types import f64, i64, ui8
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
    scale = builder.value("scales").cast(f64)
    zeros = builder.optional("zero_points")
    zero = None if zeros is None else TensorValue.of(builder, zeros).cast(i64)
    return scale.column(rank, axis), None if zero is None else zero.column(rank, axis)


@legalizes("quantized_decomposed.quantize_per_tensor", "quantized_decomposed.quantize_per_channel")
def legalize_quantize(builder: Pt2Legalizer) -> Results:
    """clamp(round(x / scale) + zero), rounded to even, by the reciprocal of the scale in f32."""
    x = builder.value("input")
    scale, zero = _parameters(builder, x)
    scaled = x * (1 / scale).cast(x.element)
    low, high = (builder.integer(name) for name in ("quant_min", "quant_max"))
    total = scaled.round()
    if zero is not None:
        total = total + zero.cast(x.element)
    return [total.maximum(low).minimum(high).cast(builder.element()).value]


@legalizes(
    "quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_channel"
)
def legalize_dequantize(builder: Pt2Legalizer) -> Results:
    """(x - zero) * scale"""
    x = builder.value("input")
    scale, zero = _parameters(builder, x)
    element = builder.element()
    y = x.cast(element)
    if zero is not None:
        y = y - zero.cast(element)
    return [(y * scale.cast(element)).value]


@legalizes(
    "quantized_decomposed.choose_qparams.tensor",
    "quantized_decomposed.choose_qparams_symmetric.tensor",
)
def legalize_choice(builder: Pt2Legalizer) -> Results:
    """The scale and the zero point [1] with which all elements and zero can be quantized."""
    x = builder.value("input")
    least, most = (builder.integer(name) for name in ("quant_min", "quant_max"))
    axes = list(range(len(x.dims)))
    low, high = x.reduce("min", axes).minimum(0), x.reduce("max", axes).maximum(0)
    is_symmetric = "symmetric" in builder.op.op_type
    steps = (most - least) / 2 if is_symmetric else float(most - least)
    span = (-low).maximum(high) if is_symmetric else high - low
    scale = (span / steps).maximum(builder.known(builder.number("eps"), x.element))
    zero = (-(low / scale).round()).cast(i64) + least
    zero = zero.maximum(least).minimum(most)
    if is_symmetric:
        zero = builder.known(128 if builder.get("dtype") == ui8 else 0, i64)
    return [scale.cast(f64).reshape([1]).value, zero.reshape([1]).value]
