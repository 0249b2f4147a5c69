"""Arithmetic, comparison, logic, bits and conversion of elements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
from xdsl.ir import Attribute

from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AcoshOp,
    AcosOp,
    AddOp,
    AndOp,
    AsinhOp,
    AsinOp,
    AtanhOp,
    AtanOp,
    BinaryOp,
    CeilOp,
    CoshOp,
    CosOp,
    DivOp,
    ErfOp,
    ExpOp,
    FloorOp,
    LogOp,
    MaxOp,
    MinOp,
    ModOp,
    MulOp,
    NegOp,
    NotOp,
    OrOp,
    PowOp,
    RemOp,
    RoundOp,
    ShlOp,
    ShrOp,
    SignOp,
    SinhOp,
    SinOp,
    SqrtOp,
    SubOp,
    TanhOp,
    TanOp,
    UnaryOp,
    XorOp,
)
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f32,
    i1,
    is_float,
    is_unsigned,
    numpy_dtype,
)
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.broadcasting import aligned
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes

_UNARY: Mapping[str, type[UnaryOp]] = {
    "Abs": AbsOp,
    "Acos": AcosOp,
    "Acosh": AcoshOp,
    "Asin": AsinOp,
    "Asinh": AsinhOp,
    "Atan": AtanOp,
    "Atanh": AtanhOp,
    "BitwiseNot": NotOp,
    "Ceil": CeilOp,
    "Cos": CosOp,
    "Cosh": CoshOp,
    "Exp": ExpOp,
    "Floor": FloorOp,
    "Log": LogOp,
    "Neg": NegOp,
    "Not": NotOp,
    "Round": RoundOp,
    "Sign": SignOp,
    "Sin": SinOp,
    "Sinh": SinhOp,
    "Sqrt": SqrtOp,
    "Tan": TanOp,
    "Tanh": TanhOp,
}


@legalizes(*_UNARY)
def legalize_unary(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The function of the same name."""
    lower.attrs.ignore("consumed_inputs")
    return [lower.add(_UNARY[op.op_type](lower.operand(0)))]


