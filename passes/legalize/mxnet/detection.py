"""Boxes of detectors: priors, decoding, suppression, proposals, and pools over regions."""

from __future__ import annotations

import math

import numpy as np

from lowerdeck.dialects.core.types import dims_of, f32, i64, rank_of
from lowerdeck.dialects.dims import minimum, product
from lowerdeck.passes.legalize.common.boxes import (
    best_of,
    centers_of,
    columns_of,
    corners_of,
    decoded,
    picked,
    similarity,
)
from lowerdeck.passes.legalize.common.detection import (
    ProposalRule,
    anchors_of_cell,
    detections_in_order,
    filled_up,
    kept_first,
    normalized_priors,
    repeated_proposals,
    scored_places,
)
from lowerdeck.passes.legalize.common.regions import largest_of_bins, means_of_bins
from lowerdeck.passes.legalize.common.suppression import suppressed
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import Results, legalizes
from lowerdeck.passes.legalize.onnx.applied import roi_align
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat, stack

# Priors


@legalizes("_contrib_MultiBoxPrior")
def legalize_priors(builder: MxnetLegalizer) -> Results:
    """Boxes around all places of an image: one for each size, then for each other ratio."""
    rows, columns = (dim.value or 0 for dim in dims_of(builder.input())[2:])
    sizes, ratios = builder.get("sizes"), builder.get("ratios")
    steps, offsets = builder.get("steps"), builder.get("offsets")
    if not sizes or not ratios or len(steps) != 2 or len(offsets) != 2 or min(ratios) <= 0:
        builder.refuse("no sizes or ratios", "at least one of each, which are positive")
    if not 0 < (total := rows * columns * (len(sizes) + len(ratios))) <= 1 << 22:
        builder.refuse(f"{total} boxes", f"1 to {1 << 22}", "give the shape of the input")
    boxes = normalized_priors(rows, columns, sizes, ratios, steps, offsets)
    boxes = np.clip(boxes, 0, 1) if builder.flag("clip") else boxes
    return builder.tensor(np.ascontiguousarray(boxes.reshape(1, -1, 4), np.float32))


# Detections


@legalizes("_contrib_MultiBoxDetection")
def legalize_detection(builder: MxnetLegalizer) -> Results:
    """
    Rows [class, score, left, top, right, bottom], best ones first; the class of those that lie over
    better ones is -1, and rows without a box are -1.
    """
    scores, deltas, anchors = (builder.value(name) for name in ("cls_prob", "loc_pred", "anchor"))
    images, _, count = scores.dims
    if builder.integer("background_id") != 0:
        builder.refuse(f"'background_id' is {builder.integer('background_id')}", "0")
    foreground = TensorValue(builder, builder.slice_axis(scores.value, 1, 1, scores.dims[1] - 1))
    score = foreground.reduce("max", [1])
    place = builder.torch("argmax.default", i64, self=foreground.value, dim=1)
    is_valid = score.ge(builder.number("threshold")) & score.gt(-1.0)
    sides = _located(builder, deltas.reshape([images, count, 4]), anchors.reshape([1, count, 4]))
    label = TensorValue(builder, builder.cast(place, f32))
    table = detections_in_order(
        builder,
        [label, score, *sides],
        is_valid,
        threshold=builder.number("nms_threshold"),
        most=builder.integer("nms_topk"),
        mixes=builder.flag("force_suppress"),
    )
    return table.value


def _located(
    builder: MxnetLegalizer, deltas: TensorValue, anchors: TensorValue
) -> list[TensorValue]:
    """Boxes whose centers are moved and whose sizes are scaled, within 0 and 1 if it says so."""
    variances = builder.get("variances")
    if len(variances) != 4:
        builder.refuse(f"'variances' is {variances}", "four numbers")
    moves = [d * v for d, v in zip(columns_of(deltas), variances, strict=True)]
    sides = decoded(centers_of(columns_of(anchors)), moves)
    if builder.flag("clip"):
        return [side.maximum(0.0).minimum(1.0) for side in sides]
    return sides


