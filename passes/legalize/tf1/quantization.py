"""Numbers as few levels of integers, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import dims_of, f32, is_unsigned, numpy_dtype
from lowerdeck.dialects.dims import ExprLike, product
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

_UNLIMITED = 3.4028234663852886e38
"""The scale for a bound that any scale keeps: the largest f32."""


def away(x: TensorValue) -> TensorValue:
    """The nearest integer, halves away from zero."""
    size = x.abs()
    floor = size.floor()
    rounded = (size - floor).ge(0.5).where(floor + 1.0, floor)
    return x.lt(0.0).where(-rounded, rounded)


# Training with quantization in mind


@legalizes("FakeQuantWithMinMaxArgs")
def legalize_fake_quant_attributes(builder: Tf1Legalizer) -> Results:
    """The nearest of 2^num_bits levels between two numbers."""
    low, high = (
        TensorValue.number(builder, builder.attrs.float(name), f32) for name in ("min", "max")
    )
    return [_fake_quant(builder, low, high)]


@legalizes("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def legalize_fake_quant(builder: Tf1Legalizer) -> Results:
    """The nearest of 2^num_bits levels between two numbers, or two for each channel."""
    low, high = (TensorValue.of(builder, builder.operand(name)) for name in ("min", "max"))
    return [_fake_quant(builder, low, high)]


def _fake_quant(builder: Tf1Legalizer, low: TensorValue, high: TensorValue) -> SSAValue:
    """The bounds move so that zero is a level. Bounds that are both zero give zeros."""
    x = TensorValue(builder, number(builder, "inputs"))
    first = 1.0 if builder.attrs.flag("narrow_range") else 0.0
    last = 2.0 ** _bits(builder, builder.attrs.int("num_bits"), range(2, 17)) - 1
    is_nothing = low.eq(0.0) & high.eq(0.0)
    scale = is_nothing.where(high * 0 + 1, (high - low) / (last - first))
    zero = away((first - low / scale).clip(first, last))
    low, high = (first - zero) * scale, (last - zero) * scale
    level = ((x.minimum(high).maximum(low) - low) / scale + 0.5).floor()
    return is_nothing.where(x * 0, level * scale + low).value


@legalizes("QuantizeAndDequantize")
def legalize_quantize_and_dequantize_attributes(builder: Tf1Legalizer) -> Results:
    """The same for a range that attributes give."""
    x = TensorValue(builder, number(builder, "input"))
    names = ("input_min", "input_max")
    bounds = [TensorValue.number(builder, builder.attrs.float(name), x.element) for name in names]
    return [_quantized_and_back(builder, x, bounds, None)]


@legalizes("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def legalize_quantize_and_dequantize(builder: Tf1Legalizer) -> Results:
    """
    Rounded to multiples of a step that follows from the range, given or found, of all elements or
    of each part along an axis.
    """
    x = TensorValue(builder, number(builder, "input"))
    axis = _axis(builder, len(x.dims))
    bounds = [_bound(builder, name, x, axis) for name in ("input_min", "input_max")]
    return [_quantized_and_back(builder, x, bounds, axis)]


def _axis(builder: Tf1Legalizer, rank: int) -> int | None:
    """The axis whose parts have ranges of their own."""
    axis = builder.attrs.int("axis")
    return None if axis == -1 else builder.axis(axis, rank)


def _bound(builder: Tf1Legalizer, name: str, x: TensorValue, axis: int | None) -> TensorValue:
    """A bound as a scalar, or along an axis of `x`."""
    value = builder.operand(name)
    if axis is None:
        if (count := product(dims_of(value)).value) not in (None, 1):
            builder.refuse(f"{count} bounds without an axis", "one")
        return TensorValue.of(builder, builder.reshape(value, []))
    dims: list[ExprLike] = [1] * len(x.dims)
    dims[axis] = product(dims_of(value))
    return TensorValue.of(builder, builder.reshape(value, dims))


def _quantized_and_back(
    builder: Tf1Legalizer, x: TensorValue, bounds: Sequence[TensorValue], axis: int | None
) -> SSAValue:
    is_given = builder.attrs.flag("range_given")
    if not is_given:
        axes = [k for k in range(len(x.dims)) if k != axis]
        keep = axis is not None
        bounds = [x.reduce("min", axes, keep), x.reduce("max", axes, keep)]
    levels = _levels(builder)
    scale, inverse, low, high = _symmetric(bounds[0], bounds[1], levels)
    x = x.clip(low, high) if is_given else x
    return (_rounded(builder, x * scale) * inverse).value


def _bits(builder: Tf1Legalizer, bits: int, among: range) -> int:
    """A number of bits, which is one of `among`."""
    if bits not in among:
        builder.refuse(f"num_bits of {bits}", f"{among.start} to {among.stop - 1}")
    return bits


def _levels(builder: Tf1Legalizer) -> tuple[float, float]:
    """The lowest and the highest level."""
    if builder.attrs.has("num_bits"):
        bits = builder.attrs.int("num_bits")
    else:
        bits = builder.require_int(builder.operand("num_bits"), "num_bits")
    is_signed = builder.attrs.flag("signed_input")
    bits = _bits(builder, bits, range(1, 62 if is_signed else 63))
    if not is_signed:
        if builder.attrs.has("narrow_range"):
            builder.attrs.ignore("narrow_range")
        return 0.0, 2.0**bits - 1
    is_narrow = builder.attrs.has("narrow_range") and builder.attrs.flag("narrow_range")
    return -(2.0 ** (bits - 1)) + is_narrow, 2.0 ** (bits - 1) - 1


def _symmetric(
    low: TensorValue, high: TensorValue, levels: tuple[float, float]
) -> tuple[TensorValue, TensorValue, TensorValue, TensorValue]:
    """The scale to levels, its inverse, and the range that all levels have."""
    scales: list[TensorValue] = []
    for bound, level in ((low, levels[0]), (high, levels[1])):
        keeps = (bound * level).gt(0.0)
        scales.append(keeps.where(level / keeps.where(bound, 1.0), _UNLIMITED))
    by_low = scales[0].lt(scales[1])
    scale = by_low.where(scales[0], scales[1])
    inverse = high / levels[1]
    if levels[0]:
        inverse = by_low.where(low / levels[0], inverse)
    low, high = (by_low.where(low, inverse * levels[0]), by_low.where(inverse * levels[1], high))
    return scale, inverse, low, high


def _rounded(builder: Tf1Legalizer, x: TensorValue) -> TensorValue:
    if not builder.attrs.has("round_mode"):
        return x.round()
    mode = builder.attrs.string("round_mode", among=("HALF_TO_EVEN", "HALF_UP"))
    return x.round() if mode == "HALF_TO_EVEN" else (x + 0.5).floor()


# Integers


@legalizes("QuantizeV2")
def legalize_quantize(builder: Tf1Legalizer) -> Results:
    """Levels of an integer type, and the range that they have."""
    x = TensorValue(builder, number(builder, "input"))
    axis = _axis(builder, len(x.dims))
    low, high = (_bound(builder, name, x, axis) for name in ("min_range", "max_range"))
    low = low.minimum(0.0)
    least = low.abs().maximum(high.abs()).maximum(1.0) * builder.attrs.float("ensure_minimum_range")
    high = high.maximum(low + least).maximum(0.0)
    mode = builder.attrs.string("mode", among=("MIN_COMBINED", "MIN_FIRST", "SCALED"))
    element = builder.result_element()
    smallest, largest = _range(builder, element)
    if mode == "MIN_FIRST":
        builder.attrs.ignore("round_mode")
        scale = (largest - smallest) / (high - low)
        level = away(x * scale) - (away(low * scale) - smallest)
        level = level.maximum(smallest).minimum(largest)
        return [level.cast(element).value, *_bounds(builder, low, high, axis)]
    if mode == "SCALED":
        levels = (smallest, largest)
        scale, _, _, _ = _symmetric(low, high, levels)
        low, high = smallest / scale, largest / scale
        level = x.clip(low, high) * scale
    else:
        scale = (largest - smallest) / (high - low)
        level = (x.clip(low, high) - low) * scale
        level = level if is_unsigned(element) else level - (largest - smallest + 1) / 2
    rounding = ("HALF_TO_EVEN", "HALF_AWAY_FROM_ZERO")
    is_even = builder.attrs.string("round_mode", among=rounding) == rounding[0]
    level = level.round() if is_even else away(level)
    return [level.cast(element).value, *_bounds(builder, low, high, axis)]


def _bounds(
    builder: Tf1Legalizer, low: TensorValue, high: TensorValue, axis: int | None
) -> list[SSAValue]:
    """A range as results of a node: scalars, or vectors along an axis."""
    dims = [] if axis is None else [low.dims[axis]]
    return [builder.reshape(bound.value, dims) for bound in (low, high)]


@legalizes("Dequantize")
def legalize_dequantize(builder: Tf1Legalizer) -> Results:
    """What levels of an integer type stand for."""
    x = number(builder, "input")
    given = TensorValue(builder, x)
    axis = _axis(builder, len(given.dims))
    low, high = (_bound(builder, name, given, axis) for name in ("min_range", "max_range"))
    mode = builder.attrs.string("mode", among=("MIN_COMBINED", "MIN_FIRST", "SCALED"))
    element = TensorValue(builder, x).element
    smallest, largest = _range(builder, element)
    level = TensorValue(builder, x).cast(f32)
    if mode == "SCALED":
        step = high / largest
        step = step if not smallest else (low / smallest).maximum(step)
        value = level * step
    else:
        step = (high - low) / (largest - smallest)
        start = low if mode == "MIN_COMBINED" else away(low / step) * step
        value = (level - smallest) * step + start
    return [value.cast(builder.attrs.element("dtype")).value]


def _range(builder: Tf1Legalizer, element: Attribute) -> tuple[float, float]:
    """The smallest and the largest level."""
    if numpy_dtype(element).kind not in "iu":
        builder.refuse(f"levels of type {element}", "integers of 8 bits or more")
    limits = np.iinfo(numpy_dtype(element))
    is_narrow = builder.attrs.flag("narrow_range") and not is_unsigned(element)
    return float(limits.min + is_narrow), float(limits.max)
