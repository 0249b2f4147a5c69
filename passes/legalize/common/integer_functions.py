"""
gemmlowp's fixed-point arithmetic on tensors of i32: reciprocals, logarithms and inverse roots, with
the position of the highest bit as the index of tables. Numbers that are known when the model is
compiled have it in `fixed_point`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lowerdeck.dialects.core.types import i32, i64
from lowerdeck.passes.legalize.common.requantize import rescaled
from lowerdeck.passes.legalize.common.tables import entries
from lowerdeck.passes.legalize.tensor_value import TensorValue

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def widened(x: TensorValue, bits: int) -> TensorValue:
    """With fewer integer bits, saturated."""
    return (x.cast(i64) * (1 << bits)).clip(_LEAST, _MOST).cast(i32)


def halved(x: TensorValue, exponent: int) -> TensorValue:
    """By a power of two, halves away from zero."""
    wide = x.cast(i64)
    half = wide.lt(0).where(
        TensorValue.number(x.builder, (1 << (exponent - 1)) - 1, i64), 1 << (exponent - 1)
    )
    return ((wide + half) // (1 << exponent)).cast(i32)


def bit_length(x: TensorValue) -> TensorValue:
    """The number of bits of positive integers, 0 of zero, as i64."""
    thresholds = TensorValue(x.builder, np.array([1 << k for k in range(31)], np.int32))
    rank = len(x.dims)
    counted = x.reshape([*x.dims, 1]).ge(thresholds).cast(i64)
    return counted.reduce("sum", [rank])


def by_bits(bits: TensorValue, values: Sequence[int]) -> TensorValue:
    """An entry for each number of bits, from 0 on, as i64."""
    return entries(bits, np.array(values, np.int64))


def reciprocal(x: TensorValue) -> tuple[TensorValue, TensorValue]:
    """1 / x of positive integers, as a fraction, and the number of bits of x."""
    bits = bit_length(x)
    fraction = x.cast(i64) * by_bits(bits, [1 << (32 - max(k, 1)) for k in range(33)])
    return one_over_one_plus((fraction - (1 << 31)).cast(i32)), bits


def one_over_one_plus(x: TensorValue) -> TensorValue:
    """1 / (1 + x) of fractions from 0 to 1, by three steps of Newton's method."""
    half = ((x.cast(i64) + (1 << 31)) // 2).cast(i32)
    y = rescaled(half, -1010580540) + 1515870810
    for _ in range(3):
        rest = rescaled(half, y) * -1 + (1 << 29)
        y = y + widened(rescaled(y, rest), 2)
    return widened(y, 1)


def logarithm(x: TensorValue) -> TensorValue:
    """log(x) of numbers from 1 on with twelve integer bits, with five."""
    builder = x.builder
    bits = bit_length(x)
    quarter = 1 << 23  # with six integer bits, of which the sum may use one

    def shifted(value: TensorValue, length: TensorValue) -> TensorValue:
        """Up to the highest bit but the sign."""
        factor = by_bits(length, [1 << (31 - max(k, 1)) for k in range(32)])
        return (value.cast(i64) * factor).clip(_LEAST, _MOST).cast(i32)

    first = widened(rescaled(shifted(x, bits), 1518500250), 1)
    # 12 - headroom_plus_one = bits - 20
    first_power = ((bits - 20) * (1 << 25) + quarter).clip(_LEAST, _MOST)
    other = rescaled(x, 1518500250)
    other_bits = bit_length(other)
    factor = by_bits(other_bits, [1 << (31 - max(k, 1)) for k in range(32)])
    second = (x.cast(i64) * factor).clip(_LEAST, _MOST).cast(i32)
    # 12 - headroom = 12 - (31 - bits)
    second_power = ((other_bits - 19) * (1 << 25) - quarter).clip(_LEAST, _MOST)
    r = first.minimum(second)
    power = first_power.maximum(second_power).cast(i32)
    root = 1805811301
    total = r.cast(i64) + root
    p = ((total + 1) // 2).cast(i32)  # both are positive
    q = (r - root) * 2
    square = rescaled(q, q)
    number = rescaled(q, r) + rescaled(rescaled(q, square), 117049297)
    inner = q + 1057819769 + rescaled(square, 127690142)
    denominator = rescaled(p, inner) + rescaled(q, 638450708)
    inverse = one_over_one_plus(denominator)
    scaled = halved(number, 6)
    result = rescaled(power, 1488522236) + rescaled(scaled, inverse)
    return widened(TensorValue(builder, result.value), 1)


def inverse_roots(x: TensorValue) -> tuple[TensorValue, TensorValue]:
    """1 / sqrt(x) of integers as multiplier and exponent."""
    bits = bit_length(x)
    cut = [max(0, -(-(k - 29) // 2)) for k in range(32)]
    left = [k - 2 * n for k, n in zip(range(32), cut, strict=True)]
    pairs = [max((31 - max(k, 2)) // 2 - 1, 0) for k in left]
    shifts = [11 + n - p for n, p in zip(cut, pairs, strict=True)]
    y = x.cast(i64) // by_bits(bits, [4**n for n in cut])
    y = (y * by_bits(bits, [4**p for p in pairs])).cast(i32)
    half_input = halved((y.cast(i64) // 2).cast(i32), 1)
    half_three = TensorValue.number(x.builder, (1 << 28) + (1 << 27), i32)
    root = x * 0 + (1 << 28)
    for _ in range(5):
        cube = widened(rescaled(rescaled(root, root), root), 6)
        root = widened(rescaled(root, half_three) - rescaled(half_input, cube), 3)
    result = rescaled(root, 1518500250)
    result = (result.cast(i64) * by_bits(bits, [1 << max(-s, 0) for s in shifts])).cast(i32)
    is_small = x.le(1)
    multiplier = is_small.where(TensorValue.number(x.builder, _MOST, i32), result)
    exponent = by_bits(bits, [-max(s, 0) for s in shifts]).cast(i32)
    zero = TensorValue.number(x.builder, 0, i32)
    return multiplier, is_small.where(zero, exponent)