@legalizes("_contrib_box_decode")
def legalize_decode(builder: MxnetLegalizer) -> Results:
    """Boxes whose centers are moved and whose sizes are scaled by others."""
    deltas, anchors = columns_of(builder.value("data")), columns_of(builder.value("anchors"))
    kind = builder.choice("format", "corner", "center")
    priors = centers_of(anchors) if kind == "corner" else anchors
    dx, dy, dw, dh = (d * builder.number(f"std{k}") for k, d in enumerate(deltas))
    if (most := builder.number("clip")) > 0:
        dw, dh = dw.minimum(most), dh.minimum(most)
    return stack(decoded(priors, [dx, dy, dw, dh]), 2).value


@legalizes("_contrib_box_iou")
def legalize_overlap(builder: MxnetLegalizer) -> Results:
    """The area that two boxes share by that of both, for each pair of boxes."""
    boxes = [builder.value(name) for name in ("lhs", "rhs")]
    sides: list[list[TensorValue]] = []
    is_center = builder.choice("format", "corner", "center") == "center"
    for each, shape in zip(boxes, ([-1, 1], [1, -1]), strict=True):
        count = product(each.dims[:-1])
        own = columns_of(each.reshape([count, 4]))
        own = corners_of(own) if is_center else own
        sides.append([side.reshape([count if n < 0 else n for n in shape]) for side in own])
    outer = [*boxes[0].dims[:-1], *boxes[1].dims[:-1]]
    return similarity(sides[0], sides[1]).reshape(outer)


@legalizes("_contrib_box_nms")
def legalize_suppression(builder: MxnetLegalizer) -> Results:
    """
    Rows of boxes that are kept, best ones first, then rows of -1; and the numbers of the rows that
    they were, -1 for none.
    """
    x = builder.value("data")
    rank = len(x.dims)
    if rank < 2:
        builder.refuse(f"boxes of {rank} dimensions", "2 or more")
    if builder.integer("topk") == 0:
        return x.value
    groups, count, width = product(x.dims[:-2]), x.dims[-2], x.dims[-1]
    rows = x.reshape([groups, count, width])
    score = rows.pick(2, builder.integer("score_index"))
    is_valid = score.gt(builder.number("valid_thresh"))
    label_place = builder.integer("id_index")
    label = None if label_place < 0 else rows.pick(2, label_place)
    if label is not None and builder.integer("background_id") >= 0:
        is_valid = is_valid & label.ne(float(builder.integer("background_id")))
    most = builder.integer("topk")
    considered = count if most < 0 else minimum(count, most)
    _, order = best_of(is_valid.where(score, -math.inf), considered)
    alive = picked(is_valid.cast(i64), order).ne(0)
    sides = [picked(side, order) for side in columns_of(rows, builder.integer("coord_start"))]
    in_format = builder.choice("in_format", "corner", "center")
    corners = corners_of(sides) if in_format == "center" else sides
    labels = None
    if label is not None and not builder.flag("force_suppress"):
        labels = picked(label, order)
    kept = suppressed(builder, corners, alive, builder.real("overlap_thresh"), labels=labels)
    found, source, is_kept = kept_first(rows, order, kept)
    found = is_kept.reshape([*is_kept.dims, 1]).where(_in_format(builder, found, in_format), -1.0)
    number = is_kept.where(source, -1).cast(x.element).reshape([*is_kept.dims, 1])
    outputs = [filled_up(each, count - considered) for each in (found, number)]
    return [outputs[0].reshape(x.dims), outputs[1].reshape([*x.dims[:-1], 1])]


def _in_format(builder: MxnetLegalizer, rows: TensorValue, given: str) -> TensorValue:
    """Rows whose boxes are of centers and sizes, or of corners, as the result is to be."""
    wanted = builder.choice("out_format", "corner", "center")
    if wanted == given:
        return rows
    first = builder.integer("coord_start")
    sides = columns_of(rows, first)
    sides = corners_of(sides) if wanted == "corner" else centers_of(sides)
    width = rows.dims[2]
    before = TensorValue(builder, builder.slice_axis(rows.value, 2, 0, first))
    after = builder.slice_axis(rows.value, 2, first + 4, width - first - 4)
    return concat([before, stack(sides, 2), TensorValue(builder, after)], 2)


