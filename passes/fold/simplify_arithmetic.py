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
from lowerdeck.dialects.core.tensor import BroadcastOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    is_float,
    is_integer,
    is_unsigned,
    numpy_dtype,
    static_shape,
)
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.equation import Build, BuiltEquation, Construction, Equation, Rule
from lowerdeck.passes.machinery.values import Array, number, small_constant, uniform_value

# Neutral elements

_POSITIVE = (e.AbsOp, e.ExpOp, e.CoshOp, e.SigmoidOp, SoftmaxOp)
"""Ops that never give -0: the logarithm of a softmax is 0 - 0, if it is zero."""


def _is_zero(c: Any, other: SSAValue) -> bool:
    """x + c == x. Of the float zeros only -0 keeps every x: -0 + 0 is 0."""
    if c != 0:
        return False
    if not is_float(element_type(other)):
        return True
    return bool(np.signbit(c)) or _is_never_minus_zero(other)


def _is_never_minus_zero(value: SSAValue) -> bool:
    """True for results of ops that give 0 where they could give -0."""
    op = value.owner
    if isinstance(op, e.MulOp):
        return op.lhs is op.rhs
    if isinstance(op, e.AddOp):
        zero = uniform_value(op.rhs)
        return zero is not None and zero == 0 and not np.signbit(zero)
    return isinstance(op, _POSITIVE)


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


_ASSOCIATIVE = (e.AddOp, e.MulOp, e.AndOp, e.OrOp, e.XorOp)


class ReassociateConstants(Pattern[tuple[SSAValue, SSAValue, SSAValue]]):
    """
    (x + c1) + c2 -> x + (c1 + c2); likewise for *, and, or, xor [bits, and integers, which wrap]
    """

    name = "reassociate-constants"
    roots = _ASSOCIATIVE
    ranked = True

    def match(self, op: e.BinaryOp) -> Match[tuple[SSAValue, SSAValue, SSAValue]] | None:
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
        op, (x, left, right) = match.root, match.data
        assert isinstance(op, _ASSOCIATIVE)
        constant = rewriter.add(type(op)(left, right))
        rewriter.replace(op, type(op)(x, constant.result))


class MoveConstantRight(Equation):
    """c + x -> x + c; likewise for *, and, or, xor"""

    name = "move-constant-right"
    roots = _ASSOCIATIVE

    def rule(self, op: e.BinaryOp) -> Rule | None:
        left, right = op.lhs, op.rhs
        if not isinstance(left.owner, ConstantOp) or isinstance(right.owner, ConstantOp):
            return None
        return "constants stand on the right", lambda: type(op)(right, left), ()


# Maxima and minima with constants

_NOT_NEGATIVE = (e.AbsOp, e.ExpOp, e.SqrtOp, e.CoshOp, e.SigmoidOp, e.RectifyOp)
"""Functions of floats whose results are at least 0, or -0, or NaN."""

_SIGNED_ZEROS = (e.MaxOp, e.SqrtOp, e.RectifyOp)
"""Those of them, with a maximum, that may be -0."""


def is_not_negative(value: SSAValue) -> bool:
    """True for a float that is at least 0 (or -0), or NaN, as the op that computes it shows."""
    op = value.owner
    if not is_float(element_type(value)):
        return False
    if isinstance(op, e.MulOp):
        return op.lhs is op.rhs
    if isinstance(op, e.MaxOp):
        bounds = (number(each) for each in op.operands)
        return any(bound is not None and bound >= 0 for bound in bounds)
    if isinstance(op, SoftmaxOp):
        return not op.is_log
    return isinstance(op, _NOT_NEGATIVE)


class MergeClamps(BuiltEquation):
    """
    max(max(x, a), b) -> max(x, max(a, b)); min(max(min(x, a), b), c) -> min(max(x, b'), c')

    Any number of maxima and minima with constants is one of each, with the constants to which the
    chain takes the lowest and the highest of all numbers. Where x is known to be on one side, the
    constant of that side is not needed. NaN passes through all of them.
    """

    name = "merge-clamps"
    roots = (e.MaxOp, e.MinOp)

    def rule(self, op: e.BinaryOp) -> Construction | None:
        element = element_type(op.result)
        if not (is_float(element) or is_integer(element)):
            return None
        chain, constants, x = _chain(op)
        if not chain:
            return None
        lowest, highest = _range(element)
        if is_not_negative(x):
            lowest = np.zeros_like(lowest)
        low, high = lowest, highest
        for each, constant in zip(reversed(chain), reversed(constants), strict=True):
            choose = np.maximum if isinstance(each, e.MaxOp) else np.minimum
            low, high = choose(low, constant), choose(high, constant)
        bounds: list[tuple[type[e.BinaryOp], Array]] = []
        if (low != lowest).any():
            bounds.append((e.MaxOp, low))
        if (high != highest).any():
            bounds.append((e.MinOp, high))
        is_ordered = isinstance(chain[0], e.MinOp) or len(bounds) < 2
        if len(bounds) > len(chain) or (len(bounds) == len(chain) and is_ordered):
            return None
        if max(low.size, high.size) > max(constant.size for constant in constants):
            return None
        return "bounds meet", _clamped(x, bounds), tuple(chain[1:])


