"""`fuse-activation`: decomposed activation functions are rewritten to their cheapest form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import scalar
from lowerdeck.dialects.core.types import element_type
from lowerdeck.dialects.records import record
from lowerdeck.passes.fuse.polynomials import Polynomial
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.values import is_precise, number

_MOST_OPS = 16
"""The maximum number of ops in a formula."""

_GELU_OPS = 5
"""Ops that x * k * (1 + erf(c * x)) needs."""


@dataclass
class Product:
    """`scale * factors[0] * factors[1] * ...`"""

    scale: float = 1.0
    factors: list[SSAValue] = field(default_factory=list[SSAValue])
    consumed: list[Operation] = field(default_factory=list[Operation])


def product_of(op: Operation) -> Product:
    """The factors of nested products and quotients by constants, each of the type of the result."""
    product = Product()
    if _is_product(op):
        _collect(op, op.results[0], product)
    else:
        product.factors.append(op.results[0])
    return product


def _is_product(op: object) -> TypeGuard[e.MulOp | e.DivOp]:
    """True for a product, and for a quotient by a constant: a product with its reciprocal."""
    return isinstance(op, e.MulOp) or (isinstance(op, e.DivOp) and bool(number(op.rhs)))


def _collect(op: e.MulOp | e.DivOp, root: SSAValue, product: Product) -> None:
    product.consumed.append(op)
    if isinstance(op, e.DivOp):
        product.scale /= number(op.rhs) or 1.0
        _collect_factor(op.lhs, root, product)
        return
    for value, other in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
        if constant := number(value):
            product.scale *= constant
            _collect_factor(other, root, product)
            return
    for value in (op.lhs, op.rhs):
        _collect_factor(value, root, product)


def _collect_factor(value: SSAValue, root: SSAValue, product: Product) -> None:
    op = value.owner
    is_part = value.has_one_use() and value.type == root.type
    if is_part and _is_product(op) and len(product.consumed) < _MOST_OPS:
        _collect(op, root, product)
    else:
        product.factors.append(value)


@record
class Formula:
    """The replacement of an op: built from `x` and numbers."""

    x: SSAValue
    numbers: tuple[float, ...] = ()


def one_plus(value: SSAValue, function: type[e.FloatUnaryOp]) -> Any:
    """The op f if `value` is f(...) + 1 and neither has another use."""
    add = producer(value, e.AddOp)
    if add is None or not value.has_one_use():
        return None
    for part, other in ((add.lhs, add.rhs), (add.rhs, add.lhs)):
        inner = producer(part, function)
        if inner is not None and part.has_one_use() and number(other) == 1:
            return inner
    return None


class _FormulaPattern(Pattern[Formula]):
    """A pattern that builds its result from one value."""

    ranked = True

    def build(self, formula: Formula, add: Callable[[Operation], SSAValue]) -> SSAValue:
        """Add the ops of the replacement; returns the value that replaces the root's."""
        raise NotImplementedError

    def rewrite(self, match: Match[Formula], rewriter: Rewriter) -> None:
        value = self.build(match.data, lambda op: rewriter.add(op).results[0])
        rewriter.replace(match.root, value)


@record
class Gate:
    """factor * f(p) + shift: what a value is, and the ops, that of f last; none has another use."""

    factor: float
    shift: float
    consumed: tuple[Operation, ...]


def _gate(value: SSAValue, function: type[e.FloatUnaryOp]) -> Gate | None:
    """How numbers change the result of f to a value."""
    op = value.owner
    if not isinstance(op, Operation) or not value.has_one_use():
        return None
    if isinstance(op, function):
        return Gate(1.0, 0.0, (op,))
    if isinstance(op, e.NegOp):
        inner = _gate(op.input, function)
        return inner and Gate(-inner.factor, -inner.shift, (op, *inner.consumed))
    if not isinstance(op, e.AddOp | e.SubOp | e.MulOp | e.DivOp):
        return None
    for part, other, is_left in ((op.lhs, op.rhs, True), (op.rhs, op.lhs, False)):
        constant = number(other)
        if constant is None or part.type != value.type:
            continue
        if (inner := _gate(part, function)) is None:
            return None
        line = _line(op, is_left, constant, (inner.factor, inner.shift))
        return line and Gate(*line, (op, *inner.consumed))
    return None


