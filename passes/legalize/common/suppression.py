"""Boxes that are chosen by their scores, and those that are dropped because they lie over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherElementsOp
from lowerdeck.dialects.core.types import f32, i1, i64, tensor
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.passes.legalize.common.boxes import similarity
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

Similarity = Callable[[Legalizer, TensorValue], TensorValue]
"""The overlap of all boxes with the best ones [groups]: [groups, boxes], by ops at a builder."""


@dataclass(frozen=True)
class Rule:
    """What drops a box."""

    similarity: Similarity
    most: SSAValue
    """A scalar: boxes that overlap a chosen one more are dropped."""
    least: SSAValue
    """A scalar: boxes whose score is not above it are dropped."""
    decay: SSAValue | None = None
    """A scalar s: instead of being dropped, scores are multiplied by exp(s * similarity^2)."""


@dataclass(frozen=True)
class Chosen:
    """What was chosen in each round, [rounds, groups] each; minus infinity if nothing was left."""

    places: TensorValue
    scores: TensorValue


def chosen(builder: Legalizer, scores: TensorValue, rounds: Expr, rule: Rule) -> Chosen:
    """
    In each of `groups`, over and over: take the box with the best score (of equal ones the first),
    and drop others by the rule. `scores` is [groups, boxes].
    """
    lowest = TensorValue.number(builder, -math.inf, scores.element)
    start = scores.gt(TensorValue(builder, rule.least)).where(scores, lowest).value
    block = Block(arg_types=[tensor(i64, []), start.type])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    best, value, left = _round(inner, TensorValue(inner, block.args[1]), rule)
    inner.insert(YieldOp([left.value, best.value, value.value]))
    iteration, count = (builder.symbols.fresh(nonnegative=True) for _ in range(2))
    trips = builder.dims([rounds], [])
    loop = LoopOp(trips, None, [start], Region(block), iteration=iteration, count=count)
    _, places, values = builder.insert(loop)
    shape = [rounds, scores.dims[0]]
    return Chosen(
        TensorValue(builder, places).reshape(shape), TensorValue(builder, values).reshape(shape)
    )


def _round(
    builder: Legalizer, left: TensorValue, rule: Rule
) -> tuple[TensorValue, TensorValue, TensorValue]:
    """The best box of each group, its score, and the scores that are left."""
    groups, count = left.dims
    best = TensorValue(builder, builder.add(ArgReduceOp("max", left.value, 1)))
    lowest = TensorValue.number(builder, -math.inf, left.element)
    likeness = rule.similarity(builder, best)
    is_dropped = likeness.gt(TensorValue(builder, rule.most))
    after = left
    if rule.decay is not None:
        after = left * (likeness * likeness * TensorValue(builder, rule.decay)).exp()
        is_dropped = ~after.gt(TensorValue(builder, rule.least)) | left.eq(-math.inf)
    index = TensorValue.iota(builder, count).reshape([1, count])
    is_dropped = is_dropped | index.eq(best.reshape([groups, 1]))
    return best, left.reduce("max", [1]), is_dropped.where(lowest, after)


# Boxes that lie over each other


def overlap(sides: Sequence[SSAValue]) -> Similarity:
    """
    The area that two boxes share by the area of both; 0 if one has none.

    `sides` are y1, x1, y2 and x2, [groups, boxes] each; they may be any opposite ones.
    """

    def similarity(builder: Legalizer, best: TensorValue) -> TensorValue:
        (shared, own, other), (width, *widths) = (
            _lengths(builder, sides[axis], sides[axis + 2], best) for axis in (0, 1)
        )
        shared, own, other = shared * width, own * widths[0], other * widths[1]
        has_area = own.gt(0) & other.gt(0)
        return has_area.where(shared / has_area.where(own + other - shared, 1), 0)

    return similarity


def _lengths(
    builder: Legalizer, end: SSAValue, opposite: SSAValue, best: TensorValue
) -> tuple[TensorValue, TensorValue, TensorValue]:
    """Along one axis, what the best boxes share with all others, and the lengths of both."""
    ends = TensorValue(builder, end), TensorValue(builder, opposite)
    low, high = ends[0].minimum(ends[1]), ends[0].maximum(ends[1])
    first, last = picked(builder, low, best), picked(builder, high, best)
    shared = (last.minimum(high) - first.maximum(low)).maximum(0)
    return shared, last - first, high - low


def picked(builder: Legalizer, values: TensorValue, index: TensorValue) -> TensorValue:
    """values [groups, boxes] at index [groups], as a column."""
    column = index.reshape([index.dims[0], 1])
    return TensorValue(builder, builder.add(GatherElementsOp(values.value, column.value, 1)))


def corners(boxes: TensorValue, count: Expr) -> list[SSAValue]:
    """The coordinates of boxes [count, 4], [1, count] each."""
    return [boxes.pick(1, k).reshape([1, count]).value for k in range(4)]


# Boxes in the order of their scores


def suppressed(
    builder: Legalizer,
    corners: Sequence[TensorValue],
    alive: TensorValue,
    threshold: float,
    *,
    most: Expr | None = None,
    border: float = 0,
    decay: float = 1,
    must_meet: bool = False,
    labels: TensorValue | None = None,
) -> TensorValue:
    """
    Which boxes are kept (i1): over and over the first one that is left is, and all that overlap it
    by more than the threshold are dropped.

    The left, upper, right and lower `corners` and `alive` are [groups, boxes], best boxes first.
    `border` is what is added to widths and heights; boxes that `must_meet` without it share nothing
    otherwise. At most `most` are kept in each group. Boxes of unlike `labels` share nothing. The
    threshold, as long as it is above 0.5, is multiplied by `decay` for each box that is kept.
    """
    groups, boxes = alive.dims
    whole = [corner.value for corner in corners]
    none = TensorValue(builder, np.zeros([], np.bool_)).broadcast(alive.dims)
    state = [alive.value, none.value]
    if decay < 1:
        number = builder.scalar(threshold, f32)
        state += [
            alive.value,
            builder.broadcast(builder.scalar(0, f32), alive.dims),
            builder.broadcast(number, [groups, 1]),
        ]
    block = Block(arg_types=[tensor(i64, []), *(value.type for value in state)])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    left, kept, *more = (TensorValue(inner, value) for value in block.args[1:])
    first = TensorValue(inner, inner.add(ArgReduceOp("max", left.cast(i64).value, 1)))
    index = TensorValue.iota(inner, boxes).reshape([1, boxes])
    column = first.reshape([groups, 1])
    chosen = index.eq(column) & left
    overlap = _overlap(inner, whole, column, border, must_meet)
    if labels is not None:
        label = TensorValue(inner, labels.value)
        own = TensorValue(inner, inner.add(GatherElementsOp(label.value, column.value, 1)))
        overlap = label.eq(own).where(overlap, 0)
    kept = kept | chosen
    if decay < 1:
        candidates, largest, limit = more
        is_any = left.cast(i64).reduce("max", [1], keep_dims=True).cast(i1)
        largest = largest.maximum(overlap)
        limit = (is_any & limit.gt(0.5)).where(limit * decay, limit)
        left = candidates & index.gt(column) & largest.le(limit)
        after = [left, kept, candidates, largest, limit]
    else:
        left = left & index.ne(column) & overlap.le(threshold)
        after = [left, kept]
    inner.insert(YieldOp([_is_any(left), *(value.value for value in after)]))
    trips = builder.dims([boxes if most is None else minimum(most, boxes)], [])
    iteration, count = (builder.symbols.fresh(nonnegative=True) for _ in range(2))
    loop = LoopOp(trips, _is_any(alive), state, Region(block), iteration=iteration, count=count)
    return TensorValue(builder, builder.insert(loop)[1])


def _is_any(values: TensorValue) -> SSAValue:
    return values.cast(i64).reduce("max", [0, 1]).cast(i1).value


def _overlap(
    builder: Legalizer,
    corners: Sequence[SSAValue],
    column: TensorValue,
    border: float,
    must_meet: bool,
) -> TensorValue:
    """Intersection over union of the boxes at `column` with all of their group; 0 without one."""
    ends = [TensorValue(builder, corner) for corner in corners]
    chosen = [
        TensorValue(builder, builder.add(GatherElementsOp(corner, column.value, 1)))
        for corner in corners
    ]
    return similarity(chosen, ends, border, must_meet)
