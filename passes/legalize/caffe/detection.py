"""The choice of boxes: proposals of regions, and detections."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import DetectionOutputParameter, PriorBoxParameter
from lowerdeck.dialects.caffe.fork_shapes import detection_classes, proposals_of
from lowerdeck.dialects.core.tensor import (
    GatherOp,
)
from lowerdeck.dialects.core.types import dims_of, f32, i1, i64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.caffe.legalizer import LOWEST, CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common.boxes import best_kept, best_of, centers_of, decoded, picked
from lowerdeck.passes.legalize.common.selection import nonzero, nonzero_places
from lowerdeck.passes.legalize.common.suppression import suppressed
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, stack

# Proposals


@legalizes("Proposal", "Python")
def legalize_proposal(builder: CaffeLegalizer) -> Results:
    """
    Regions [image, left, top, right, bottom] and their scores: boxes around all places, moved and
    scaled by the second bottom, within the image, the best ones that do not overlap.

    Of equal scores, whose order the layers leave open, the first comes first.
    """
    p = proposals_of(builder.layer)
    scores, deltas = (TensorValue(builder, bottom) for bottom in builder.bottoms[:2])
    info = TensorValue(builder, builder.reshape(builder.bottoms[2], [_count(builder.bottoms[2])]))
    tall, wide, scale = (info.pick(0, k) for k in range(3))
    scale_w = info.pick(0, 3) if _count(builder.bottoms[2]) != 3 and not p.drops_small else scale
    rows, columns = scores.dims[2].value, scores.dims[3].value
    if rows is None or columns is None:
        builder.refuse("places of unknown number", "numbers", "give the shape of the input")
    anchors = np.array(p.anchors(), np.float32)
    count = len(anchors)
    total = rows * columns * count
    y, x = np.mgrid[:rows, :columns].astype(np.float32) * np.float32(p.stride)
    boxes = (anchors + np.stack([x, y, x, y], -1)[:, :, None]).reshape(-1, 4)
    front = builder.slice_axis(scores.value, 1, count, count)
    score = TensorValue(builder, builder.transpose(front, [0, 2, 3, 1])).reshape([1, total])
    moved = deltas.reshape([count, 4, rows, columns]).transpose([1, 2, 3, 0]).reshape([4, total])
    corners = _transformed(boxes, [moved.pick(0, k).reshape([1, total]) for k in range(4)])
    limits = (wide - 1, tall - 1, wide - 1, tall - 1)
    corners = [
        corner.minimum(limit).maximum(0) for corner, limit in zip(corners, limits, strict=True)
    ]
    is_large = (corners[2] - corners[0] + 1).ge(scale_w * p.least) & (
        corners[3] - corners[1] + 1
    ).ge(scale * p.least)
    score = is_large.where(score, -np.inf) if p.drops_small else score * is_large.cast(f32)
    best, order = best_of(score, Expr.const(p.candidates if p.candidates > 0 else total))
    corners = [picked(corner, order) for corner in corners]
    alive = picked(is_large.cast(i64), order).cast(i1) if p.drops_small else best.eq(best)
    kept = suppressed(
        builder,
        corners,
        alive,
        p.threshold,
        most=Expr.const(p.regions) if p.regions > 0 else None,
        border=1,
    )
    index = nonzero_places(builder, kept.reshape([kept.dims[1]]).value)
    zeros = TensorValue(builder, builder.broadcast(builder.scalar(0, f32), best.dims))
    table = stack([zeros, *corners], 2).reshape([best.dims[1], 5])
    regions = builder.add(GatherOp(table.value, index, 0, inside=True))
    dims = [best.dims[1]] if builder.layer.type == "Proposal" else [best.dims[1], 1]
    second = builder.add(GatherOp(best.reshape(dims).value, index, 0, inside=True))
    return [regions, second][: len(builder.op.results)]


def _count(value: SSAValue) -> Expr:
    return product(dims_of(value))


def _transformed(boxes: np.ndarray, deltas: Sequence[TensorValue]) -> list[TensorValue]:
    """Boxes whose centers are moved by parts of their sizes, and whose sizes are scaled."""
    left, top, right, bottom = (boxes[None, :, k] for k in range(4))
    one, half = np.float32(1), np.float32(0.5)
    lows: list[TensorValue] = []
    highs: list[TensorValue] = []
    for low, high, move, stretch in ((left, right, 0, 2), (top, bottom, 1, 3)):
        size = TensorValue(deltas[0].builder, high - low + one)
        middle = TensorValue(deltas[0].builder, low + half * (high - low + one))
        center = deltas[move] * size + middle
        reach = deltas[stretch].exp() * size * 0.5
        lows.append(center - reach)
        highs.append(center + reach)
    return [*lows, *highs]


# Detections


@legalizes("DetectionOutput")
def legalize_detection_output(builder: CaffeLegalizer) -> Results:
    """
    Rows [image, class, score, left, top, right, bottom] of the boxes that are kept, class after
    class, best ones first; without any, a row [image, -1, ...] for each image.
    """
    p = builder.layer.detection_output_param
    classes, own = detection_classes(builder.layer)
    images = builder.shape[0]
    count = _count(builder.bottoms[2]) // 8
    labels = [k for k in range(classes) if k != p.background_label_id]
    if not labels:
        builder.refuse("no class beside the background", "at least one")
    corners = _decoded(builder, p, images, count, own)
    scores = TensorValue(builder, builder.bottoms[1]).reshape([images, count, classes])
    scores = _of_classes(scores.transpose([0, 2, 1]), labels)
    least = p.confidence_threshold if p.HasField("confidence_threshold") else LOWEST
    ranked = scores.gt(least).where(scores, -np.inf)
    top = p.nms_param.top_k if p.nms_param.HasField("top_k") else -1
    values, places = best_of(ranked, Expr.const(top) if top > 0 else count)
    shape = values.dims
    whole = [images, len(labels), count]
    corners = [
        picked(
            _of_classes(corner, labels) if own > 1 else corner.broadcast(whole),
            places,
        )
        for corner in corners
    ]
    flat = [product(shape[:2]), shape[2]]
    kept = suppressed(
        builder,
        [corner.reshape(flat) for corner in corners],
        values.gt(-np.inf).reshape(flat),
        p.nms_param.nms_threshold,
        decay=p.nms_param.eta,
    )
    kept = kept.reshape([images, product(shape[1:])])
    if p.keep_top_k > 0:
        kept = best_kept(kept, values.reshape(kept.dims), p.keep_top_k)
    image = TensorValue.iota(builder, images).cast(f32)
    class_ = TensorValue(builder, np.array(labels, np.float32)).reshape([1, len(labels), 1])
    columns = [image.column(3, 0).broadcast(shape), class_.broadcast(shape), values, *corners]
    table = stack(columns, 3).reshape([product(shape), 7])
    return [_rows(builder, table, kept.reshape([product(shape)]), image)]


def _of_classes(values: TensorValue, labels: Sequence[int]) -> TensorValue:
    """The parts of [images, classes, boxes] that belong to the classes."""
    if len(labels) == values.dims[1].value:
        return values
    index = values.builder.tensor(np.array(labels, np.int64))
    return TensorValue(
        values.builder, values.builder.add(GatherOp(values.value, index, 1, inside=True))
    )


def _decoded(
    builder: CaffeLegalizer,
    parameters: DetectionOutputParameter,
    images: Expr,
    count: Expr,
    own: int,
) -> list[TensorValue]:
    """Left, top, right and bottom of all boxes, [images, classes or 1, boxes]."""
    p = parameters
    priors = TensorValue(builder, builder.bottoms[2]).reshape([2, count, 4])
    found = TensorValue(builder, builder.bottoms[0]).reshape([images, count, own, 4])
    found = found.transpose([0, 2, 1, 3])
    deltas = [found.pick(3, k) for k in range(4)]
    corners = [priors.pick(0, 0).pick(1, k).reshape([1, 1, count]) for k in range(4)]
    if not p.variance_encoded_in_target:
        spreads = [priors.pick(0, 1).pick(1, k).reshape([1, 1, count]) for k in range(4)]
        deltas = [delta * spread for delta, spread in zip(deltas, spreads, strict=True)]
    if p.code_type == PriorBoxParameter.CORNER:
        return [corner + delta for corner, delta in zip(corners, deltas, strict=True)]
    sizes = [corners[2] - corners[0], corners[3] - corners[1]]
    if p.code_type == PriorBoxParameter.CORNER_SIZE:
        return [corners[k] + deltas[k] * sizes[k % 2] for k in range(4)]
    return decoded(centers_of(corners), deltas)


def _rows(
    builder: CaffeLegalizer, table: TensorValue, kept: TensorValue, image: TensorValue
) -> SSAValue:
    """The rows that are kept; if none is, those behind the table."""
    images = image.dims[0]
    nothing = TensorValue(builder, builder.broadcast(builder.scalar(-1, f32), [images, 6]))
    whole = concat([table, concat([image.reshape([images, 1]), nothing], 1)], 0)
    number = kept.cast(i64)
    is_empty = number.reduce("max", [0], keep_dims=True).eq(0).cast(i64).broadcast([images])
    found = nonzero(builder, concat([number, is_empty], 0).value)
    rows = dims_of(found)[1]
    chosen = builder.add(GatherOp(whole.value, builder.reshape(found, [rows]), 0, inside=True))
    return builder.reshape(chosen, [1, 1, rows, 7])
