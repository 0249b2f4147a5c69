"""Arithmetic, comparison, logic, bits and conversion of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute, SSAValue

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
    TanOp,
    UnaryOp,
    XorOp,
)
from lowerdeck.dialects.core.types import (
    COMPUTABLE,
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    i1,
    is_float,
    is_unsigned,
    numpy_dtype,
    rank_of,
)
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.passes.legalize.common.functions import shifted_right
from lowerdeck.passes.legalize.common.special import (
    angle_of,
    apply,
    bessel_i0,
    digamma,
    erfc,
    erfinv,
    expm1,
    lgamma,
    log1p,
)
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


def number(builder: Tf1Legalizer, name: str | int) -> SSAValue:
    """An operand; refused unless it is of numbers that C computes with."""
    value = builder.operand(name)
    if element_type(value) not in COMPUTABLE:
        builder.refuse(f"an operand of {element_type(value)}", "real numbers or truth values")
    return value


def widened(builder: Tf1Legalizer, name: str | int) -> TensorValue:
    """A floating-point operand; half precision is computed in f32."""
    x = TensorValue(builder, number(builder, name))
    return x.cast(f32) if x.element in (f16, bf16) else x


def narrowed(builder: Tf1Legalizer, y: TensorValue) -> Results:
    """What was computed from `widened` operands, rounded once to the type of the result."""
    return [y.cast(builder.result_element()).value]


# One operand

_UNARY: Mapping[str, type[UnaryOp]] = {
    "Abs": AbsOp,
    "Acos": AcosOp,
    "Acosh": AcoshOp,
    "Asin": AsinOp,
    "Asinh": AsinhOp,
    "Atan": AtanOp,
    "Atanh": AtanhOp,
    "Ceil": CeilOp,
    "Cos": CosOp,
    "Cosh": CoshOp,
    "Erf": ErfOp,
    "Exp": ExpOp,
    "Floor": FloorOp,
    "Invert": NotOp,
    "Log": LogOp,
    "LogicalNot": NotOp,
    "Neg": NegOp,
    "Rint": RoundOp,
    "Round": RoundOp,
    "Sign": SignOp,
    "Sin": SinOp,
    "Sinh": SinhOp,
    "Sqrt": SqrtOp,
    "Tan": TanOp,
}


@legalizes(*_UNARY)
def legalize_unary(builder: Tf1Legalizer) -> Results:
    """The function of the same name; `Round` and `Rint` round halves to even."""
    return [builder.add(_UNARY[builder.op_type](number(builder, 0)))]


_SPECIAL: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "BesselI0": bessel_i0,
    "BesselI0e": lambda x: bessel_i0(x, scaled=True),
    "Digamma": digamma,
    "Erfinv": erfinv,
    "Lgamma": lgamma,
}


@legalizes(*_SPECIAL)
def legalize_special(builder: Tf1Legalizer) -> Results:
    """Functions without an operator of their own in core; those of Bessel to seven digits."""
    x = widened(builder, 0)
    if builder.op_type.startswith("Bessel") and x.element != f32:
        builder.refuse(f"an operand of {x.element}", "f32 or half precision")
    return narrowed(builder, _SPECIAL[builder.op_type](x))


@legalizes("Square")
def legalize_square(builder: Tf1Legalizer) -> Results:
    """x * x"""
    x = number(builder, 0)
    return [builder.add(MulOp(x, x))]


@legalizes("Reciprocal", "Inv")
def legalize_reciprocal(builder: Tf1Legalizer) -> Results:
    """1 / x"""
    x = number(builder, 0)
    return [builder.add(DivOp(builder.scalar(1, x), x))]


@legalizes("Rsqrt")
def legalize_reciprocal_root(builder: Tf1Legalizer) -> Results:
    """1 / sqrt(x)"""
    return narrowed(builder, 1 / apply(SqrtOp, widened(builder, 0)))


@legalizes("Expm1")
def legalize_expm1(builder: Tf1Legalizer) -> Results:
    """exp(x) - 1"""
    return narrowed(builder, expm1(widened(builder, 0)))


@legalizes("Erfc")
def legalize_erfc(builder: Tf1Legalizer) -> Results:
    """1 - erf(x)"""
    return narrowed(builder, erfc(widened(builder, 0)))


@legalizes("Log1p")
def legalize_log1p(builder: Tf1Legalizer) -> Results:
    """log(1 + x)"""
    return narrowed(builder, log1p(widened(builder, 0)))


@legalizes("PopulationCount")
def legalize_population_count(builder: Tf1Legalizer) -> Results:
    """How many bits of an integer are set: those of all pairs, then of all groups of four, ..."""
    x = TensorValue(builder, number(builder, "x"))
    width = 8 * numpy_dtype(x.element).itemsize
    # Unsigned: bits that move in from above are zeros.
    x = x.cast(IntegerType(width, Signedness.UNSIGNED))
    half = 1
    while half < width:
        mask = sum(((1 << half) - 1) << start for start in range(0, width, 2 * half))
        amount = TensorValue(builder, np.array(half, numpy_dtype(x.element)))
        bits = TensorValue(builder, np.array(mask, numpy_dtype(x.element)))
        upper = TensorValue(builder, builder.add(ShrOp(x.value, amount.value)))
        x = (x & bits) + (upper & bits)
        half *= 2
    return [x.cast(builder.result_element()).value]


@legalizes("ToBool")
def legalize_to_bool(builder: Tf1Legalizer) -> Results:
    """A scalar is true if it is not zero, any other tensor if it has elements."""
    value = builder.operand("input")
    x = TensorValue.of(builder, value)
    if not x.dims:
        if x.element not in COMPUTABLE:
            builder.refuse(f"a condition of type {value.type}", "a number")
        return [value if x.element == i1 else x.ne(0).value]
    return [TensorValue.dim(builder, product(x.dims)).gt(0).value]


@legalizes("IsNan")
def legalize_is_nan(builder: Tf1Legalizer) -> Results:
    """x != x"""
    x = number(builder, 0)
    return [builder.compare("ne", x, x)]


@legalizes("IsInf")
def legalize_is_inf(builder: Tf1Legalizer) -> Results:
    """|x| = inf"""
    x = number(builder, 0)
    return [builder.compare("eq", builder.add(AbsOp(x)), builder.scalar(math.inf, x))]


@legalizes("IsFinite")
def legalize_is_finite(builder: Tf1Legalizer) -> Results:
    """|x| < inf"""
    x = number(builder, 0)
    return [builder.compare("lt", builder.add(AbsOp(x)), builder.scalar(math.inf, x))]


# Two operands

_BINARY: Mapping[str, type[BinaryOp]] = {
    "Add": AddOp,
    "AddV2": AddOp,
    "BitwiseAnd": AndOp,
    "BitwiseOr": OrOp,
    "BitwiseXor": XorOp,
    "Div": DivOp,
    "FloorMod": ModOp,
    "LogicalAnd": AndOp,
    "LogicalOr": OrOp,
    "Maximum": MaxOp,
    "Minimum": MinOp,
    "Mod": RemOp,
    "Mul": MulOp,
    "Pow": PowOp,
    "RealDiv": DivOp,
    "Sub": SubOp,
    "TruncateMod": RemOp,
}
_COMPARISONS = {
    "Equal": "eq",
    "Greater": "gt",
    "GreaterEqual": "ge",
    "Less": "lt",
    "LessEqual": "le",
    "NotEqual": "ne",
}


@legalizes(*_BINARY)
def legalize_binary(builder: Tf1Legalizer) -> Results:
    """The function of the same name; integers are divided toward zero."""
    return [builder.add(_BINARY[builder.op_type](number(builder, 0), number(builder, 1)))]


@legalizes(*_COMPARISONS)
def legalize_comparison(builder: Tf1Legalizer) -> Results:
    """A comparison."""
    if builder.attrs.has("incompatible_shape_error"):
        # It concerns shapes that do not broadcast, which are refused.
        builder.attrs.ignore("incompatible_shape_error")
    return [builder.compare(_COMPARISONS[builder.op_type], number(builder, 0), number(builder, 1))]


@legalizes("ApproximateEqual")
def legalize_approximate_equal(builder: Tf1Legalizer) -> Results:
    """|x - y| < tolerance"""
    distance = builder.add(AbsOp(builder.add(SubOp(number(builder, 0), number(builder, 1)))))
    return [
        builder.compare("lt", distance, builder.scalar(builder.attrs.float("tolerance"), distance))
    ]


@legalizes("TruncateDiv")
def legalize_truncate_div(builder: Tf1Legalizer) -> Results:
    """The quotient rounded toward zero."""
    quotient = TensorValue(builder, builder.add(DivOp(number(builder, 0), number(builder, 1))))
    if is_float(quotient.element):
        quotient = quotient.lt(0).where(quotient.ceil(), quotient.floor())
    return [quotient.value]


@legalizes("FloorDiv")
def legalize_floor_div(builder: Tf1Legalizer) -> Results:
    """The quotient rounded down."""
    x, y = number(builder, 0), number(builder, 1)
    element = element_type(x)
    if is_float(element):
        return [builder.add(FloorOp(builder.add(DivOp(x, y))))]
    if (known := _symbolic_quotient(builder, x, y)) is not None:
        return [known]
    quotient = builder.add(DivOp(x, y))
    if is_unsigned(element):
        return [quotient]
    # The remainders differ where the quotient has been rounded up.
    above = builder.compare("ne", builder.add(RemOp(x, y)), builder.add(ModOp(x, y)))
    return [builder.add(SubOp(quotient, builder.cast(above, element)))]


def _symbolic_quotient(builder: Tf1Legalizer, x: SSAValue, y: SSAValue) -> SSAValue | None:
    """A quotient of sizes as expressions, which round down as well."""
    dividends, divisors = builder.symbols.elements(x), builder.symbols.elements(y)
    if dividends is None or divisors is None or None in dividends or None in divisors:
        return None
    if any(divisor.value in (None, 0) for divisor in divisors.reshape(-1)):
        return None
    quotients: NDArray[Any] = np.asarray(dividends // divisors, object)
    return builder.cast(builder.dims(list(quotients.reshape(-1)), quotients.shape), x)


@legalizes("SquaredDifference")
def legalize_squared_difference(builder: Tf1Legalizer) -> Results:
    """(x - y)^2"""
    difference = builder.add(SubOp(number(builder, 0), number(builder, 1)))
    return [builder.add(MulOp(difference, difference))]


Formula: TypeAlias = Callable[[TensorValue, TensorValue], TensorValue]


def _over_zero(x: TensorValue, y: TensorValue) -> TensorValue:
    return y.eq(0).where(_zero(x), x / y)


def _times_zero(x: TensorValue, y: TensorValue) -> TensorValue:
    return y.eq(0).where(_zero(x), x * y)


def _zero(x: TensorValue) -> TensorValue:
    return TensorValue.number(x.builder, 0, x.element)


def _unless_zero(function: Formula) -> Formula:
    """Zero where x is, whatever the function makes of y."""
    return lambda x, y: x.eq(0).where(_zero(x), function(x, y))


_GUARDED: Mapping[str, Formula] = {
    "DivNoNan": _over_zero,
    "MulNoNan": _times_zero,
    "Xdivy": _unless_zero(lambda x, y: x / y),
    "Xlog1py": _unless_zero(lambda x, y: x * log1p(y)),
    "Xlogy": _unless_zero(lambda x, y: x * y.log()),
}


@legalizes(*_GUARDED)
def legalize_guarded(builder: Tf1Legalizer) -> Results:
    """A quotient or product that is zero where one operand is."""
    return narrowed(builder, _GUARDED[builder.op_type](widened(builder, 0), widened(builder, 1)))


@legalizes("Atan2")
def legalize_atan2(builder: Tf1Legalizer) -> Results:
    """The angle of the point (x, y)."""
    return narrowed(builder, angle_of(widened(builder, "y"), widened(builder, "x")))


@legalizes("LeftShift", "RightShift")
def legalize_shift(builder: Tf1Legalizer) -> Results:
    """x shifted by 0 to width - 1 bits, as far as y is outside; a signed x keeps its sign."""
    x, y = number(builder, 0), number(builder, 1)
    element = element_type(x)
    y = TensorValue(builder, y).clip(0, 8 * numpy_dtype(element).itemsize - 1).value
    if builder.op_type == "LeftShift":
        return [builder.add(ShlOp(x, y))]
    return [shifted_right(TensorValue(builder, x), TensorValue(builder, y)).value]


# Any number of operands


@legalizes("AddN", "AccumulateNV2")
def legalize_sum(builder: Tf1Legalizer) -> Results:
    """The sum of all operands."""
    values = [number(builder, index) for index in range(len(builder.op.inputs))]
    return [reduce(lambda x, y: builder.add(AddOp(x, y)), values)]


# Choice


@legalizes("Select")
def legalize_select(builder: Tf1Legalizer) -> Results:
    """
    t where the condition holds, else e, which have one shape; a vector of conditions chooses rows.

    The result has the sizes of t, so that a loop that keeps what it carries keeps its sizes.
    """
    condition, x, y = builder.operand("condition"), builder.operand("t"), builder.operand("e")
    dims = dims_of(x)
    if rank_of(condition) == 1 and rank_of(x) > 1:
        condition = builder.reshape(condition, [*dims_of(condition), *[1] * (rank_of(x) - 1)])
        condition = _of_sizes(builder, condition, [dims[0], *[1] * (rank_of(x) - 1)])
    elif rank_of(condition):
        condition = _of_sizes(builder, condition, dims)
    return [builder.select(condition, x, _of_sizes(builder, y, dims))]


def _of_sizes(builder: Tf1Legalizer, value: SSAValue, dims: Sequence[ExprLike]) -> SSAValue:
    """A value of equal sizes, of which one may be known by another name: a run checks that one."""
    found = dims_of(value)
    if len(found) != len(dims):
        return value
    other = [(size, dim) for size, dim in zip(found, dims, strict=True) if size != dim]
    is_open = len(other) == 1 and any(Expr.of(each).value is None for each in other[0])
    return builder.reshape(value, dims) if is_open else value


@legalizes("SelectV2")
def legalize_broadcast_select(builder: Tf1Legalizer) -> Results:
    """t where the condition holds, else e, all broadcast."""
    return [builder.select(*(builder.operand(name) for name in ("condition", "t", "e")))]


@legalizes("ClipByValue")
def legalize_clip(builder: Tf1Legalizer) -> Results:
    """max(min(t, high), low): the lower bound wins if they are in disorder."""
    x, low, high = (number(builder, index) for index in range(3))
    return [builder.add(MaxOp(builder.add(MinOp(x, high)), low))]


# Conversion


@legalizes("Cast")
def legalize_cast(builder: Tf1Legalizer) -> Results:
    """The value in the element type `DstT`."""
    x, to = builder.operand("x"), builder.attrs.element("DstT")
    if not {element_type(x), to} <= COMPUTABLE:
        builder.refuse(f"a conversion of {element_type(x)} to {to}", "real numbers or truth values")
    if builder.attrs.flag("Truncate") and _loses_bits(element_type(x), to):
        builder.refuse("a conversion that truncates", "one that rounds", "set Truncate to false")
    return [builder.cast(x, to)]


def _loses_bits(source: Attribute, to: Attribute) -> bool:
    """True for floats that become narrower, where dropping bits differs from rounding."""
    if not (is_float(source) and is_float(to)):
        return False
    return numpy_dtype(to).itemsize < numpy_dtype(source).itemsize
