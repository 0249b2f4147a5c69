"""Factors of quantized arithmetic as multipliers and exponents, and rounding of floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.quantize import RequantizeOp
from lowerdeck.dialects.core.types import (
    bit_width,
    element_type,
    f32,
    f64,
    i1,
    i32,
    i64,
    is_unsigned,
    numpy_dtype,
)
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue


def multiplier_of(factor: float) -> tuple[int, int]:
    """multiplier and exponent with multiplier * 2^(exponent - 31) nearest to a factor."""
    if not math.isfinite(factor):
        refuse(f"a factor of {factor} between integers", "a finite number")
    if factor == 0:
        return 0, 0
    mantissa, exponent = math.frexp(factor)
    scaled = math.floor(mantissa * 2.0**31 + 0.5)
    if scaled == 1 << 31:
        scaled, exponent = scaled // 2, exponent + 1
    return (0, 0) if exponent < -31 else (scaled, exponent)


def type_range(element: Attribute) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    limits = np.iinfo(numpy_dtype(element))
    return int(limits.min), int(limits.max)


def saturated(x: TensorValue, to: Attribute) -> TensorValue:
    """
    Floats as integers toward zero: as the largest one what is too large, or no number, and as the
    least one what is too small; as truth values what is not 0.
    """
    if to == i1:
        return x.ne(0)
    least, most = type_range(to)
    wide = x.cast(f64 if x.element == f64 else f32)
    return wide.lt(most + 1.0).where(wide.maximum(least).cast(to), most)


def requantized(
    builder: CoreBuilder,
    x: SSAValue,
    factors: Sequence[float] | float,
    to: Attribute,
    *,
    zero: int = 0,
    limits: tuple[int, int] | None = None,
    shape: Sequence[int] = (),
    rounding: str = "",
) -> SSAValue:
    """
    `core.requantize` by factors, which have the dimensions `shape` to broadcast, or are one number.

    Sums of 64 bits are rounded once, with multipliers of 15 bits; others twice, unless `rounding`
    says something else.
    """
    low, high = type_range(to) if limits is None else limits
    numbers = np.atleast_1d(np.asarray(factors, np.float64))
    if (numbers == numbers[0]).all():
        numbers, shape = numbers[:1], ()
    is_wide = element_type(x) == i64
    rounding = rounding or ("single" if is_wide else "double")
    if rounding == "real":
        multiplier, exponent = builder.tensor(numbers.reshape(tuple(shape))), None
    else:
        pairs = [multiplier_of(float(number)) for number in numbers]
        if is_wide:
            pairs = [(reduced(m), e + 16) for m, e in pairs]
        multiplier, exponent = (
            builder.tensor(np.array(part, np.int32).reshape(tuple(shape)))
            for part in zip(*pairs, strict=True)
        )
    op = RequantizeOp(rounding, x, multiplier, exponent, zero=zero, low=low, high=high, to=to)
    return builder.add(op)


def rescaled(
    x: TensorValue,
    multiplier: TensorValue | int,
    exponent: TensorValue | int = 0,
    to: Attribute = i32,
    *,
    zero: int = 0,
    limits: tuple[int, int] | None = None,
) -> TensorValue:
    """x * multiplier * 2^(exponent - 31) of i32, rounded twice, where the factors are computed."""
    builder, (low, high) = x.builder, type_range(to) if limits is None else limits
    if isinstance(exponent, TensorValue):
        # What is divided by more than 2^31 is nothing, however it is rounded.
        is_nothing = exponent.lt(-31)
        multiplier = is_nothing.where(TensorValue.number(builder, 0, i32), multiplier)
        exponent = exponent.maximum(-31)
    factors = [
        part if isinstance(part, TensorValue) else TensorValue.number(builder, part, i32)
        for part in (multiplier, exponent)
    ]
    values = [factor.value for factor in factors]
    op = RequantizeOp("double", x.value, *values, zero=zero, low=low, high=high, to=to)
    return TensorValue(builder, builder.add(op))


def reduced(multiplier: int) -> int:
    """The upper half of a multiplier, rounded, as sums of 64 bits have it."""
    return (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF


def round_away(x: TensorValue) -> TensorValue:
    """Floats to the nearest integers, halves away from zero."""
    size = x.abs()
    whole = size.floor()
    rounded = whole + (size - whole).ge(0.5).cast(x.element)
    return x.lt(0).where(-rounded, rounded)


def away(values: Any) -> NDArray[Any]:
    """`round_away` of numbers."""
    size = np.abs(values)
    whole = np.floor(size)
    return np.copysign(whole + (size - whole >= 0.5), values)


def is_signed_byte(element: Attribute) -> bool:
    """True for i8."""
    return bit_width(element) == 8 and not is_unsigned(element)
