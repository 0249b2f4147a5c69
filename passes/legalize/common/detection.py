"""Detectors: boxes around places, decoding, suppression by class, proposals and their levels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import PowOp, SigmoidOp, SqrtOp
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherElementsOp, GatherOp, ScatterElementsOp
from lowerdeck.dialects.core.types import f32, i32, i64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.boxes import (
    best_kept,
    best_of,
    columns_of,
    picked,
    similarity,
)
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.order import ordered
from lowerdeck.passes.legalize.common.selection import nonzero_places
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.suppression import suppressed
from lowerdeck.passes.legalize.legalizer import Legalizer, refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tensor_value import concat as joined

# Boxes around places


def around(
    builder: Legalizer, middles: Sequence[TensorValue], halves: Sequence[np.ndarray]
) -> tuple[list[TensorValue], list[Expr]]:
    """
    Left, upper, right and lower sides [rows, columns, boxes] around all places, of which `middles`
    are the columns' and the rows' coordinates and `halves` half of the widths and heights.
    """
    shape = [middles[1].dims[0], middles[0].dims[0], Expr.const(len(halves[0]))]
    sides: list[TensorValue] = []
    for sign in (-1, 1):
        for axis, middle, half in zip((1, 0), middles, halves, strict=True):
            reach = TensorValue(builder, half.astype(np.float32)).column(3, 2)
            column = middle.column(3, axis)
            sides.append((column + reach if sign > 0 else column - reach).broadcast(shape))
    return sides, shape


def places_along(builder: Legalizer, dim: Expr) -> TensorValue:
    """0, 1, 2, ... in f32."""
    return TensorValue.iota(builder, dim).cast(f32)


def prior_sizes(
    least: Sequence[float],
    largest: Sequence[float],
    ratios: Sequence[float],
    *,
    flip: bool,
    largest_first: bool,
) -> list[tuple[float, float]]:
    """
    Widths and heights of the boxes of SSD (Liu et al.): the least sizes in each ratio, and squares
    between a least size and the largest one.
    """
    if len(largest) not in (0, len(least)):
        refuse(f"{len(largest)} largest sizes for {len(least)} least ones", "as many")
    found = [1.0]
    for ratio in ratios:
        if all(abs(ratio - known) >= 1e-6 for known in found):
            found += [ratio, 1.0 / ratio] if flip else [ratio]
    sizes: list[tuple[float, float]] = []
    for place, size in enumerate(least):
        own = [(size * math.sqrt(ratio), size / math.sqrt(ratio)) for ratio in found]
        square = math.sqrt(size * largest[place]) if largest else 0.0
        between = [(square, square)] if largest else []
        sizes += [own[0], *between, *own[1:]] if largest_first else [*own, *between]
    return sizes


def normalized_priors(
    rows: int,
    columns: int,
    sizes: Sequence[float],
    ratios: Sequence[float],
    steps: Sequence[float],
    offsets: Sequence[float],
) -> np.ndarray:
    """
    Corners [rows, columns, boxes, 4], relative to the image, of boxes around all places: one for
    each size in the first ratio, then the first size in each other ratio. Steps and offsets are
    those of rows, then of columns.
    """
    step_y, step_x = (
        step if step > 0 else 1 / count for step, count in zip(steps, (rows, columns), strict=True)
    )
    shapes = [(size, ratios[0]) for size in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    reach = [
        (size * rows / columns * math.sqrt(ratio) / 2, size / math.sqrt(ratio) / 2)
        for size, ratio in shapes
    ]
    y, x = np.mgrid[:rows, :columns].astype(np.float32)
    center_y, center_x = (y + offsets[0]) * step_y, (x + offsets[1]) * step_x
    corners = [
        np.stack([center_x - w, center_y - h, center_x + w, center_y + h], -1) for w, h in reach
    ]
    return np.stack(corners, 2)


def anchor_sizes(
    stride: Sequence[float], ratios: Sequence[float], sizes: Sequence[float]
) -> list[tuple[float, float]]:
    """Widths and heights of boxes of the areas `sizes` squared, of whole numbers for each ratio."""
    found: list[tuple[float, float]] = []
    for ratio in ratios:
        width = math.floor(math.sqrt(stride[0] * stride[1] / ratio) + 0.5)
        height = math.floor(width * ratio + 0.5)
        found += [(size / stride[0] * width, size / stride[1] * height) for size in sizes]
    return found


def anchors_of_cell(stride: int, ratios: Sequence[float], scales: Sequence[float]) -> np.ndarray:
    """Boxes around a cell of an image: sizes of whole numbers for each ratio, times each scale."""
    center = 0.5 * (stride - 1)
    found: list[list[float]] = []
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in scales:
            reach = 0.5 * (width * scale - 1), 0.5 * (height * scale - 1)
            found.append(
                [center - reach[0], center - reach[1], center + reach[0], center + reach[1]]
            )
    return np.array(found, np.float32)


# Decoding


def moved_within(
    boxes: np.ndarray, deltas: Sequence[TensorValue], facts: Sequence[TensorValue]
) -> list[TensorValue]:
    """Boxes whose centers are moved and whose sizes are scaled, within the image."""
    builder = deltas[0].builder
    lows: list[TensorValue] = []
    highs: list[TensorValue] = []
    for axis, limit in ((0, facts[1]), (1, facts[0])):
        size = boxes[None, :, axis + 2] - boxes[None, :, axis] + np.float32(1)
        middle = boxes[None, :, axis] + np.float32(0.5) * (size - np.float32(1))
        extent = TensorValue(builder, size)
        center = deltas[axis] * extent + TensorValue(builder, middle)
        reach = (deltas[axis + 2].exp() * extent - 1.0) * 0.5
        lows.append((center - reach).minimum(limit - 1.0).maximum(0.0))
        highs.append((center + reach).minimum(limit - 1.0).maximum(0.0))
    return [*lows, *highs]


def scored_places(
    scores: TensorValue,
    deltas: TensorValue,
    facts: Sequence[TensorValue],
    anchors: np.ndarray,
    stride: int,
) -> tuple[TensorValue, list[TensorValue]]:
    """
    The scores [images, boxes], -1 outside of the image, and the sides of boxes of each place of
    maps [images, boxes of a place..., rows, columns]; `facts` are height, width and scale.
    """
    builder, images = scores.builder, scores.dims[0]
    rows, columns = (dim.value or 0 for dim in scores.dims[2:])
    count, total = len(anchors), rows * columns * len(anchors)
    y, x = np.mgrid[:rows, :columns].astype(np.float32) * np.float32(stride)
    boxes = (np.stack([x, y, x, y], -1)[:, :, None] + anchors).reshape(-1, 4)
    score = scores.transpose([0, 2, 3, 1]).reshape([images, total])
    moved = deltas.reshape([images, count, 4, rows, columns]).transpose([0, 3, 4, 1, 2])
    sides = moved_within(boxes, columns_of(moved.reshape([images, total, 4])), facts)
    number = np.arange(total) // count
    limits = [(fact / float(stride)).floor() for fact in facts[:2]]
    is_outside = [
        TensorValue(builder, part.astype(np.float32).reshape(1, total)).ge(limit)
        for part, limit in zip((number // columns, number % columns), limits, strict=True)
    ]
    none = TensorValue.number(builder, -1.0, f32)
    return (is_outside[0] | is_outside[1]).where(none, score), sides


def kept_first(
    rows: TensorValue, order: TensorValue, kept: TensorValue
) -> tuple[TensorValue, TensorValue, TensorValue]:
    """
    Of rows [groups, n, width] in an order [groups, m] those that are kept first: the rows, where
    they were, and which of them are kept.
    """
    builder = rows.builder
    count = order.dims[1]
    _, place = best_of(kept.cast(i64), count)
    is_kept, source = picked(kept.cast(i64), place).ne(0), picked(order, place)
    column = source.reshape([*source.dims, 1]).broadcast([*source.dims, rows.dims[2]])
    found = builder.add(GatherElementsOp(rows.value, column.value, 1))
    return TensorValue(builder, found), source, is_kept


def filled_up(x: TensorValue, rest: Expr) -> TensorValue:
    """Rows [groups, n, width] with more rows of -1."""
    if rest == 0:
        return x
    builder = x.builder
    more = builder.broadcast(builder.scalar(-1, x.element), [x.dims[0], rest, x.dims[2]])
    return joined([x, TensorValue(builder, more)], 1)


@record
class YoloHead:
    """What a head of YOLO predicts."""

    anchors: np.ndarray
    """Widths and heights [anchors, 2] in elements of the image."""
    classes: int
    ratio: int
    """Elements of the image for one place."""
    scale: float
    """How far centers may lie from their places."""
    threshold: float
    """Boxes of less confidence are zero."""
    aware: float | None
    """The power of a prediction of overlaps in the confidence, if there is one."""
    clips: bool


def yolo_boxes(
    x: TensorValue, image_sizes: TensorValue, head: YoloHead
) -> tuple[TensorValue, TensorValue]:
    """
    Corners [images, boxes, 4] within the images, and scores by class, of an input [images, anchors
    * (5 + classes), rows, columns] (Redmon, Farhadi, YOLOv3).
    """
    builder, count = x.builder, len(head.anchors)
    images, _, rows, columns = x.dims
    known = None
    if head.aware is not None:
        known = TensorValue(builder, builder.slice_axis(x.value, 1, 0, count))
        rest = builder.slice_axis(x.value, 1, count, x.dims[1] - count)
        x = TensorValue(builder, rest)
    x = x.reshape([images, count, 5 + head.classes, rows, columns])
    corners: list[tuple[TensorValue, TensorValue]] = []
    for axis, (dim, place) in enumerate(((columns, 3), (rows, 2))):
        image = image_sizes.pick(1, 1 - axis).reshape([images, 1, 1, 1])
        number = TensorValue.iota(builder, dim).cast(x.element).column(4, place)
        length = TensorValue.dim(builder, dim).cast(x.element)
        offset = apply(SigmoidOp, x.pick(2, axis)) * head.scale - 0.5 * (head.scale - 1)
        middle = (number + offset) * image / length
        anchor = TensorValue(builder, head.anchors[:, axis].copy()).cast(x.element).column(4, 1)
        side = x.pick(2, 2 + axis).exp() * anchor * image / (length * float(head.ratio))
        low, high = middle - side / 2, middle + side / 2
        if head.clips:
            low, high = low.maximum(0), high.minimum(image - 1)
        corners.append((low, high))
    sure = apply(SigmoidOp, x.pick(2, 4))
    if known is not None and head.aware is not None:
        sure = _power(sure, 1 - head.aware) * _power(apply(SigmoidOp, known), head.aware)
    total = product([Expr.const(count), rows, columns])
    is_sure = sure.ge(head.threshold).reshape([*sure.dims, 1])
    boxes = stack([corners[0][0], corners[1][0], corners[0][1], corners[1][1]], 4)
    boxes = is_sure.where(boxes, 0).reshape([images, total, 4])
    start = TensorValue(builder, builder.slice_axis(x.value, 2, 5, head.classes))
    likely = apply(SigmoidOp, start).transpose([0, 1, 3, 4, 2]) * sure.reshape(is_sure.dims)
    return boxes, is_sure.where(likely, 0).reshape([images, total, head.classes])


def _power(x: TensorValue, exponent: float) -> TensorValue:
    op = PowOp(x.value, x.builder.scalar(exponent, x.element))
    return TensorValue(x.builder, x.builder.add(op))


# Suppression by class


@record
class Candidates:
    """The best boxes by class of each image, [images, classes, boxes] each."""

    classes: TensorValue
    scores: TensorValue
    """-inf for what is no candidate."""
    places: TensorValue
    corners: list[TensorValue]

    @property
    def width(self) -> list[Expr]:
        """The number of images, and of boxes of all classes."""
        images, classes, size = self.scores.dims
        return [images, classes * size]


def candidates_of(
    boxes: TensorValue, scores: TensorValue, threshold: float, background: int, most: int
) -> Candidates:
    """
    The `most` best boxes (-1 for all) of each class but the background with scores above a
    threshold; boxes are [images, boxes, 4], or [images, classes, boxes, 4].
    """
    builder, dims = scores.builder, scores.dims
    is_one = scores.gt(threshold)
    class_ = TensorValue.iota(builder, dims[1]).column(3, 1)
    if background >= 0:
        is_one = is_one & class_.ne(background)
    values, places = best_of(is_one.where(scores, -math.inf), most)
    shape = [dims[0], 1, dims[2]] if len(boxes.dims) == 3 else dims
    corners = [picked(side.reshape(shape).broadcast(dims), places) for side in columns_of(boxes)]
    return Candidates(class_.cast(values.element).broadcast(values.dims), values, places, corners)


@record
class Detections:
    """What is left: rows [class, score, corners], where they were, and how many of each image."""

    rows: SSAValue
    places: SSAValue
    counts: SSAValue


def _detections(
    builder: Legalizer,
    columns: Sequence[TensorValue],
    places: TensorValue,
    kept: TensorValue,
    count: Expr,
) -> Detections:
    """The rows [images, boxes] that are kept; `places` are those among `count` boxes."""
    images = kept.dims[0]
    total = product(kept.dims)
    table = stack([column.reshape(kept.dims) for column in columns], 2).reshape([total, 6])
    image = TensorValue.iota(builder, images).column(2, 0) * TensorValue.dim(builder, count)
    index = (image + places.reshape(kept.dims)).reshape([total])
    rows = nonzero_places(builder, kept.reshape([total]).value)
    index = builder.unsqueeze(builder.add(GatherOp(index.value, rows, 0)), [1])
    return Detections(
        builder.add(GatherOp(table.value, rows, 0)),
        builder.cast(index, i32),
        kept.cast(i64).reduce("sum", [1]).cast(i32).value,
    )


def suppressed_by_class(
    builder: Legalizer,
    found: Candidates,
    count: Expr,
    threshold: float,
    border: float,
    decay: float,
    most: int,
    *,
    by_place: bool = False,
) -> Detections:
    """
    The best candidates that overlap no better one of their class, at most `most` of each image (-1
    for all), of `count` boxes. `border` is added to widths and heights. Those
    of a class come by their scores, or `by_place`, which then counts classes, too.
    """
    images, classes, size = found.scores.dims
    flat = [images * classes, size]
    kept = suppressed(
        builder,
        [corner.reshape(flat) for corner in found.corners],
        found.scores.gt(-math.inf).reshape(flat),
        threshold,
        border=border,
        must_meet=True,
        decay=decay,
    ).reshape(found.width)
    if most >= 0:
        kept = best_kept(kept, found.scores.reshape(kept.dims), most)
    columns, places = [found.classes, found.scores, *found.corners], found.places
    if by_place:
        order = TensorValue(builder, ordered(builder, places.value, 2, False)[1])
        kept = picked(kept.reshape(places.dims).cast(i64), order).ne(0).reshape(found.width)
        columns = [picked(column, order) for column in columns]
        class_ = TensorValue.iota(builder, classes).column(3, 1)
        places = picked(places, order) * TensorValue.dim(builder, classes) + class_
    return _detections(builder, columns, places, kept, count)


def sunk_by_overlap(
    builder: Legalizer,
    found: Candidates,
    count: Expr,
    threshold: float,
    border: float,
    sigma: float | None,
    most: int,
) -> Detections:
    """
    The best candidates once scores sink by the overlap with better boxes, all at once, by a
    Gaussian of `sigma` or in proportion, and are above a threshold (Wang et al., SOLOv2).
    """
    images, classes, size = found.scores.dims
    overlap = similarity(
        [corner.reshape([images, classes, size, 1]) for corner in found.corners],
        [corner.reshape([images, classes, 1, size]) for corner in found.corners],
        border,
        must_meet=True,
    )
    number = TensorValue.iota(builder, size)
    is_better = number.reshape([size, 1]).gt(number.reshape([1, size]))
    overlap = is_better.where(overlap, 0)
    other = overlap.reduce("max", [3]).reshape([images, classes, 1, size])
    if sigma is not None:
        decay = ((other * other - overlap * overlap) * sigma).exp()
    else:
        decay = (1 - overlap) / (1 - other)
    decay = is_better.where(decay, 1).reduce("min", [3])
    low = TensorValue.number(builder, -math.inf, found.scores.element)
    sunk = found.scores.gt(-math.inf).where(found.scores * decay.minimum(1), low)
    sunk = sunk.gt(threshold).where(sunk, low)
    best, order = best_of(sunk.reshape(found.width), most)
    class_, *corners = (
        picked(column.reshape(found.width), order) for column in (found.classes, *found.corners)
    )
    places = picked(found.places.reshape(found.width), order)
    return _detections(builder, [class_, best, *corners], places, best.gt(-math.inf), count)


def detections_in_order(
    builder: Legalizer,
    columns: Sequence[TensorValue],
    is_valid: TensorValue,
    *,
    threshold: float,
    most: int,
    mixes: bool,
) -> TensorValue:
    """
    Rows [class, score, corners] of columns [images, boxes], valid ones first, by their scores or,
    without suppression (a threshold outside of 0 to 1), as they were. The class of those that
    overlap better ones (of any class if it `mixes`) is -1, and all of what is not valid. Only the
    `most` best are considered if that is positive.
    """
    score, count = columns[1], columns[1].dims[1]
    is_sorted = 0 < threshold <= 1
    zero = TensorValue.number(builder, 0.0, f32).broadcast(score.dims)
    _, order = best_of(is_valid.where(score if is_sorted else zero, -math.inf), count)
    is_considered = TensorValue.iota(builder, count).reshape([1, count]).lt(most)
    if is_sorted and most > 0:
        # Only these are put in order.
        _, other = best_of(is_valid.where(zero, -math.inf), count)
        order = is_considered.where(order, other)
    label, *parts = (picked(column, order) for column in columns)
    kept = alive = picked(is_valid.cast(i64), order).ne(0)
    if is_sorted:
        kept = alive & is_considered if most > 0 else alive
        below = float(np.nextafter(np.float32(threshold), np.float32(0)))
        kept = suppressed(builder, parts[1:], kept, below, labels=None if mixes else label)
    rows = [kept.where(label, -1.0), *(alive.where(part, -1.0) for part in parts)]
    return stack(rows, 2)


# Proposals

_LARGEST_STEP = math.log(1000.0 / 16.0)


@record
class ProposalRule:
    """Which boxes become proposals."""

    before: int
    """How many of the best are looked at; -1 for all."""
    after: int
    """How many are kept at most; -1 for all."""
    threshold: float
    least: float
    """The least width and height."""
    border: float
    decay: float = 1.0


def repeated_proposals(
    builder: Legalizer,
    scores: TensorValue,
    sides: Sequence[TensorValue],
    scale: TensorValue,
    rule: ProposalRule,
) -> tuple[TensorValue, TensorValue]:
    """
    Rows [image, left, top, right, bottom] of `rule.after` regions of each image, and their scores:
    the best boxes [images, boxes] that do not overlap; fewer are repeated. Small ones (`scale` is
    that of each image) grow and come last.
    """
    images, after = scores.dims[0], rule.after
    least = scale * rule.least
    width, height = (sides[2 + k] - sides[k] + rule.border for k in (0, 1))
    is_small = width.lt(least) | height.lt(least)
    grown = [side - least / 2.0 if k < 2 else side + least / 2.0 for k, side in enumerate(sides)]
    sides = [is_small.where(a, b) for a, b in zip(grown, sides, strict=True)]
    scores = is_small.where(TensorValue.number(builder, -1.0, f32), scores)
    best, order = best_of(scores, Expr.const(rule.before))
    sides = [picked(side, order) for side in sides]
    wanted = min(after, rule.before)
    kept = suppressed(
        builder,
        sides,
        best.eq(best) | best.ne(best),
        rule.threshold,
        most=Expr.const(wanted),
        border=rule.border,
    )
    _, place = best_of(kept.cast(i64), Expr.const(wanted))
    found = kept.cast(i64).reduce("sum", [1], keep_dims=True).minimum(wanted)
    cycle = TensorValue.iota(builder, after).reshape([1, after]) % found.maximum(1)
    place = picked(place, cycle)
    image = TensorValue.iota(builder, images).cast(f32).reshape([images, 1])
    table = [image.broadcast([images, after]), *(picked(side, place) for side in sides)]
    rows = stack(table, 2).reshape([images * after, 5])
    return rows, picked(best, place).reshape([images * after, 1])


def proposals(
    builder: Legalizer,
    scores: TensorValue,
    deltas: Sequence[TensorValue],
    anchors: Sequence[TensorValue],
    variances: Sequence[TensorValue],
    limits: Sequence[TensorValue],
    rule: ProposalRule,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """
    Boxes [n, 4] of one image, their scores [n, 1], and their number: anchors moved and scaled,
    within the image of sizes `limits` (width, height), the best that overlap no better one. All
    are [1, boxes] (Ren et al., Faster R-CNN).
    """
    best, order = best_of(scores, rule.before)
    lows: list[TensorValue] = []
    highs: list[TensorValue] = []
    kept = best.eq(best) | best.ne(best)
    for k, limit in enumerate(limits):
        low, high, *factors = (
            picked(part[place], order)
            for part, place in (
                (anchors, k),
                (anchors, 2 + k),
                (variances, k),
                (deltas, k),
                (variances, 2 + k),
                (deltas, 2 + k),
            )
        )
        side = high - low + rule.border
        middle = low + side * 0.5 + factors[0] * factors[1] * side
        side = side * (factors[2] * factors[3]).minimum(_LARGEST_STEP).exp()
        low = (middle - side * 0.5).minimum(limit - rule.border).maximum(0)
        high = (middle + side * 0.5 - rule.border).minimum(limit - rule.border).maximum(0)
        length = high - low + rule.border
        kept = kept & length.ge(rule.least)
        if rule.border:
            kept = kept & (low + length * 0.5).le(limit)
        lows.append(low)
        highs.append(high)
    corners = [*lows, *highs]
    most = None if rule.after < 0 else Expr.const(rule.after)
    kept = suppressed(
        builder,
        corners,
        kept,
        rule.threshold,
        most=most,
        border=rule.border,
        must_meet=True,
        decay=rule.decay,
    )
    size = kept.dims[1]
    places = nonzero_places(builder, kept.reshape([size]).value)
    return (
        builder.add(GatherOp(stack(corners, 2).reshape([size, 4]).value, places, 0)),
        builder.add(GatherOp(best.reshape([size, 1]).value, places, 0)),
        kept.cast(i64).reduce("sum", [1]).cast(i32).value,
    )


def images_of(builder: Legalizer, numbers: SSAValue, count: Expr) -> TensorValue:
    """The image of each of `count` regions, of which `numbers` tells how many each image has."""
    ends = TensorValue(builder, builder.add(CumulativeOp("sum", builder.cast(numbers, i64), 0)))
    place = TensorValue.iota(builder, count).reshape([count, 1])
    return ends.le(place).cast(i64).reduce("sum", [1])


def levels_of(
    boxes: TensorValue, levels: range, refer: int, scale: float, border: float
) -> TensorValue:
    """The level of each box [n, 4] by its area (Lin et al., feature pyramids), i64."""
    sides = [boxes.pick(1, 2 + k) - boxes.pick(1, k) + border for k in (0, 1)]
    is_proper = (sides[0] - border).ge(0) & (sides[1] - border).ge(0)
    size = apply(SqrtOp, is_proper.where(sides[0] * sides[1], 0)) / scale + 1e-6
    level = (size.log() * (1 / math.log(2))).floor() + float(refer)
    return level.clip(levels[0], levels[-1]).cast(i64)


def distributed(
    builder: Legalizer,
    boxes: TensorValue,
    level: TensorValue,
    levels: range,
    images: TensorValue | None,
    total: Expr,
) -> tuple[list[SSAValue], list[SSAValue], SSAValue]:
    """
    The boxes of each level, how many of each of `total` images, and where each box went [n, 1].
    """
    count = boxes.dims[0]
    parts: list[SSAValue] = []
    numbers: list[SSAValue] = []
    orders: list[SSAValue] = []
    for number in levels:
        here = level.eq(number)
        places = nonzero_places(builder, here.value)
        parts.append(builder.add(GatherOp(boxes.value, places, 0)))
        orders.append(places)
        if images is None:
            each = here.cast(i64).reduce("sum", [0]).reshape([1])
        else:
            image = TensorValue.iota(builder, total).column(2, 0)
            each = (images.reshape([1, count]).eq(image) & here).cast(i64).reduce("sum", [1])
        numbers.append(each.cast(i32).value)
    order = concat(builder, orders, 0)
    length = TensorValue.of(builder, order).dims
    zeros = builder.broadcast(builder.scalar(0, i64), length)
    back = ScatterElementsOp(zeros, order, TensorValue.iota(builder, length[0]).value, 0)
    index = builder.unsqueeze(builder.cast(builder.add(back), i32), [1])
    return parts, numbers, index
