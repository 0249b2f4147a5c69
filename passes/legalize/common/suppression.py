"""Boxes that are chosen by their scores, and those that are dropped because they lie over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherElementsOp
from lowerdeck.dialects.core.types import i64, tensor
from lowerdeck.dialects.dims import Expr
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
