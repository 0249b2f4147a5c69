"""Boxes that are chosen by their scores, and those that are dropped because they lie over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial

import numpy as np
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.suppress import SuppressOp
from lowerdeck.dialects.core.tensor import GatherNdOp, GatherOp
from lowerdeck.dialects.core.types import i32, i64, numpy_dtype, tensor
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.boxes import best_of, columns_of, picked
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.common.selection import nonzero_places
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

Similarity = Callable[[Legalizer, TensorValue], TensorValue]
"""The overlap of all boxes with the best ones [groups]: [groups, boxes], by ops at a builder."""


@record
class Rule:
    """What drops a box."""

    boxes: TensorValue | Similarity
    """Two opposite corners [groups, boxes, 4], or [1, boxes, 4] for all groups; or how they overlap
    where only that is known."""
    most: SSAValue
    """A scalar: boxes that overlap a chosen one more are dropped."""
    least: SSAValue
    """A scalar: boxes whose score is not above it are dropped."""
    decay: SSAValue | None = None
    """A scalar s: instead of being dropped, scores are multiplied by exp(s * similarity^2)."""


@record
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
    start = scores.gt(TensorValue(builder, rule.least)).where(scores, lowest)
    if isinstance(rule.boxes, TensorValue) and rule.decay is None:
        return _chosen_in_order(builder, start, rounds, rule.boxes, rule.most)
    similarity = rule.boxes
    if isinstance(similarity, TensorValue):
        similarity = partial(_overlap, [side.value for side in columns_of(similarity)])
    block = Block(arg_types=[tensor(i64, []), start.value.type])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    best, value, left = _round(inner, TensorValue(inner, block.args[1]), rule, similarity)
    inner.insert(YieldOp([left.value, best.value, value.value]))
    iteration, count = (builder.symbols.fresh(nonnegative=True) for _ in range(2))
    trips = builder.dims([rounds], [])
    loop = LoopOp(trips, None, [start.value], Region(block), iteration=iteration, count=count)
    _, places, values = builder.insert(loop)
    shape = [rounds, scores.dims[0]]
    return Chosen(
        TensorValue(builder, places).reshape(shape), TensorValue(builder, values).reshape(shape)
    )


def _chosen_in_order(
    builder: Legalizer, scores: TensorValue, rounds: Expr, boxes: TensorValue, limit: SSAValue
) -> Chosen:
    """Where scores stay what they are: minus infinity for what does not count."""
    groups, count = scores.dims
    images = boxes.dims[0]
    each = Expr.const(1) if images == groups else groups
    ranked = scores.reshape([images, each, count])
    order, kept = kept_in_order(builder, ranked, proper(boxes), limit, most=rounds)
    _, first = best_of(kept.reshape([groups, count]).cast(i32), minimum(rounds, count))
    is_kept = picked(kept.reshape([groups, count]), first)
    place = picked(order.reshape([groups, count]), first)
    lowest = TensorValue.number(builder, -math.inf, scores.element)
    results = [is_kept.where(place, 0), is_kept.where(picked(scores, place), lowest)]
    more = [Expr.const(0), rounds - first.dims[1]]
    for number, end in enumerate((builder.scalar(0, i64), lowest.value)):
        whole = pad(builder, results[number].value, [Expr.const(0)] * 2, more, end)
        results[number] = TensorValue(builder, builder.transpose(whole, [1, 0]))
    return Chosen(*results)


def _round(
    builder: Legalizer, left: TensorValue, rule: Rule, similarity: Similarity
) -> tuple[TensorValue, TensorValue, TensorValue]:
    """The best box of each group, its score, and the scores that are left."""
    groups, count = left.dims
    best = TensorValue(builder, builder.add(ArgReduceOp("max", left.value, 1)))
    lowest = TensorValue.number(builder, -math.inf, left.element)
    likeness = similarity(builder, best)
    is_dropped = likeness.gt(TensorValue(builder, rule.most))
    after = left
    if rule.decay is not None:
        after = left * (likeness * likeness * TensorValue(builder, rule.decay)).exp()
        is_dropped = ~after.gt(TensorValue(builder, rule.least)) | left.eq(-math.inf)
    index = TensorValue.iota(builder, count).reshape([1, count])
    is_dropped = is_dropped | index.eq(best.reshape([groups, 1]))
    return best, left.reduce("max", [1]), is_dropped.where(lowest, after)


# Boxes that lie over each other


def _overlap(sides: Sequence[SSAValue], builder: Legalizer, best: TensorValue) -> TensorValue:
    """The area that the best boxes share with all by the area of both; 0 if one has none."""
    ends = [TensorValue(builder, side) for side in sides]
    (shared, own, other), (width, *widths) = (
        _lengths(ends[axis], ends[axis + 2], best) for axis in (0, 1)
    )
    shared, own, other = shared * width, own * widths[0], other * widths[1]
    has_area = own.gt(0) & other.gt(0)
    return has_area.where(shared / has_area.where(own + other - shared, 1), 0)


def _lengths(
    end: TensorValue, opposite: TensorValue, best: TensorValue
) -> tuple[TensorValue, TensorValue, TensorValue]:
    """Along one axis, what the best boxes share with all others, and the lengths of both."""
    low, high = end.minimum(opposite), end.maximum(opposite)
    column = best.reshape([best.dims[0], 1])
    first, last = picked(low, column), picked(high, column)
    shared = (last.minimum(high) - first.maximum(low)).maximum(0)
    return shared, last - first, high - low


def proper(boxes: TensorValue) -> TensorValue:
    """Boxes [..., 4] with the lower corner first, of those of any two opposite corners."""
    sides = columns_of(boxes)
    low, high = (
        [pair(sides[axis], sides[axis + 2]) for axis in (0, 1)]
        for pair in (TensorValue.minimum, TensorValue.maximum)
    )
    return stack([*low, *high], len(boxes.dims) - 1)


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
    op = SuppressOp(
        alive.value,
        stack([corner.broadcast(alive.dims) for corner in corners], 2).value,
        builder.scalar(threshold, corners[0].element),
        labels=None if labels is None else labels.value,
        most=most,
        border=border,
        decay=decay,
        must_meet=must_meet,
        strict=True,
    )
    return TensorValue(builder, builder.add(op))


def kept_in_order(
    builder: Legalizer,
    scores: TensorValue,
    boxes: TensorValue,
    limit: SSAValue,
    *,
    most: Expr | None = None,
    alive: TensorValue | None = None,
) -> tuple[TensorValue, TensorValue]:
    """
    The places of boxes in the order of their scores [images, classes, boxes], best ones first and
    NaN before them, and which of them are kept (i1): at most so many of each class that overlap no
    better one of it by more than a limit. Boxes are [images, boxes, 4]; only those count that are
    `alive`, which is as the scores are, or whose scores are not minus infinity.
    """
    images, classes, count = scores.dims
    groups = [images * classes, count]
    best, order = best_of(scores, -1)
    index = order.reshape([images, classes * count, 1])
    own = builder.add(GatherNdOp(boxes.value, index.value, 1))
    there = best.ne(-math.inf) if alive is None else picked(alive, order)
    op = SuppressOp(
        there.reshape(groups).value, builder.reshape(own, [*groups, 4]), limit, most=most
    )
    return order, TensorValue(builder, builder.add(op)).reshape(scores.dims)


def best_apart(
    builder: Legalizer, boxes: TensorValue, scores: TensorValue, most: float
) -> SSAValue:
    """
    The places of the boxes [boxes, 4] that overlap no better one by more than a number, in the
    order of their scores.
    """
    count = scores.dims[0]
    dtype = numpy_dtype(boxes.element).type
    limit = dtype(most)
    if float(limit) > most:  # an overlap that is equal to it is more, too
        limit = np.nextafter(limit, dtype(-np.inf))
    order, kept = kept_in_order(
        builder,
        scores.reshape([1, 1, count]),
        boxes.reshape([1, count, 4]),
        builder.scalar(float(limit), boxes.element),
        alive=TensorValue(builder, np.ones([], np.bool_)).broadcast([1, 1, count]),
    )
    found = nonzero_places(builder, kept.reshape([count]).value)
    return builder.add(GatherOp(order.reshape([count]).value, found, 0))
