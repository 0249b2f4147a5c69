"""`fast-math`: algebra of real numbers on floats, which changes roundings and special values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.types import element_type, numpy_dtype, static_shape
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.equation import Build, BuiltEquation, Construction
from lowerdeck.passes.machinery.values import (
    UNIFORM_LIMIT,
    Array,
    is_finite,
    is_precise,
    small_constant,
    uniform_value,
)


class FastRule(BuiltEquation):
    """A rule of algebra on floats of 32 or 64 bits; the result keeps its type."""

    def match(self, op: Operation) -> Match[Build] | None:
        return super().match(op) if is_precise(op.results[0]) else None


def _one_op(make: Callable[[], e.UnaryOp | e.BinaryOp]) -> Build:
    return lambda rewriter: rewriter.add(make()).result


def _existing(value: SSAValue) -> Build:
    return lambda rewriter: value


def _constant(array: Array, like: SSAValue) -> Array | None:
    """The numbers rounded to the type of `like`; None if one overflows, or vanishes."""
    with np.errstate(all="ignore"):
        rounded = array.astype(numpy_dtype(element_type(like)))
    vanishes = (np.abs(rounded) < np.finfo(rounded.dtype).tiny) & (array != 0)
    return rounded if is_finite(rounded) and not vanishes.any() else None


def _known(value: SSAValue) -> Array | None:
    """The elements of a small constant in f64, if all are finite."""
    array = small_constant(value)
    if array is None or not array.size or not is_finite(array):
        return None
    return array.astype(np.float64)


def _constant_of(array: Array) -> Build:
    return lambda rewriter: rewriter.add(ConstantOp.of(array)).result


def _with_constant(cls: type[e.BinaryOp], x: SSAValue, array: Array) -> Build:
    """An op on a value and a new constant."""
    constant = _constant_of(array)
    return lambda rewriter: rewriter.add(cls(x, constant(rewriter))).result


class MultiplyByReciprocal(FastRule):
    """x / c -> x * (1 / c)"""

    name = "multiply-by-reciprocal"
    roots = (e.DivOp,)

    def rule(self, op: e.DivOp) -> Construction | None:
        divisor = _known(op.rhs)
        if divisor is None or not divisor.all() or isinstance(op.lhs.owner, ConstantOp):
            return None
        if (factor := _constant(1 / divisor, op.rhs)) is None:
            return None
        return "the reciprocal is rounded", _with_constant(e.MulOp, op.lhs, factor), ()


_SUMS = (e.AddOp, e.SubOp)


class ReassociateFloats(FastRule):
    """(x + c1) + c2 -> x + (c1 + c2), with either sign; (x * c1) * c2 -> x * (c1 * c2)"""

    name = "reassociate-floats"
    roots = (*_SUMS, e.MulOp)

    def rule(self, op: e.AddOp | e.SubOp | e.MulOp) -> Construction | None:
        inner = producer(op.lhs, e.BinaryOp)
        if inner is None or not op.lhs.has_one_use() or isinstance(inner.lhs.owner, ConstantOp):
            return None
        first, second = _known(inner.rhs), _known(op.rhs)
        if first is None or second is None:
            return None
        if isinstance(op, e.MulOp) and isinstance(inner, e.MulOp):
            cls, exact = e.MulOp, first * second
        elif isinstance(op, _SUMS) and isinstance(inner, _SUMS):
            signs = [-1 if isinstance(each, e.SubOp) else 1 for each in (inner, op)]
            cls, exact = e.AddOp, signs[0] * first + signs[1] * second
        else:
            return None
        if (constant := _constant(exact, op.result)) is None:
            return None
        return "constants meet", _with_constant(cls, inner.lhs, constant), (inner,)


class ComputeSpecialOperands(FastRule):
    """x + 0, x - 0 -> x; x * 0, 0 / x, x - x -> 0; x / x -> 1"""

    name = "compute-special-operands"
    roots = (*_SUMS, e.MulOp, e.DivOp)

    def rule(self, op: e.BinaryOp) -> Construction | None:
        x = op.lhs
        if isinstance(op, _SUMS) and uniform_value(op.rhs) == 0:
            return ("0 of either sign", _existing(x), ()) if x.type == op.result.type else None
        if (value := self._value(op)) is None:
            return None
        shape, dtype = static_shape(op.result), numpy_dtype(element_type(op.result))
        if shape is None or int(np.prod(shape)) * dtype.itemsize > UNIFORM_LIMIT:
            return None
        return f"{value} for any finite operand", _constant_of(np.full(shape, value, dtype)), ()

    @staticmethod
    def _value(op: e.BinaryOp) -> int | None:
        is_same = op.lhs is op.rhs
        match op:
            case e.MulOp() if uniform_value(op.rhs) == 0 or uniform_value(op.lhs) == 0:
                return 0
            case e.SubOp() if is_same:
                return 0
            case e.DivOp() if is_same:
                return 1
            case e.DivOp() if uniform_value(op.lhs) == 0 and uniform_value(op.rhs) is None:
                return 0
            case _:
                return None


class CancelInverse(FastRule):
    """exp(log(x)), log(exp(x)) -> x; (x * y) / y, (x / y) * y, (x + y) - y, (x - y) + y -> x"""

    name = "cancel-inverse"
    roots = (e.ExpOp, e.LogOp, *_SUMS, e.MulOp, e.DivOp)

    def rule(self, op: e.UnaryOp | e.BinaryOp) -> Construction | None:
        for x, inner in _UNDONE[type(op)](op):
            if x.type == op.result.type:
                return f"{op.name} of {inner.name}", _existing(x), (inner,)
        return None


Undone: TypeAlias = Iterator[tuple[SSAValue, Operation]]
"""Values that an op gives back, each with the op that it undoes."""


def _undone_function(inverse: type[e.UnaryOp]) -> Callable[[Any], Undone]:
    def undone(op: e.UnaryOp) -> Undone:
        if (inner := producer(op.input, inverse)) is not None:
            yield inner.input, inner

    return undone


def _undone_on_left(inverse: type[e.BinaryOp]) -> Callable[[Any], Undone]:
    """(x + y) - y and (y + x) - y"""

    def undone(op: e.BinaryOp) -> Undone:
        if (inner := producer(op.lhs, inverse)) is not None:
            if inner.rhs is op.rhs:
                yield inner.lhs, inner
            if inner.lhs is op.rhs:
                yield inner.rhs, inner

    return undone


def _undone_on_either_side(inverse: type[e.BinaryOp]) -> Callable[[Any], Undone]:
    """(x - y) + y and y + (x - y)"""

    def undone(op: e.BinaryOp) -> Undone:
        for value, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            inner = producer(value, inverse)
            if inner is not None and inner.rhs is other:
                yield inner.lhs, inner

    return undone


_UNDONE: Mapping[type[Operation], Callable[[Any], Undone]] = {
    e.ExpOp: _undone_function(e.LogOp),
    e.LogOp: _undone_function(e.ExpOp),
    e.SubOp: _undone_on_left(e.AddOp),
    e.DivOp: _undone_on_left(e.MulOp),
    e.AddOp: _undone_on_either_side(e.SubOp),
    e.MulOp: _undone_on_either_side(e.DivOp),
}


class CancelRoot(FastRule):
    """sqrt(x) * sqrt(x) -> x; sqrt(x * x) -> abs(x)"""

    name = "cancel-root"
    roots = (e.MulOp, e.SqrtOp)

    def rule(self, op: e.MulOp | e.UnaryOp) -> Construction | None:
        if isinstance(op, e.MulOp):
            root = producer(op.lhs, e.SqrtOp)
            if root is None or op.lhs is not op.rhs:
                return None
            return "the square of the root", _existing(root.input), (root,)
        square = producer(op.input, e.MulOp)
        if square is None or square.lhs is not square.rhs:
            return None
        x = square.lhs
        return "the root of the square", _one_op(lambda: e.AbsOp(x)), (square,)


class JoinExponentials(FastRule):
    """exp(x) * exp(y) -> exp(x + y); exp(x) / exp(y) -> exp(x - y) [each with one use]"""

    name = "join-exponentials"
    roots = (e.MulOp, e.DivOp)

    def rule(self, op: e.MulOp | e.DivOp) -> Construction | None:
        left, right = producer(op.lhs, e.ExpOp), producer(op.rhs, e.ExpOp)
        if left is None or right is None:
            return None
        if not left.result.has_one_use() or not right.result.has_one_use():
            return None
        cls = e.AddOp if isinstance(op, e.MulOp) else e.SubOp
        x, y = left.input, right.input

        def build(rewriter: Rewriter) -> SSAValue:
            return rewriter.add(e.ExpOp(rewriter.add(cls(x, y)).result)).result

        return "one exponential", build, (left, right)


class ExpandPower(FastRule):
    """x ^ 0.5 -> sqrt(x); x ^ -0.5 -> 1 / sqrt(x); x ^ -1 -> 1 / x; x ^ 3 -> x * x * x"""

    name = "expand-power"
    roots = (e.PowOp,)

    def rule(self, op: e.PowOp) -> Construction | None:
        exponent, x = uniform_value(op.rhs), op.lhs
        if exponent is None or float(exponent) not in _POWERS or x.type != op.result.type:
            return None
        expand = _POWERS[float(exponent)]
        return f"a power of {exponent}", lambda rewriter: expand(x, rewriter), ()


def _root(x: SSAValue, rewriter: Rewriter) -> SSAValue:
    return rewriter.add(e.SqrtOp(x)).result


def _reciprocal(x: SSAValue, rewriter: Rewriter) -> SSAValue:
    one = rewriter.add(ConstantOp.of(np.ones((), numpy_dtype(element_type(x)))))
    return rewriter.add(e.DivOp(one.result, x)).result


def _cube(x: SSAValue, rewriter: Rewriter) -> SSAValue:
    return rewriter.add(e.MulOp(rewriter.add(e.MulOp(x, x)).result, x)).result


_POWERS: Mapping[float, Callable[[SSAValue, Rewriter], SSAValue]] = {
    0.5: _root,
    -0.5: lambda x, rewriter: _reciprocal(_root(x, rewriter), rewriter),
    -1.0: _reciprocal,
    3.0: _cube,
}


class FastMathPass(PatternPass):
    """
    Algebra of real numbers on floats of 32 and 64 bits: faster, but not exact.

    Part of no pipeline but that of `--fast-math`. Results differ in their last digits; where sums
    cancel, in all digits: (x + 12582912) - 12582912, which rounds, is x. NaN, infinities and the
    signs of zeros are not kept: what multiplies an infinity by 0 gives 0.

    - x / c -> x * (1 / c) [finite c; 1 / c is normal]
    - (x + c1) + c2 -> x + (c1 + c2), and with -; (x * c1) * c2 -> x * (c1 * c2)
      [the constant neither overflows nor underflows]
    - x + 0, x - 0 -> x; x * 0, 0 / x, x - x -> 0; x / x -> 1
    - exp(log(x)), log(exp(x)), (x * y) / y, (x / y) * y, (x + y) - y, (x - y) + y -> x
    - sqrt(x) * sqrt(x) -> x; sqrt(x * x) -> abs(x)
    - exp(x) * exp(y) -> exp(x + y); exp(x) / exp(y) -> exp(x - y) [each with one use]
    - x ^ 0.5 -> sqrt(x); x ^ -0.5 -> 1 / sqrt(x); x ^ -1 -> 1 / x; x ^ 3 -> x * x * x

    Each rule has a name, which `--rewrite-log` and `--pass-statistics` print.
    """

    name = "fast-math"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [
            ComputeSpecialOperands(),
            CancelInverse(),
            CancelRoot(),
            JoinExponentials(),
            ExpandPower(),
            MultiplyByReciprocal(),
            ReassociateFloats(),
        ]
