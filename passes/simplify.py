"""`simplify`: algebra on core ops, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from lowerdeck.dialects.blob import ElidedBlobError
from lowerdeck.dialects.core import elementwise as e
from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.tensor import (
    BroadcastOp,
    ConcatOp,
    GatherOp,
    ReshapeOp,
    SliceOp,
    SplitOp,
    TransposeOp,
    ints,
)
from lowerdeck.dialects.core.types import (
    bf16,
    broadcast,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i1,
    is_float,
    numpy_dtype,
    rank_of,
    static_shape,
)
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.driver import CorePass, Match, Pattern, Rewriter, producer
from lowerdeck.passes.fold_identities import UNIFORM_LIMIT, uniform_value

Replacement: TypeAlias = SSAValue[Attribute] | Callable[[], Operation]
"""A value that is there already, or how to build an op."""
Rule: TypeAlias = tuple[str, Replacement, tuple[Operation, ...]]
"""The equation, what replaces the op, and the other ops that were looked through."""


class _Algebra(Pattern[Replacement]):
    """Patterns that replace an op by an operand or by one new op of the same type."""

    ranked = True

    def rule(self, op: Any) -> Rule | None:
        """The equation that applies to `op`."""
        raise NotImplementedError

    def match(self, op: Operation) -> Match[Replacement] | None:
        if (rule := self.rule(op)) is None:
            return None
        equation, new, others = rule
        if not callable(new) and new.type != op.results[0].type:
            return None  # it was broadcast
        return Match((op, *others), equation, new)

    def rewrite(self, match: Match[Replacement], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, match.data() if callable(match.data) else match.data)


# Neutral elements

_POSITIVE = (e.AbsOp, e.ExpOp, e.CoshOp, e.SigmoidOp, SoftmaxOp)
"""Ops that never give -0."""


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
"""What makes a constant neutral, and whether it may also stand on the left."""


class DropNeutralOperand(_Algebra):
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


class DropRepeatedOperand(_Algebra):
    """max(x, x), min(x, x), x and x, x or x, select(c, x, x) -> x"""

    name = "drop-repeated-operand"
    roots = (*_IDEMPOTENT, e.SelectOp)

    def rule(self, op: e.BinaryOp | e.SelectOp) -> Rule | None:
        left, right = op.operands[-2:]
        return (f"{op.name} of a value and itself", left, ()) if left is right else None


# Two ops that are one


class CancelUnary(_Algebra):
    """neg(neg(x)), not(not(x)) -> x; abs(neg(x)), abs(abs(x)) -> abs(x)"""

    name = "cancel-unary"
    roots = (e.NegOp, e.NotOp, e.AbsOp)

    def rule(self, op: e.UnaryOp) -> Rule | None:
        inner = op.input.owner
        if isinstance(inner, e.NegOp | e.NotOp) and type(inner) is type(op):
            return f"two {op.name} cancel", inner.input, (inner,)
        if isinstance(op, e.AbsOp) and isinstance(inner, e.NegOp | e.AbsOp):
            x = inner.input
            return f"the sign of {inner.name} is dropped", lambda: e.AbsOp(x), (inner,)
        return None


_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}


class NegateComparison(_Algebra):
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
        if is_float(element_type(compare.lhs)) and predicate not in ("eq", "ne"):
            return None
        opposite, lhs, rhs = _OPPOSITE[predicate], compare.lhs, compare.rhs
        text = f"not {predicate} is {opposite}"
        return text, lambda: e.CompareOp(opposite, lhs, rhs), (compare,)

    def _select(self, op: e.SelectOp) -> Rule | None:
        if (negation := producer(op.condition, e.NotOp)) is None:
            return None
        c, x, y = negation.input, op.on_true, op.on_false
        return "the choices change places", lambda: e.SelectOp(c, y, x), (negation,)


class SquareInsteadOfPower(_Algebra):
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
        # The sum of constants alone is for fold; here it would move round and round.
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


class MoveConstantRight(_Algebra):
    """c + x -> x + c; c * x -> x * c"""

    name = "move-constant-right"
    roots = (e.AddOp, e.MulOp)

    def rule(self, op: e.AddOp | e.MulOp) -> Rule | None:
        left, right = op.lhs, op.rhs
        if not isinstance(left.owner, ConstantOp) or isinstance(right.owner, ConstantOp):
            return None
        return "constants stand on the right", lambda: type(op)(right, left), ()


# Data movement


class ComposeReshapes(_Algebra):
    """reshape(reshape(x, a), b) -> reshape(x, b)"""

    name = "compose-reshapes"
    roots = (ReshapeOp,)

    def rule(self, op: ReshapeOp) -> Rule | None:
        if (inner := producer(op.input, ReshapeOp)) is None:
            return None
        x, dims = inner.input, op.dims.data
        return "the last reshape decides", lambda: ReshapeOp(x, dims), (inner,)


class SliceBetweenReshapes(Pattern[list[list[Expr]]]):
    """reshape(slice(reshape(x))) -> reshape(slice(x)) [the inner one adds or drops ones]"""

    name = "slice-between-reshapes"
    roots = (ReshapeOp,)
    ranked = True

    def match(self, op: ReshapeOp) -> Match[list[list[Expr]]] | None:
        part = producer(op.input, SliceOp)
        inner = producer(part.input, ReshapeOp) if part is not None else None
        if part is None or inner is None or not op.input.has_one_use():
            return None
        lists = (inner.dims.data, part.starts.data, part.sizes.data, part.steps.data)
        rows = list(zip(*lists, strict=True))
        if any(dim == 1 and (start != 0 or size != 1) for dim, start, size, _ in rows):
            return None
        dims, moved = dims_of(inner.input), [row for row in rows if row[0] != 1]
        if [dim for dim in dims if dim != 1] != [row[0] for row in moved]:
            return None
        zero, one, following = Expr.const(0), Expr.const(1), iter(moved)
        rule = [(one, zero, one, one) if dim == 1 else next(following) for dim in dims]
        bounds = [[row[k] for row in rule] for k in (1, 2, 3)]
        return Match((op, part, inner), "dimensions of one come and go", bounds)

    def rewrite(self, match: Match[list[list[Expr]]], rewriter: Rewriter) -> None:
        op, _, inner = match.consumed
        assert isinstance(inner, ReshapeOp)
        part = rewriter.add(SliceOp(inner.input, *match.data)).result
        same = part.type == op.results[0].type
        rewriter.replace(op, part if same else ReshapeOp(part, dims_of(op.results[0])))


class ComposeTransposes(_Algebra):
    """transpose(transpose(x, p), q) -> transpose(x, p[q]), or x if that is the identity"""

    name = "compose-transposes"
    roots = (TransposeOp,)

    def rule(self, op: TransposeOp) -> Rule | None:
        if (inner := producer(op.input, TransposeOp)) is None:
            return None
        x, first = inner.input, ints(inner.permutation)
        permutation = [first[axis] for axis in ints(op.permutation)]
        if permutation == sorted(permutation):
            return "two permutations cancel", x, (inner,)
        return "one permutation after the other", lambda: TransposeOp(x, permutation), (inner,)


class ReshapeInsteadOfTranspose(_Algebra):
    """transpose(x, p) -> reshape(x) [p keeps the order of all dimensions but those of one]"""

    name = "reshape-instead-of-transpose"
    roots = (TransposeOp,)

    def rule(self, op: TransposeOp) -> Rule | None:
        x, permutation = op.input, ints(op.permutation)
        dims = dims_of(x)
        moved = [axis for axis in permutation if dims[axis] != 1]
        if moved != sorted(moved) or permutation == sorted(permutation):
            return None
        return "only dimensions of one move", lambda: ReshapeOp(x, dims_of(op.result)), ()


class ComposeBroadcasts(_Algebra):
    """broadcast(broadcast(x, a), b) -> broadcast(x, b)"""

    name = "compose-broadcasts"
    roots = (BroadcastOp,)

    def rule(self, op: BroadcastOp) -> Rule | None:
        if (inner := producer(op.input, BroadcastOp)) is None:
            return None
        x, dims = inner.input, op.dims.data
        return "the last broadcast decides", lambda: BroadcastOp(x, dims), (inner,)


class ComposeSlices(_Algebra):
    """slice(slice(x, s1, t1), s2, t2) -> slice(x, s1 + s2 * t1, t1 * t2)"""

    name = "compose-slices"
    roots = (SliceOp,)

    def rule(self, op: SliceOp) -> Rule | None:
        if (inner := producer(op.input, SliceOp)) is None:
            return None
        x = inner.input
        lists = (inner.starts.data, inner.steps.data, op.starts.data, op.steps.data)
        rows = list(zip(*lists, strict=True))
        starts = [s1 + s2 * t1 for s1, t1, s2, _ in rows]
        steps = [t1 * t2 for _, t1, _, t2 in rows]
        sizes = op.sizes.data
        return "a part of a part", lambda: SliceOp(x, starts, sizes, steps), (inner,)


_PARTS_LIMIT = 256
"""Operands of a flattened concat: flattening a chain step by step copies them every time."""


class SliceInsteadOfGather(Pattern[tuple[int, int, int]]):
    """gather(x, [a, a + s, ...]) -> slice(x), gather(x, a) -> reshape(slice(x)) [in range]"""

    name = "slice-instead-of-gather"
    roots = (GatherOp,)
    ranked = True

    def match(self, op: GatherOp) -> Match[tuple[int, int, int]] | None:
        dim = dims_of(op.input)[op.axis.data].value
        if dim is None or not is_float(element_type(op.input)) or rank_of(op.indices) > 1:
            return None
        indices = _small_integers(op.indices)
        if not indices or not all(-dim <= index < dim for index in indices):
            return None
        places = [index % dim for index in indices]
        step = places[1] - places[0] if len(places) > 1 else 1
        if step == 0 or places != [places[0] + k * step for k in range(len(places))]:
            return None
        return Match((op,), "the indices are evenly spaced", (places[0], len(places), step))

    def rewrite(self, match: Match[tuple[int, int, int]], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, GatherOp)
        sizes = list(dims_of(op.input))
        starts, steps = [Expr.const(0)] * len(sizes), [Expr.const(1)] * len(sizes)
        axis = op.axis.data
        starts[axis], sizes[axis], steps[axis] = map(Expr.const, match.data)
        part = rewriter.add(SliceOp(op.input, starts, sizes, steps)).result
        same = part.type == op.result.type
        rewriter.replace(op, part if same else ReshapeOp(part, dims_of(op.result)))


def _small_integers(value: SSAValue) -> list[int]:
    """The elements of a constant, if there are not too many to look at."""
    if not isinstance(value.owner, ConstantOp) or value.owner.value.data.size > UNIFORM_LIMIT:
        return []
    try:
        return [int(index) for index in value.owner.array.reshape(-1)]
    except ElidedBlobError:
        return []


class FlattenConcat(_Algebra):
    """concat(concat(x, y), z) -> concat(x, y, z) [along the same axis; used once]"""

    name = "flatten-concat"
    roots = (ConcatOp,)

    def rule(self, op: ConcatOp) -> Rule | None:
        inner: list[ConcatOp] = []
        parts: list[SSAValue] = []
        for value in op.inputs:
            part = producer(value, ConcatOp)
            if part is not None and part.axis == op.axis and value.has_one_use():
                inner.append(part)
                parts.extend(part.inputs)
            else:
                parts.append(value)
        axis = op.axis.data
        if not inner or len(parts) > _PARTS_LIMIT or not _keeps_dims(op, parts):
            return None
        return "joined in one step", lambda: ConcatOp(parts, axis), tuple(inner)


def _keeps_dims(op: ConcatOp, parts: Sequence[SSAValue]) -> bool:
    """The dimensions besides the axis are those of the first operand."""
    axis, before, after = op.axis.data, dims_of(op.result), dims_of(parts[0])
    return (*before[:axis], *before[axis + 1 :]) == (*after[:axis], *after[axis + 1 :])


class JoinParts(_Algebra):
    """concat(y, split(x), z) -> concat(y, x, z) [all parts, in order, along the same axis]"""

    name = "join-parts"
    roots = (ConcatOp,)

    def rule(self, op: ConcatOp) -> Rule | None:
        values, axis = tuple(op.inputs), op.axis.data
        for start, value in enumerate(values):
            split = producer(value, SplitOp)
            if split is None or split.axis != op.axis:
                continue
            end = start + len(split.parts)
            if values[start:end] != tuple(split.parts):
                continue
            rest = (*values[:start], split.input, *values[end:])
            if len(rest) == 1:
                return "the parts in their order", split.input, (split,)
            if _keeps_dims(op, rest):
                return "the parts in their order", lambda: ConcatOp(rest, axis), (split,)
        return None


class JoinSlices(_Algebra):
    """concat(y, x[:a], x[a:], z) -> concat(y, x, z) [along the axis, all of x]"""

    name = "join-slices"
    roots = (ConcatOp,)

    def rule(self, op: ConcatOp) -> Rule | None:
        values, axis = tuple(op.inputs), op.axis.data
        for start in range(len(values)):
            slices = _slices_of_whole(values[start:], axis)
            if not slices:
                continue
            rest = (*values[:start], slices[0].input, *values[start + len(slices) :])
            if len(rest) == 1:
                return "slices side by side", slices[0].input, tuple(slices)
            if _keeps_dims(op, rest):
                return "slices side by side", lambda: ConcatOp(rest, axis), tuple(slices)
        return None


def _slices_of_whole(values: Sequence[SSAValue], axis: int) -> list[SliceOp]:
    """The first values, if they are slices of one tensor that make it up along an axis."""
    slices: list[SliceOp] = []
    end = Expr.const(0)
    for value in values:
        part = producer(value, SliceOp)
        if part is None or (slices and part.input is not slices[0].input):
            return []
        dims = dims_of(part.input)
        lists = enumerate(zip(part.sizes.data, dims, strict=True))
        is_whole = all(size == dim for k, (size, dim) in lists if k != axis)
        if part.starts.data[axis] != end or not is_whole:
            return []
        if any(step != 1 for step in part.steps.data):
            return []
        slices.append(part)
        end = end + part.sizes.data[axis]
        if end == dims[axis]:
            return slices
    return []


class SplitOperands(Pattern[list[SSAValue]]):
    """split(concat(x, y)) -> x, y [along the same axis, where the operands meet]"""

    name = "split-operands"
    roots = (SplitOp,)
    ranked = True

    def match(self, op: SplitOp) -> Match[list[SSAValue]] | None:
        concat = producer(op.input, ConcatOp)
        if concat is None or concat.axis != op.axis:
            return None
        if [value.type for value in concat.inputs] != [part.type for part in op.parts]:
            return None
        return Match((op, concat), "the parts are the operands", list(concat.inputs))

    def rewrite(self, match: Match[list[SSAValue]], rewriter: Rewriter) -> None:
        rewriter.replace(match.root, match.data)


class BroadcastInElementwise(_Algebra):
    """f(x, broadcast(y)) -> f(x, y) [f elementwise, of the same result type]"""

    name = "broadcast-in-elementwise"
    roots = (e.BinaryOp, e.CompareOp, e.SelectOp)

    def rule(self, op: CoreOp) -> Rule | None:
        sources = [producer(value, BroadcastOp) for value in op.operands]
        operands = list(op.operands)
        used: list[Operation] = []
        for index, source in enumerate(sources):
            if source is None:
                continue
            trial = [*operands[:index], source.input, *operands[index + 1 :]]
            if broadcast([dims_of(value) for value in trial]) == dims_of(op.results[0]):
                operands = trial
                used.append(source)
        if not used:
            return None
        return "broadcasts by itself", lambda: _like(op, operands), tuple(used)


def _like(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """The same op of other operands, with the same result type."""
    return type(op).create(
        operands=operands,
        result_types=list(op.result_types),
        properties=dict(op.properties),
        attributes=dict(op.attributes),
    )


class ComposeCasts(_Algebra):
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


class SimplifyPass(CorePass):
    """
    Algebra that holds bit for bit: for NaN, infinities, -0, and integers that wrap.

    - x + 0, x - 0, x * 1, x / 1, x ^ 1, x and true, x or 0, x xor 0, x << 0 -> x
      [not float x + 0, which makes 0 of -0, but x + -0 and x - 0; no broadcasting]
    - max(x, x), min(x, x), x and x, x or x, select(c, x, x) -> x
    - neg(neg(x)), not(not(x)) -> x; abs(neg(x)), abs(abs(x)) -> abs(x)
    - not(x < y) -> x >= y [integers]; not(x == y) -> x != y; select(not c, x, y) -> select(c, y, x)
    - x ^ 2 -> x * x; x / c -> x * (1 / c) [c a power of two]
    - c + x -> x + c; (x + c1) + c2 -> x + (c1 + c2) [integers]; likewise for *
    - reshapes, transposes, broadcasts and slices of the same: composed
    - reshape(slice(reshape(x))) -> reshape(slice(x)) [the inner one adds or drops ones]
    - a transpose that moves only dimensions of one -> reshape
    - gather(x, [a, a + s, ...]) -> slice(x), reshaped for a scalar a [floats; in range]
    - concat(concat(x, y), z) -> concat(x, y, z) [same axis; the inner one used once]
    - concat(split(x)) -> x; concat(y, split(x), z) -> concat(y, x, z)
      [all parts, in order, same axis; likewise slices that make up x]
    - split(concat(x, y)) -> x, y [same axis, the same sizes]
    - f(x, broadcast(y)) -> f(x, y) [f elementwise, of the same result type]
    - cast(cast(x, a), b) -> cast(x, b) [a holds every value of x's type]
    """

    name = "simplify"

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
            ComposeReshapes(),
            SliceBetweenReshapes(),
            ComposeTransposes(),
            ReshapeInsteadOfTranspose(),
            ComposeBroadcasts(),
            ComposeSlices(),
            SliceInsteadOfGather(),
            FlattenConcat(),
            JoinParts(),
            JoinSlices(),
            SplitOperands(),
            BroadcastInElementwise(),
            ComposeCasts(),
        ]
