"""Operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ComplexType
from xdsl.ir import SSAValue

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.types import (
    bf16,
    bit_width,
    broadcast,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    i32,
    i64,
    is_float,
    is_integer,
    is_unsigned,
    numpy_dtype,
)
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common import activation
from lowerdeck.passes.legalize.common.functions import FUNCTIONS
from lowerdeck.passes.legalize.common.recurrent import run_steps
from lowerdeck.passes.legalize.common.special import (
    angle_of,
    apply,
    bessel_i0,
    erfc,
    erfinv,
    expm1,
    hypot,
    is_negative,
    log1p,
    logaddexp,
    round_at,
)
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.promotion import Number, promoted
from lowerdeck.passes.legalize.pt2.registry import Results, legalizes
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue

# Arithmetic

_ARITHMETIC: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": lambda a, b: a.maximum(b),
    "minimum": lambda a, b: a.minimum(b),
}


def _operands(builder: Pt2Legalizer, *names: str) -> list[TensorValue]:
    """Arguments in the type to which they are promoted."""
    element = builder.promoted(*names)
    if not is_float(element) and is_float(builder.element()):
        element = builder.element()
    return [builder.operand(name, element) for name in names]


@legalizes("add", "sub", "rsub", "subtract")
def legalize_sum(builder: Pt2Legalizer) -> Results:
    """self + alpha * other; Boolean sums are or."""
    a, b = _operands(builder, "self", "other")
    alpha = builder.get("alpha")
    if a.element == i1:
        if builder.name != "add":
            builder.refuse("a difference of truth values", "a sum")
        return [(a | (b & builder.operand("alpha", i1))).value]
    if builder.name == "rsub":
        a, b = b, a
    if alpha != 1:
        b = b * builder.operand("alpha", b.element)
    return [(a + b if builder.name == "add" else a - b).value]


@legalizes("mul", "multiply", "maximum", "minimum")
def legalize_product(builder: Pt2Legalizer) -> Results:
    """Products and extrema; those of truth values are and, or."""
    a, b = _operands(builder, "self", "other")
    name = "mul" if builder.name == "multiply" else builder.name
    if a.element == i1:
        return [(a | b if name == "maximum" else a & b).value]
    return [_ARITHMETIC[name](a, b).value]


@legalizes("max.other", "min.other")
def legalize_other(builder: Pt2Legalizer) -> Results:
    """The larger or smaller one of two tensors."""
    a, b = _operands(builder, "self", "other")
    return [(a.maximum(b) if builder.name == "max" else a.minimum(b)).value]


@legalizes("fmax", "fmin")
def legalize_fmax(builder: Pt2Legalizer) -> Results:
    """The extremum, of which NaN is none."""
    a, b = _operands(builder, "self", "other")
    best = a.maximum(b) if builder.name == "fmax" else a.minimum(b)
    if is_float(a.element):
        best = a.ne(a).where(b, b.ne(b).where(a, best))
    return [best.value]


@legalizes("div", "divide", "true_divide", "floor_divide")
def legalize_quotient(builder: Pt2Legalizer) -> Results:
    """Quotients of integers are floats unless they are rounded."""
    mode = builder.get("rounding_mode") if builder.has("rounding_mode") else None
    if builder.name == "floor_divide":
        mode = "floor"
    element = builder.promoted("self", "other")
    if mode is None and not is_float(element):
        element = builder.element()
    a, b = (builder.operand(name, element) for name in ("self", "other"))
    if mode is None:
        return [(a / b).value]
    if not is_float(element):
        quotient = (
            a.quotient(b)
            if mode == "floor"
            else TensorValue(builder, builder.add(core.DivOp(a.value, b.value)))
        )
        return [quotient.value]
    if mode == "floor":
        return [_floor_quotient(a, b).value]
    return [_truncated(a / b).value]


def _floor_quotient(a: TensorValue, b: TensorValue) -> TensorValue:
    """Rounded down as PyTorch does it, from the exact remainder."""
    rest = TensorValue(a.builder, a.builder.add(core.RemOp(a.value, b.value)))
    quotient = (a - rest) / b
    quotient = (rest.ne(0) & rest.lt(0).ne(b.lt(0))).where(quotient - 1, quotient)
    down = quotient.floor()
    down = (quotient - down).gt(0.5).where(down + 1, down)
    down = quotient.eq(0).where((a / b) * 0, down)
    return b.eq(0).where(a / b, down)


def _truncated(x: TensorValue) -> TensorValue:
    return x.lt(0).where(x.ceil(), x.floor())


@legalizes("remainder", "fmod")
def legalize_remainder(builder: Pt2Legalizer) -> Results:
    """With the sign of the divisor, or of the dividend."""
    a, b = _operands(builder, "self", "other")
    op = core.ModOp if builder.name == "remainder" else core.RemOp
    return [builder.add(op(a.value, b.value))]


@legalizes("pow", "float_power")
def legalize_power(builder: Pt2Legalizer) -> Results:
    """Powers; small plain exponents are products."""
    element = builder.promoted("self", "exponent")
    element = builder.element() if builder.name == "float_power" else element
    a = builder.operand("self", element)
    exponent = builder.get("exponent")
    if element == i1:  # of a plain truth value
        return [(a | (~builder.operand("exponent", i1))).value]
    if exponent == 2:
        return [(a * a).value]
    if exponent == 0.5 and is_float(element):
        return [apply(core.SqrtOp, a).value]
    return [builder.add(core.PowOp(a.value, builder.operand("exponent", element).value))]


_BITS = {"and": core.AndOp, "or": core.OrOp, "xor": core.XorOp}


@legalizes(
    *(f"bitwise_{name}" for name in _BITS),
    *(f"__{name}__" for name in _BITS),
    *(f"logical_{name}" for name in _BITS),
)
def legalize_bits(builder: Pt2Legalizer) -> Results:
    """Bits, or truth values."""
    element = builder.promoted("self", "other")
    a, b = (builder.operand(name, element) for name in ("self", "other"))
    if builder.name.startswith("logical"):
        a, b = a.ne(_zero(a)), b.ne(_zero(b))
    return [builder.add(_BITS[builder.name.strip("_").split("_")[-1]](a.value, b.value))]


def _zero(x: TensorValue) -> TensorValue:
    """Zero in the type of a value."""
    return TensorValue(x.builder, np.zeros((), numpy_dtype(x.element)))


@legalizes("bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__")
def legalize_shift(builder: Pt2Legalizer) -> Results:
    """Shifts of integers, which keep the sign to the right; too far is zero, or the sign."""
    a, b = _operands(builder, "self", "other")
    if not is_integer(a.element):
        builder.refuse(f"shifts of {a.element}", "integers")
    last = bit_width(a.element) - 1
    is_inside = b.ge(0) & b.le(last)
    near = is_inside.where(b, b * 0 + last)
    if "left" in builder.name or builder.name == "__lshift__":
        moved = TensorValue(builder, builder.add(core.ShlOp(a.value, near.value)))
        return [is_inside.where(moved, moved * 0).value]
    if is_unsigned(a.element):
        moved = TensorValue(builder, builder.add(core.ShrOp(a.value, near.value)))
        return [is_inside.where(moved, moved * 0).value]
    # Of what is not negative, all kinds of shifts are one.
    size = a.lt(0).where(TensorValue(builder, builder.add(core.NotOp(a.value))), a)
    moved = TensorValue(builder, builder.add(core.ShrOp(size.value, near.value)))
    return [a.lt(0).where(TensorValue(builder, builder.add(core.NotOp(moved.value))), moved).value]


@legalizes("bitwise_not", "logical_not")
def legalize_not(builder: Pt2Legalizer) -> Results:
    """All bits, or the truth value."""
    x = builder.value()
    if builder.name == "logical_not" and x.element != i1:
        return [x.eq(_zero(x)).value]
    return [builder.add(core.NotOp(x.value))]


_COMPARISONS = {
    "eq": "eq",
    "ne": "ne",
    "lt": "lt",
    "le": "le",
    "gt": "gt",
    "ge": "ge",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}


@legalizes(*_COMPARISONS)
def legalize_comparison(builder: Pt2Legalizer) -> Results:
    """Comparisons in the type to which both sides are promoted."""
    element = builder.promoted("self", "other")
    a, b = (builder.operand(name, element) for name in ("self", "other"))
    return [getattr(a, _COMPARISONS[builder.name])(b).value]


@legalizes("where")
def legalize_where(builder: Pt2Legalizer) -> Results:
    """Elements of the one or the other."""
    if not builder.has("self"):
        from lowerdeck.passes.legalize.pt2.indexing import nonzero_columns

        return nonzero_columns(builder, builder.input("condition"))
    a, b = _operands(builder, "self", "other")
    condition = builder.value("condition")
    if condition.element != i1:
        condition = condition.ne(_zero(condition))
    return [builder.select(condition.value, a.value, b.value)]


@legalizes("masked_fill")
def legalize_masked_fill(builder: Pt2Legalizer) -> Results:
    """Another value where a mask holds."""
    x = builder.value()
    value = builder.operand("value", x.element)
    return [builder.select(builder.input("mask"), value.value, x.value)]


@legalizes("clamp", "clip", "clamp_min", "clamp_max", "hardtanh", "relu6")
def legalize_clamp(builder: Pt2Legalizer) -> Results:
    """Between bounds of which each may be left out; the upper one wins."""
    names = {"hardtanh": ("min_val", "max_val")}.get(builder.name, ("min", "max"))
    if builder.name == "relu6":
        return [builder.value().maximum(0).minimum(6).value]
    given = [n for n in names if builder.has(n) and builder.get(n) is not None]
    element = builder.promoted("self", *given)
    x = builder.operand("self", element)
    if names[0] in given:
        x = x.maximum(builder.operand(names[0], element))
    if names[1] in given:
        x = x.minimum(builder.operand(names[1], element))
    return [x.value]


# Functions of one operand

_UNARY: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    **FUNCTIONS,
    "exp2": lambda x: _power(2.0, x),
    "erfc": erfc,
    "erfinv": erfinv,
    "mish": lambda x: x * apply(core.TanhOp, activation.softplus(x)),
    "log_sigmoid": lambda x: x.minimum(0) - log1p((-x.abs()).exp()),
    "deg2rad": lambda x: x * (math.pi / 180),
    "rad2deg": lambda x: x * (180 / math.pi),
    "hardsigmoid": lambda x: (x + 3).maximum(0).minimum(6) / 6,
    "hardswish": lambda x: x * (x + 3).maximum(0).minimum(6) / 6,
    "sinc": lambda x: x.eq(0).where(x * 0 + 1, (x * math.pi).sin() / (x * math.pi)),
}


def _power(base: float, x: TensorValue) -> TensorValue:
    base_value = TensorValue.number(x.builder, base, x.element)
    return TensorValue(x.builder, x.builder.add(core.PowOp(base_value.value, x.value)))


@legalizes(*_UNARY, *(f"arc{name[1:]}" for name in _UNARY if name.startswith("a")))
def legalize_unary(builder: Pt2Legalizer) -> Results:
    """Functions of floats; those of half precision are computed in f32 and rounded once."""
    x = builder.floating()
    name = builder.name.replace("arc", "a", 1)
    return [_UNARY[name](_wide(x)).cast(x.element).value]


def _wide(x: TensorValue) -> TensorValue:
    """Half precision in f32."""
    return x.cast(f32) if x.element in (f16, bf16) else x


_KEPT: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "neg": lambda x: -x,
    "negative": lambda x: -x,
    "relu": lambda x: x.maximum(0),
    "square": lambda x: x * x,
    "positive": lambda x: x,
}


@legalizes(*_KEPT)
def legalize_kept(builder: Pt2Legalizer) -> Results:
    """Functions that integers have, too; the square of a truth value is an integer."""
    return [_KEPT[builder.name](builder.stated("self")).value]


@legalizes("abs", "sign", "sgn")
def legalize_sign(builder: Pt2Legalizer) -> Results:
    """Unsigned numbers are their own size."""
    x = builder.value()
    if isinstance(x.element, ComplexType):
        builder.refuse("complex numbers", "real ones")
    if is_unsigned(x.element):
        return [x.value if builder.name == "abs" or x.element == i1 else x.minimum(1).value]
    if builder.name == "abs":
        return [x.abs().value]
    sign = builder.add(core.SignOp(x.value))
    if is_float(x.element):  # that of NaN is zero
        sign = builder.select(x.ne(x).value, builder.scalar(0, x.value), sign)
    return [sign]


@legalizes("floor", "ceil", "trunc", "fix", "frac", "round")
def legalize_rounding(builder: Pt2Legalizer) -> Results:
    """Integers stay what they are."""
    x = builder.value()
    if not is_float(x.element):
        return [x.value]
    decimals = builder.integer("decimals") if builder.has("decimals") else 0
    match builder.name:
        case "floor":
            y = x.floor()
        case "ceil":
            y = x.ceil()
        case "round":
            y = round_at(x, decimals)
        case _:
            y = _truncated(x)
    return [(x - y if builder.name == "frac" else y).value]


@legalizes("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit")
def legalize_kind(builder: Pt2Legalizer) -> Results:
    """What kind of number it is."""
    x = builder.value()
    if not is_float(x.element):
        if builder.name == "signbit":
            return [x.lt(0).value]
        return [x.eq(x).value if builder.name == "isfinite" else x.ne(x).value]
    match builder.name:
        case "isnan":
            return [x.ne(x).value]
        case "isinf":
            return [x.abs().eq(math.inf).value]
        case "isfinite":
            return [x.abs().lt(math.inf).value]
        case "isposinf":
            return [x.eq(math.inf).value]
        case "isneginf":
            return [x.eq(-math.inf).value]
        case _:
            return [is_negative(x).value]


@legalizes("nan_to_num")
def legalize_nan_to_num(builder: Pt2Legalizer) -> Results:
    """Other numbers for NaN and infinities."""
    x = builder.value()
    if not is_float(x.element):
        return [x.value]
    limit = float(cast("Any", ml_dtypes.finfo(numpy_dtype(x.element))).max)
    y = x.ne(x).where(builder.known(builder.number("nan", 0.0), x.element), x)
    y = x.eq(math.inf).where(builder.known(builder.number("posinf", limit), x.element), y)
    low = builder.known(builder.number("neginf", -limit), x.element)
    return [x.eq(-math.inf).where(low, y).value]


# Activations with parameters


@legalizes("gelu")
def legalize_gelu(builder: Pt2Legalizer) -> Results:
    """By the error function, or by tanh."""
    x = builder.floating()
    wide = _wide(x)
    if builder.text("approximate", "none") == "tanh":
        inner = (wide + wide * wide * wide * 0.044715) * math.sqrt(2 / math.pi)
        y = wide * 0.5 * (apply(core.TanhOp, inner) + 1)
    else:
        y = wide * 0.5 * (apply(core.ErfOp, wide * math.sqrt(0.5)) + 1)
    return [y.cast(x.element).value]


@legalizes("elu", "selu", "celu")
def legalize_elu(builder: Pt2Legalizer) -> Results:
    """x, or exp(x) - 1 below zero, with factors; half precision is rounded once."""
    x = _wide(builder.floating())
    low = x.minimum(0)
    if builder.name == "selu":
        scale, alpha = 1.0507009873554805, 1.6732632423543772
        y = x.gt(0).where(x * scale, expm1(low) * (scale * alpha))
    elif builder.name == "celu":
        alpha = builder.number("alpha", 1.0)
        y = x.gt(0).where(x, expm1(low / alpha) * alpha)
    else:
        alpha, scale, inner = (builder.number(k, 1.0) for k in ("alpha", "scale", "input_scale"))
        y = x.gt(0).where(x * scale, expm1(low * inner) * (alpha * scale))
    return [y.cast(builder.element()).value]


@legalizes("leaky_relu")
def legalize_leaky_relu(builder: Pt2Legalizer) -> Results:
    """x, or a fraction of it below zero; half precision is rounded once."""
    x = _wide(builder.floating())
    found = x.gt(0).where(x, x * builder.number("negative_slope"))
    return [found.cast(builder.element()).value]


@legalizes("prelu", "_prelu_kernel")
def legalize_prelu(builder: Pt2Legalizer) -> Results:
    """x, or a multiple of it below zero, one for each channel."""
    x, slope = builder.value(), builder.value("weight")
    if builder.name == "prelu" and len(x.dims) > 1:
        count = slope.dims[0] if slope.dims else 1
        slope = slope.reshape([count, *[1] * (len(x.dims) - 2)])
    return [x.gt(0).where(x, x * slope).value]


@legalizes("softplus")
def legalize_softplus(builder: Pt2Legalizer) -> Results:
    """log(1 + exp(beta * x)) / beta, and x where that is the same."""
    x = _wide(builder.floating())
    beta, threshold = builder.number("beta"), builder.number("threshold")
    scaled = x * beta
    found = scaled.gt(threshold).where(x, activation.softplus(scaled) / beta)
    return [found.cast(builder.element()).value]


@legalizes("softshrink", "hardshrink")
def legalize_shrink(builder: Pt2Legalizer) -> Results:
    """Zero around zero; NaN stays."""
    x = _wide(builder.floating())
    limit = builder.number("lambd")
    inside = x.ge(-limit) & x.le(limit)
    kept = x
    if builder.name == "softshrink":
        kept = x.gt(limit).where(x - limit, x + limit)
    return [inside.where(x * 0, kept).cast(builder.element()).value]


@legalizes("threshold")
def legalize_threshold(builder: Pt2Legalizer) -> Results:
    """x above a threshold, else a value."""
    x = builder.value()
    value = builder.operand("value", x.element)
    return [x.le(builder.operand("threshold", x.element)).where(value, x).value]


@legalizes("glu")
def legalize_glu(builder: Pt2Legalizer) -> Results:
    """The first half times the sigmoid of the second."""
    x = builder.input()
    axis = builder.dim(default=-1)
    half = dims_of(x)[axis] // 2
    a, b = (TensorValue(builder, part) for part in builder.split(x, axis, [half, half]))
    return [(_wide(a) * apply(core.SigmoidOp, _wide(b))).cast(builder.element()).value]


@legalizes("logit")
def legalize_logit(builder: Pt2Legalizer) -> Results:
    """log(x / (1 - x)), x between eps and 1 - eps."""
    x = builder.floating()
    if builder.get("eps") is not None:
        eps = builder.number("eps")
        x = x.clip(eps, 1 - eps)
    return [(x / (1 - x)).log().value]


# Functions of two operands


def _broadcast_dims(*values: TensorValue) -> tuple[Expr, ...]:
    return broadcast([value.dims for value in values])


_PAIRS: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "atan2": angle_of,
    "arctan2": angle_of,
    "hypot": hypot,
    "copysign": lambda a, b: is_negative(b).where(-a.abs(), a.abs()),
    "ldexp": lambda a, b: a * _power(2.0, b),
    "logaddexp": logaddexp,
    "logaddexp2": lambda a, b: logaddexp(a, b, math.log(2)),
}


@legalizes(*_PAIRS)
def legalize_pair(builder: Pt2Legalizer) -> Results:
    """Functions of two floats; those of half precision are computed in f32 and rounded once."""
    a, b = builder.stated("self"), builder.stated("other")
    return [_PAIRS[builder.name](_wide(a), _wide(b)).cast(a.element).value]


@legalizes("nextafter")
def legalize_next(builder: Pt2Legalizer) -> Results:
    """
    The neighbor of an f32 in the direction of another: in f64, a little more than half of its
    distance away, and rounded.
    """
    a, b = (builder.stated(name) for name in ("self", "other"))
    if a.element != f32:
        builder.refuse(f"{a.element}", "f32")
    x, y = a.cast(f64), b.cast(f64)
    step = (x.abs() * (1.25 * 2.0**-24)).maximum(2.0**-149)
    moved = y.gt(x).where(x + step, x - step).cast(f32)
    largest = (2 - 2.0**-23) * 2.0**127
    moved = a.eq(math.inf).where(_filled(a, largest), moved)
    moved = a.eq(-math.inf).where(_filled(a, -largest), moved)
    found = a.eq(b).where(b, moved)
    return [(a.ne(a) | b.ne(b)).where(a + b, found).value]


def _filled(x: TensorValue, number: float) -> TensorValue:
    """A number in the type and of the shape of a value."""
    like = TensorValue.number(x.builder, number, x.element)
    return like.broadcast(x.dims)


@legalizes("lerp")
def legalize_lerp(builder: Pt2Legalizer) -> Results:
    """Between two tensors."""
    a, b, w = (_wide(builder.stated(name)) for name in ("self", "end", "weight"))
    near = a + w * (b - a)
    found = w.abs().lt(0.5).where(near, b - (b - a) * (1 - w))
    return [found.cast(builder.element()).value]


@legalizes("addcmul", "addcdiv")
def legalize_addc(builder: Pt2Legalizer) -> Results:
    """self + value * product or quotient"""
    x, a, b = (_wide(builder.stated(name)) for name in ("self", "tensor1", "tensor2"))
    term = a * b if builder.name == "addcmul" else a / b
    found = x + term * builder.operand("value", x.element)
    return [found.cast(builder.element()).value]


@legalizes("special_i0", "i0", "special_i0e")
def legalize_bessel(builder: Pt2Legalizer) -> Results:
    """The modified Bessel function, maybe times exp(-|x|); in f64 its digits would be too few."""
    x = builder.floating()
    if x.element == f64:
        builder.refuse("f64", "f32")
    scaled = builder.name.endswith("e")
    return [bessel_i0(x.cast(f32), scaled=scaled).cast(x.element).value]


@legalizes("gcd", "lcm")
def legalize_divisor(builder: Pt2Legalizer) -> Results:
    """The greatest common divisor by Euclid's steps, of which there are at most 92."""
    a, b = _operands(builder, "self", "other")
    dims = _broadcast_dims(a, b)

    def step(inner: Pt2Legalizer, number: Expr, state: tuple[TensorValue, ...]) -> Any:
        del number
        x, y = state
        is_done = y.eq(0)
        divisor = is_done.where(x * 0 + 1, y)
        rest = TensorValue(inner, inner.add(core.RemOp(x.value, divisor.value)))
        return (is_done.where(x, y), is_done.where(y, rest)), ()

    sides = [builder.broadcast(side.value, dims) for side in (a, b)]
    found = TensorValue(builder, run_steps(builder, Expr.const(_STEPS), sides, step)[0][0])
    found = found if is_unsigned(found.element) else found.abs()
    if builder.name == "gcd":
        return [found.value]
    quotient = TensorValue(builder, builder.add(core.DivOp(sides[0], found.maximum(1).value)))
    product_ = quotient * b
    return [(product_ if is_unsigned(found.element) else product_.abs()).value]


