"""`simplify-arithmetic`: algebra on elementwise ops, with bit-identical results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.enums import Predicate
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import (
    bf16,
    element_type,
    f16,
    f32,
    f64,
    i1,
    is_float,
    is_unsigned,
    numpy_dtype,
    static_shape,
)
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.equation import Equation, Rule
from lowerdeck.passes.machinery.values import uniform_value

# Neutral elements

_POSITIVE = (e.AbsOp, e.ExpOp, e.CoshOp, e.SigmoidOp, SoftmaxOp)
"""Ops that never give -0: the logarithm of a softmax is 0 - 0, if it is zero."""


def _is_zero(c: Any, other: SSAValue) -> bool:
    """x + c == x. Of the float zeros only -0 keeps every x: -0 + 0 is 0."""
    if c != 0:
        return False
    if not is_float(element_type(other)):
        return True
    return bool(np.signbit(c)) or isinstance(other.owner, _POSITIVE)


def _is_subtracted_zero(c: Any, other: SSAValue) -> bool:
    """x - c == x: the other way around, -0 - 0 is -0, but -0 - -0 is 0."""
    return c == 0 and not (is_float(element_type(other)) and np.signbit(c))


def _is_one(c: Any, other: SSAValue) -> bool:
    return c == 1


def _is_all_ones(c: Any, other: SSAValue) -> bool:
    return bool(c) if element_type(other) == i1 else bool(~c == 0)


def _is_nothing(c: Any, other: SSAValue) -> bool:
    return c == 0


_NEUTRAL: Mapping[type[Operation], tuple[Callable[[Any, SSAValue], bool], bool]] = {
    e.AddOp: (_is_zero, True),
    e.SubOp: (_is_subtracted_zero, False),
    e.MulOp: (_is_one, True),
    e.DivOp: (_is_one, False),
    e.PowOp: (_is_one, False),
    e.AndOp: (_is_all_ones, True),
    e.OrOp: (_is_nothing, True),
    e.XorOp: (_is_nothing, True),
    e.ShlOp: (_is_nothing, False),
    e.ShrOp: (_is_nothing, False),
}
"""The condition under which a constant is neutral, and whether it may also be the left operand."""


class DropNeutralOperand(Equation):
    """x + 0, x - 0, x * 1, x / 1, x ^ 1, x and true, x or 0, ... -> x"""

    name = "drop-neutral-operand"
    roots = tuple(_NEUTRAL)

    def rule(self, op: e.BinaryOp) -> Rule | None:
        is_neutral, commutes = _NEUTRAL[type(op)]
        pairs = [(op.lhs, op.rhs), (op.rhs, op.lhs)] if commutes else [(op.lhs, op.rhs)]
        for value, other in pairs:
            constant = uniform_value(other)
            if constant is not None and is_neutral(constant, value):
                return f"{op.name} with {constant} changes nothing", value, ()
        return None


_IDEMPOTENT = (e.MaxOp, e.MinOp, e.AndOp, e.OrOp)


class DropRepeatedOperand(Equation):
    """max(x, x), min(x, x), x and x, x or x, select(c, x, x) -> x"""

    name = "drop-repeated-operand"
    roots = (*_IDEMPOTENT, e.SelectOp)

    def rule(self, op: e.BinaryOp | e.SelectOp) -> Rule | None:
        left, right = op.operands[-2:]
        return (f"{op.name} of a value and itself", left, ()) if left is right else None


# Two ops that are one


class CancelUnary(Equation):
    """neg(neg(x)), not(not(x)) -> x; abs(neg(x)) [signed], abs(abs(x)) -> abs(x)"""

    name = "cancel-unary"
    roots = (e.NegOp, e.NotOp, e.AbsOp)

    def rule(self, op: e.UnaryOp) -> Rule | None:
        inner = op.input.owner
        if isinstance(inner, e.NegOp | e.NotOp) and type(inner) is type(op):
            return f"two {op.name} cancel", inner.input, (inner,)
        if isinstance(op, e.AbsOp) and isinstance(inner, e.NegOp | e.AbsOp):
            x = inner.input
            # Of unsigned integers, neg gives 2^bits - x, which abs keeps.
            if isinstance(inner, e.NegOp) and is_unsigned(element_type(x)):
                return None
            return f"the sign of {inner.name} is dropped", lambda: e.AbsOp(x), (inner,)
        return None


_OPPOSITE = {
    Predicate.EQ: Predicate.NE,
    Predicate.NE: Predicate.EQ,
    Predicate.LT: Predicate.GE,
    Predicate.GE: Predicate.LT,
    Predicate.GT: Predicate.LE,
    Predicate.LE: Predicate.GT,
}


class NegateComparison(Equation):
    """
    not(x < y) -> x >= y [integers]; not(x == y) -> x != y

    select(not c, x, y) -> select(c, y, x)
    """

    name = "negate-comparison"
    roots = (e.NotOp, e.SelectOp)

    def rule(self, op: e.NotOp | e.SelectOp) -> Rule | None:
        if isinstance(op, e.SelectOp):
            return self._select(op)
        compare = producer(op.input, e.CompareOp)
        if compare is None or not compare.result.has_one_use():
            return None
        predicate = compare.predicate.data
        # With NaN both x < y and x >= y are false.
        if is_float(element_type(compare.lhs)) and predicate not in (Predicate.EQ, Predicate.NE):
            return None
        opposite, lhs, rhs = _OPPOSITE[predicate], compare.lhs, compare.rhs
        text = f"not {predicate} is {opposite}"
        return text, lambda: e.CompareOp(opposite, lhs, rhs), (compare,)

    def _select(self, op: e.SelectOp) -> Rule | None:
        if (negation := producer(op.condition, e.NotOp)) is None:
            return None
        c, x, y = negation.input, op.on_true, op.on_false
        return "the choices change places", lambda: e.SelectOp(c, y, x), (negation,)


class SquareInsteadOfPower(Equation):
    """x ^ 2 -> x * x"""

    name = "square-instead-of-power"
    roots = (e.PowOp,)

    def rule(self, op: e.PowOp) -> Rule | None:
        exponent, x = uniform_value(op.rhs), op.lhs
        if exponent is None or exponent != 2 or x.type != op.result.type:
            return None
        return "the square is one product", lambda: e.MulOp(x, x), ()


_EXPONENTS: Mapping[Attribute, tuple[int, int]] = {
    f64: (-1022, 1024),
    f32: (-126, 128),
    f16: (-14, 16),
    bf16: (-126, 128),
}
"""Where the exponents of normal numbers begin (exclusive) and end, as `math.frexp` counts them."""


class ProductInsteadOfQuotient(Pattern[float]):
    """x / c -> x * (1 / c) [floats; c a power of two whose reciprocal is normal]"""

    name = "product-instead-of-quotient"
    roots = (e.DivOp,)
    ranked = True

    def match(self, op: e.DivOp) -> Match[float] | None:
        divisor, element = uniform_value(op.rhs), element_type(op.result)
        if divisor is None or element not in _EXPONENTS or not np.isfinite(divisor) or not divisor:
            return None
        reciprocal = 1.0 / float(divisor)
        smallest, largest = _EXPONENTS[element]
        fraction, exponent = math.frexp(reciprocal)
        if abs(fraction) != 0.5 or not smallest < exponent <= largest:
            return None
        return Match((op,), "the reciprocal is exact", reciprocal)

    def rewrite(self, match: Match[float], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, e.DivOp)
        shape = static_shape(op.rhs)
        assert shape is not None
        factor = np.full(shape, match.data, numpy_dtype(element_type(op.rhs)))
        rewriter.replace(op, e.MulOp(op.lhs, rewriter.add(ConstantOp.of(factor)).result))


class ReassociateConstants(Pattern[tuple[SSAValue, SSAValue, SSAValue]]):
    """(x + c1) + c2 -> x + (c1 + c2); (x * c1) * c2 -> x * (c1 * c2) [integers, which wrap]"""

    name = "reassociate-constants"
    roots = (e.AddOp, e.MulOp)
    ranked = True

    def match(self, op: e.AddOp | e.MulOp) -> Match[tuple[SSAValue, SSAValue, SSAValue]] | None:
        inner = producer(op.lhs, type(op))
        if inner is None or is_float(element_type(op.result)) or not op.lhs.has_one_use():
            return None
        if not isinstance(op.rhs.owner, ConstantOp) or not isinstance(inner.rhs.owner, ConstantOp):
            return None
        # fold computes the sum of constants alone; here it would be rewritten forever.
        if op.rhs.type != inner.rhs.type or isinstance(inner.lhs.owner, ConstantOp):
            return None
        return Match((op, inner), "constants meet", (inner.lhs, inner.rhs, op.rhs))

    def rewrite(
        self, match: Match[tuple[SSAValue, SSAValue, SSAValue]], rewriter: Rewriter
    ) -> None:
        x, left, right = match.data
        cls = e.AddOp if isinstance(match.root, e.AddOp) else e.MulOp
        constant = rewriter.add(cls(left, right))
        rewriter.replace(match.root, cls(x, constant.result))


class MoveConstantRight(Equation):
    """c + x -> x + c; c * x -> x * c"""

    name = "move-constant-right"
    roots = (e.AddOp, e.MulOp)

    def rule(self, op: e.AddOp | e.MulOp) -> Rule | None:
        left, right = op.lhs, op.rhs
        if not isinstance(left.owner, ConstantOp) or isinstance(right.owner, ConstantOp):
            return None
        return "constants stand on the right", lambda: type(op)(right, left), ()


# Casts


class ComposeCasts(Equation):
    """cast(cast(x, a), b) -> cast(x, b) [a holds every value of x]"""

    name = "compose-casts"
    roots = (e.CastOp,)

    def rule(self, op: e.CastOp) -> Rule | None:
        inner = producer(op.input, e.CastOp)
        if inner is None or not _holds_all(element_type(inner.input), inner.to):
            return None
        x, to = inner.input, op.to
        if element_type(x) == to:
            return "there and back", x, (inner,)
        return "the first cast is exact", lambda: e.CastOp(x, to), (inner,)


_MANTISSA: Mapping[Attribute, int] = {f64: 53, f32: 24, f16: 11, bf16: 8}
_WIDER_FLOATS = frozenset({(f32, f64), (f16, f32), (f16, f64), (bf16, f32), (bf16, f64)})


def _holds_all(before: Attribute, after: Attribute) -> bool:
    """True if every value of type `before` is a value of type `after`."""
    if before == i1 or before == after or (before, after) in _WIDER_FLOATS:
        return True
    a, b = numpy_dtype(before), numpy_dtype(after)
    if a.kind not in "iu":
        return False
    if b.kind in "iu":
        return np.can_cast(a, b)
    return 8 * a.itemsize - (a.kind == "i") <= _MANTISSA.get(after, 0)


class SimplifyArithmeticPass(PatternPass):
    """
    Algebra that is exact bit for bit: for NaN, infinities, -0, and integers that wrap.

    - x + 0, x - 0, x * 1, x / 1, x ^ 1, x and true, x or 0, x xor 0, x << 0 -> x
      [not float x + 0, which makes 0 of -0, but x + -0 and x - 0; no broadcasting]
    - max(x, x), min(x, x), x and x, x or x, select(c, x, x) -> x
    - neg(neg(x)), not(not(x)) -> x; abs(neg(x)) [signed], abs(abs(x)) -> abs(x)
    - not(x < y) -> x >= y [integers]; not(x == y) -> x != y; select(not c, x, y) -> select(c, y, x)
    - x ^ 2 -> x * x; x / c -> x * (1 / c) [c a power of two]
    - c + x -> x + c; (x + c1) + c2 -> x + (c1 + c2) [integers]; likewise for *
    - cast(cast(x, a), b) -> cast(x, b) [a holds every value of x's type]
    """

    name = "simplify-arithmetic"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            DropNeutralOperand(),
            DropRepeatedOperand(),
            CancelUnary(),
            NegateComparison(),
            SquareInsteadOfPower(),
            ProductInsteadOfQuotient(),
            MoveConstantRight(),
            ReassociateConstants(),
            ComposeCasts(),
        ]
