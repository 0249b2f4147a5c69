"""`fuse-mish`: the tanh of a softplus, and Mish, as a quotient in one exponential."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import scalar
from lowerdeck.dialects.core.types import element_type
from lowerdeck.dialects.records import record
from lowerdeck.passes.fuse.logarithms import softplus_of
from lowerdeck.passes.fuse.polynomials import Polynomial
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.values import is_precise, number

_LARGE = 20.0
"""From here on tanh(log(1 + exp(x))) is 1, in f64, too; and exp(2 x) is finite in f32."""

_NUMERATOR = [0.0, 2.0, 1.0, 0.0]
_DENOMINATOR = [2.0, 2.0, 1.0, 0.0]
"""Coefficients of n and of n + 2."""


@record
class Quotient:
    """n / (n + 2) or x * n / (n + 2), n = y * (y + 2), y = exp(input)"""

    input: SSAValue
    x: SSAValue | None = None
    is_limited: bool = False
    """Large inputs give 1, and not NaN."""


class _QuotientPattern(Pattern[Quotient]):
    ranked = True

    def rewrite(self, match: Match[Quotient], rewriter: Rewriter) -> None:
        def add(op: Operation) -> SSAValue:
            return rewriter.add(op).results[0]

        found, input = match.data, match.data.input
        if found.is_limited:
            input = add(e.MinOp(input, add(scalar(_LARGE, element_type(input)))))
        power, two = add(e.ExpOp(input)), add(scalar(2.0, element_type(input)))
        n = add(e.MulOp(power, add(e.AddOp(power, two))))
        top = n if found.x is None else add(e.MulOp(found.x, n))
        rewriter.replace(match.root, e.DivOp(top, add(e.AddOp(n, two))))


class TanhOfSoftplus(_QuotientPattern):
    """tanh(log(1 + exp(x))) -> n / (n + 2) [n = y * (y + 2), y = exp(min(x, 20))]"""

    name = "tanh-of-softplus"
    roots = (e.TanhOp,)

    def match(self, op: e.FloatUnaryOp) -> Match[Quotient] | None:
        if not is_precise(op.result) or (found := softplus_of(op.input)) is None:
            return None
        x, consumed = found
        if x.type != op.result.type:
            return None
        return Match((op, *consumed), "a quotient", Quotient(x, is_limited=True))


class OneMinusQuotient(_QuotientPattern):
    """1 - 2 / (1 + (1 + exp(x))^2) -> n / (n + 2) [n = y * (y + 2), y = exp(min(x, 20))]"""

    name = "one-minus-quotient"
    roots = (e.SubOp,)

    def match(self, op: e.SubOp) -> Match[Quotient] | None:
        quotient = producer(op.rhs, e.DivOp)
        if quotient is None or not is_precise(op.result) or number(op.lhs) != 1:
            return None
        if number(quotient.lhs) != 2 or (found := _below(quotient, _DENOMINATOR)) is None:
            return None
        exp, consumed = found
        if exp.result.type != op.result.type:
            return None
        consumed = (op, quotient, *consumed, exp)
        return Match(consumed, "a quotient", Quotient(exp.input, is_limited=True))


class QuotientOfPolynomials(_QuotientPattern):
    """(y^2 + 2 y) / (y^2 + 2 y + 2) -> n / (n + 2) [y = exp(x), n = y * (y + 2)]"""

    name = "quotient-of-polynomials"
    roots = (e.DivOp,)

    def match(self, op: e.DivOp) -> Match[Quotient] | None:
        if not is_precise(op.result) or (found := _below(op, _DENOMINATOR)) is None:
            return None
        exp, below = found
        if exp.result.type != op.result.type or _is_built(op, exp.result):
            return None
        for numerator, x, between in _factors(op.lhs):
            above = _polynomial(numerator, exp.result, _NUMERATOR)
            if above is not None and (x is None or x.type == op.result.type):
                consumed = (op, *between, *above, *below, exp)
                return Match(consumed, "n is a product", Quotient(exp.input, x))
        return None


def _factors(value: SSAValue) -> Iterator[tuple[SSAValue, SSAValue | None, list[Operation]]]:
    """The value, and its parts and what they are multiplied by."""
    yield value, None, []
    if (product := producer(value, e.MulOp)) is not None:
        yield product.rhs, product.lhs, [product]
        yield product.lhs, product.rhs, [product]


def _is_built(op: e.DivOp, power: SSAValue) -> bool:
    """True if the denominator is n + 2, and n is y * (y + 2) and in the numerator."""
    total = producer(op.rhs, e.AddOp)
    n = None if total is None else producer(total.lhs, e.MulOp)
    if total is None or n is None or n.lhs is not power or number(total.rhs) != 2:
        return False
    inner = producer(n.rhs, e.AddOp)
    is_n = inner is not None and inner.lhs is power and number(inner.rhs) == 2
    return is_n and any(numerator is n.result for numerator, _, _ in _factors(op.lhs))


def _below(op: e.DivOp, expected: list[float]) -> tuple[e.FloatUnaryOp, list[Operation]] | None:
    """The exponential of which the denominator is a polynomial, and its ops."""
    value = op.rhs
    for _ in range(len(expected)):
        inner = value.owner
        if isinstance(inner, e.ExpOp):
            ops = _polynomial(op.rhs, inner.result, expected)
            return None if ops is None else (inner, ops)
        if not isinstance(inner, e.AddOp | e.MulOp | e.PowOp | e.SubOp):
            return None
        value = inner.lhs if number(inner.lhs) is None else inner.rhs
    return None


def _polynomial(value: SSAValue, y: SSAValue, expected: list[float]) -> list[Operation] | None:
    """The ops of a value if it is this polynomial in y."""
    polynomial = Polynomial(y)
    found = polynomial.coefficients(value)
    return polynomial.consumed if found == expected else None


class FuseMishPass(PatternPass):
    """
    The tanh of a softplus, which makes Mish of x, as a quotient.

    With y = exp(x) and n = y * (y + 2), and y' = exp(min(x, 20)) and n' of it:

    - tanh(log(1 + y)) -> n' / (n' + 2) [in any form that legalization gives the logarithm]
    - 1 - 2 / (1 + (1 + y)^2) -> n' / (n' + 2)
    - (y^2 + 2 y) / (y^2 + 2 y + 2), ((1 + y)^2 - 1) / ((1 + y)^2 + 1) -> n / (n + 2);
      x (y^2 + 2 y) / (y^2 + 2 y + 2) -> x n / (n + 2) [however the polynomials are computed]

    [f32 or f64]. Above 20 the quotient is 1. Formulas that are 1 there, too, get the limit; those
    that overflow further up go on to give NaN. Nothing cancels, so the result is at least as exact
    as that of the formula. The export to Caffe, which has softplus, does without this pass.
    """

    name = "fuse-mish"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [TanhOfSoftplus(), OneMinusQuotient(), QuotientOfPolynomials()]
