"""gemmlowp's fixed-point arithmetic of numbers, for what is computed when the model is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowerdeck.passes.legalize.common.requantize import multiplier_of

Integers = NDArray[np.int64]


def high_product(x: Any, y: Any, bits: int = 32) -> Any:
    """The rounded high half of the doubled product, which saturates."""
    nudge_of = 1 << (bits - 2)
    product = np.asarray(x, np.int64) * np.asarray(y, np.int64)
    total = product + np.where(product >= 0, nudge_of, 1 - nudge_of)
    high = np.sign(total) * (np.abs(total) >> (bits - 1))
    return np.minimum(high, (1 << (bits - 1)) - 1)


def divided(x: Any, exponent: int) -> Any:
    """By a power of two, halves away from zero."""
    x = np.asarray(x, np.int64)
    mask = (1 << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))


def multiplied(x: Any, multiplier: int, exponent: int) -> Any:
    """x * multiplier * 2^(exponent - 31), rounded twice."""
    shifted = np.asarray(x, np.int64) << max(exponent, 0)
    return divided(high_product(shifted, multiplier), max(-exponent, 0))


def shifted_left(x: Any, amount: int, bits: int = 16) -> Any:
    """Saturated."""
    limit = 1 << (bits - 1)
    return np.clip(np.asarray(x, np.int64) << amount, -limit, limit - 1)


def reciprocal_of(x: int) -> tuple[int, int]:
    """1 / x as a fraction, and by how many bits x exceeds one; of 0, which is not divided by, 0."""
    if x == 0:
        return 0, 0
    bits = x.bit_length()
    a = (x << (32 - bits)) - (1 << 31)
    half = (a + (1 << 31)) // 2
    y = 1515870810 + int(high_product(half, -1010580540))
    for _ in range(3):
        rest = (1 << 29) - int(high_product(half, y))
        y += int(rescaled(high_product(y, rest), 2))
    return int(rescaled(y, 1)), bits - 1


def inverse_root(x: int) -> tuple[int, int]:
    """1 / sqrt(x) of a positive integer as multiplier and exponent."""
    if x <= 1:
        return (1 << 31) - 1, 0
    shift = 11
    while x >= 1 << 29:
        x //= 4
        shift += 1
    pairs = (31 - x.bit_length()) // 2 - 1
    shift -= pairs
    x <<= 2 * pairs
    half_input = int(divided(x >> 1, 1))
    half_three = (1 << 28) + (1 << 27)
    y = 1 << 28
    for _ in range(5):
        cube = rescaled(high_product(high_product(y, y), y), 6)
        y = int(rescaled(high_product(half_three, y) - high_product(half_input, cube), 3))
    result = int(high_product(y, 1518500250))
    if shift < 0:
        result, shift = result << -shift, 0
    return result, -shift


def rescaled(x: Any, bits: int) -> Any:
    """With fewer integer bits, saturated."""
    return shifted_left(x, bits, 32)


def hard_swish(x: Integers, scale: float, result_scale: float, zero: int) -> Integers:
    """The reference kernel's, of integers less their zero point."""
    fine = np.float32(np.float32(1 / 128) * np.float32(scale))
    reluish = np.float32(np.float32(3) / np.float32(32768))
    out, out_exponent = _sixteen(float(fine / np.float32(result_scale)))
    inner, exponent = _sixteen(float(fine / reluish))
    wide = (x << 7).astype(np.int16).astype(np.int64)
    on_result = high_product(wide, out, 16)
    gate = wide
    if exponent > 0:
        gate = shifted_left(gate, exponent - 1)
    gate = high_product(gate, inner, 16)
    if exponent > 0:
        gate = shifted_left(gate, 1)
    if exponent < 0:
        gate = divided(gate, -exponent)
    gate = (gate + (1 << 15)) >> 1
    product = gate * on_result
    truncated = np.sign(product) * (np.abs(product) >> 15)
    return divided(truncated, -out_exponent) + zero


def _sixteen(factor: float) -> tuple[int, int]:
    """Multiplier of 16 bits and exponent of a factor."""
    multiplier, exponent = multiplier_of(factor)
    rounded = (multiplier + (1 << 15)) >> 16
    return min(rounded, (1 << 15) - 1), exponent


