"""Functions of `keras.ops` of one number or two, and activations with settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from xdsl.dialects.builtin import i1

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.types import is_float, is_unsigned
from lowerdeck.passes.legalize.common import activation as common
from lowerdeck.passes.legalize.common.functions import FUNCTIONS
from lowerdeck.passes.legalize.common.special import apply, erfc, hypot, logaddexp
from lowerdeck.passes.legalize.keras.activation import activated, sigmoid
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.operands import pair
from lowerdeck.passes.legalize.keras.operations import as_float
from lowerdeck.passes.legalize.keras.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.applied import applied

Function = Callable[[TensorValue], TensorValue]


def _sinc(x: TensorValue) -> TensorValue:
    angle = x * math.pi
    return x.eq(0).where(x * 0 + 1, angle.sin() / angle)


def _cbrt(x: TensorValue) -> TensorValue:
    sign = TensorValue(x.builder, x.builder.add(core.SignOp(x.value)))
    third = TensorValue.number(x.builder, 1 / 3, x.element)
    return TensorValue(x.builder, x.builder.add(core.PowOp(x.abs().value, third.value))) * sign


_OF_FLOATS: Mapping[str, Function] = {
    "Arccosh": FUNCTIONS["acosh"],
    "Arcsinh": FUNCTIONS["asinh"],
    "Arctanh": FUNCTIONS["atanh"],
    "Log2": FUNCTIONS["log2"],
    "Log10": FUNCTIONS["log10"],
    "Erfc": erfc,
    "Exp2": lambda x: (x * math.log(2)).exp(),
    "Cbrt": _cbrt,
    "Sinc": _sinc,
    "Trunc": lambda x: x.lt(0).where(x.ceil(), x.floor()),
    "Deg2rad": lambda x: x * (math.pi / 180),
    "Rad2deg": lambda x: x * (180 / math.pi),
    "Fabs": lambda x: x.abs(),
}


@legalizes(*_OF_FLOATS)
def legalize_function(builder: KerasLegalizer) -> Results:
    """Of floats, which integers become."""
    return [_OF_FLOATS[builder.op_type](as_float(builder.x())).value]


_TRUTHS: Mapping[str, Function] = {
    "Isnan": lambda x: x.ne(x),
    "Isinf": lambda x: x.abs().eq(math.inf),
    "Isfinite": lambda x: x.abs().lt(math.inf),
    "Isposinf": lambda x: x.eq(math.inf),
    "Isneginf": lambda x: x.eq(-math.inf),
}


@legalizes(*_TRUTHS)
def legalize_test(builder: KerasLegalizer) -> Results:
    """What a float is."""
    return [_TRUTHS[builder.op_type](as_float(builder.x())).value]


@legalizes("Copy", "StopGradient", "ConvertToTensor")
def legalize_copy(builder: KerasLegalizer) -> Results:
    """The same."""
    return [builder.input()]


@legalizes("NanToNum")
def legalize_numbers(builder: KerasLegalizer) -> Results:
    """Numbers in place of what is none, and of infinities the largest ones."""
    x = builder.x()
    nan, high, low = (builder.config(name) for name in ("nan", "posinf", "neginf"))
    if not is_float(x.element):
        return [x.value]
    most = float(np.finfo(np.float32).max)
    y = x.ne(x).where(TensorValue.number(builder, float(nan or 0), x.element), x)
    y = y.eq(math.inf).where(
        TensorValue.number(builder, most if high is None else high, x.element), y
    )
    low = -most if low is None else low
    return [y.eq(-math.inf).where(TensorValue.number(builder, low, x.element), y).value]


# Of two numbers


def _remainder(x: TensorValue, y: TensorValue) -> TensorValue:
    return TensorValue(x.builder, x.builder.add(core.RemOp(x.value, y.value)))


def _known(x: TensorValue, y: TensorValue, kind: Callable[..., TensorValue]) -> TensorValue:
    return x.ne(x).where(y, y.ne(y).where(x, kind(x, y)))


_PAIRS: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "Hypot": hypot,
    "Logaddexp": logaddexp,
    "Logaddexp2": lambda x, y: logaddexp(x, y, math.log(2)),
    "Heaviside": lambda x, y: x.eq(0).where(y, x.lt(0).where(x * 0, x.ne(x).where(x, x * 0 + 1))),
    "Fmax": lambda x, y: _known(x, y, TensorValue.maximum),
    "Fmin": lambda x, y: _known(x, y, TensorValue.minimum),
    "DivideNoNan": lambda x, y: y.eq(0).where(y * 0, x / y),
    "Fmod": _remainder,
}


@legalizes("Arctan2")
def legalize_angle(builder: KerasLegalizer) -> Results:
    """The angle of points."""
    y, x = (as_float(value) for value in pair(builder))
    return applied(builder, "Atan2", y.value, x.value)


@legalizes(*_PAIRS)
def legalize_pair(builder: KerasLegalizer) -> Results:
    """Of two floats, which integers become."""
    x, y = pair(builder)
    return [_PAIRS[builder.op_type](as_float(x), as_float(y)).value]


_BITS: Mapping[str, type[core.BinaryOp]] = {
    "BitwiseAnd": core.AndOp,
    "BitwiseOr": core.OrOp,
    "BitwiseXor": core.XorOp,
    "BitwiseLeftShift": core.ShlOp,
    "LeftShift": core.ShlOp,
    "BitwiseRightShift": core.ShrOp,
    "RightShift": core.ShrOp,
}


@legalizes(*_BITS)
def legalize_bits(builder: KerasLegalizer) -> Results:
    """Of the bits of integers."""
    x, y = pair(builder)
    if is_float(x.element):
        builder.refuse("floats", "integers")
    if "RightShift" in builder.op_type and not is_unsigned(x.element) and x.element != i1:
        return applied(builder, "RightShift", x.value, y.value)
    return [builder.add(_BITS[builder.op_type](x.value, y.value))]


@legalizes("BitwiseNot", "BitwiseInvert")
def legalize_inverted(builder: KerasLegalizer) -> Results:
    """Every bit of integers the other one."""
    return [(~builder.x()).value]


# Activations


@legalizes("Elu", "Celu", "LeakyRelu", "HardShrink", "SoftShrink", "Squareplus", "Threshold")
def legalize_setting(builder: KerasLegalizer) -> Results:
    """Activations with a number."""
    x = as_float(builder.x())
    match builder.op_type:
        case "Elu":
            y = common.elu(x, builder.real("alpha", 1.0))
        case "Celu":
            alpha = builder.real("alpha", 1.0)
            y = x.maximum(0) + common.elu((x * (1 / alpha)).minimum(0), 1.0) * alpha
        case "LeakyRelu":
            y = common.leaky_relu(x, builder.real("negative_slope", 0.2))
        case "HardShrink":
            y = x.abs().gt(builder.real("threshold", 0.5)).where(x, 0)
        case "SoftShrink":
            limit = builder.real("threshold", 0.5)
            y = x.gt(limit).where(x - limit, x.lt(-limit).where(x + limit, x * 0))
        case "Squareplus":
            y = (x + apply(core.SqrtOp, x * x + builder.real("b", 4.0))) * 0.5
        case _:
            other = TensorValue.number(builder, builder.real("default_value"), x.element)
            y = x.gt(builder.real("threshold")).where(x, other)
    return [y.value]


_PLAIN = {
    "HardTanh": "hard_tanh",
    "TanhShrink": "tanh_shrink",
    "SparsePlus": "sparse_plus",
    "SparseSigmoid": "sparse_sigmoid",
}


@legalizes(*_PLAIN)
def legalize_activation(builder: KerasLegalizer) -> Results:
    """Activations without settings."""
    return [activated(builder, as_float(builder.x()), _PLAIN[builder.op_type]).value]


@legalizes("Glu")
def legalize_gated(builder: KerasLegalizer) -> Results:
    """One half by the logistic function of the other."""
    x = builder.x()
    axis = builder.axis(builder.integer("axis", -1), len(x.dims))
    half = x.dims[axis] // 2
    one, other = builder.split(x.value, axis, [half, half])
    return [(TensorValue(builder, one) * sigmoid(TensorValue(builder, other))).value]


@legalizes("LogSoftmax")
def legalize_log_softmax(builder: KerasLegalizer) -> Results:
    """Along an axis."""
    x = as_float(builder.x())
    axis = builder.axis(builder.integer("axis", -1), len(x.dims))
    return [common.log_softmax(x, axis).value]


@legalizes("Signbit")
def legalize_sign_bit(builder: KerasLegalizer) -> Results:
    """True for what has a minus, of zeros, too."""
    x = as_float(builder.x())
    return [(x.lt(0) | (x.eq(0) & (1.0 / x).lt(0))).value]