_STEPS = 92

# Types and copies

_WORD = 32


@legalizes(
    "clone",
    "alias",
    "detach",
    "lift_fresh_copy",
    "lift_fresh",
    "contiguous",
    "resolve_conj",
    "resolve_neg",
    "lift",
    "cpu",
    "_to_cpu",
    "pin_memory",
)
def legalize_identity(builder: Pt2Legalizer) -> Results:
    """The value itself."""
    return [builder.input()]


@legalizes("_to_copy", "to", "type_as")
def legalize_cast(builder: Pt2Legalizer) -> Results:
    """Another type of elements; truth values are what is not zero."""
    return [converted(builder, builder.input())]


def converted(builder: Pt2Legalizer, x: SSAValue) -> SSAValue:
    """A value in the type that the file states."""
    y = TensorValue.of(builder, x)
    if builder.element() == i1 and y.element != i1:
        return y.ne(_zero(y)).value
    if isinstance(y.element, ComplexType):
        builder.refuse("complex numbers", "real ones")
    target = builder.element()
    if is_float(y.element) and is_integer(target) and bit_width(target) < _WORD:
        x = builder.cast(x, i32)  # narrow integers are the low bits of a word
    return builder.cast(x, target)


@legalizes("copy")
def legalize_copy(builder: Pt2Legalizer) -> Results:
    """The elements of the source, in the type and shape of `self`."""
    source = converted(builder, builder.input("src"))
    return [builder.broadcast(source, dims_of(builder.input()))]


