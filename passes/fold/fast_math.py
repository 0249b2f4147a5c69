"""`fast-math`: algebra of real numbers on floats, which changes roundings and special values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.tensor import BroadcastOp
from lowerdeck.dialects.core.types import (
    broadcast,
    dims_of,
    element_type,
    numpy_dtype,
    rank_of,
    static_shape,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
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
    """
    (x + c1) + c2 -> x + (c1 + c2), with either sign, and c2 - (x + c1) -> (c2 - c1) - x;
    (x * c1) * c2 -> x * (c1 * c2)
    """

    name = "reassociate-floats"
    roots = (*_SUMS, e.MulOp)

    def rule(self, op: e.AddOp | e.SubOp | e.MulOp) -> Construction | None:
        return self._product(op) if isinstance(op, e.MulOp) else self._sum(op)

    @staticmethod
    def _product(op: e.MulOp) -> Construction | None:
        inner = producer(op.lhs, e.MulOp)
        if inner is None or not op.lhs.has_one_use() or isinstance(inner.lhs.owner, ConstantOp):
            return None
        first, second = _known(inner.rhs), _known(op.rhs)
        if first is None or second is None:
            return None
        if (constant := _constant(first * second, op.result)) is None:
            return None
        return "constants meet", _with_constant(e.MulOp, inner.lhs, constant), (inner,)

    @staticmethod
    def _sum(op: e.AddOp | e.SubOp) -> Construction | None:
        outer = _shifted(op)
        inner = None if outer is None or not outer.x.has_one_use() else _shifted(outer.x.owner)
        if outer is None or inner is None:
            return None
        total = outer.shift - inner.shift if outer.negated else outer.shift + inner.shift
        if (constant := _constant(total, op.result)) is None:
            return None
        owner = outer.x.owner
        assert isinstance(owner, Operation)
        if outer.negated == inner.negated:
            return "constants meet", _with_constant(e.AddOp, inner.x, constant), (owner,)

        def build(rewriter: Rewriter) -> SSAValue:
            return rewriter.add(e.SubOp(_constant_of(constant)(rewriter), inner.x)).result

        return "constants meet", build, (owner,)


@record
class Shifted:
    """x + shift, or -x + shift."""

    x: SSAValue
    shift: Array
    negated: bool = False


def _shifted(op: object) -> Shifted | None:
    """What x + c, x - c and c - x are, for x that is no constant."""
    if not isinstance(op, _SUMS):
        return None
    is_difference = isinstance(op, e.SubOp)
    if isinstance(op.lhs.owner, ConstantOp):
        constant = _known(op.lhs)
        is_alone = constant is None or isinstance(op.rhs.owner, ConstantOp)
        return None if is_alone or constant is None else Shifted(op.rhs, constant, is_difference)
    if (constant := _known(op.rhs)) is None:
        return None
    return Shifted(op.lhs, -constant if is_difference else constant)


def _scaled(value: SSAValue) -> tuple[SSAValue, Array, tuple[Operation, ...]]:
    """x and c of a value that is x * c, x / c or -x, or itself, and the op, if it has one use."""
    op, one = value.owner, np.ones(())
    if not value.has_one_use():
        return value, one, ()
    if isinstance(op, e.NegOp):
        return op.input, -one, (op,)
    if isinstance(op, e.MulOp) and (factor := _known(op.rhs)) is not None:
        return op.lhs, factor, (op,)
    if isinstance(op, e.DivOp) and (divisor := _known(op.rhs)) is not None and divisor.all():
        return op.lhs, 1 / divisor, (op,)
    return value, one, ()


class CollectTerms(FastRule):
    """x * c1 + x * c2 -> x * (c1 + c2), with either sign; quotients and x itself are products"""

    name = "collect-terms"
    roots = _SUMS

    def rule(self, op: e.AddOp | e.SubOp) -> Construction | None:
        x, first, before = _scaled(op.lhs)
        other, second, after = _scaled(op.rhs)
        if x is not other or not (before or after):
            return None
        total = _constant(first - second if isinstance(op, e.SubOp) else first + second, x)
        if total is None or _dims([x], total) != dims_of(op.result):
            return None
        return "one term", _with_constant(e.MulOp, x, total), (*before, *after)


def _dims(values: Sequence[SSAValue], array: Array) -> Sequence[Expr]:
    """The dimensions of values and numbers together."""
    return broadcast([*map(dims_of, values), [Expr.const(size) for size in array.shape]])


class CollectFactor(FastRule):
    """x * z + y * z -> (x + y) * z, x / z + y / z -> (x + y) / z, with either sign"""

    name = "collect-factor"
    roots = _SUMS

    def rule(self, op: e.AddOp | e.SubOp) -> Construction | None:
        cls = type(op.lhs.owner)
        if cls not in (e.MulOp, e.DivOp):
            return None
        left, right = producer(op.lhs, e.BinaryOp), producer(op.rhs, e.BinaryOp)
        if left is None or right is None or type(right) is not cls or left is right:
            return None
        if not (left.result.has_one_use() and right.result.has_one_use()):
            return None
        for x, z in self._factors(left):
            for y, other in self._factors(right):
                # What is summed up is no larger than what was, and sizes agree as before.
                sizes = [dims_of(left.result), dims_of(right.result), dims_of(op.result)]
                if z is other and sizes[0] == sizes[1] == sizes[2]:
                    build = self._build(type(op), type(left), x, y, z)
                    return "one factor", build, (left, right)
        return None

    @staticmethod
    def _factors(op: e.BinaryOp) -> Sequence[tuple[SSAValue, SSAValue]]:
        """What is left, and a factor that may be common; a divisor."""
        pairs = [(op.lhs, op.rhs)]
        return [*pairs, (op.rhs, op.lhs)] if isinstance(op, e.MulOp) else pairs

    @staticmethod
    def _build(
        sum_: type[e.BinaryOp], cls: type[e.BinaryOp], x: SSAValue, y: SSAValue, z: SSAValue
    ) -> Build:
        return lambda rewriter: rewriter.add(cls(rewriter.add(sum_(x, y)).result, z)).result


class CollectProducts(FastRule):
    """x @ a + x @ b -> x @ (a + b), a @ x + b @ x -> (a + b) @ x, with either sign"""

    name = "collect-products"
    roots = _SUMS

    def rule(self, op: e.AddOp | e.SubOp) -> Construction | None:
        left, right = producer(op.lhs, MatmulOp), producer(op.rhs, MatmulOp)
        if left is None or right is None or left is right:
            return None
        if not (left.is_uniform and right.is_uniform):
            return None
        if not (left.result.has_one_use() and right.result.has_one_use()):
            return None
        sum_ = type(op)
        for k, common in enumerate((left.lhs, left.rhs)):
            a, b = left.operands[1 - k], right.operands[1 - k]
            if right.operands[k] is not common or a.type != b.type:
                continue

            def build(rewriter: Rewriter, k: int = k, common: SSAValue = common) -> SSAValue:
                a, b = left.operands[1 - k], right.operands[1 - k]
                total = rewriter.add(sum_(a, b)).result
                factors = (total, common) if k else (common, total)
                return rewriter.add(MatmulOp(*factors)).result

            return "one product", build, (left, right)
        return None


class MeetAroundOthers(FastRule):
    """
    ((x + c1) + y) + c2 -> (x + y) + (c1 + c2); (x + c1) + (y + c2) -> (x + y) + (c1 + c2); and
    broadcast(x + c1) + c2 -> broadcast(x + (c1 + c2)), or broadcast(x) + (c1 + c2)
    """

    name = "meet-around-others"
    roots = _SUMS

    def rule(self, op: e.AddOp | e.SubOp) -> Construction | None:
        outer = _shifted(op)
        if outer is None:
            return self._two_sums(op)
        if not outer.x.has_one_use():
            return None
        inner = outer.x.owner
        if isinstance(inner, BroadcastOp):
            return self._broadcast(op, outer, inner)
        if outer.negated or not isinstance(inner, _SUMS) or inner.result.type != op.result.type:
            return None
        for side in (0, 1):
            found = _only_shifted(inner.operands[side])
            if found is None:
                continue
            pair = [*inner.operands]
            pair[side] = found.x
            is_taken_off = isinstance(inner, e.SubOp) and side == 1
            total = outer.shift + (-found.shift if is_taken_off else found.shift)
            ops = (inner, *_ops(inner.operands[side]))
            return self._sum(op, type(inner), pair, total, ops)
        return None

    def _two_sums(self, op: e.AddOp | e.SubOp) -> Construction | None:
        left, right = _only_shifted(op.lhs), _only_shifted(op.rhs)
        if left is None or right is None or op.lhs is op.rhs:
            return None
        sign = -1 if isinstance(op, e.SubOp) else 1
        ops = (*_ops(op.lhs), *_ops(op.rhs))
        return self._sum(op, type(op), [left.x, right.x], left.shift + sign * right.shift, ops)

    @staticmethod
    def _sum(
        op: e.BinaryOp,
        cls: type[e.BinaryOp],
        pair: Sequence[SSAValue],
        total: Array,
        ops: tuple[Operation, ...],
    ) -> Construction | None:
        constant = _constant(total, op.result)
        if constant is None or broadcast(list(map(dims_of, pair))) != dims_of(op.result):
            return None

        def build(rewriter: Rewriter) -> SSAValue:
            value = rewriter.add(cls(*pair)).result
            return _with_constant(e.AddOp, value, constant)(rewriter)

        return "constants meet", build, ops

    @staticmethod
    def _broadcast(op: e.BinaryOp, outer: Shifted, inner: BroadcastOp) -> Construction | None:
        found = _only_shifted(inner.input)
        if found is None or dims_of(inner.result) != dims_of(op.result):
            return None
        total = outer.shift - found.shift if outer.negated else outer.shift + found.shift
        if (constant := _constant(total, op.result)) is None:
            return None
        dims = inner.dims.data
        fits = constant.ndim <= rank_of(found.x) and _dims([found.x], constant) == dims_of(found.x)

        def shifted(x: SSAValue, rewriter: Rewriter) -> SSAValue:
            number = _constant_of(constant)(rewriter)
            return rewriter.add(e.SubOp(number, x) if outer.negated else e.AddOp(x, number)).result

        def build(rewriter: Rewriter) -> SSAValue:
            if fits:
                return rewriter.add(BroadcastOp(shifted(found.x, rewriter), dims)).result
            return shifted(rewriter.add(BroadcastOp(found.x, dims)).result, rewriter)

        return "constants meet", build, (inner, *_ops(inner.input))


def _only_shifted(value: SSAValue) -> Shifted | None:
    """x and c of a value of the size of x that is x + c, or x - c, and has one use."""
    found = _shifted(value.owner) if value.has_one_use() else None
    return None if found is None or found.negated or found.x.type != value.type else found


def _ops(value: SSAValue) -> tuple[Operation, ...]:
    return (value.owner,) if isinstance(value.owner, Operation) else ()


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
    - (x + c1) + c2 -> x + (c1 + c2), and with -; c2 - (x + c1) -> (c2 - c1) - x, ...;
      (x * c1) * c2 -> x * (c1 * c2)
      [the constant neither overflows nor underflows]
    - ((x + c1) + y) + c2, (x + c1) + (y + c2) -> (x + y) + (c1 + c2), and with -
    - broadcast(x + c1) + c2 -> broadcast(x + (c1 + c2)), or broadcast(x) + (c1 + c2)
    - x * c1 + x * c2, x * c1 + x, x / c1 - x, ... -> x * (c1 + c2)
    - x * z + y * z -> (x + y) * z; x / z + y / z -> (x + y) / z, and with -
    - x @ a + x @ b -> x @ (a + b); a @ x + b @ x -> (a + b) @ x, and with -
      [each with one use]
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
            CollectTerms(),
            CollectFactor(),
            CollectProducts(),
            MultiplyByReciprocal(),
            ReassociateFloats(),
            MeetAroundOthers(),
        ]