@legalizes("Erf")
def legalize_erf(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Of integers it is that of f32, rounded toward zero."""
    x = lower.operand(0)
    wide = x if is_float(element_type(x)) else lower.cast(x, f32)
    return [lower.cast(lower.add(ErfOp(wide)), x)]


@legalizes("Reciprocal")
def legalize_reciprocal(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """1 / x"""
    lower.attrs.ignore("consumed_inputs")
    x = lower.operand(0)
    return [lower.add(DivOp(lower.scalar(1, x), x))]


# Binary

_ARITHMETIC: Mapping[str, type[BinaryOp]] = {"Add": AddOp, "Div": DivOp, "Mul": MulOp, "Sub": SubOp}
_LOGIC: Mapping[str, type[BinaryOp]] = {"And": AndOp, "Or": OrOp, "Xor": XorOp}
_BITS: Mapping[str, type[BinaryOp]] = {"BitwiseAnd": AndOp, "BitwiseOr": OrOp, "BitwiseXor": XorOp}
_BINARY = {**_ARITHMETIC, **_LOGIC, **_BITS}
_COMPARISONS = {
    "Equal": "eq",
    "Greater": "gt",
    "GreaterOrEqual": "ge",
    "Less": "lt",
    "LessOrEqual": "le",
}


@legalizes(*_ARITHMETIC, *_LOGIC, until=6)
def legalize_aligned_binary(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The function of the same name, with explicit broadcasting."""
    return [lower.add(_BINARY[op.op_type](*aligned(lower)))]


@legalizes(*_BINARY, since=7)
def legalize_binary(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The function of the same name."""
    return [lower.add(_BINARY[op.op_type](lower.operand(0), lower.operand(1)))]


@legalizes("Equal", "Greater", "Less", until=6)
def legalize_aligned_comparison(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """A comparison, with explicit broadcasting."""
    return [lower.compare(_COMPARISONS[op.op_type], *aligned(lower))]


@legalizes(*_COMPARISONS, since=7)
def legalize_comparison(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """A comparison."""
    return [lower.compare(_COMPARISONS[op.op_type], lower.operand(0), lower.operand(1))]


@legalizes("Pow", until=6)
def legalize_aligned_pow(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x to the power y, with explicit broadcasting."""
    return [lower.add(PowOp(*aligned(lower)))]


@legalizes("Pow", since=7)
def legalize_pow(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x to the power y, computed in a type that holds both and returned in that of x."""
    x, y = lower.operand(0), lower.operand(1)
    common = _power_type(element_type(x), element_type(y))
    return [lower.cast(lower.add(PowOp(lower.cast(x, common), lower.cast(y, common))), x)]


def _power_type(base: Attribute, exponent: Attribute) -> Attribute:
    """A float decides over an integer, otherwise the wider type."""
    if is_float(base) and not is_float(exponent):
        return base
    if is_float(exponent) and not is_float(base):
        return exponent
    widths = [numpy_dtype(element).itemsize for element in (base, exponent)]
    return base if widths[0] >= widths[1] else exponent


@legalizes("Mod")
def legalize_mod(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The remainder with the sign of the dividend (`fmod`), or with that of the divisor."""
    x, y = lower.operand(0), lower.operand(1)
    if lower.attrs.flag("fmod"):
        return [lower.add(RemOp(x, y))]
    return [lower.add(ModOp(x, y))]


@legalizes("BitShift")
def legalize_bit_shift(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x shifted by y bits; a signed x keeps its sign to the right, and may have negative y."""
    x, y = lower.operand(0), lower.operand(1)
    direction = lower.attrs.string("direction", among=("LEFT", "RIGHT"))
    element = element_type(x)
    if is_unsigned(element):
        return [lower.add(ShlOp(x, y) if direction == "LEFT" else ShrOp(x, y))]
    width = lower.scalar(8 * numpy_dtype(element).itemsize, x)
    is_negative = lower.compare("lt", x, zero := lower.scalar(0, x))
    y = lower.select(lower.compare("lt", y, zero), width, y)
    if direction == "LEFT":
        return [lower.add(ShlOp(x, y))]
    # The complement of a negative number is not negative: bits move in as zeros.
    flipped = lower.add(NotOp(lower.add(ShrOp(lower.add(NotOp(x)), y))))
    return [lower.select(is_negative, flipped, lower.add(ShrOp(x, y)))]


# Any number of operands

_FOLDS: Mapping[str, type[BinaryOp]] = {"Max": MaxOp, "Min": MinOp, "Sum": AddOp, "Mean": AddOp}


@legalizes(*_FOLDS)
def legalize_variadic(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """All operands combined from the left; `Mean` divides by their number."""
    lower.attrs.ignore("consumed_inputs")
    fold = _FOLDS[op.op_type]
    total = reduce(lambda x, y: lower.add(fold(x, y)), lower.inputs)
    if op.op_type != "Mean" or len(lower.inputs) == 1:
        return [total]
    return [lower.add(DivOp(total, lower.scalar(len(lower.inputs), total)))]


# Choice


@legalizes("Where")
def legalize_where(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x where the condition holds, else y."""
    return [lower.select(lower.operand(0), lower.operand(1), lower.operand(2))]


@legalizes("Clip", until=10)
def legalize_clip_attributes(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """min(max(x, `min`), `max`), where the bounds are attributes."""
    lower.attrs.ignore("consumed_inputs")
    x = lower.operand(0)
    for name, clip in (("min", MaxOp), ("max", MinOp)):
        if (bound := lower.attrs.opt_float(name)) is not None:
            x = lower.add(clip(x, lower.scalar(bound, x)))
    return [x]


@legalizes("Clip", since=11)
def legalize_clip(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """
    min(max(x, `min`), `max`): `max` wins if the bounds are in disorder. What is equal to a bound
    stays: the second operand does, and the one that is no constant.
    """
    x = lower.operand(0)
    for name, clip in (("min", MaxOp), ("max", MinOp)):
        if (bound := lower.input(name)) is not None:
            is_known = lower.constant(bound) is not None
            limit = lower.reshape(bound, [])
            x = lower.add(clip(x, limit) if is_known else clip(limit, x))
    return [x]


# Classification


@legalizes("IsNaN")
def legalize_is_nan(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x != x"""
    x = lower.operand(0)
    return [lower.compare("ne", x, x)]


@legalizes("IsInf")
def legalize_is_inf(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x is one of the infinities that the attributes select."""
    x = lower.operand(0)
    positive = lower.attrs.flag("detect_positive")
    negative = lower.attrs.flag("detect_negative")
    if positive and negative:
        return [lower.compare("eq", lower.add(AbsOp(x)), lower.scalar(np.inf, x))]
    if positive or negative:
        return [lower.compare("eq", x, lower.scalar(np.inf if positive else -np.inf, x))]
    return [lower.broadcast(lower.scalar(False, i1), dims_of(x))]
