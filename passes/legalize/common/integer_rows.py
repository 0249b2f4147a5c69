"""
Functions of rows of integers in fixed point: softmax, its logarithm, division by the length; and
curves of 16 bits.

What depends on one element is a table; what depends on a row, as the reciprocal of a sum, is
gemmlowp's arithmetic on integers of 32 bits. Rows are i32, along the last dimension.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from lowerdeck.dialects.core.types import bit_width, i8, i16, i32, i64
from lowerdeck.passes.legalize.common import fixed_point as fixed
from lowerdeck.passes.legalize.common.integer_functions import (
    bit_length,
    by_bits,
    halved,
    inverse_roots,
    logarithm,
    reciprocal,
)
from lowerdeck.passes.legalize.common.requantize import (
    multiplier_of,
    requantized,
    rescaled,
    type_range,
)
from lowerdeck.passes.legalize.common.tables import entries, interpolated, table_of
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue

# Bytes


class _Exponentials:
    """exp of beta times the difference to the maximum, -255 to 0, as fractions."""

    def __init__(self, beta: float, scale: float) -> None:
        if beta * scale * (1 << 26) <= 1:
            refuse(f"beta {beta} and scale {scale}", "larger ones")
        factor = min(beta * scale * (1 << 26), float((1 << 31) - 1))
        self.multiplier, self.shift = multiplier_of(factor)
        self.least = -math.floor(31 * (1 << 26) / (1 << self.shift))
        differences = np.arange(-255, 1, dtype=np.int64)
        self.kept = differences >= self.least
        wrapped = (differences << self.shift).astype(np.int32).astype(np.int64)
        self.rescaled = np.where(self.kept, fixed.high_product(wrapped, self.multiplier), 0)
        values = fixed.exp_of_negative(self.rescaled, 5)
        self.values = np.where(self.kept, values, 0)


def _differences(x: TensorValue) -> TensorValue:
    """The differences to the maximum of a row, plus 255."""
    return (x - x.reduce("max", [len(x.dims) - 1], keep_dims=True)).cast(i64) + 255


def _entries(places: TensorValue, table: NDArray[np.int64]) -> TensorValue:
    return entries(places, table.astype(np.int32))


def _sums(places: TensorValue, exps: _Exponentials) -> TensorValue:
    """
    The sums of rows, with twelve integer bits; of more terms than these count, at most the largest.
    """
    parts = _entries(places, fixed.divided(exps.values, 12))
    axis, size = len(parts.dims) - 1, parts.dims[-1].value
    if size is not None and size < 1 << 12:
        return parts.reduce("sum", [axis], keep_dims=True)
    total = parts.cast(i64).reduce("sum", [axis], keep_dims=True)
    return total.minimum((1 << 31) - 1).cast(i32)


def softmax_of_bytes(x: TensorValue, beta: float, scale: float, to: Attribute) -> TensorValue:
    """exp(beta * (x - max)) by the sum of the row, from the least integer of the result on."""
    exps = _Exponentials(beta, scale)
    places = _differences(x)
    inverse, bits = reciprocal(_sums(places, exps))
    low, _ = type_range(to)
    # num_bits_over_unit = 12 - headroom_plus_one, and headroom_plus_one = 32 - bits
    exponent = (bits + 11 - bit_width(to)).cast(i32)
    shares = _entries(places, exps.values)
    return rescaled(shares, inverse, exponent * -1, to, zero=low)


def log_softmax_of_bytes(x: TensorValue, scale: float, to: Attribute) -> TensorValue:
    """x - max - log(sum), in sixteenths, below the greatest integer."""
    exps = _Exponentials(1.0, scale)
    places = _differences(x)
    log = logarithm(_sums(places, exps))
    low, most = type_range(to)
    divisor, exponent = multiplier_of((1 << (31 - exps.shift)) / exps.multiplier)
    bound = rescaled(log + -(1 << 31), divisor, exponent).maximum(exps.least - 1)
    value = halved(_entries(places, exps.rescaled) - log, 22) + most
    kept = (places - 255).cast(i32).gt(bound)
    return kept.where(value.clip(low, most), TensorValue.number(x.builder, low, i32)).cast(to)


def unit_rows_of_bytes(x: TensorValue, to: Attribute) -> TensorValue:
    """
    Integers by the root of the sum of their squares, in 128ths: the factor of unsigned ones comes
    before the multiplication, so that they are rounded twice.
    """
    total = (x * x).reduce("sum", [len(x.dims) - 1], keep_dims=True)
    multiplier, exponent = inverse_roots(total)
    if to == i8:
        return rescaled(x, multiplier, exponent + 7, to)
    return rescaled(x * 128, multiplier, exponent, to, zero=128)


# Sixteen bits


def softmax_of_sixteen_bits(x: TensorValue, beta: float, scale: float) -> TensorValue:
    """exp(beta * (x - max)) by the sum of the row, i16 in units of 2^-15."""
    builder, axis = x.builder, len(x.dims) - 1
    exps = table_of(math.exp, 10.0 / 65535, 32767, 2.0 / 65535)
    inverses = table_of(lambda x: 1.0 / (1.0 + x), 1.0 / 65535, -32768, 2.0 / 65535)
    difference = x - x.reduce("max", [axis], keep_dims=True)
    factor = float(np.float32(scale) * np.float32(beta)) / (10.0 / 65535.0)
    scaled = TensorValue(builder, requantized(builder, difference.value, factor, i32))
    exp = interpolated((scaled + 32767).clip(-32768, 32767), exps)
    total = exp.reduce("sum", [axis], keep_dims=True)
    bits = bit_length(total)  # the leading zeros are 32 less these
    wide = total.cast(i64) * by_bits(bits, [1 << (31 - max(k, 1)) for k in range(32)])
    part = ((wide + (1 << 13)) // (1 << 14)).cast(i32) - ((1 << 15) + (1 << 16))
    inverse = interpolated(part.clip(-32768, 32767), inverses)
    product = exp.cast(i64) * inverse.cast(i64)
    half = by_bits(bits, [(1 << max(k - 1, 0)) >> 1 for k in range(32)])
    unit = by_bits(bits, [1 << max(k - 1, 0) for k in range(32)])
    return ((product + half) // unit).clip(0, 32767).cast(i16)


_ABOVE = 0x800000000000000000000000000000800011009020440005C0467BAEFA7BD110
"""The positions, as bits, of entries that the kernels have one above the nearest integer."""


def _sigmoids() -> NDArray[np.int64]:
    """sigmoid(k / 24) in units of 2^-16."""
    exact = [math.floor(65536 / (1 + math.exp(-k / 24)) + 0.5) for k in range(256)]
    return np.array([min(x, 65535) + ((_ABOVE >> k) & 1) for k, x in enumerate(exact)])


def power_of_two(scale: float) -> int | None:
    """The exponent of a scale that is nearly a power of two."""
    exponent = math.log2(scale) if scale > 0 else math.inf
    if math.isinf(exponent):
        return None
    return round(exponent) if abs(exponent - round(exponent)) < 1e-3 else None


def curve_of_sixteen_bits(x: TensorValue, scale: float, *, is_tanh: bool) -> TensorValue:
    """tanh or the logistic function of i32 from -32768 to 32767, i16 in fractions of 2^15."""
    builder = x.builder
    power = power_of_two(scale)
    left = None if power is None else 12 + power
    if left is not None and left in ((0, 1) if is_tanh else (0,)):
        multiplier, shift = 3 << left, 0
    else:
        factor, shift = float(np.float32(scale)) * 4096.0 * 3.0, 0
        while factor <= 32767.0 / 2.0 and shift <= 30:
            factor, shift = factor * 2, shift + 1
        multiplier = int(factor)
    half = (1 << shift) >> 1
    scaled = ((x * multiplier + half) // (1 << shift)) if shift else x * multiplier
    bits = 8 if is_tanh else 9
    size = scaled.abs()
    index = size // (1 << bits)
    table = _sigmoids().astype(np.int32)
    inside = index.minimum(254)
    low, high = (entries(place.cast(i64), table) for place in (inside, inside + 1))
    # The kernel adds in 32 bits without a sign, which these sums never exceed.
    between = low * (1 << bits) + (size % (1 << bits)) * (high - low)
    most = 0xFFFF << 8 if is_tanh else 0x7FFF << 10
    value = index.ge(255).where(TensorValue.number(builder, most, i32), between)
    if is_tanh:
        above, below = value - (1 << 23) + (1 << 7), value * -1 + (1 << 23) + (1 << 7) - 1
        final = scaled.ge(0).where(above, below) // (1 << 8)
    else:
        above, below = value + (1 << 9), value * -1 + (1 << 25) + (1 << 9) - 1
        final = scaled.ge(0).where(above, below) // (1 << 10)
    return final.cast(i16)
