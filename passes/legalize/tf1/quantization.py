"""Numbers as few levels of integers, and back."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.types import dims_of, f32, is_unsigned, numpy_dtype
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

_UNLIMITED = 3.4028234663852886e38
"""The scale for a bound that any scale keeps: the largest f32."""


def _away(x: Quantity) -> Quantity:
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
    last = float(2 ** lower.attrs.int("num_bits") - 1)
    is_nothing = low.eq(0.0) & high.eq(0.0)
    scale = is_nothing.where(high * 0 + 1, (high - low) / (last - first))
    zero = _away((first - low / scale).clip(first, last))
    low, high = (first - zero) * scale, (last - zero) * scale
    level = ((x.minimum(high).maximum(low) - low) / scale + 0.5).floor()
    return is_nothing.where(x * 0, level * scale + low).value


@legalizes("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def legalize_quantize_and_dequantize(lower: Tf1Legalizer) -> Results:
    """Rounded to multiples of a step that follows from the range, given or found."""
    x = Quantity(lower, number(lower, "input"))
    if lower.attrs.int("axis") != -1:
        lower.refuse("quantization along an axis", "one range for all elements")
    is_given = lower.attrs.flag("range_given")
    bounds = [Quantity.of(lower, lower.operand(name)) for name in ("input_min", "input_max")]
    if not is_given:
        axes = range(len(x.dims))
        bounds = [x.reduce("min", axes), x.reduce("max", axes)]
    levels = _levels(lower)
    scale, inverse, low, high = _symmetric(bounds[0], bounds[1], levels)
    x = x.clip(low, high) if is_given else x
    return [(_rounded(lower, x * scale) * inverse).value]


def _levels(lower: Tf1Legalizer) -> tuple[float, float]:
    """The lowest and the highest level."""
    if lower.attrs.has("num_bits"):
        bits = lower.attrs.int("num_bits")
    else:
        (bits,) = lower.require_ints(lower.operand("num_bits"), "num_bits")
    if not lower.attrs.flag("signed_input"):
        lower.attrs.ignore("narrow_range")
        return 0.0, 2.0**bits - 1
    is_narrow = lower.attrs.flag("narrow_range")
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
    _require_one_range(lower)
    x = Quantity(lower, number(lower, "input"))
    low, high = (Quantity.of(lower, lower.operand(name)) for name in ("min_range", "max_range"))
    low = low.minimum(0.0)
    least = low.abs().maximum(high.abs()).maximum(1.0) * lower.attrs.float("ensure_minimum_range")
    high = high.maximum(low + least).maximum(0.0)
    mode = lower.attrs.string("mode", among=("MIN_COMBINED", "SCALED"))
    element = lower.result_element()
    smallest, largest = _range(lower, element)
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
    level = level.round() if is_even else _away(level)
    return [level.cast(element).value, low.value, high.value]


@legalizes("Dequantize")
def legalize_dequantize(lower: Tf1Legalizer) -> Results:
    """What levels of an integer type stand for."""
    _require_one_range(lower)
    x = number(lower, "input")
    low, high = (Quantity.of(lower, lower.operand(name)) for name in ("min_range", "max_range"))
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
        start = low if mode == "MIN_COMBINED" else _away(low / step) * step
        value = (level - smallest) * step + start
    return [value.cast(lower.attrs.element("dtype")).value]


def _require_one_range(lower: Tf1Legalizer) -> None:
    ranges = [lower.operand(name) for name in ("min_range", "max_range")]
    if lower.attrs.int("axis") != -1 or any(dims_of(value) for value in ranges):
        lower.refuse("a range for each part of an axis", "one range for all elements")


def _range(lower: Tf1Legalizer, element: Attribute) -> tuple[float, float]:
    """The smallest and the largest level."""
    limits = np.iinfo(numpy_dtype(element))
    is_narrow = lower.attrs.flag("narrow_range") and not is_unsigned(element)
    return float(limits.min + is_narrow), float(limits.max)
