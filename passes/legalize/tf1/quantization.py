"""Numbers as few levels of integers, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import dims_of, f32, is_unsigned, numpy_dtype
from lowerdeck.dialects.dims import ExprLike, product
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

_UNLIMITED = 3.4028234663852886e38
"""The scale for a bound that any scale keeps: the largest f32."""


def away(x: Quantity) -> Quantity:
    """The nearest integer, halves away from zero."""
    size = x.abs()
    floor = size.floor()
    rounded = (size - floor).ge(0.5).where(floor + 1.0, floor)
    return x.lt(0.0).where(-rounded, rounded)


# Training with quantization in mind


@legalizes("FakeQuantWithMinMaxArgs")
def legalize_fake_quant_attributes(lower: Tf1Legalizer) -> Results:
    """The nearest of 2^num_bits levels between two numbers."""
    low, high = (Quantity.number(lower, lower.attrs.float(name), f32) for name in ("min", "max"))
    return [_fake_quant(lower, low, high)]


@legalizes("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def legalize_fake_quant(lower: Tf1Legalizer) -> Results:
    """The nearest of 2^num_bits levels between two numbers, or two for each channel."""
    low, high = (Quantity.of(lower, lower.operand(name)) for name in ("min", "max"))
    return [_fake_quant(lower, low, high)]


def _fake_quant(lower: Tf1Legalizer, low: Quantity, high: Quantity) -> SSAValue:
    """The bounds move so that zero is a level. Bounds that are both zero give zeros."""
    x = Quantity(lower, number(lower, "inputs"))
    first = 1.0 if lower.attrs.flag("narrow_range") else 0.0
    last = 2.0 ** _bits(lower, lower.attrs.int("num_bits"), range(2, 17)) - 1
    is_nothing = low.eq(0.0) & high.eq(0.0)
    scale = is_nothing.where(high * 0 + 1, (high - low) / (last - first))
    zero = away((first - low / scale).clip(first, last))
    low, high = (first - zero) * scale, (last - zero) * scale
    level = ((x.minimum(high).maximum(low) - low) / scale + 0.5).floor()
    return is_nothing.where(x * 0, level * scale + low).value


@legalizes("QuantizeAndDequantize")
def legalize_quantize_and_dequantize_attributes(lower: Tf1Legalizer) -> Results:
    """The same for a range that attributes give."""
    x = Quantity(lower, number(lower, "input"))
    names = ("input_min", "input_max")
    bounds = [Quantity.number(lower, lower.attrs.float(name), x.element) for name in names]
    return [_quantized_and_back(lower, x, bounds, None)]


@legalizes("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def legalize_quantize_and_dequantize(lower: Tf1Legalizer) -> Results:
    """
    Rounded to multiples of a step that follows from the range, given or found, of all elements or
    of each part along an axis.
    """
    x = Quantity(lower, number(lower, "input"))
    axis = _axis(lower, len(x.dims))
    bounds = [_bound(lower, name, x, axis) for name in ("input_min", "input_max")]
    return [_quantized_and_back(lower, x, bounds, axis)]


def _axis(lower: Tf1Legalizer, rank: int) -> int | None:
    """The axis whose parts have ranges of their own."""
    axis = lower.attrs.int("axis")
    return None if axis == -1 else lower.axis(axis, rank)


def _bound(lower: Tf1Legalizer, name: str, x: Quantity, axis: int | None) -> Quantity:
    """A bound as a scalar, or along an axis of `x`."""
    value = lower.operand(name)
    if axis is None:
        if (count := product(dims_of(value)).value) not in (None, 1):
            lower.refuse(f"{count} bounds without an axis", "one")
        return Quantity.of(lower, lower.reshape(value, []))
    dims: list[ExprLike] = [1] * len(x.dims)
    dims[axis] = product(dims_of(value))
    return Quantity.of(lower, lower.reshape(value, dims))


def _quantized_and_back(
    lower: Tf1Legalizer, x: Quantity, bounds: Sequence[Quantity], axis: int | None
) -> SSAValue:
    is_given = lower.attrs.flag("range_given")
    if not is_given:
        axes = [k for k in range(len(x.dims)) if k != axis]
        keep = axis is not None
        bounds = [x.reduce("min", axes, keep), x.reduce("max", axes, keep)]
    levels = _levels(lower)
    scale, inverse, low, high = _symmetric(bounds[0], bounds[1], levels)
    x = x.clip(low, high) if is_given else x
    return (_rounded(lower, x * scale) * inverse).value


def _bits(lower: Tf1Legalizer, bits: int, among: range) -> int:
    """A number of bits, which is one of `among`."""
    if bits not in among:
        lower.refuse(f"num_bits of {bits}", f"{among.start} to {among.stop - 1}")
    return bits


def _levels(lower: Tf1Legalizer) -> tuple[float, float]:
    """The lowest and the highest level."""
    if lower.attrs.has("num_bits"):
        bits = lower.attrs.int("num_bits")
    else:
        bits = lower.require_int(lower.operand("num_bits"), "num_bits")
    is_signed = lower.attrs.flag("signed_input")
    bits = _bits(lower, bits, range(1, 62 if is_signed else 63))
    if not is_signed:
        if lower.attrs.has("narrow_range"):
            lower.attrs.ignore("narrow_range")
        return 0.0, 2.0**bits - 1
    is_narrow = lower.attrs.has("narrow_range") and lower.attrs.flag("narrow_range")
    return -(2.0 ** (bits - 1)) + is_narrow, 2.0 ** (bits - 1) - 1


def _symmetric(
    low: Quantity, high: Quantity, levels: tuple[float, float]
) -> tuple[Quantity, Quantity, Quantity, Quantity]:
    """The scale to levels, its inverse, and the range that all levels have."""
    scales: list[Quantity] = []
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


def _rounded(lower: Tf1Legalizer, x: Quantity) -> Quantity:
    if not lower.attrs.has("round_mode"):
        return x.round()
    mode = lower.attrs.string("round_mode", among=("HALF_TO_EVEN", "HALF_UP"))
    return x.round() if mode == "HALF_TO_EVEN" else (x + 0.5).floor()


# Integers


@legalizes("QuantizeV2")
def legalize_quantize(lower: Tf1Legalizer) -> Results:
    """Levels of an integer type, and the range that they have."""
    x = Quantity(lower, number(lower, "input"))
    axis = _axis(lower, len(x.dims))
    low, high = (_bound(lower, name, x, axis) for name in ("min_range", "max_range"))
    low = low.minimum(0.0)
    least = low.abs().maximum(high.abs()).maximum(1.0) * lower.attrs.float("ensure_minimum_range")
    high = high.maximum(low + least).maximum(0.0)
    mode = lower.attrs.string("mode", among=("MIN_COMBINED", "MIN_FIRST", "SCALED"))
    element = lower.result_element()
    smallest, largest = _range(lower, element)
    if mode == "MIN_FIRST":
        lower.attrs.ignore("round_mode")
        scale = (largest - smallest) / (high - low)
        level = away(x * scale) - (away(low * scale) - smallest)
        level = level.maximum(smallest).minimum(largest)
        return [level.cast(element).value, *_bounds(lower, low, high, axis)]
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
    is_even = lower.attrs.string("round_mode", among=rounding) == rounding[0]
    level = level.round() if is_even else away(level)
    return [level.cast(element).value, *_bounds(lower, low, high, axis)]


def _bounds(lower: Tf1Legalizer, low: Quantity, high: Quantity, axis: int | None) -> list[SSAValue]:
    """A range as results of a node: scalars, or vectors along an axis."""
    dims = [] if axis is None else [low.dims[axis]]
    return [lower.reshape(bound.value, dims) for bound in (low, high)]


@legalizes("Dequantize")
def legalize_dequantize(lower: Tf1Legalizer) -> Results:
    """What levels of an integer type stand for."""
    x = number(lower, "input")
    given = Quantity(lower, x)
    axis = _axis(lower, len(given.dims))
    low, high = (_bound(lower, name, given, axis) for name in ("min_range", "max_range"))
    mode = lower.attrs.string("mode", among=("MIN_COMBINED", "MIN_FIRST", "SCALED"))
    element = Quantity(lower, x).element
    smallest, largest = _range(lower, element)
    level = Quantity(lower, x).cast(f32)
    if mode == "SCALED":
        step = high / largest
        step = step if not smallest else (low / smallest).maximum(step)
        value = level * step
    else:
        step = (high - low) / (largest - smallest)
        start = low if mode == "MIN_COMBINED" else away(low / step) * step
        value = (level - smallest) * step + start
    return [value.cast(lower.attrs.element("dtype")).value]


def _range(lower: Tf1Legalizer, element: Attribute) -> tuple[float, float]:
    """The smallest and the largest level."""
    if numpy_dtype(element).kind not in "iu":
        lower.refuse(f"levels of type {element}", "integers of 8 bits or more")
    limits = np.iinfo(numpy_dtype(element))
    is_narrow = lower.attrs.flag("narrow_range") and not is_unsigned(element)
    return float(limits.min + is_narrow), float(limits.max)
