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
def legalize_unary(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The function of the same name."""
    builder.attrs.ignore("consumed_inputs")
    return [builder.add(_UNARY[op.op_type](builder.operand(0)))]


@legalizes("Erf")
def legalize_erf(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Of integers it is that of f32, rounded toward zero."""
    x = builder.operand(0)
    wide = x if is_float(element_type(x)) else builder.cast(x, f32)
    return [builder.cast(builder.add(ErfOp(wide)), x)]


@legalizes("Reciprocal")
def legalize_reciprocal(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """1 / x"""
    builder.attrs.ignore("consumed_inputs")
    x = builder.operand(0)
    return [builder.add(DivOp(builder.scalar(1, x), x))]


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
def legalize_aligned_binary(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The function of the same name, with explicit broadcasting."""
    return [builder.add(_BINARY[op.op_type](*aligned(builder)))]


@legalizes(*_BINARY, since=7)
def legalize_binary(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The function of the same name."""
    return [builder.add(_BINARY[op.op_type](builder.operand(0), builder.operand(1)))]


@legalizes("Equal", "Greater", "Less", until=6)
def legalize_aligned_comparison(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A comparison, with explicit broadcasting."""
    return [builder.compare(_COMPARISONS[op.op_type], *aligned(builder))]


@legalizes(*_COMPARISONS, since=7)
def legalize_comparison(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """A comparison."""
    return [builder.compare(_COMPARISONS[op.op_type], builder.operand(0), builder.operand(1))]


@legalizes("Pow", until=6)
def legalize_aligned_pow(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x to the power y, with explicit broadcasting."""
    return [builder.add(PowOp(*aligned(builder)))]


@legalizes("Pow", since=7)
def legalize_pow(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x to the power y, computed in a type that holds both and returned in that of x."""
    x, y = builder.operand(0), builder.operand(1)
    common = _power_type(element_type(x), element_type(y))
    return [builder.cast(builder.add(PowOp(builder.cast(x, common), builder.cast(y, common))), x)]


def _power_type(base: Attribute, exponent: Attribute) -> Attribute:
    """A float decides over an integer, otherwise the wider type."""
    if is_float(base) and not is_float(exponent):
        return base
    if is_float(exponent) and not is_float(base):
        return exponent
    widths = [numpy_dtype(element).itemsize for element in (base, exponent)]
    return base if widths[0] >= widths[1] else exponent


@legalizes("Mod")
def legalize_mod(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The remainder with the sign of the dividend (`fmod`), or with that of the divisor."""
    x, y = builder.operand(0), builder.operand(1)
    if builder.attrs.flag("fmod"):
        return [builder.add(RemOp(x, y))]
    return [builder.add(ModOp(x, y))]


@legalizes("BitShift")
def legalize_bit_shift(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x shifted by y bits; a signed x keeps its sign to the right, and may have negative y."""
    x, y = builder.operand(0), builder.operand(1)
    direction = builder.attrs.string("direction", among=("LEFT", "RIGHT"))
    element = element_type(x)
    if is_unsigned(element):
        return [builder.add(ShlOp(x, y) if direction == "LEFT" else ShrOp(x, y))]
    width = builder.scalar(8 * numpy_dtype(element).itemsize, x)
    is_negative = builder.compare("lt", x, zero := builder.scalar(0, x))
    y = builder.select(builder.compare("lt", y, zero), width, y)
    if direction == "LEFT":
        return [builder.add(ShlOp(x, y))]
    # The complement of a negative number is not negative: bits move in as zeros.
    flipped = builder.add(NotOp(builder.add(ShrOp(builder.add(NotOp(x)), y))))
    return [builder.select(is_negative, flipped, builder.add(ShrOp(x, y)))]


# Any number of operands

_FOLDS: Mapping[str, type[BinaryOp]] = {"Max": MaxOp, "Min": MinOp, "Sum": AddOp, "Mean": AddOp}


@legalizes(*_FOLDS)
def legalize_variadic(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """All operands combined from the left; `Mean` divides by their number."""
    builder.attrs.ignore("consumed_inputs")
    fold = _FOLDS[op.op_type]
    total = reduce(lambda x, y: builder.add(fold(x, y)), builder.inputs)
    if op.op_type != "Mean" or len(builder.inputs) == 1:
        return [total]
    return [builder.add(DivOp(total, builder.scalar(len(builder.inputs), total)))]


# Choice


@legalizes("Where")
def legalize_where(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x where the condition holds, else y."""
    return [builder.select(builder.operand(0), builder.operand(1), builder.operand(2))]


@legalizes("Clip", until=10)
def legalize_clip_attributes(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """min(max(x, `min`), `max`), where the bounds are attributes."""
    builder.attrs.ignore("consumed_inputs")
    x = builder.operand(0)
    for name, clip in (("min", MaxOp), ("max", MinOp)):
        if (bound := builder.attrs.opt_float(name)) is not None:
            x = builder.add(clip(x, builder.scalar(bound, x)))
    return [x]


@legalizes("Clip", since=11)
def legalize_clip(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """
    min(max(x, `min`), `max`): `max` wins if the bounds are in disorder. What is equal to a bound
    stays: the second operand does, and the one that is not constant.
    """
    x = builder.operand(0)
    for name, clip in (("min", MaxOp), ("max", MinOp)):
        if (bound := builder.input(name)) is not None:
            is_known = builder.constant(bound) is not None
            limit = builder.reshape(bound, [])
            x = builder.add(clip(x, limit) if is_known else clip(limit, x))
    return [x]


# Classification


@legalizes("IsNaN")
def legalize_is_nan(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x != x"""
    x = builder.operand(0)
    return [builder.compare("ne", x, x)]


@legalizes("IsInf")
def legalize_is_inf(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x is one of the infinities that the attributes select."""
    x = builder.operand(0)
    positive = builder.attrs.flag("detect_positive")
    negative = builder.attrs.flag("detect_negative")
    if positive and negative:
        return [builder.compare("eq", builder.add(AbsOp(x)), builder.scalar(np.inf, x))]
    if positive or negative:
        return [builder.compare("eq", x, builder.scalar(np.inf if positive else -np.inf, x))]
    return [builder.broadcast(builder.scalar(False, i1), dims_of(x))]
