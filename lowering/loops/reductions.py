"""Loops that combine a value from each iteration into one: sums and extrema."""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, YieldOp
from lowerdeck.dialects.buffer.vector import lane_bits, scalar_of
from lowerdeck.dialects.core.types import f32, f64, i1
from lowerdeck.dialects.records import record
from lowerdeck.lowering.loops.lane_values import append

_OPS: Mapping[
    type[
        arith.AddfOp
        | arith.MulfOp
        | arith.MaximumfOp
        | arith.MinimumfOp
        | arith.AddiOp
        | arith.MuliOp
        | arith.MaxSIOp
        | arith.MinSIOp
        | arith.MaxUIOp
        | arith.MinUIOp
    ],
    str,
] = {
    arith.AddfOp: "add",
    arith.MulfOp: "mul",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.AddiOp: "add",
    arith.MuliOp: "mul",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
    arith.MaxUIOp: "umax",
    arith.MinUIOp: "umin",
}
_OF_FLOATS: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
}
_OF_INTEGERS: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = {
    "add": arith.AddiOp,
    "mul": arith.MuliOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
    "umax": arith.MaxUIOp,
    "umin": arith.MinUIOp,
}
_GREATER, _LESS = 2, 4
_SELECTED: Mapping[int, str] = {_GREATER: "max", _LESS: "min"}
_IDENTITIES: Mapping[str, float] = {
    "add": -0.0,
    "mul": 1.0,
    "max": -python_math.inf,
    "min": python_math.inf,
}


def _identity(kind: str, type_: Attribute) -> FloatAttr | IntegerAttr:
    if type_ in (f32, f64):
        return FloatAttr(_IDENTITIES[kind], f64 if type_ == f64 else f32)
    bits = lane_bits(type_)
    highest = (1 << (bits - 1)) - 1
    numbers = {"add": 0, "mul": 1, "max": -highest - 1, "min": highest, "umax": 0, "umin": -1}
    return IntegerAttr(numbers[kind], IntegerType(bits))


@record
class Reduction:
    """
    A carried value whose only use is to be combined with one term of its type per iteration; a
    truth, with others.

    An f64 sum of f32 terms qualifies, too: partial sums may be computed in f32.
    """

    kind: str
    """add, mul, max or min; umax or umin of unsigned integers; any of truths"""
    keeps_nan: bool
    """False for an extremum of floats that skips NaN."""
    argument: SSAValue
    """The carried value in the loop."""
    term: SSAValue
    ops: tuple[Operation, ...]
    """The op that combines them."""

    @property
    def identity(self) -> arith.ConstantOp:
        """The neutral element."""
        if self.kind == "any":
            return arith.ConstantOp(IntegerAttr(0, i1))
        return arith.ConstantOp(_identity(self.kind, self.term.type))

    def combine(self, block: Block, total: SSAValue, term: SSAValue) -> SSAValue:
        """Append the op that combines a total with a term, or two totals."""
        if total.type == f64 and term.type == f32:
            extend = arith.ExtFOp(term, f64)
            block.add_op(extend)
            term = extend.result
        if self.kind == "any":
            return append(block, arith.OrIOp(total, term))
        if self.keeps_nan:
            is_integer = isinstance(scalar_of(total.type), IntegerType)
            op = (_OF_INTEGERS if is_integer else _OF_FLOATS)[self.kind]
            # In this order: an extremum asks whether the first one is NaN, which need not wait.
            pair = (total, term) if self.kind in ("add", "mul") else (term, total)
            return append(block, op(*pair))
        predicate = "ogt" if self.kind == "max" else "olt"
        wins = append(block, arith.CmpfOp(term, total, predicate))
        return append(block, arith.SelectOp(wins, term, total))


def find_reductions(loop: ForOp, *, exact: bool | None = None) -> list[Reduction] | None:
    """
    All carried values of a loop as reductions; None if one of them is not a reduction. If `exact`
    the terms in f64 are f64, if not they are f32.
    """
    last = loop.body.block.last_op
    assert isinstance(last, YieldOp)
    found: list[Reduction] = []
    for argument, value in zip(loop.body.block.args[1:], last.values, strict=True):
        reduction = _reduction(argument, value, last, exact=exact)
        if reduction is None:
            return None
        found.append(reduction)
    return found


def _reduction(
    argument: SSAValue, value: SSAValue, last: YieldOp, *, exact: bool | None
) -> Reduction | None:
    if not isinstance(value, OpResult) or value.op.parent is not last.parent:
        return None
    op = value.op
    if any(use.operation is not last for use in value.uses):
        return None
    if isinstance(op, arith.SelectOp):
        reduction = _selected(argument, op)
    elif isinstance(op, arith.OrIOp if argument.type == i1 else tuple(_OPS)):
        left, right = op.operands
        if argument not in (left, right):
            return None
        term = right if left is argument else left
        kind = "any" if isinstance(op, arith.OrIOp) else _OPS[type(op)]
        reduction = _combined(kind, argument, term, op, exact=exact)
    else:
        return None
    if reduction is None or any(use.operation not in reduction.ops for use in argument.uses):
        return None
    return None if reduction.term is argument else reduction


def _combined(
    kind: str, argument: SSAValue, term: SSAValue, op: Operation, *, exact: bool | None
) -> Reduction | None:
    is_sum = kind == "add" and not exact
    if is_sum and isinstance(term.owner, arith.ExtFOp) and term.has_one_use():
        source = term.owner.input
        if source.type == f32 and argument.type == f64:
            return Reduction(kind, True, argument, source, (op, term.owner))
    if term.type == f64 and exact is False:
        return None
    return Reduction(kind, True, argument, term, (op,))


def _selected(argument: SSAValue, op: arith.SelectOp) -> Reduction | None:
    """term > argument ? term : argument"""
    test = op.cond.owner
    if not isinstance(test, arith.CmpfOp) or not op.cond.has_one_use():
        return None
    kind = _SELECTED.get(test.predicate.value.data)
    if kind is None or op.rhs is not argument or argument.type not in (f32, f64):
        return None
    if test.lhs is not op.lhs or test.rhs is not argument:
        return None
    return Reduction(kind, False, argument, op.lhs, (op, test))
