"""
Rows of bytes in fixed point: softmax, its logarithm, and division by the length.

What depends on one element is a table; what depends on a row, as the reciprocal of a sum, is
gemmlowp's arithmetic on integers of 32 bits, with the position of the highest bit as the index of
tables. `rounded high product` is `core.requantize` with a multiplier that is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import bit_width, element_type, i8, i32, i64, rank_of, ui8
from lowerdeck.passes.legalize.common.requantize import multiplier_of, type_range
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite import fixed_point as fixed
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import require_type, without_zero

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def high(a: TensorValue, b: TensorValue | int, exponent: TensorValue | int = 0) -> TensorValue:
    """a * b * 2^(exponent - 31) of i32, rounded as `core.requantize double` does."""
    builder = a.builder
    multiplier, power = (
        x if isinstance(x, TensorValue) else TensorValue.number(builder, x, i32)
        for x in (b, exponent)
    )
    op = RequantizeOp(
        "double",
        a.value,
        multiplier.value,
        power.value,
        zero=0,
        low=_LEAST,
        high=_MOST,
        to=i32,
    )
    return TensorValue(builder, builder.add(op))


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


def by_bits(bits: TensorValue, entries: Sequence[int]) -> TensorValue:
    """An entry for each number of bits, from 0 on, as i64."""
    table = bits.builder.tensor(np.array(entries, np.int64))
    return TensorValue(bits.builder, bits.builder.add(GatherOp(table, bits.value, 0, inside=True)))


def reciprocal(x: TensorValue) -> tuple[TensorValue, TensorValue]:
    """1 / x of positive integers, as a fraction, and the number of bits of x."""
    bits = bit_length(x)
    fraction = x.cast(i64) * by_bits(bits, [1 << (32 - max(k, 1)) for k in range(33)])
    return one_over_one_plus((fraction - (1 << 31)).cast(i32)), bits


def one_over_one_plus(x: TensorValue) -> TensorValue:
    """1 / (1 + x) of fractions from 0 to 1, by three steps of Newton's method."""
    half = ((x.cast(i64) + (1 << 31)) // 2).cast(i32)
    y = high(half, -1010580540) + 1515870810
    for _ in range(3):
        rest = high(half, y) * -1 + (1 << 29)
        y = y + widened(high(y, rest), 2)
    return widened(y, 1)


# Exponentials


class _Exponentials:
    """exp of beta times the difference to the maximum, -255 to 0, as fractions."""

    def __init__(self, beta: float, scale: float) -> None:
        factor = min(beta * scale * (1 << 26), float(_MOST))
        self.multiplier, self.shift = multiplier_of(factor)
        if factor <= 1:
            raise ValueError("a factor of at most one")
        self.least = -math.floor(31 * (1 << 26) / (1 << self.shift))
        differences = np.arange(-255, 1, dtype=np.int64)
        self.kept = differences >= self.least
        wrapped = (differences << self.shift).astype(np.int32).astype(np.int64)
        self.rescaled = np.where(self.kept, fixed.high_product(wrapped, self.multiplier), 0)
        values = fixed.exp_of_negative(self.rescaled, 5)
        self.values = np.where(self.kept, values, 0)


def _exponentials(builder: TfliteLegalizer, beta: float) -> _Exponentials:
    require_type(builder, builder.input(0), i8, ui8)
    scale = builder.quantization(0).scale
    if beta * scale * (1 << 26) <= 1:
        builder.refuse(f"beta {beta} and scale {scale}", "larger ones")
    return _Exponentials(beta, scale)


def _differences(builder: TfliteLegalizer) -> TensorValue:
    """The differences to the maximum of a row, plus 255."""
    x = TensorValue(builder, builder.cast(builder.input(0), i32))
    largest = x.reduce("max", [rank_of(x.value) - 1], keep_dims=True)
    return (x - largest).cast(i64) + 255


def _looked_up(places: TensorValue, table: NDArray[np.int64]) -> TensorValue:
    builder = places.builder
    entries = builder.tensor(table.astype(np.int32))
    return TensorValue(builder, builder.add(GatherOp(entries, places.value, 0, inside=True)))


def _sums(builder: TfliteLegalizer, places: TensorValue, exps: _Exponentials) -> TensorValue:
    """The sums of rows, with twelve integer bits."""
    parts = _looked_up(places, fixed.divided(exps.values, 12))
    return parts.reduce("sum", [rank_of(parts.value) - 1], keep_dims=True)


def softmax_of_bytes(builder: TfliteLegalizer, beta: float) -> SSAValue:
    """exp(beta * (x - max)) by the sum of the row, from the least integer of the result on."""
    exps = _exponentials(builder, beta)
    places = _differences(builder)
    inverse, bits = reciprocal(_sums(builder, places, exps))
    to = builder.element()
    low, most = type_range(to)
    # num_bits_over_unit = 12 - headroom_plus_one, and headroom_plus_one = 32 - bits
    exponent = (bits + 11 - bit_width(to)).cast(i32)
    op = RequantizeOp(
        "double",
        _looked_up(places, exps.values).value,
        inverse.value,
        (exponent * -1).value,
        zero=low,
        low=low,
        high=most,
        to=to,
    )
    return builder.add(op)


def log_softmax_of_bytes(builder: TfliteLegalizer) -> SSAValue:
    """x - max - log(sum), in sixteenths, below the greatest integer."""
    exps = _exponentials(builder, 1.0)
    places = _differences(builder)
    log = _logarithm(_sums(builder, places, exps))
    low, most = type_range(builder.element())
    factor = (1 << (31 - exps.shift)) / exps.multiplier
    divisor, exponent = multiplier_of(factor)
    bound = high(log + _LEAST, divisor, exponent).maximum(exps.least - 1)
    value = halved(_looked_up(places, exps.rescaled) - log, 22) + most
    kept = (places - 255).cast(i32).gt(bound)
    limited = kept.where(value.clip(low, most), TensorValue.number(builder, low, i32))
    return limited.cast(element_type(builder.input(0))).value


def _logarithm(x: TensorValue) -> TensorValue:
    """log(x) of numbers from 1 on with twelve integer bits, with five."""
    builder = x.builder
    bits = bit_length(x)
    quarter = 1 << 23  # with six integer bits, of which the sum may use one

    def shifted(value: TensorValue, length: TensorValue) -> TensorValue:
        """Up to the highest bit but the sign."""
        factor = by_bits(length, [1 << (31 - max(k, 1)) for k in range(32)])
        return (value.cast(i64) * factor).clip(_LEAST, _MOST).cast(i32)

    first = widened(high(shifted(x, bits), 1518500250), 1)
    # 12 - headroom_plus_one = bits - 20
    first_power = ((bits - 20) * (1 << 25) + quarter).clip(_LEAST, _MOST)
    other = high(x, 1518500250)
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
    square = high(q, q)
    number = high(q, r) + high(high(q, square), 117049297)
    inner = q + 1057819769 + high(square, 127690142)
    denominator = high(p, inner) + high(q, 638450708)
    inverse = one_over_one_plus(denominator)
    scaled = halved(number, 6)
    result = high(power, 1488522236) + high(scaled, inverse)
    return widened(TensorValue(builder, result.value), 1)


# Lengths


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
        cube = widened(high(high(root, root), root), 6)
        root = widened(high(root, half_three) - high(half_input, cube), 3)
    result = high(root, 1518500250)
    result = (result.cast(i64) * by_bits(bits, [1 << max(-s, 0) for s in shifts])).cast(i32)
    is_small = x.le(1)
    multiplier = is_small.where(TensorValue.number(x.builder, _MOST, i32), result)
    exponent = by_bits(bits, [-max(s, 0) for s in shifts]).cast(i32)
    zero = TensorValue.number(x.builder, 0, i32)
    return multiplier, is_small.where(zero, exponent)


def unit_rows_of_bytes(builder: TfliteLegalizer) -> SSAValue:
    """
    Integers by the root of the sum of their squares, in 128ths: the factor of unsigned ones comes
    before the multiplication, so that they are rounded twice.
    """
    require_type(builder, builder.input(0), i8, ui8)
    if builder.activation() != "NONE":
        builder.refuse(f"the activation {builder.activation()}", "none")
    x = without_zero(builder, 0)
    total = (x * x).reduce("sum", [rank_of(x.value) - 1], keep_dims=True)
    multiplier, exponent = inverse_roots(total)
    to = builder.element()
    low, most = type_range(to)
    is_signed = to == i8
    op = RequantizeOp(
        "double",
        x.value if is_signed else (x * 128).value,
        multiplier.value,
        (exponent + 7).value if is_signed else exponent.value,
        zero=0 if is_signed else 128,
        low=low,
        high=most,
        to=to,
    )
    return builder.add(op)