def _chain(op: e.BinaryOp) -> tuple[list[e.BinaryOp], list[Array], SSAValue]:
    """Maxima and minima with constants, the last first, and the value that they bound."""
    chain: list[e.BinaryOp] = []
    constants: list[Array] = []
    value: SSAValue = op.result
    while isinstance(each := value.owner, e.MaxOp | e.MinOp):
        found = _bounded(each)
        if found is None or (chain and not value.has_one_use()):
            break
        chain.append(each)
        value, constant = found
        constants.append(constant)
    return chain, constants, value


def _bounded(op: e.BinaryOp) -> tuple[SSAValue, Array] | None:
    """x and the constant of max(x, constant), or of min, which broadcasts to x."""
    for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if value.type != op.result.type or isinstance(value.owner, ConstantOp):
            continue
        if (constant := small_constant(other)) is not None:
            return value, constant
    return None


def _range(element: Attribute) -> tuple[Array, Array]:
    """The lowest and the highest of all numbers."""
    dtype = numpy_dtype(element)
    if is_float(element):
        return np.array(-np.inf).astype(dtype), np.array(np.inf).astype(dtype)
    limits = np.iinfo(dtype)
    return np.array(limits.min, dtype), np.array(limits.max, dtype)


def _clamped(x: SSAValue, bounds: Sequence[tuple[type[e.BinaryOp], Array]]) -> Build:
    def build(rewriter: Rewriter) -> SSAValue:
        value = x
        for cls, bound in bounds:
            constant = rewriter.add(ConstantOp.of(np.asarray(bound)))
            value = rewriter.add(cls(value, constant.result)).result
        return value

    return build


class DropSign(Equation):
    """abs(x * x) -> x * x, abs(exp(x)) -> exp(x), ...; rectify(exp(x)) -> exp(x), ..."""

    name = "drop-sign"
    roots = (e.AbsOp, e.RectifyOp)

    def rule(self, op: e.UnaryOp) -> Rule | None:
        x = op.input
        # The maximum of 0 and -0, and the root of -0, have a sign, which rectify keeps.
        has_sign = isinstance(op, e.AbsOp) and isinstance(x.owner, _SIGNED_ZEROS)
        return ("it is not negative", x, ()) if is_not_negative(x) and not has_sign else None


# Integers, which wrap and are never NaN, and bits


def _filled(value: Any, like: SSAValue) -> Build:
    """One number everywhere."""

    def build(rewriter: Rewriter) -> SSAValue:
        array = np.array(value, numpy_dtype(element_type(like)))
        constant = rewriter.add(ConstantOp.of(array)).result
        dims = dims_of(like)
        return rewriter.add(BroadcastOp(constant, dims)).result if dims else constant

    return build


class ComputeAbsorbed(BuiltEquation):
    """x * 0, x and 0, 0 / y, 0 << y, 0 >> y -> 0; x or all ones -> all ones [no floats]"""

    name = "compute-absorbed"
    roots = (e.MulOp, e.AndOp, e.OrOp, e.DivOp, e.RemOp, e.ModOp, e.ShlOp, e.ShrOp)

    def rule(self, op: e.BinaryOp) -> Construction | None:
        if is_float(element_type(op.result)):
            return None
        absorbs = _is_all_ones if isinstance(op, e.OrOp) else _is_nothing
        pairs = [(op.rhs, op.lhs)]
        if isinstance(op, e.MulOp | e.AndOp | e.OrOp):
            pairs.append((op.lhs, op.rhs))
        for x, other in pairs:
            constant = uniform_value(other)
            # Where both have open sizes, the op says that they agree.
            if constant is None or not absorbs(constant, x) or dims_of(x) != dims_of(op.result):
                continue
            return f"{op.name} with {constant} is {constant}", _filled(constant, op.result), ()
        return None


class CombineWithItself(BuiltEquation):
    """
    x - x, x xor x, x and not x -> 0; x or not x -> all ones; x < x -> false, x <= x -> true, ...
    [no floats]
    """

    name = "combine-with-itself"
    roots = (e.SubOp, e.XorOp, e.CompareOp, e.AndOp, e.OrOp)

    def rule(self, op: e.BinaryOp | e.CompareOp) -> Construction | None:
        if is_float(element_type(op.lhs)):
            return None
        if isinstance(op, e.AndOp | e.OrOp):
            return self._with_its_opposite(op)
        if op.lhs is not op.rhs:
            return None
        found = isinstance(op, e.CompareOp) and op.predicate.data in (
            Predicate.EQ,
            Predicate.LE,
            Predicate.GE,
        )
        return f"{op.name} of a value and itself", _filled(found, op.result), ()

    @staticmethod
    def _with_its_opposite(op: e.AndOp | e.OrOp) -> Construction | None:
        for x, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            opposite = producer(other, e.NotOp)
            if opposite is not None and opposite.input is x:
                zero = np.zeros((), numpy_dtype(element_type(x)))
                value = ~zero if isinstance(op, e.OrOp) else zero
                return f"{op.name} of a value and its opposite", _filled(value, x), (opposite,)
        return None


