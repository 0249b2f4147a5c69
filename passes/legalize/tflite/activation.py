"""
Functions of one element and of rows. Those of eight bits are tables of 256, which are computed here
as the reference kernels compute an element.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import DivOp, MulOp, SqrtOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import element_type, f32, i8, i16, i32, rank_of, ui8
from lowerdeck.passes.legalize.common import activation as formulas
from lowerdeck.passes.legalize.common import fixed_point as fixed
from lowerdeck.passes.legalize.common.integer_rows import (
    curve_of_sixteen_bits,
    log_softmax_of_bytes,
    power_of_two,
    softmax_of_bytes,
    softmax_of_sixteen_bits,
    unit_rows_of_bytes,
)
from lowerdeck.passes.legalize.common.requantize import multiplier_of, requantized, type_range
from lowerdeck.passes.legalize.common.tables import (
    Function,
    entries_of,
    interpolated,
    looked_up,
    table_of,
)
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.ranges import as_f32, limits_of, require_type, without_zero
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes
from lowerdeck.passes.legalize.tflite.tensorflow import UNARY, plain_unary


def _all_integers(builder: TfliteLegalizer) -> NDArray[np.int64]:
    """The integers of eight bits less the zero point of the input."""
    low, high = type_range(element_type(builder.input(0)))
    return np.arange(low, high + 1, dtype=np.int64) - builder.quantization(0).zero


def _table(builder: TfliteLegalizer, values: NDArray[Any]) -> SSAValue:
    """The entry of a table for each element of the input, within the type of the result."""
    low, high = type_range(builder.element())
    dtype = np.int8 if builder.element() == i8 else np.uint8
    return looked_up(builder, builder.input(0), np.clip(values, low, high).astype(dtype))


def _integers(builder: TfliteLegalizer) -> TensorValue:
    """The integers of the input in 32 bits."""
    return TensorValue(builder, builder.cast(builder.input(0), i32))


def _by_function(builder: TfliteLegalizer, function: Function) -> SSAValue:
    """A real function, whose argument and result are rounded to f32."""
    require_type(builder, builder.input(0), i8, ui8, i16)
    own, q = builder.quantization(0), builder.result_quantization()
    if element_type(builder.input(0)) == i16:
        if builder.op_type != "GELU":
            _require_no_zeros(builder)
        table = table_of(function, own.scale, own.zero, q.scale, q.zero, np.float32)
        return interpolated(_integers(builder), table).cast(i16).value
    integers = _all_integers(builder)
    return _table(builder, entries_of(function, integers, own.scale, q.scale, q.zero))


def _require_no_zeros(builder: TfliteLegalizer) -> None:
    zeros = [builder.quantization(0).zero, builder.result_quantization().zero]
    if any(zeros):
        builder.refuse(f"{builder.op_type} of i16 with zero points {zeros}", "zero points of zero")


def _sigmoid(x: float) -> float:
    return float(_ONE / (_ONE + np.float32(math.exp(-x))))


def _elu(x: float) -> float:
    return float(np.float32(math.exp(x)) - _ONE) if x < 0 else x


_ONE = np.float32(1)  # each step of a function is rounded to f32, as in the kernels
_TABLES: dict[str, Function] = {
    "TANH": math.tanh,
    "LOGISTIC": _sigmoid,
    "ELU": _elu,
    "EXP": math.exp,
    "LOG": math.log,
}

_OWN = ("RELU", "RELU6", "ABS", "SQRT", "RSQRT", *_TABLES)


@legalizes(*(name for name in UNARY if name not in _OWN))
def legalize_plain(builder: TfliteLegalizer) -> Results:
    """Functions that quantized integers do not have; `NEG` takes them as they are stored."""
    if builder.is_quantized() and builder.op_type != "NEG":
        builder.refuse("quantized integers", "floats or plain integers")
    return [plain_unary(builder)]


@legalizes(*_TABLES)
def legalize_function(builder: TfliteLegalizer) -> Results:
    """Of floats, or of bytes by a table; of integers of 16 bits by a table of fewer entries."""
    if not builder.is_quantized():
        return [plain_unary(builder)]
    if element_type(builder.input(0)) == i16 and builder.op_type in ("TANH", "LOGISTIC"):
        return _curve(builder)
    if builder.op_type == "LOG":
        q = builder.result_quantization()
        least, _ = type_range(builder.element())
        lowest = as_f32(as_f32(q.scale) * (least - q.zero))
        return [_by_function(builder, lambda x: math.log(x) if x > 0 else lowest)]
    return [_by_function(builder, _TABLES[builder.op_type])]


def _curve(builder: TfliteLegalizer) -> TensorValue:
    """tanh or the logistic function, of fractions of 2^15."""
    q, result = builder.quantization(0), builder.result_quantization()
    if q.zero or result.zero or power_of_two(result.scale) != -15:
        builder.refuse(f"a scale {result.scale} and zero points", "2^-15 and zero")
    is_tanh = builder.op_type == "TANH"
    return curve_of_sixteen_bits(_integers(builder), q.scale, is_tanh=is_tanh)


@legalizes("GELU")
def legalize_gelu(builder: TfliteLegalizer) -> Results:
    """x times the normal distribution, or its approximation by a hyperbolic tangent."""
    approximate = builder.flag("approximate")
    if builder.is_quantized():
        return [_by_function(builder, _gelu_by_tanh if approximate else _gelu)]
    builder.require_float()
    return formulas.gelu(builder.value(0), approximate)


def _gelu(x: float) -> float:
    half, inner = np.float32(0.5) * np.float32(x), np.float32(x) * np.float32(-math.sqrt(0.5))
    return float(half * np.float32(math.erfc(inner)))


def _gelu_by_tanh(x: float) -> float:
    y = np.float32(x)
    inner = np.float32(math.sqrt(2 / math.pi)) * (y + np.float32(0.044715) * y * y * y)
    return float(np.float32(0.5) * y * (_ONE + np.float32(math.tanh(inner))))


@legalizes("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
def legalize_limits(builder: TfliteLegalizer) -> Results:
    """Limits; quantized integers are brought to the scale of the result first."""
    kind = builder.op_type
    if builder.is_quantized():
        own, q = builder.quantization(0), builder.result_quantization()
        limits = limits_of(builder, kind, q, builder.element())
        factor = as_f32(own.scale / q.scale)
        x = without_zero(builder, 0).value
        return [requantized(builder, x, factor, builder.element(), zero=q.zero, limits=limits)]
    if kind in UNARY:
        return [plain_unary(builder)]
    low = -1 if kind == "RELU_N1_TO_1" else 0
    return [builder.value(0).clip(low, 1).value]


@legalizes("ABS")
def legalize_magnitude(builder: TfliteLegalizer) -> Results:
    """The magnitude; of quantized integers in the scale of the result."""
    if not builder.is_quantized():
        return [plain_unary(builder)]
    own, q = builder.quantization(0), builder.result_quantization()
    size = without_zero(builder, 0).abs()
    if own.scale == q.scale:
        low, high = type_range(builder.element())
        return [(size + q.zero).clip(low, high).cast(builder.element()).value]
    factor = as_f32(own.scale / q.scale)
    return [requantized(builder, size.value, factor, builder.element(), zero=q.zero)]


@legalizes("RSQRT")
def legalize_inverse_root(builder: TfliteLegalizer) -> Results:
    """1 / sqrt(x); of bytes in fixed point."""
    if not builder.is_quantized():
        return [plain_unary(builder)]
    if element_type(builder.input(0)) == i16:
        highest = as_f32(32767 * as_f32(builder.result_quantization().scale))
        return [_by_function(builder, lambda x: _inverse_root(x) if x > 0 else highest)]
    require_type(builder, builder.input(0), i8)
    own, q = builder.quantization(0), builder.result_quantization()
    scale = np.float32(1) / np.float32(np.sqrt(np.float32(own.scale)) * np.float32(q.scale))
    multiplier, exponent = multiplier_of(float(scale))
    _, high = type_range(i8)
    entries: list[int] = []
    for value in _all_integers(builder):
        if value <= 0:  # there is no root, or no inverse
            entries.append(high)
            continue
        inverse, shift = fixed.inverse_root(int(value))
        data = fixed.multiplied(1, inverse, shift + 20)
        entries.append(int(fixed.multiplied(data, multiplier, exponent - 20)) + q.zero)
    return [_table(builder, np.array(entries))]


def _inverse_root(x: float) -> float:
    return float(np.float32(1) / np.sqrt(np.float32(x)))


@legalizes("SQRT")
def legalize_root(builder: TfliteLegalizer) -> Results:
    """
    The root, of integers toward zero before the zero point is added. The kernel stops where there
    is none; here it is 0.
    """
    if not builder.is_quantized():
        return [plain_unary(builder)]
    require_type(builder, builder.input(0), i8, i16)
    own, q = builder.quantization(0), builder.result_quantization()
    low, high = type_range(builder.element())
    if element_type(builder.input(0)) == i16:
        x = without_zero(builder, 0).maximum(0).cast(f32) * as_f32(own.scale)
        root = TensorValue(builder, builder.add(SqrtOp(x.value)))
        steps = (root / as_f32(q.scale)).minimum(float(high - low)).cast(i32)
        return [(steps + q.zero).clip(low, high).cast(i16).value]
    x = np.maximum(_all_integers(builder), 0).astype(np.float32) * np.float32(own.scale)
    steps = np.sqrt(x) / np.float32(q.scale)
    return [_table(builder, np.trunc(np.minimum(steps, high - low)).astype(np.int64) + q.zero)]


@legalizes("LEAKY_RELU")
def legalize_leaky_relu(builder: TfliteLegalizer) -> Results:
    """x, or alpha * x below zero."""
    alpha = float(builder.option("alpha"))
    if not builder.is_quantized():
        builder.require_float()
        return [formulas.leaky_relu(builder.value(0), alpha).value]
    own, q = builder.quantization(0), builder.result_quantization()
    x = without_zero(builder, 0)
    to = builder.element()
    slope = as_f32(as_f32(as_f32(own.scale) * as_f32(alpha)) / as_f32(q.scale))
    identity = as_f32(as_f32(own.scale) / as_f32(q.scale))
    above, below = (
        TensorValue(builder, requantized(builder, x.value, abs(factor), i32))
        for factor in (identity, slope)
    )
    below = -below if slope < 0 else below
    low, high = type_range(to)
    return [(x.ge(0).where(above, below) + q.zero).clip(low, high).cast(to).value]


@legalizes("PRELU")
def legalize_learned_relu(builder: TfliteLegalizer) -> Results:
    """x, or a slope that is an input times x below zero."""
    if not builder.is_quantized():
        builder.require_float()
        x, slope = builder.value(0), builder.value(1)
        return [x.ge(0).where(x, x * slope).value]
    q, to = builder.result_quantization(), builder.element()
    scales = [as_f32(builder.quantization(k).scale) for k in (0, 1)]
    x, slope = (without_zero(builder, k) for k in (0, 1))
    above = requantized(builder, x.value, as_f32(scales[0] / as_f32(q.scale)), i32)
    factor = as_f32(as_f32(scales[0] * scales[1]) / as_f32(q.scale))
    below = requantized(builder, (x * slope).value, factor, i32)
    chosen = x.ge(0).where(TensorValue(builder, above), TensorValue(builder, below))
    low, high = type_range(to)
    return [(chosen + q.zero).clip(low, high).cast(to).value]


@legalizes("HARD_SWISH")
def legalize_hard_swish(builder: TfliteLegalizer) -> Results:
    """x * min(max(x + 3, 0), 6) / 6; of bytes in fixed point of 16 bits."""
    if not builder.is_quantized():
        builder.require_float()
        x = builder.value(0)
        return [(x * (x + 3).maximum(0).minimum(6) / 6).value]
    require_type(builder, builder.input(0), i8, ui8)
    own, q = builder.quantization(0), builder.result_quantization()
    values = fixed.hard_swish(_all_integers(builder), own.scale, q.scale, q.zero)
    return [_table(builder, values)]


# Rows


@legalizes("SOFTMAX")
def legalize_softmax(builder: TfliteLegalizer) -> Results:
    """Along the last dimension, of beta times the input."""
    beta = float(builder.option("beta"))
    if builder.is_quantized():
        q, to = builder.quantization(0), builder.element()
        require_type(builder, builder.input(0), i8, ui8, i16)
        if element_type(builder.input(0)) != i16:
            return softmax_of_bytes(_integers(builder), beta, q.scale, to)
        if to != i16 or q.zero:
            builder.refuse(f"a result of {to}", "i16 with zero points of zero")
        return softmax_of_sixteen_bits(_integers(builder), beta, q.scale)
    builder.require_float()
    x = builder.input(0)
    if beta != 1:
        x = builder.add(MulOp(x, builder.scalar(beta, x)))
    return [builder.add(SoftmaxOp(x, rank_of(x) - 1))]


@legalizes("LOG_SOFTMAX")
def legalize_log_softmax(builder: TfliteLegalizer) -> Results:
    """Along the last dimension."""
    if builder.is_quantized():
        require_type(builder, builder.input(0), i8, ui8)
        scale = builder.quantization(0).scale
        return log_softmax_of_bytes(_integers(builder), scale, builder.element())
    builder.require_float()
    x = builder.value(0)
    return [formulas.log_softmax(x, rank_of(x.value) - 1).value]


@legalizes("L2_NORMALIZATION")
def legalize_unit_rows(builder: TfliteLegalizer) -> Results:
    """Rows by their lengths, which are at least 1e-6."""
    if builder.is_quantized():
        require_type(builder, builder.input(0), i8, ui8)
        if builder.activation() != "NONE":
            builder.refuse(f"the activation {builder.activation()}", "none")
        return unit_rows_of_bytes(without_zero(builder, 0), element_type(builder.input(0)))
    builder.require_float()
    x = builder.value(0)
    total = (x * x).reduce("sum", [len(x.dims) - 1], keep_dims=True)
    length = TensorValue(builder, builder.add(SqrtOp(total.value))).maximum(1e-6)
    return [builder.activated(builder.add(DivOp(x.value, length.value)))]