@legalizes("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
def legalize_dropout(builder: Pt2Legalizer) -> Results:
    """Nothing happens outside of training."""
    if builder.flag("train") or (builder.name == "native_dropout" and builder.get("train") is None):
        builder.refuse("random numbers", "a model in evaluation mode", "call model.eval()")
    return [builder.input("input"), None][: len(builder.op.results)]


# Symbols

_SYMBOLIC: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "eq": lambda a, b: a.eq(b),
    "ne": lambda a, b: a.ne(b),
    "lt": lambda a, b: a.lt(b),
    "le": lambda a, b: a.le(b),
    "gt": lambda a, b: a.gt(b),
    "ge": lambda a, b: a.ge(b),
    "and_": lambda a, b: a & b,
    "or_": lambda a, b: a | b,
    "sym_max": lambda a, b: a.maximum(b),
    "sym_min": lambda a, b: a.minimum(b),
    "truediv": lambda a, b: a.cast(f64) / b.cast(f64),
    "pow": lambda a, b: _symbolic_power(a, b),
}


def _symbolic_power(a: TensorValue, b: TensorValue) -> TensorValue:
    """A product if the exponent is a small number, so that a size remains one."""
    count = None if b.array is None else b.array.item()
    if a.element == i64 and isinstance(count, int) and 0 <= count <= _MOST_FACTORS:
        found = TensorValue.number(a.builder, 1, i64)
        for _ in range(count):
            found = found * a
        return found
    power = core.PowOp(a.cast(f64).value, b.cast(f64).value)
    return TensorValue(a.builder, a.builder.add(power))