# Proposals


@legalizes("_contrib_Proposal", "_contrib_MultiProposal")
def legalize_proposal(builder: MxnetLegalizer) -> Results:
    """
    Regions [image, left, top, right, bottom] and their scores: boxes around all places, moved and
    scaled, within the image, the best ones that do not overlap; fewer are repeated.
    """
    if builder.flag("iou_loss"):
        builder.refuse("'iou_loss'", "none")
    scores, deltas, info = (builder.value(name) for name in ("cls_prob", "bbox_pred", "im_info"))
    images, _, rows, columns = (dim.value for dim in scores.dims)
    if images is None or rows is None or columns is None:
        builder.refuse("places of unknown number", "numbers", "give the shape of the input")
    stride = builder.integer("feature_stride")
    anchors = anchors_of_cell(stride, builder.get("ratios"), builder.get("scales"))
    total = rows * columns * len(anchors)
    if not 0 < total <= 1 << 22:
        builder.refuse(f"{total} boxes", f"1 to {1 << 22}")
    front = TensorValue(builder, builder.slice_axis(scores.value, 1, len(anchors), len(anchors)))
    facts = [info.pick(1, k).reshape([images, 1]) for k in range(3)]
    score, sides = scored_places(front, deltas, facts, anchors, stride)
    before, after = (builder.integer(f"rpn_{when}_nms_top_n") for when in ("pre", "post"))
    rule = ProposalRule(
        before=min(before, total) if before > 0 else total,
        after=after,
        threshold=builder.real("threshold"),
        least=float(builder.integer("rpn_min_size")),
        border=1,
    )
    regions, likely = repeated_proposals(builder, score, sides, facts[2], rule)
    return [regions.value, likely.value]


# Pools over regions


@legalizes("ROIPooling")
def legalize_roi_pooling(builder: MxnetLegalizer) -> Results:
    """The maximum over each bin."""
    size = builder.spatial("pooled_size", 2, 1)
    x, rois = builder.input("data"), builder.input("rois")
    return largest_of_bins(builder, x, rois, builder.number("spatial_scale"), size)


@legalizes("_contrib_PSROIPooling")
def legalize_psroi_pooling(builder: MxnetLegalizer) -> Results:
    """The average over each bin, of the channel that belongs to it."""
    size = builder.integer("pooled_size")
    if builder.integer("group_size") not in (0, size):
        builder.refuse(f"{builder.integer('group_size')} groups", f"{size}")
    x, rois = builder.input("data"), builder.input("rois")
    scale, channels = builder.number("spatial_scale"), builder.integer("output_dim")
    return means_of_bins(builder, x, rois, scale, channels, size)


@legalizes("_contrib_ROIAlign")
def legalize_roi_align(builder: MxnetLegalizer) -> Results:
    """The mean of samples of each bin; regions of no image are zero."""
    builder.absent("position_sensitive")
    x, rois = builder.input("data"), builder.input("rois")
    if rank_of(rois) != 2:
        builder.refuse(f"regions {rois.type}", "a matrix")
    image = builder.squeeze(builder.slice_axis(rois, 1, 0, 1), [1])
    number = TensorValue.of(builder, image)
    found = roi_align(
        builder,
        x,
        builder.slice_axis(rois, 1, 1, 4),
        number.maximum(0.0).cast(i64).value,
        size=builder.spatial("pooled_size", 2, 1),
        samples=builder.integer("sample_ratio"),
        scale=builder.real("spatial_scale"),
        is_aligned=builder.flag("aligned"),
    )
    pooled = TensorValue(builder, found)
    return number.lt(0.0).column(4, 0).where(builder.known(0.0, f32), pooled).value
