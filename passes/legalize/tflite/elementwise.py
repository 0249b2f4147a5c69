"""Arithmetic of elements: of floats and plain integers as TensorFlow's, of quantized ones exact."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import CompareOp, MulOp
from lowerdeck.dialects.core.types import element_type, f32, f64, i8, i16, i32, is_float, ui8
from lowerdeck.passes.legalize.common.requantize import requantized, round_away, type_range
from lowerdeck.passes.legalize.table import pairs
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import (
    as_f32,
    fused_limits,
    require_type,
    to_result,
    without_zero,
)
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.tensorflow import BINARY, plain_binary

_COMPARISONS = pairs("EQUAL=eq NOT_EQUAL=ne LESS=lt LESS_EQUAL=le GREATER=gt GREATER_EQUAL=ge")
_OWN = ("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM", *_COMPARISONS)


_AS_STORED = frozenset({"BITWISE_XOR", "RIGHT_SHIFT", "FLOOR_DIV", "FLOOR_MOD"})


@legalizes(*(name for name in BINARY if name not in _OWN))
def legalize_plain(builder: TfliteLegalizer) -> Results:
    """Operators that quantized integers do not have, or that take them as they are stored."""
    is_real = builder.op_type not in _AS_STORED and builder.op.result_quantization(0) is not None
    if builder.is_quantized() and is_real:
        builder.refuse("quantized integers", "floats or plain integers")
    return [builder.activated(plain_binary(builder))]


def _scaled(builder: TfliteLegalizer, shift: int) -> tuple[TensorValue, TensorValue, float]:
    """Both inputs, shifted left, in twice the larger of their scales; that."""
    scales = [as_f32(builder.quantization(k).scale) for k in (0, 1)]
    twice = 2 * max(scales)

    def side(k: int) -> TensorValue:
        x = without_zero(builder, k)
        if scales[k] / twice == 0.5:
            # Half of a number that was shifted left: nothing is rounded.
            return x * (1 << shift - 1)
        shifted = (x * (1 << shift)).value
        return TensorValue(builder, requantized(builder, shifted, scales[k] / twice, i32))

    x, y = side(0), side(1)
    return x, y, twice


@legalizes("ADD", "SUB")
def legalize_sum(builder: TfliteLegalizer) -> Results:
    """Both sides in a common scale with more bits, then in that of the result."""
    if not builder.is_quantized():
        return [builder.activated(plain_binary(builder))]
    element = element_type(builder.input(0))
    require_type(builder, builder.input(0), i8, ui8, i16)
    is_powers = bool(builder.option("pot_scale_int16"))
    if element == i16 and is_powers and (shifts := _power_shifts(builder)) is not None:
        return [_shifted_sum(builder, shifts)]
    shift = 15 if element == i16 else 20
    x, y, twice = _scaled(builder, shift)
    total = x + y if builder.op_type == "ADD" else x - y
    factor = twice / float(np.float32(1 << shift) * np.float32(builder.result_quantization().scale))
    return [to_result(builder, total.value, factor)]


def _power_shifts(builder: TfliteLegalizer) -> tuple[int, int] | None:
    """By how many bits inputs have less than the result, if all scales are powers of two."""
    qs = [builder.quantization(0), builder.quantization(1), builder.result_quantization()]
    parts = [np.frexp(q.scale) for q in qs]
    if any(mantissa != 0.5 for mantissa, _ in parts):
        return None
    x, y, result = (int(exponent) for _, exponent in parts)
    return x - result, y - result


def _shifted_sum(builder: TfliteLegalizer, shifts: tuple[int, int]) -> SSAValue:
    """Integers of 16 bits, one of which is shifted right; saturated."""
    if max(shifts) > 0 or min(shifts) == max(shifts) != 0 or 0 not in shifts:
        builder.refuse(f"scales that differ by {shifts} powers of two", "one as the result's")
    x, y = (
        TensorValue(builder, requantized(builder, without_zero(builder, k).value, 2.0**shift, i32))
        for k, shift in enumerate(shifts)
    )
    low, high = type_range(i16)
    least, most = fused_limits(builder)
    total = (x + y if builder.op_type == "ADD" else x - y).clip(low, high).clip(least, most)
    return total.cast(i16).value


@legalizes("MUL")
def legalize_product(builder: TfliteLegalizer) -> Results:
    """The product of the integers less their zero points."""
    if not builder.is_quantized():
        return [builder.activated(plain_binary(builder))]
    require_type(builder, builder.input(0), i8, ui8, i16)
    x, y = (without_zero(builder, k) for k in (0, 1))
    scales = [as_f32(builder.quantization(k).scale) for k in (0, 1)]
    factor = as_f32(scales[0] * scales[1]) / builder.result_quantization().scale
    return [to_result(builder, (x * y).value, as_f32(factor))]


@legalizes("SQUARED_DIFFERENCE")
def legalize_squared_difference(builder: TfliteLegalizer) -> Results:
    """The square of a difference in a common scale with seven bits more."""
    if not builder.is_quantized():
        return [builder.activated(plain_binary(builder))]
    require_type(builder, builder.input(0), i8)
    x, y, twice = _scaled(builder, 7)
    square = (x - y) * (x - y)
    scale = np.float32(1 << 14) * np.float32(builder.result_quantization().scale)
    return [to_result(builder, square.value, twice * twice / float(scale))]


@legalizes("MAXIMUM", "MINIMUM")
def legalize_extremum(builder: TfliteLegalizer) -> Results:
    """Of integers as they are stored."""
    x, y = builder.value(0), builder.value(1)
    return [picked(builder, x, y) if is_float(x.element) else plain_binary(builder)]


def picked(builder: TfliteLegalizer, x: TensorValue, y: TensorValue) -> SSAValue:
    """x if it is larger, or smaller, else y: so also if one of them is no number."""
    return (x.gt(y) if builder.op_type.endswith("MAXIMUM") else x.lt(y)).where(x, y).value


@legalizes(*_COMPARISONS)
def legalize_comparison(builder: TfliteLegalizer) -> Results:
    """Quantized integers in a common scale with eight bits more."""
    if not builder.is_quantized():
        return [plain_binary(builder)]
    sides: list[SSAValue] = []
    for k in (0, 1):
        x = without_zero(builder, k) * (1 << 8)
        sides.append(requantized(builder, x.value, as_f32(builder.quantization(k).scale), i32))
    return [builder.add(CompareOp(_COMPARISONS[builder.op_type], *sides))]


@legalizes("DIV")
def legalize_quotient(builder: TfliteLegalizer) -> Results:
    """
    The quotient of quantized integers: the dividend, with as many bits as fit, by the reciprocal of
    the divisor, which a table of 256 has.
    """
    if not builder.is_quantized():
        return [builder.activated(plain_binary(builder))]
    from lowerdeck.passes.legalize.tflite.quotient import quotient

    require_type(builder, builder.input(0), i8, ui8)
    return [quotient(builder)]


# Floats to integers, and back


@legalizes("QUANTIZE")
def legalize_quantize(builder: TfliteLegalizer) -> Results:
    """Floats to the nearest integers, halves away from zero; integers in another scale."""
    x, q = builder.input(0), builder.result_quantization()
    to = builder.element()
    low, high = type_range(to)
    if is_float(element_type(x)):
        y = TensorValue(builder, builder.cast(x, f32))
        scaled = round_away(y / TensorValue(builder, _along(builder, q.scales, x, q.axis)))
        zero = TensorValue(builder, _along(builder, q.zeros, x, q.axis))
        if to == i32:
            builder.refuse("a result of i32", "at most 16 bits")
        total = scaled + zero  # if it is no number, the least one
        return [total.gt(low).where(total, low).minimum(high).cast(to).value]
    own = builder.quantization(0)
    if own.is_per_channel or q.is_per_channel:
        builder.refuse("scales of channels", "one scale")
    value = without_zero(builder, 0)
    factor = own.scale / q.scale
    return [requantized(builder, value.value, factor, to, zero=q.zero)]


def _along(builder: TfliteLegalizer, values: tuple[float, ...], x: SSAValue, axis: int) -> SSAValue:
    """Numbers of f32, one or one for each part along an axis."""
    array = np.array(values, np.float32)
    if array.size == 1:
        return builder.tensor(array.reshape(()))
    shape = [1] * len(TensorValue(builder, x).dims)
    shape[axis] = array.size
    return builder.tensor(array.reshape(shape))


@legalizes("DEQUANTIZE")
def legalize_dequantize(builder: TfliteLegalizer) -> Results:
    """scale * (integer - zero), in f64 but for scales of channels; f16 is f32."""
    x = builder.input(0)
    if is_float(element_type(x)):
        return [builder.cast(x, f32)]
    q = builder.quantization(0)
    value = TensorValue(builder, builder.cast(x, i32))
    if q.is_per_channel:
        zero = TensorValue(builder, _along(builder, q.zeros, x, q.axis))
        scale = TensorValue(builder, _along(builder, q.scales, x, q.axis))
        return [((value.cast(f32) - zero) * scale).value]
    wide = (value - q.zero if q.zero else value).cast(f64)
    return [builder.cast(builder.add(MulOp(wide.value, builder.scalar(q.scale, f64))), f32)]


@legalizes("FAKE_QUANT")
def legalize_fake_quantization(builder: TfliteLegalizer) -> Results:
    """
    The nearest of 2^bits floats between a least and a greatest one, which are moved so that zero
    is among them.
    """
    builder.ignore("narrow_range")
    if builder.flag("narrow_range"):
        builder.refuse("narrow_range", "the full range")
    least, most = np.float32(builder.option("min")), np.float32(builder.option("max"))
    top = np.float32((1 << int(builder.option("num_bits"))) - 1)
    scale = np.float32((most - least) / top)
    from_least = np.float32(-least / scale)
    zero = np.float32(min(max(np.floor(from_least + np.float32(0.5)), 0), top))
    if from_least < 0 or from_least > top:
        zero = np.float32(0) if from_least < 0 else top
    low = np.float32(-zero * scale)
    high = np.float32((top - zero) * scale)
    inverse = np.float32(1) / scale
    x = TensorValue(builder, builder.input(0)).clip(float(low), float(high))
    steps = round_away((x - float(low)) * float(inverse))
    return [(steps * float(scale) + float(low)).value]
