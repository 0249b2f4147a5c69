"""
Rows of bytes in fixed point: softmax, its logarithm, and division by the length.

What depends on one element is a table; what depends on a row, as the reciprocal of a sum, is
gemmlowp's arithmetic on integers of 32 bits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import bit_width, element_type, i8, i32, i64, rank_of, ui8
from lowerdeck.passes.legalize.common import fixed_point as fixed
from lowerdeck.passes.legalize.common.integer_functions import (
    halved,
    inverse_roots,
    logarithm,
    reciprocal,
)
from lowerdeck.passes.legalize.common.requantize import (
    multiplier_of,
    rescaled,
    type_range,
)
from lowerdeck.passes.legalize.common.tables import entries
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import require_type, without_zero

# Exponentials


class _Exponentials:
    """exp of beta times the difference to the maximum, -255 to 0, as fractions."""

    def __init__(self, beta: float, scale: float) -> None:
        factor = min(beta * scale * (1 << 26), float((1 << 31) - 1))
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


def _entries(places: TensorValue, table: NDArray[np.int64]) -> TensorValue:
    return entries(places, table.astype(np.int32))


def _sums(builder: TfliteLegalizer, places: TensorValue, exps: _Exponentials) -> TensorValue:
    """The sums of rows, with twelve integer bits."""
    parts = _entries(places, fixed.divided(exps.values, 12))
    return parts.reduce("sum", [rank_of(parts.value) - 1], keep_dims=True)


def softmax_of_bytes(builder: TfliteLegalizer, beta: float) -> SSAValue:
    """exp(beta * (x - max)) by the sum of the row, from the least integer of the result on."""
    exps = _exponentials(builder, beta)
    places = _differences(builder)
    inverse, bits = reciprocal(_sums(builder, places, exps))
    to = builder.element()
    low, _ = type_range(to)
    # num_bits_over_unit = 12 - headroom_plus_one, and headroom_plus_one = 32 - bits
    exponent = (bits + 11 - bit_width(to)).cast(i32)
    shares = _entries(places, exps.values)
    return rescaled(shares, inverse, exponent * -1, to, zero=low).value


def log_softmax_of_bytes(builder: TfliteLegalizer) -> SSAValue:
    """x - max - log(sum), in sixteenths, below the greatest integer."""
    exps = _exponentials(builder, 1.0)
    places = _differences(builder)
    log = logarithm(_sums(builder, places, exps))
    low, most = type_range(builder.element())
    factor = (1 << (31 - exps.shift)) / exps.multiplier
    divisor, exponent = multiplier_of(factor)
    bound = rescaled(log + -(1 << 31), divisor, exponent).maximum(exps.least - 1)
    value = halved(_entries(places, exps.rescaled) - log, 22) + most
    kept = (places - 255).cast(i32).gt(bound)
    limited = kept.where(value.clip(low, most), TensorValue.number(builder, low, i32))
    return limited.cast(element_type(builder.input(0))).value


# Lengths


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
    if (to := builder.element()) == i8:
        return rescaled(x, multiplier, exponent + 7, to).value
    return rescaled(x * 128, multiplier, exponent, to, zero=128).value
