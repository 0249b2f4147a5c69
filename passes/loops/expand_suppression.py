"""`expand-suppression`: the suppression of boxes as a loop over those that are kept."""

from __future__ import annotations

import math

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.core.types import i1, i64, tensor
from lowerdeck.dialects.dims import minimum
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.boxes import (
    columns_of,
    picked,
    shared_and_union,
    similarity,
)
from lowerdeck.passes.legalize.symbolic import SymbolicValues
from lowerdeck.passes.legalize.tensor_value import TensorValue


class ExpandSuppressionPass(ModulePass):
    """
    suppress(alive, boxes, limit) -> loop { keep the first box that is left, drop others }

    In each round all boxes of a group are compared with one. It is for exports to frameworks that
    have no such operator, or one with another overlap.
    """

    name = "expand-suppression"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, SuppressOp):
                builder = CoreBuilder(InsertPoint.before(inner), SymbolicValues(()), inner.location)
                Rewriter.replace_op(inner, [], [_loop(inner, builder)])


def _loop(op: SuppressOp, builder: CoreBuilder) -> SSAValue:
    """Carries which boxes are left and kept, their largest overlaps so far, and the limits."""
    alive = TensorValue(builder, op.alive)
    groups, count = alive.dims
    element = TensorValue(builder, op.limit).element
    corners = [side.value for side in columns_of(TensorValue(builder, op.boxes))]
    none = TensorValue(builder, np.zeros([], np.bool_)).broadcast(alive.dims)
    lowest = TensorValue.number(builder, -math.inf, element).broadcast(alive.dims)
    limits = TensorValue(builder, op.limit).broadcast([groups, 1])
    state = [value.value for value in (alive, none, lowest, limits)]
    block = Block(arg_types=[tensor(i64, []), *(value.type for value in state)])
    inner = builder.at(InsertPoint.at_end(block))
    following = _round(op, inner, corners, block.args[1:])
    inner.insert(YieldOp([_is_any(inner, following[0]), *following]))
    trips = builder.dims([minimum(op.most_kept, count)], [])
    return builder.insert(LoopOp(trips, _is_any(builder, op.alive), state, Region(block)))[1]


def _round(
    op: SuppressOp, builder: CoreBuilder, corners: list[SSAValue], state: tuple[SSAValue, ...]
) -> list[SSAValue]:
    """What is carried after one more box of each group, if there is one left, is kept."""
    left, kept, largest, limits = (TensorValue(builder, value) for value in state)
    groups, count = left.dims
    first = TensorValue(builder, builder.add(ArgReduceOp("max", left.cast(i64).value, 1)))
    column = first.reshape([groups, 1])
    index = TensorValue.iota(builder, count).reshape([1, count])
    overlap = _overlap(op, [TensorValue(builder, corner) for corner in corners], column)
    if op.labels is not None:
        labels = TensorValue(builder, op.labels)
        overlap = labels.eq(picked(labels, column)).where(overlap, 0)
    is_one = left.cast(i64).reduce("max", [1], keep_dims=True).cast(i1)
    if op.strict is None:
        largest = overlap.gt(largest).where(overlap, largest)
    else:
        largest = largest.maximum(overlap)
    if op.decay is not None:
        limits = (is_one & limits.gt(0.5)).where(limits * op.shrinking, limits)
    fits = ~largest.gt(limits) if op.strict is None else largest.le(limits)
    kept = kept | (index.eq(column) & left)
    left = left & index.gt(column) & fits
    return [value.value for value in (left, kept, largest, limits)]


def _overlap(op: SuppressOp, boxes: list[TensorValue], column: TensorValue) -> TensorValue:
    """The overlap of the boxes at `column` with all of their group."""
    one = [picked(side, column) for side in boxes]
    must_meet = op.must_meet is not None
    if op.strict is not None:
        return similarity(one, boxes, op.margin, must_meet)
    shared, union = shared_and_union(one, boxes, op.margin, must_meet)
    return shared / union


def _is_any(builder: CoreBuilder, values: SSAValue) -> SSAValue:
    return TensorValue(builder, values).cast(i64).reduce("max", [0, 1]).cast(i1).value