Term = tuple[bool, SSAValue, Array]
"""Whether x is negated, x, and the constant that is added."""


def _term(op: object) -> Term | None:
    """What x + c, x - c, c - x and -x are, for x that is no constant."""
    if isinstance(op, e.NegOp):
        return True, op.input, np.zeros((), numpy_dtype(element_type(op.input)))
    if not isinstance(op, e.AddOp | e.SubOp):
        return None
    is_difference = isinstance(op, e.SubOp)
    for x, other, is_left in ((op.lhs, op.rhs, True), (op.rhs, op.lhs, False)):
        constant = small_constant(other)
        if constant is None or isinstance(x.owner, ConstantOp):
            continue
        return (
            is_difference and not is_left,
            x,
            -constant if is_difference and is_left else constant,
        )
    return None


class MergeIntegerSums(BuiltEquation):
    """(x + a) - b -> x + (a - b); (a - x) + b -> (a + b) - x; a - (b - x) -> x + (a - b); ..."""

    name = "merge-integer-sums"
    roots = (e.AddOp, e.SubOp, e.NegOp)

    def rule(self, op: e.AddOp | e.SubOp | e.NegOp) -> Construction | None:
        if not is_integer(element_type(op.result)):
            return None
        with np.errstate(all="ignore"):
            outer = _term(op)
            inner = None if outer is None or not outer[1].has_one_use() else _term(outer[1].owner)
            if outer is None or inner is None:
                return None
            negated = outer[0] != inner[0]
            total = np.asarray((-inner[2] if outer[0] else inner[2]) + outer[2])
        are_signs = isinstance(op, e.NegOp) and isinstance(outer[1].owner, e.NegOp)
        if are_signs or total.size > max(outer[2].size, inner[2].size):
            return None
        x, owner = inner[1], outer[1].owner
        assert isinstance(owner, e.AddOp | e.SubOp | e.NegOp)

        def build(rewriter: Rewriter) -> SSAValue:
            constant = rewriter.add(ConstantOp.of(total)).result
            new = e.SubOp(constant, x) if negated else e.AddOp(x, constant)
            return rewriter.add(new).result

        return "constants meet", build, (owner,)


class MergeShifts(BuiltEquation):
    """(x << a) << b -> x << (a + b); likewise >> [zero, where a + b is the width or more]"""

    name = "merge-shifts"
    roots = (e.ShlOp, e.ShrOp)

    def rule(self, op: e.ShlOp | e.ShrOp) -> Construction | None:
        inner = producer(op.lhs, type(op))
        if inner is None or element_type(op.result) == i1 or not op.lhs.has_one_use():
            return None
        first, second = small_constant(inner.rhs), small_constant(op.rhs)
        if first is None or second is None or isinstance(inner.lhs.owner, ConstantOp):
            return None
        if (first < 0).any() or (second < 0).any():
            return None
        width = 8 * first.dtype.itemsize
        # No sum wraps around: each is at most the width.
        amount = np.minimum(first, width).astype(np.uint64) + np.minimum(second, width)
        total = np.asarray(np.minimum(amount, width)).astype(first.dtype)
        if total.size > max(first.size, second.size):
            return None
        x, cls = inner.lhs, type(op)

        def build(rewriter: Rewriter) -> SSAValue:
            return rewriter.add(cls(x, rewriter.add(ConstantOp.of(total)).result)).result

        return "one shift", build, (inner,)


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
      [not float x + 0, which makes 0 of -0, unless x is never -0, but x + -0 and x - 0; no
      broadcasting]
    - x * 0, x and 0, x - x, x xor x, x and not x -> 0; 0 / x, 0 rem x, 0 mod x, 0 << x, 0 >> x
      -> 0; x or ones, x or not x -> ones; x == x, x <= x -> true; x != x, x < x -> false
      [integers, bits]
    - max(x, x), min(x, x), x and x, x or x, select(c, x, x) -> x
    - neg(neg(x)), not(not(x)) -> x; abs(neg(x)) [signed], abs(abs(x)) -> abs(x)
    - not(x < y) -> x >= y [integers]; not(x == y) -> x != y; select(not c, x, y) -> select(c, y, x)
    - x ^ 2 -> x * x; x / c -> x * (1 / c) [c a power of two]
    - c + x -> x + c; (x + c1) + c2 -> x + (c1 + c2) [integers, bits]; likewise for *, and, or, xor
    - (x + c1) - c2, (c1 - x) + c2, c1 - (c2 - x), -(x + c), ... -> x + c or c - x [integers]
    - (x << c1) << c2 -> x << (c1 + c2); likewise for >>
    - maxima and minima with constants in a row -> min(max(x, c1), c2), or one of them, or x
      [x is in the range then: what is not negative needs no max(x, 0)]
    - abs(x), rectify(x) -> x [x is a float that is not negative]
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
            MergeIntegerSums(),
            MergeShifts(),
            ComputeAbsorbed(),
            CombineWithItself(),
            MergeClamps(),
            DropSign(),
            ComposeCasts(),
        ]