def exp_of_negative(x: Integers, integer_bits: int) -> Integers:
    """exp(x) of numbers that are not positive, as fractions."""
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    part = (x & (quarter - 1)) - quarter
    result = _exp_near_zero(rescaled(part, integer_bits))
    rest = part - x
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for exponent, factor in zip(range(-2, 5), factors, strict=True):
        if integer_bits > exponent:
            is_set = (rest & (1 << (fraction_bits + exponent))) != 0
            result = np.where(is_set, high_product(result, factor), result)
    return np.where(x == 0, (1 << 31) - 1, result)


def _exp_near_zero(x: Integers) -> Integers:
    """exp(x) of fractions from -1/4 to 0, by the Taylor series around -1/8."""
    y = x + (1 << 28)
    square = high_product(y, y)
    cube, fourth = high_product(square, y), high_product(square, square)
    inner = high_product(divided(fourth, 2) + cube, 715827883) + square
    return 1895147668 + high_product(1895147668, y + divided(inner, 1))


# Curves of sixteen bits


def _wrapped(x: Any) -> Integers:
    return np.asarray(x, np.int64).astype(np.int16).astype(np.int64)


def _constant(x: int) -> int:
    """A constant of 32 bits with 16."""
    return int(divided(x, 16))


def _times(x: Any, y: Any) -> Integers:
    return np.asarray(high_product(x, y, 16), np.int64)


def _exp_16(x: Integers, integer_bits: int) -> Integers:
    """exp(x) of numbers that are not positive."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    part = _wrapped((x & (quarter - 1)) - quarter)
    y = _wrapped(shifted_left(part, integer_bits) + (1 << 12))
    square = _times(y, y)
    cube, fourth = _times(square, y), _times(square, square)
    third = _constant(715827883)
    inner = _wrapped(_times(_wrapped(divided(fourth, 2) + cube), third) + square)
    base = _constant(1895147668)
    total = base + _times(base, _wrapped(y + divided(inner, 1)))
    result = np.clip(total, -(1 << 15), (1 << 15) - 1)
    rest = _wrapped(part - x)
    factors = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
    for exponent, factor in zip(range(-2, 5), factors, strict=True):
        if integer_bits > exponent:
            is_set = (rest & (1 << (fraction_bits + exponent))) != 0
            result = np.where(is_set, _times(result, _constant(factor)), result)
    if integer_bits > 5:
        limit = _constant(-(1 << (36 - integer_bits)))
        result = np.where(x < limit, 0, result)
    return np.where(x == 0, (1 << 15) - 1, result)


def _divided_16(x: Integers, *, minus: bool) -> Integers:
    """(1 - x) / (1 + x), or 1 / (1 + x), of fractions from 0 to 1."""
    half = (x + (1 << 15)) // 2
    y = _wrapped(_constant(1515870810) + _times(half, _constant(-1010580540)))
    for _ in range(3):
        rest = _wrapped((1 << 13) - _times(half, y))
        y = _wrapped(y + shifted_left(_times(y, rest), 2))
    return shifted_left(_wrapped(y - (1 << 13)), 2) if minus else shifted_left(y, 1)


def logistic_table() -> Integers:
    """The logistic function of all integers of 16 bits, with three integer bits."""
    x = np.arange(-(1 << 15), 1 << 15, dtype=np.int64)
    size = np.where(x > 0, x, _wrapped(-x))
    above = _divided_16(_exp_16(_wrapped(-size), 3), minus=False)
    curve = np.where(x > 0, above, _wrapped((1 << 15) - 1 - above))
    return np.where(x == 0, _constant(1 << 30), curve)


def tanh_table(integer_bits: int) -> Integers:
    """The hyperbolic tangent of all integers of 16 bits."""
    x = np.arange(-(1 << 15), 1 << 15, dtype=np.int64)
    negative = np.where(x < 0, x, _wrapped(-x))
    size = _divided_16(_exp_16(negative, integer_bits + 1), minus=True)
    return np.where(x == 0, 0, np.where(x < 0, _wrapped(-size), size))
