"""Maps that are done before reshapes, and what the shapes before and after one have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from lowerdeck.dialects.core.base import CoreOp
from lowerdeck.dialects.core.constant import ConstantOp
from lowerdeck.dialects.core.elementwise import ELEMENTWISE
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.reduce import PoolOp, ReduceOp
from lowerdeck.dialects.core.tensor import ReshapeOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.machinery.driver import Match, Pattern, Rewriter, producer
from lowerdeck.passes.machinery.values import small_constant

ROOTS = (ConvOp, ConvTransposeOp, MatmulOp, PoolOp, ReduceOp)
"""Ops whose loops do the maps behind them on the way, but not behind a reshape."""


def dim_groups(before: Sequence[Expr], after: Sequence[Expr]) -> list[tuple[slice, slice]]:
    """
    Consecutive dimensions of both shapes that hold equally many elements, as few as possible.

    Dimensions of one may be alone, with none of the other shape.
    """
    groups: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        m, n = min(i + 1, len(before)), min(j + 1, len(after))
        while (old := product(before[i:m])) != (new := product(after[j:n])):
            if m == len(before) and n == len(after):
                break
            less = old.value is not None and new.value is not None and old.value < new.value
            if m < len(before) and (less or n == len(after)):
                m += 1
            elif n < len(after):
                n += 1
            else:
                m += 1
        if product(before[m:]) != product(after[n:]):
            # Symbols may hide what the dimensions have in common.
            m, n = len(before), len(after)
        groups.append((slice(i, m), slice(j, n)))
        i, j = m, n
    return groups


def kept_axes(longer: Sequence[Expr], shorter: Sequence[Expr]) -> list[int] | None:
    """Where the dimensions of `shorter` stand in `longer`; None unless the others are ones."""
    axes: list[int] = []
    for axis, dim in enumerate(longer):
        if len(axes) < len(shorter) and shorter[len(axes)] == dim:
            axes.append(axis)
        elif dim != 1:
            return None
    return axes if len(axes) == len(shorter) else None


def drops_ones(op: ReshapeOp) -> bool:
    """True if a reshape does nothing else than to drop dimensions of one."""
    before, after = dims_of(op.input), dims_of(op.result)
    return len(after) < len(before) and kept_axes(before, after) is not None


def moved_dims(
    value: SSAValue, before: Sequence[Expr], after: Sequence[Expr]
) -> tuple[Expr, ...] | None:
    """
    The dimensions with which a value broadcasts to `before` as it does to `after`, the shapes
    before and after a reshape; None if there are none.
    """
    own = dims_of(value)
    if all(dim == 1 for dim in own):
        return own if len(own) <= len(before) else ()
    padded = (*[Expr.const(1)] * (len(after) - len(own)), *own)
    dims = [Expr.const(1)] * len(before)
    for old, new in dim_groups(before, after):
        part = padded[new]
        if all(dim == 1 for dim in part):
            continue
        if part != tuple(after[new]):
            return None
        dims[old] = before[old]
    return tuple(dims)


@record
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
