"""Boxes: the best of them, their corners and centers, and what two of them share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lowerdeck.dialects.core.tensor import GatherElementsOp, ScatterElementsOp, TopKOp
from lowerdeck.dialects.core.types import i64
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.passes.legalize.tensor_value import TensorValue


def picked(values: TensorValue, places: TensorValue) -> TensorValue:
    """The elements at places along the last dimension."""
    op = GatherElementsOp(values.value, places.value, len(values.dims) - 1)
    return TensorValue(values.builder, values.builder.add(op))


def best_of(x: TensorValue, count: Expr | int) -> tuple[TensorValue, TensorValue]:
    """The largest elements along the last dimension, all of them for -1, and their places."""
    dim = x.dims[-1]
    if isinstance(count, int):
        count = dim if count < 0 else Expr.const(count)
    values, places = x.builder.insert(TopKOp(x.value, minimum(count, dim), len(x.dims) - 1))
    return TensorValue(x.builder, values), TensorValue(x.builder, places)


def best_kept(kept: TensorValue, scores: TensorValue, count: int) -> TensorValue:
    """Which boxes [groups, boxes] are kept and among the `count` best kept ones of their group."""
    builder = kept.builder
    _, places = best_of(kept.where(scores, -math.inf), count)
    none = builder.broadcast(builder.scalar(0, i64), kept.dims)
    ones = builder.broadcast(builder.scalar(1, i64), places.dims)
    op = ScatterElementsOp(none, places.value, ones, 1)
    return kept & TensorValue(builder, builder.add(op)).ne(0)


def columns_of(boxes: TensorValue, first: int = 0) -> list[TensorValue]:
    """Four neighbors of the last dimension."""
    return [boxes.pick(len(boxes.dims) - 1, first + k) for k in range(4)]


def corners_of(sides: Sequence[TensorValue]) -> list[TensorValue]:
    """Left, upper, right and lower sides of boxes of centers and sizes."""
    x, y, width, height = sides
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


def centers_of(sides: Sequence[TensorValue], border: float = 0) -> list[TensorValue]:
    """Centers and sizes of boxes of corners; `border` is what is added to widths and heights."""
    left, top, right, bottom = sides
    right, bottom = (right + border, bottom + border) if border else (right, bottom)
    return [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]


def decoded(priors: Sequence[TensorValue], deltas: Sequence[TensorValue]) -> list[TensorValue]:
    """
    Corners of the boxes whose centers are those of `priors`, moved by parts of their sizes, and
    whose sizes are theirs by exponentials (Girshick et al., R-CNN).
    """
    x, y, width, height = priors
    dx, dy, dw, dh = deltas
    return corners_of([dx * width + x, dy * height + y, dw.exp() * width, dh.exp() * height])


def encoded(
    priors: Sequence[TensorValue], target: Sequence[TensorValue], border: float
) -> list[TensorValue]:
    """How centers and sizes of boxes of corners are made from those of `priors`, as `decoded`."""
    found = [((target[k] + target[2 + k]) * 0.5 - priors[k]) / priors[2 + k] for k in (0, 1)]
    for k in (0, 1):
        found.append(((target[2 + k] - target[k] + border) / priors[2 + k]).abs().log())
    return found


def shared_and_union(
    one: Sequence[TensorValue],
    other: Sequence[TensorValue],
    border: float = 0,
    must_meet: bool = False,
) -> tuple[TensorValue, TensorValue]:
    """
    The area that two boxes of corners share, and that of both together. `border` is what is added
    to widths and heights; boxes that `must_meet` without it share nothing otherwise.
    """
    lengths: list[TensorValue] = []
    areas: list[TensorValue] = []
    for low, high in ((0, 2), (1, 3)):
        length = one[high].minimum(other[high]) - one[low].maximum(other[low])
        wide = (length + border if border else length).maximum(0)
        lengths.append(length.ge(0).where(wide, 0) if must_meet else wide)
        sides = [box[high] - box[low] for box in (one, other)]
        sides = [side + border if border else side for side in sides]
        areas = [area * side for area, side in zip(areas, sides, strict=True)] if areas else sides
    shared = lengths[0] * lengths[1]
    return shared, areas[0] + areas[1] - shared


def similarity(
    one: Sequence[TensorValue],
    other: Sequence[TensorValue],
    border: float = 0,
    must_meet: bool = False,
) -> TensorValue:
    """Intersection over union of two boxes; 0 without one."""
    shared, union = shared_and_union(one, other, border, must_meet)
    overlaps = shared.gt(0)
    return overlaps.where(shared / overlaps.where(union, 1), 0)
