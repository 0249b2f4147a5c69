"""Curves and softmax of integers of 16 bits: tables, between whose entries is interpolated."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import element_type, i16, i32, i64, rank_of
from lowerdeck.passes.legalize.common.integer_functions import bit_length, by_bits
from lowerdeck.passes.legalize.common.requantize import requantized
from lowerdeck.passes.legalize.common.tables import Function, entries, interpolated, table_of
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer

_ABOVE = 0x800000000000000000000000000000800011009020440005C0467BAEFA7BD110
"""The positions, as bits, of entries that the kernels have one above the nearest integer."""


def _sigmoids() -> NDArray[np.int64]:
    """sigmoid(k / 24) in units of 2^-16."""
    exact = [math.floor(65536 / (1 + math.exp(-k / 24)) + 0.5) for k in range(256)]
    return np.array([min(x, 65535) + ((_ABOVE >> k) & 1) for k, x in enumerate(exact)])


def _power_of_two(scale: float) -> int | None:
    """The exponent of a scale that is nearly a power of two."""
    exponent = math.log2(scale)
    return round(exponent) if abs(exponent - round(exponent)) < 1e-3 else None


def curve(builder: TfliteLegalizer) -> SSAValue:
    """tanh or the logistic function, of fractions of 2^15."""
    q, result = builder.quantization(0), builder.result_quantization()
    if q.zero or result.zero or _power_of_two(result.scale) != -15:
        builder.refuse(f"a scale {result.scale} and zero points", "2^-15 and zero")
    is_tanh = builder.op_type == "TANH"
    power = _power_of_two(q.scale)
    left = None if power is None else 12 + power
    if left is not None and left in ((0, 1) if is_tanh else (0,)):
        multiplier, shift = 3 << left, 0
    else:
        factor, shift = float(np.float32(q.scale)) * 4096.0 * 3.0, 0
        while factor <= 32767.0 / 2.0 and shift <= 30:
            factor, shift = factor * 2, shift + 1
        multiplier = int(factor)
    x = TensorValue(builder, builder.cast(builder.input(0), i32))
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
    return final.cast(i16).value


# Functions by tables


def by_table(builder: TfliteLegalizer, function: Function) -> SSAValue:
    """A real function of integers of 16 bits, by a table in f32."""
    q, result = builder.quantization(0), builder.result_quantization()
    table = table_of(function, q.scale, q.zero, result.scale, result.zero, np.float32)
    x = TensorValue(builder, builder.cast(builder.input(0), i32))
    return interpolated(x, table).cast(i16).value


def softmax(builder: TfliteLegalizer, beta: float) -> SSAValue:
    """exp(beta * (x - max)) by the sum of the row, in units of 2^-15."""
    q, to = builder.quantization(0), builder.element()
    if element_type(builder.input(0)) != i16 or to != i16 or q.zero:
        builder.refuse(f"a result of {to}", "i16 with zero points of zero")
    exps = table_of(math.exp, 10.0 / 65535, 32767, 2.0 / 65535)
    inverses = table_of(lambda x: 1.0 / (1.0 + x), 1.0 / 65535, -32768, 2.0 / 65535)
    x = TensorValue(builder, builder.cast(builder.input(0), i32))
    axis = rank_of(x.value) - 1
    difference = x - x.reduce("max", [axis], keep_dims=True)
    factor = float(np.float32(q.scale) * np.float32(beta)) / (10.0 / 65535.0)
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
    return ((product + half) // unit).clip(0, 32767).cast(i16).value