_MOST_FACTORS = 8


@legalizes(*(f"torch.{n}" if n.startswith("sym") else f"_operator.{n}" for n in _SYMBOLIC))
def legalize_symbolic(builder: Pt2Legalizer) -> Results:
    """Arithmetic of sizes."""
    name = builder.op.op_type.split(".")[1]
    symbolic: list[Number] = [builder.get(key) for key in ("a", "b")]
    has_bool = any(isinstance(s, SSAValue) and element_type(s) == i1 for s in symbolic)
    has_float = any(
        element_type(s) == f64 if isinstance(s, SSAValue) else isinstance(s, float)
        for s in symbolic
    )
    element = i1 if has_bool else f64 if has_float else i64
    a, b = (builder.operand(key, element) for key in ("a", "b"))
    return [_SYMBOLIC[name](a, b).value]


@legalizes("torch.sym_not", "_operator.neg", "_operator.pos", "torch.sym_float")
def legalize_symbolic_not(builder: Pt2Legalizer) -> Results:
    """The opposite, the number itself, or it as a float."""
    a = TensorValue.of(builder, builder.input("a"))
    match builder.op.op_type:
        case "_operator.pos":
            return [a.value]
        case "torch.sym_float":
            return [a.cast(f64).value]
        case _:
            return [(~a if a.element == i1 else -a).value]