def _line(
    op: e.BinaryOp, is_left: bool, constant: float, before: tuple[float, float]
) -> tuple[float, float] | None:
    """a and b of a * f + b, which an op with a constant makes of that before it."""
    a, b = before
    match op:
        case e.AddOp():
            return a, b + constant
        case e.SubOp():
            return (a, b - constant) if is_left else (-a, constant - b)
        case e.MulOp():
            return a * constant, b * constant
        case _ if is_left and constant:
            return a / constant, b / constant
        case _:
            return None


@record
class Gated:
    """scale * x * (1 + f(p)), where p is a polynomial in x."""

    scale: float
    x: SSAValue
    coefficients: Sequence[float]
    gate: Gate
    consumed: tuple[Operation, ...]


def _gated(op: Operation, function: type[e.FloatUnaryOp]) -> Gated | None:
    """The parts of such a product, if nothing is broadcast. The function f is odd."""
    if not is_precise(op.results[0]):
        return None
    product = product_of(op)
    if len(product.factors) != 2:
        return None
    for x, factor in (product.factors, product.factors[::-1]):
        gate = _gate(factor, function)
        if gate is None or not gate.shift or abs(gate.factor) != abs(gate.shift):
            continue
        inner = gate.consumed[-1]
        if not x.type == inner.results[0].type == op.results[0].type:
            continue
        polynomial = Polynomial(x)
        coefficients = polynomial.coefficients(inner.operands[0])
        if coefficients is not None:
            sign = gate.factor / gate.shift
            signed = [sign * each for each in coefficients]
            consumed = (*product.consumed, *gate.consumed, *polynomial.consumed)
            return Gated(product.scale * gate.shift, x, signed, gate, consumed)
    return None


class GeluByErf(_FormulaPattern):
    """k * x * (1 + erf(x / c)) -> (k * x) * (1 + erf(1 / c * x))"""

    name = "gelu-by-erf"
    roots = (e.MulOp, e.DivOp)

    def match(self, op: Operation) -> Match[Formula] | None:
        if (found := _gated(op, e.ErfOp)) is None:
            return None
        constant, first, *rest = found.coefficients
        if constant or any(rest) or self._is_built(op, found):
            return None
        return Match(found.consumed, "gelu by erf", Formula(found.x, (found.scale, first)))

    @staticmethod
    def _is_built(op: Operation, found: Gated) -> bool:
        """True if the ops are those of `build`."""
        one = found.gate.consumed[0]
        has_quotient = any(isinstance(part, e.DivOp) for part in found.consumed)
        is_sum = isinstance(one, e.AddOp) and found.gate.shift == 1 == found.gate.factor
        is_last = isinstance(op, e.MulOp) and one.results[0] in op.operands
        return is_sum and is_last and not has_quotient and len(found.consumed) <= _GELU_OPS

    def build(self, formula: Formula, add: Callable[[Operation], SSAValue]) -> SSAValue:
        x, element = formula.x, element_type(formula.x)
        half, inner = (add(scalar(value, element)) for value in formula.numbers)
        one = add(scalar(1.0, element))
        gate = add(e.AddOp(add(e.ErfOp(add(e.MulOp(x, inner)))), one))
        return add(e.MulOp(add(e.MulOp(x, half)), gate))


class GeluByTanh(_FormulaPattern):
    """0.5 * x * (1 + tanh(a * x + b * x^3)) -> x * sigmoid(x * (2 * a + 2 * b * x^2))"""

    name = "gelu-by-tanh"
    roots = (e.MulOp, e.DivOp)

    def match(self, op: Operation) -> Match[Formula] | None:
        if (found := _gated(op, e.TanhOp)) is None or found.scale != 0.5:
            return None
        constant, first, second, third = found.coefficients
        # With opposite signs a * x + b * x^3 is NaN at infinity.
        if constant or second or first * third < 0:
            return None
        formula = Formula(found.x, (2 * first, 2 * third))
        return Match(found.consumed, "1 + tanh(y) is 2 sigmoid(2 y)", formula)

    def build(self, formula: Formula, add: Callable[[Operation], SSAValue]) -> SSAValue:
        x, element = formula.x, element_type(formula.x)
        first, third = (add(scalar(value, element)) for value in formula.numbers)
        factor = first
        if formula.numbers[1] != 0:
            square = add(e.MulOp(x, x))
            factor = add(e.AddOp(add(e.MulOp(square, third)), first))
        return add(e.MulOp(x, add(e.SigmoidOp(add(e.MulOp(x, factor))))))


