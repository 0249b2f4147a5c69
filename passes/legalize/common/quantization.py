"""Simulated and stored quantization by the largest size of what is quantized."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import CastOp
from lowerdeck.dialects.core.types import (
    bit_width,
    element_type,
    f32,
    f64,
    i8,
    i64,
    is_integer,
    rank_of,
)
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.requantize import round_away
from lowerdeck.passes.legalize.tensor_value import TensorValue


@dataclass(frozen=True)
class Steps:
    """How a largest size falls into whole numbers."""

    bits: int
    to_even: bool
    """Halves go to even numbers; else away from zero, of what is cut off first."""

    @property
    def count(self) -> float:
        """The number of steps from zero to the largest size."""
        return float(2 ** (self.bits - 1) - 1)

    def quantized(self, x: TensorValue, scale: TensorValue) -> TensorValue:
        """Whole numbers, as floats."""
        if self.to_even:
            return (x * (self.count / scale)).round().clip(-self.count - 1, self.count)
        return round_away(x.minimum(scale).maximum(-scale) * (self.count / scale))

    def dequantized(self, x: TensorValue, scale: TensorValue) -> TensorValue:
        """What whole numbers stand for."""
        return x * scale / self.count


def of_bytes(builder: CoreBuilder, x: SSAValue, element: Attribute) -> TensorValue:
    """
    Quantized numbers in a type of floats, before their zero point is taken away.

    Bytes with dimensions are not folded, however few: factors of a product stay bytes.
    """
    if is_integer(element_type(x)) and rank_of(x) > 1 and bit_width(element_type(x)) == 8:
        (value,) = builder.insert(CastOp(x, element))
        return TensorValue(builder, value)
    return TensorValue.of(builder, builder.cast(x, element))


def to_steps(
    x: TensorValue, scale: TensorValue, zero: TensorValue | None, low: float, high: float
) -> TensorValue:
    """Whole numbers, as floats: clamp(round(x / scale) + zero), by the reciprocal of the scale."""
    total = (x * (1 / scale).cast(x.element)).round()
    total = total if zero is None else total + zero.cast(x.element)
    return total.maximum(low).minimum(high)


def steps_between(
    x: TensorValue, least: int, most: int, epsilon: float, *, is_symmetric: bool = False
) -> tuple[TensorValue, TensorValue]:
    """The scale, and the zero point (i64), with which all elements and zero can be quantized."""
    axes = list(range(len(x.dims)))
    low, high = x.reduce("min", axes).minimum(0), x.reduce("max", axes).maximum(0)
    steps = (most - least) / 2 if is_symmetric else float(most - least)
    span = (-low).maximum(high) if is_symmetric else high - low
    scale = (span / steps).maximum(TensorValue.number(x.builder, epsilon, x.element))
    zero = (-(low / scale).round()).cast(i64) + least
    return scale, zero.maximum(least).minimum(most)


def in_own_steps(x: TensorValue, most: int) -> TensorValue:
    """What the numbers 0 to `most` stand for that elements become by their own extrema."""
    scale, zero = steps_between(x, 0, most, 1e-30)
    return (to_steps(x, scale, zero, 0, most) - zero.cast(x.element)) * scale


def by_channel(x: TensorValue, scale: TensorValue, axis: int) -> TensorValue:
    """One scale for all, or one for each part along an axis, in a shape that broadcasts."""
    single = all(dim == 1 for dim in scale.dims) or axis < 0
    return scale.reshape([1] * len(x.dims)) if single else scale.column(len(x.dims), axis)


def largest_size(x: TensorValue, axes: Sequence[int]) -> TensorValue:
    """The largest size along axes, which stay as ones."""
    return x.abs().reduce("max", axes, True)


def rows_as_bytes(
    value: TensorValue, axes: Sequence[int], asymmetric: bool
) -> tuple[SSAValue, TensorValue, TensorValue]:
    """
    Floats as i8, with the scale (f32) and the zero point (i8) of the elements along `axes`, which
    stay as ones.
    """
    if not asymmetric:
        size = value.abs().reduce("max", axes, keep_dims=True)
        is_zero = size.eq(0)
        inverse = is_zero.where(size, 127.0 / is_zero.where(size + 1, size))
        scale = is_zero.where(size + 1, size / 127.0)
        integers = round_away(value * inverse).clip(-127, 127)
        return integers.cast(i8).value, scale, size.cast(i8) * 0
    low = value.reduce("min", axes, keep_dims=True).minimum(0)
    high = value.reduce("max", axes, keep_dims=True).maximum(0)
    is_zero = low.eq(high)
    # The kernels subtract the ends in f32 and round before the zero point is added: it matters at
    # ties, and values that are multiples of one scale are full of them.
    wide = is_zero.where(high - low + 255, high - low).cast(f64) / 255.0
    low, high = low.cast(f64) / wide, high.cast(f64) / wide
    is_low = (128.0 + low.abs()).lt(127.0 + high.abs())
    zero = round_away(is_low.where(-128.0 - low, 127.0 - high).clip(-128, 127))
    zero = is_zero.where(zero * 0, zero).cast(f32)
    scale = wide.cast(f32)
    integers = (zero + round_away(value * (1.0 / scale))).clip(-128, 127)
    return integers.cast(i8).value, scale, zero.cast(i8)
