"""Loops that combine a value from each iteration into one: sums and extrema."""

from __future__ import annotations

import math as python_math
from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, YieldOp
from lowerdeck.dialects.core.types import f32, f64, i1

_OPS: Mapping[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.OrIOp: "any",
}
_GREATER, _LESS = 2, 4
_SELECTED: Mapping[int, str] = {_GREATER: "max", _LESS: "min"}
_IDENTITIES: Mapping[str, float] = {"add": 0.0, "max": -python_math.inf, "min": python_math.inf}


@dataclass(frozen=True)
class Reduction:
    """
    A carried value whose only use is to be combined with one term per iteration, of f32 or f64, or
    a truth.

    An f64 sum of f32 terms qualifies, too: partial sums may be computed in f32.
    """

    kind: str
    """add, max, min, or any"""
    keeps_nan: bool
    """False for an extremum that skips NaN."""
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
        type_ = f32 if self.term.type == f32 else f64
        return arith.ConstantOp(FloatAttr(_IDENTITIES[self.kind], type_))

    def combine(self, block: Block, total: SSAValue, term: SSAValue) -> SSAValue:
        """Append the op that combines a total with a term, or two totals."""
        if total.type == f64 and term.type == f32:
            extend = arith.ExtFOp(term, f64)
            block.add_op(extend)
            term = extend.result
        if self.kind == "any":
            return _append(block, arith.OrIOp(total, term))
        if self.kind == "add":
            return _append(block, arith.AddfOp(total, term))
        if self.keeps_nan:
            op = arith.MaximumfOp if self.kind == "max" else arith.MinimumfOp
            return _append(block, op(term, total))
        predicate = "ogt" if self.kind == "max" else "olt"
        wins = _append(block, arith.CmpfOp(term, total, predicate))
        return _append(block, arith.SelectOp(wins, term, total))


def _append(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def find_reductions(loop: ForOp) -> list[Reduction] | None:
    """All carried values of a loop as reductions; None if one of them is not a reduction."""
    last = loop.body.block.last_op
    assert isinstance(last, YieldOp)
    found: list[Reduction] = []
    for argument, value in zip(loop.body.block.args[1:], last.values, strict=True):
        reduction = _reduction(argument, value, last)
        if reduction is None:
            return None
        found.append(reduction)
    return found


def _reduction(argument: SSAValue, value: SSAValue, last: YieldOp) -> Reduction | None:
    if not isinstance(value, OpResult) or value.op.parent is not last.parent:
        return None
    op = value.op
    if any(use.operation is not last for use in value.uses):
        return None
    if isinstance(op, arith.SelectOp):
        reduction = _selected(argument, op)
    elif type(op) in _OPS:
        left, right = op.operands
        if argument not in (left, right):
            return None
        term = right if left is argument else left
        if isinstance(op, arith.OrIOp):
            reduction = Reduction("any", True, argument, term, (op,)) if term.type == i1 else None
        else:
            reduction = _of_floats(_OPS[type(op)], argument, term, op)
    else:
        return None
    if reduction is None or any(use.operation not in reduction.ops for use in argument.uses):
        return None
    return None if reduction.term is argument else reduction


def _of_floats(kind: str, argument: SSAValue, term: SSAValue, op: Operation) -> Reduction | None:
    if kind == "add" and isinstance(term.owner, arith.ExtFOp) and term.has_one_use():
        source = term.owner.input
        if source.type == f32 and _is_float(argument.type):
            return Reduction(kind, True, argument, source, (op, term.owner))
    return Reduction(kind, True, argument, term, (op,)) if _is_float(term.type) else None


def _is_float(type_: Attribute) -> bool:
    return type_ in (f32, f64)


def _selected(argument: SSAValue, op: arith.SelectOp) -> Reduction | None:
    """term > argument ? term : argument"""
    test = op.cond.owner
    if not isinstance(test, arith.CmpfOp) or not op.cond.has_one_use():
        return None
    kind = _SELECTED.get(test.predicate.value.data)
    if kind is None or op.rhs is not argument or not _is_float(argument.type):
        return None
    if test.lhs is not op.lhs or test.rhs is not argument:
        return None
    return Reduction(kind, False, argument, op.lhs, (op, test))