@legalizes("math.trunc", "math.floor", "math.ceil", "torch.sym_int")
def legalize_symbolic_rounding(builder: Pt2Legalizer) -> Results:
    """A whole number, which may be a size."""
    x = TensorValue.of(builder, builder.input("x" if builder.has("x") else "a"))
    name = builder.op.op_type.split(".")[1]
    if is_float(x.element):
        x = x.floor() if name == "floor" else x.ceil() if name == "ceil" else _truncated(x)
    found = size_of(builder, x.cast(i64).value, "a size")
    return [TensorValue.dim(builder, found).value]


@legalizes("torch.sym_ite")
def legalize_symbolic_choice(builder: Pt2Legalizer) -> Results:
    """One of two numbers."""
    element = promoted([builder.get(key) for key in ("t", "f")])
    chosen, other = (builder.operand(key, element) for key in ("t", "f"))
    return [builder.operand("b", i1).where(chosen, other).value]


@legalizes("torch.sym_sum")
def legalize_symbolic_sum(builder: Pt2Legalizer) -> Results:
    """The sum of sizes."""
    terms = builder.exprs_of("args")
    return [TensorValue.dim(builder, sum(terms, Expr.const(0))).value]


@legalizes("sym_size", "sym_numel")
def legalize_size(builder: Pt2Legalizer) -> Results:
    """A size, as an integer."""
    x = builder.input()
    if builder.name == "sym_numel":
        return [TensorValue.dim(builder, product(dims_of(x))).value]
    return [TensorValue.dim(builder, dims_of(x)[builder.dim()]).value]


@legalizes("_shape_as_tensor")
def legalize_shape(builder: Pt2Legalizer) -> Results:
    """All sizes, as a vector."""
    return [builder.dims(dims_of(builder.input()))]


@legalizes("is_nonzero")
def legalize_truth(builder: Pt2Legalizer) -> Results:
    """Whether the only element is not zero."""
    x = builder.value().reshape([])
    return [x.ne(_zero(x)).value]


@legalizes("_local_scalar_dense", "item")
def legalize_item(builder: Pt2Legalizer) -> Results:
    """The only element."""
    return [builder.cast(builder.reshape(builder.input(), []), builder.element())]
