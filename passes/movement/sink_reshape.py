"""`sink-reshape`: maps are done before reshapes, where the ops around them can take them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.machinery.driver import Match, Pattern, PatternPass, Rewriter, producer
from lowerdeck.passes.machinery.values import small_constant
from lowerdeck.passes.movement.reshapes import ROOTS, moved_dims


@dataclass(frozen=True)
class Sinking:
    """The dimensions of each operand before the reshape; None: it is reshaped, or stays."""

    operands: tuple[tuple[Expr, ...] | None, ...]
    reshaped: tuple[ReshapeOp | None, ...]


class SinkReshape(Pattern[Sinking]):
    """f(reshape(x), reshape(y), c) -> reshape(f(x, y, c'))"""

    name = "sink-reshape"
    roots = ELEMENTWISE
    ranked = True

    def __init__(self, suits: Callable[[ReshapeOp], bool] | None = None) -> None:
        """`suits` tells of which reshapes; None for all."""
        self._suits = suits

    def match(self, op: CoreOp) -> Match[Sinking] | None:
        dims = dims_of(op.results[0])
        reshapes = [_only_used_by(op, value, dims) for value in op.operands]
        found = list(dict.fromkeys(each for each in reshapes if each is not None))
        leading = max(found, key=lambda each: _rank(each.input), default=None)
        if leading is None or (self._suits is not None and not self._suits(leading)):
            return None
        before = dims_of(leading.input)
        same = [each for each in found if dims_of(each.input) == before]
        rank = _rank(leading.input)
        if len(same) < 2 and rank == 0:
            return None
        operands: list[tuple[Expr, ...] | None] = []
        for value, reshape in zip(op.operands, reshapes, strict=True):
            moved = None if reshape in same else moved_dims(value, before, dims)
            if moved is None and reshape not in same:
                return None
            # The other way around, it would be moved back.
            if reshape not in same and dims_of(value) == dims and _rank(value) >= rank:
                return None
            operands.append(moved)
        taken = tuple(each if each in same else None for each in reshapes)
        reason = "several reshapes are one" if len(same) > 1 else "it is done with what is before"
        return Match((op, *same), reason, Sinking(tuple(operands), taken))

    def rewrite(self, match: Match[Sinking], rewriter: Rewriter) -> None:
        op = match.root
        assert isinstance(op, CoreOp)
        operands: list[SSAValue] = []
        lists = zip(op.operands, match.data.operands, match.data.reshaped, strict=True)
        for value, dims, reshape in lists:
            if reshape is not None:
                value = reshape.input
            elif dims is not None and dims != dims_of(value):
                value = _reshaped(value, dims, rewriter)
            operands.append(value)
        new = rewriter.add(op.with_operands(operands)).results[0]
        rewriter.replace(op, ReshapeOp(new, dims_of(op.results[0])))


def _reshaped(value: SSAValue, dims: tuple[Expr, ...], rewriter: Rewriter) -> SSAValue:
    """A small constant is one again: patterns look at the numbers."""
    sizes = [dim.value for dim in dims if dim.value is not None]
    if (array := small_constant(value)) is not None and len(sizes) == len(dims):
        return rewriter.add(ConstantOp.of(array.reshape(sizes))).result
    return rewriter.add(ReshapeOp(value, dims)).result


def _rank(value: SSAValue) -> int:
    """How much is gained by doing a map where a value is computed: 0 for nothing."""
    if isinstance(value.owner, ROOTS):
        return 2 if value.has_one_use() else 0
    return 1 if isinstance(value.owner, ELEMENTWISE) and value.has_one_use() else 0


def _only_used_by(op: Operation, value: SSAValue, dims: Sequence[Expr]) -> ReshapeOp | None:
    """The reshape to `dims` that makes a value which has no other user."""
    if dims_of(value) != dims or any(use.operation is not op for use in value.uses):
        return None
    return producer(value, ReshapeOp)


class SinkReshapePass(PatternPass):
    """
    Maps are done before reshapes, with the ops that compute what is reshaped.

    - f(reshape(x), c) -> reshape(f(x, c')) [f elementwise, with a result of the size of x; a
      convolution, product, pool, reduction or map computes x, which has no other use; c broadcasts
      to x, reshaped: it is one element, or has whole groups of the dimensions that the reshape
      takes together; it is none of that size that would be moved like x: x is computed by a map and
      c by a map, too, or by one of the other ops]
    - f(reshape(x), reshape(y), c) -> reshape(f(x, y, c')) [the same, of whatever x and y of equal
      dimensions]

    A reshape costs nothing by itself, but no kernel contains one: what is behind it is another pass
    over memory.
    """

    name = "sink-reshape"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [SinkReshape()]
