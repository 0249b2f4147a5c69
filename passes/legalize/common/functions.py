"""Functions of one float, and of two elements, by the names that they have in most frameworks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import ml_dtypes

from lowerdeck.dialects.core import elementwise as core
from lowerdeck.dialects.core.types import f32, i1, is_float, is_unsigned, numpy_dtype
from lowerdeck.passes.legalize.common.special import apply, digamma, expm1, lgamma, log1p
from lowerdeck.passes.legalize.tensor_value import TensorValue

FUNCTIONS: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "exp": lambda x: x.exp(),
    "expm1": expm1,
    "log": lambda x: x.log(),
    "log2": lambda x: x.log() * (1 / math.log(2)),
    "log10": lambda x: x.log() * (1 / math.log(10)),
    "log1p": log1p,
    "sqrt": lambda x: apply(core.SqrtOp, x),
    "rsqrt": lambda x: 1 / apply(core.SqrtOp, x),
    "reciprocal": lambda x: 1 / x,
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "tan": lambda x: apply(core.TanOp, x),
    "asin": lambda x: apply(core.AsinOp, x),
    "acos": lambda x: apply(core.AcosOp, x),
    "atan": lambda x: apply(core.AtanOp, x),
    "sinh": lambda x: apply(core.SinhOp, x),
    "cosh": lambda x: apply(core.CoshOp, x),
    "tanh": lambda x: apply(core.TanhOp, x),
    "asinh": lambda x: apply(core.AsinhOp, x),
    "acosh": lambda x: apply(core.AcoshOp, x),
    "atanh": lambda x: apply(core.AtanhOp, x),
    "erf": lambda x: apply(core.ErfOp, x),
    "lgamma": lgamma,
    "digamma": digamma,
    "sigmoid": lambda x: apply(core.SigmoidOp, x),
    "silu": lambda x: x * apply(core.SigmoidOp, x),
}
"""Of tensors in at least single precision."""


def truth(x: TensorValue) -> TensorValue:
    """Whether elements are not zero."""
    return x if x.element == i1 else x.ne(0)


def truncated(x: TensorValue) -> TensorValue:
    """Floats without their fraction."""
    return x.lt(0).where(x.ceil(), x.floor())


def _whole(function: Callable[[TensorValue], TensorValue]) -> Callable[[TensorValue], TensorValue]:
    """A function that leaves integers as they are."""
    return lambda x: function(x) if is_float(x.element) else x


KEPT: Mapping[str, Callable[[TensorValue], TensorValue]] = {
    "abs": lambda x: x if is_unsigned(x.element) else x.abs(),
    "square": lambda x: x * x,
    "relu6": lambda x: x.maximum(0).minimum(6),
    "floor": _whole(lambda x: x.floor()),
    "ceil": _whole(lambda x: x.ceil()),
    "trunc": _whole(truncated),
    "isnan": lambda x: x.ne(x),
    "isinf": lambda x: x.abs().eq(math.inf) if is_float(x.element) else x.ne(x),
    "isfinite": lambda x: x.abs().lt(math.inf) if is_float(x.element) else x.eq(x),
}
"""Functions that integers have, too."""


def _passing_nan(x: TensorValue, y: TensorValue, best: TensorValue) -> TensorValue:
    """An extremum, of which NaN is none."""
    return x.ne(x).where(y, y.ne(y).where(x, best)) if is_float(x.element) else best


def _binary(function: type[core.BinaryOp]) -> Callable[[TensorValue, TensorValue], TensorValue]:
    """A function of two elements that `TensorValue` has no method for."""
    return lambda x, y: TensorValue(x.builder, x.builder.add(function(x.value, y.value)))


def _remainder(x: TensorValue, y: TensorValue) -> TensorValue:
    """With the sign of the divisor; a zero of floats has that of the dividend, as in PyTorch."""
    if not is_float(x.element):
        return _binary(core.ModOp)(x, y)
    rest = _binary(core.RemOp)(x, y)
    return (rest.ne(0) & rest.lt(0).ne(y.lt(0))).where(rest + y, rest)


PAIRS: Mapping[str, Callable[[TensorValue, TensorValue], TensorValue]] = {
    "add": lambda x, y: x | y if x.element == i1 else x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x & y if x.element == i1 else x * y,
    "div": _binary(core.DivOp),
    "mod": _remainder,
    "rem": _binary(core.RemOp),
    "pow": _binary(core.PowOp),
    "max": lambda x, y: x | y if x.element == i1 else x.maximum(y),
    "min": lambda x, y: x & y if x.element == i1 else x.minimum(y),
    "fmax": lambda x, y: _passing_nan(x, y, PAIRS["max"](x, y)),
    "fmin": lambda x, y: _passing_nan(x, y, PAIRS["min"](x, y)),
    "shl": _binary(core.ShlOp),
    "shr": _binary(core.ShrOp),
    "and": _binary(core.AndOp),
    "or": _binary(core.OrOp),
    "xor": _binary(core.XorOp),
    "heaviside": lambda x, y: x.eq(0).where(y, x.gt(0).cast(x.element)),
    "eq": lambda x, y: x.eq(y),
    "ne": lambda x, y: x.ne(y),
    "lt": lambda x, y: x.lt(y),
    "le": lambda x, y: x.le(y),
    "gt": lambda x, y: x.gt(y),
    "ge": lambda x, y: x.ge(y),
}
"""
Of tensors of one type. Sums and the larger of truth values are or, products and the smaller and; of
the remainders, `mod` has the sign of the divisor. `shr` moves zeros in.
"""


def close_to(
    x: TensorValue, y: TensorValue, rtol: float, atol: float, *, equal_nan: bool
) -> TensorValue:
    """Whether elements are equal, or finite and no further apart than rtol * |y| + atol."""
    found = x.eq(y)
    if equal_nan:
        found = found | (x.ne(x) & y.ne(y))
    wide = x.element if is_float(x.element) else f32
    x, y = x.cast(wide), y.cast(wide)
    gap = (x - y).abs()
    return found | (gap.lt(math.inf) & gap.le((y * rtol).abs() + atol))


def floor_quotient(a: TensorValue, b: TensorValue) -> TensorValue:
    """The quotient of floats, rounded down as PyTorch does it, from the exact remainder."""
    rest = TensorValue(a.builder, a.builder.add(core.RemOp(a.value, b.value)))
    quotient = (a - rest) / b
    quotient = (rest.ne(0) & rest.lt(0).ne(b.lt(0))).where(quotient - 1, quotient)
    down = quotient.floor()
    down = (quotient - down).gt(0.5).where(down + 1, down)
    down = quotient.eq(0).where((a / b) * 0, down)
    return b.eq(0).where(a / b, down)


def shifted_right(x: TensorValue, y: TensorValue) -> TensorValue:
    """Integers shifted by 0 to width - 1 bits; a signed one keeps its sign."""
    logical = PAIRS["shr"](x, y)
    if is_unsigned(x.element):
        return logical
    # The complement of a negative number is not negative: bits move in as zeros.
    return x.lt(0).where(~PAIRS["shr"](~x, y), logical)


def finite(x: TensorValue, nan: float, high: float | None, low: float | None) -> TensorValue:
    """Other numbers for NaN and infinities, for these by default the largest and the least one."""
    if not is_float(x.element):
        return x
    limit = float(cast("Any", ml_dtypes.finfo(numpy_dtype(x.element))).max)
    high, low = (limit if high is None else high), (-limit if low is None else low)
    known = [
        TensorValue(x.builder, x.builder.scalar(number, x.element)) for number in (nan, high, low)
    ]
    y = x.ne(x).where(known[0], x)
    y = x.eq(math.inf).where(known[1], y)
    return x.eq(-math.inf).where(known[2], y)