class SigmoidByExp(_FormulaPattern):
    """1 / (1 + exp(-x)) -> sigmoid(x); y / (1 + exp(-x)) -> y * sigmoid(x)"""

    name = "sigmoid-by-exp"
    roots = (e.DivOp,)

    def match(self, op: e.DivOp) -> Match[Formula] | None:
        if not is_precise(op.result) or (exp := one_plus(op.rhs, e.ExpOp)) is None:
            return None
        if not exp.input.has_one_use() or exp.result.type != op.result.type:
            return None
        if (x := _negated(exp.input)) is None:
            return None
        owners = [value.owner for value in (op.rhs, exp.result, exp.input)]
        inner = [owner for owner in owners if isinstance(owner, Operation)]
        return Match((op, *inner), "the logistic function", Formula(x))

    def rewrite(self, match: Match[Formula], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, e.DivOp)
        sigmoid = rewriter.add(e.SigmoidOp(match.data.x))
        rewriter.replace(op, sigmoid if number(op.lhs) == 1 else e.MulOp(op.lhs, sigmoid.result))


def _negated(value: SSAValue) -> SSAValue | None:
    """x if `value` is -x, or x * -1 of the same shape."""
    if (negation := producer(value, e.NegOp)) is not None:
        return negation.input
    product = producer(value, e.MulOp)
    if product is None or product.lhs.type != value.type or number(product.rhs) != -1:
        return None
    return product.lhs


class ScaleClippedGate(_FormulaPattern):
    """k * x * clip(x + c, low, high) -> x * clip(k * x + k * c, k * low, k * high) [k > 0]"""

    name = "scale-clipped-gate"
    roots = (e.MulOp, e.DivOp)

    def match(self, op: Operation) -> Match[Formula] | None:
        if not is_precise(op.results[0]):
            return None
        product = product_of(op)
        if len(product.factors) != 2 or product.scale <= 0 or product.scale == 1:
            return None
        for x, gate in (product.factors, product.factors[::-1]):
            found = _clipped(x, gate)
            if found is not None and x.type == op.results[0].type:
                numbers, consumed = found
                k = product.scale
                formula = Formula(x, (k, *(k * value for value in numbers)))
                return Match((*product.consumed, *consumed), "the scale moves inside", formula)
        return None

    def build(self, formula: Formula, add: Callable[[Operation], SSAValue]) -> SSAValue:
        x, element = formula.x, element_type(formula.x)
        scale, shift, low, high = (add(scalar(value, element)) for value in formula.numbers)
        line = add(e.AddOp(add(e.MulOp(x, scale)), shift))
        return add(e.MulOp(x, add(e.MinOp(add(e.MaxOp(line, low)), high))))


def _clipped(
    x: SSAValue, gate: SSAValue
) -> tuple[tuple[float, float, float], list[Operation]] | None:
    """c, low and high if `gate` is min(max(x + c, low), high), without another use."""
    consumed: list[Operation] = []
    numbers: list[float] = []
    value = gate
    for cls in (e.MinOp, e.MaxOp, e.AddOp):
        op = producer(value, cls)
        if op is None or not value.has_one_use() or (constant := number(op.rhs)) is None:
            return None
        consumed.append(op)
        numbers.append(constant)
        value = op.lhs
    high, low, shift = numbers
    return ((shift, low, high), consumed) if value is x else None


class FuseActivationPass(PatternPass):
    """
    Activation functions that exporters decompose, with as few operations as possible.

    - k * x * (1 + erf(x / c)), x * (k + k * erf(x / c)), x * (k - k * erf(-x / c)), in any order
      -> (k * x) * (1 + erf(1 / c * x))
    - 0.5 * x * (1 + tanh(a * x + b * x^3)) -> x * sigmoid(x * (2 * a + 2 * b * x^2)) [a * b >= 0]
    - 1 / (1 + exp(-x)) -> sigmoid(x); y / (1 + exp(-x)) -> y * sigmoid(x)
    - k * x * clip(x + c, low, high) -> x * clip(k * x + k * c, k * low, k * high)
      [k > 0, and not 1]

    [f32 or f64; constants finite, each combined in f64 and rounded once; intermediate values,
    except in polynomials, have no other use]. Products may be in any order; quotients by constants
    count as products. The results differ by rounding errors: NaN, infinities and the sign of zero
    are preserved.
    """

    name = "fuse-activation"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [GeluByErf(), GeluByTanh(), SigmoidByExp(), ScaleClippedGate()]
