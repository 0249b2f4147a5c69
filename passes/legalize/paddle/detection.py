"""Boxes of detectors: decoding, priors, suppression, and regions of images."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp
from lowerdeck.dialects.core.types import dims_of, f32, i32
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.boxes import (
    best_of,
    centers_of,
    columns_of,
    decoded,
    encoded,
    similarity,
)
from lowerdeck.passes.legalize.common.detection import (
    Candidates,
    ProposalRule,
    YoloHead,
    anchor_sizes,
    around,
    candidates_of,
    distributed,
    images_of,
    levels_of,
    places_along,
    prior_sizes,
    proposals,
    sunk_by_overlap,
    suppressed_by_class,
    yolo_boxes,
)
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.regions import largest_of_bins, means_of_bins
from lowerdeck.passes.legalize.common.selection import nonzero_places
from lowerdeck.passes.legalize.common.suppression import suppressed
from lowerdeck.passes.legalize.onnx.applied import roi_align
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


def _border(builder: PaddleLegalizer, name: str, is_whole: bool = False) -> float:
    """What is added to widths and heights: 1 where corners are elements."""
    return 1.0 if builder.flag(name) == is_whole else 0.0


# Decoding


@legalizes("yolo_box")
def legalize_yolo_box(builder: PaddleLegalizer) -> Results:
    """Corners [images, boxes, 4] within the images, and scores by class."""
    x = builder.value("x")
    head = YoloHead(
        anchors=np.array(builder.numbers("anchors", 2), np.float32).reshape(-1, 2),
        classes=builder.integer("class_num"),
        ratio=builder.integer("downsample_ratio"),
        scale=builder.real("scale_x_y"),
        threshold=builder.real("conf_thresh"),
        aware=builder.real("iou_aware_factor") if builder.flag("iou_aware") else None,
        clips=builder.flag("clip_bbox"),
    )
    boxes, scores = yolo_boxes(x, builder.value("img_size").cast(x.element), head)
    return builder.results(boxes=boxes.value, scores=scores.value)


@legalizes("box_coder")
def legalize_box_coder(builder: PaddleLegalizer) -> Results:
    """Boxes relative to priors [N, M, 4], or from what is relative to them."""
    prior, target = builder.value("prior_box"), builder.value("target_box")
    border = _border(builder, "box_normalized")
    is_encoding = builder.text("code_type") == "encode_center_size"
    axis = 0 if is_encoding else builder.integer("axis")
    shape = [1, prior.dims[0]] if axis == 0 else [prior.dims[0], 1]
    priors = [side.reshape(shape) for side in centers_of(columns_of(prior), border)]
    factors = _variances(builder, shape) or [1.0] * 4
    if is_encoding:
        rows = [side.reshape([target.dims[0], 1]) for side in columns_of(target)]
        pairs = zip(encoded(priors, rows, border), factors, strict=True)
        return stack([value / factor for value, factor in pairs], 2)
    parts = [part * factor for part, factor in zip(columns_of(target), factors, strict=True)]
    left, top, right, bottom = decoded(priors, parts)
    return stack([left, top, right - border, bottom - border], 2)


def _variances(builder: PaddleLegalizer, shape: list[Expr | int]) -> list[TensorValue] | None:
    """What each coordinate is multiplied by, if anything."""
    if builder.optional("prior_box_var") is not None:
        table = builder.value("prior_box_var")
        columns = columns_of(table)
        return columns if len(table.dims) == 1 else [column.reshape(shape) for column in columns]
    given = builder.numbers("variance")
    element = builder.value("prior_box").element
    return [TensorValue.number(builder, number, element) for number in given] or None


# Priors


def _with_variances(
    builder: PaddleLegalizer, sides: list[TensorValue], shape: list[Expr], clips: bool
) -> Results:
    boxes = stack(sides, 3)
    boxes = boxes.clip(0, 1) if clips else boxes
    variances = TensorValue(builder, np.array(builder.numbers("variances"), np.float32))
    return [boxes.value, variances.broadcast([*shape, 4]).value]


@legalizes("prior_box")
def legalize_prior_box(builder: PaddleLegalizer) -> Results:
    """Boxes of several sizes and shapes around every place, [rows, columns, boxes, 4]."""
    names = ("min_sizes", "max_sizes", "aspect_ratios")
    first = builder.flag("min_max_aspect_ratios_order")
    sizes = prior_sizes(
        *(builder.numbers(name) for name in names), flip=builder.flag("flip"), largest_first=first
    )
    space, image = (dims_of(builder.input(name))[2:] for name in ("input", "image"))
    offset = builder.real("offset")
    lengths = [TensorValue.dim(builder, image[axis]).cast(f32) for axis in (1, 0)]
    middles: list[TensorValue] = []
    for length, axis, name in zip(lengths, (1, 0), ("step_w", "step_h"), strict=True):
        given = builder.real(name)
        step = length / TensorValue.dim(builder, space[axis]).cast(f32)
        step = step if given == 0 else TensorValue.number(builder, given, f32)
        middles.append((places_along(builder, space[axis]) + offset) * step)
    halves = [np.array([size[k] / 2 for size in sizes]) for k in (0, 1)]
    sides, shape = around(builder, middles, halves)
    sides = [side / lengths[k % 2] for k, side in enumerate(sides)]
    return _with_variances(builder, sides, shape, builder.flag("clip"))


@legalizes("anchor_generator")
def legalize_anchors(builder: PaddleLegalizer) -> Results:
    """Boxes of several areas and shapes around every place, [rows, columns, boxes, 4]."""
    space = dims_of(builder.input("input"))[2:]
    stride, offset = builder.numbers("stride"), builder.real("offset")
    ratios, scales = (builder.numbers(name) for name in ("aspect_ratios", "anchor_sizes"))
    sizes = anchor_sizes(stride, ratios, scales)
    middles = [
        places_along(builder, space[1 - k]) * stride[k] + offset * (stride[k] - 1) for k in (0, 1)
    ]
    halves = [np.array([0.5 * (size[k] - 1) for size in sizes]) for k in (0, 1)]
    sides, shape = around(builder, middles, halves)
    return _with_variances(builder, sides, shape, False)


@legalizes("iou_similarity")
def legalize_similarity(builder: PaddleLegalizer) -> Results:
    """Intersection over union of all pairs of boxes."""
    one, other = (
        [side.column(2, axis) for side in columns_of(builder.value(name))]
        for axis, name in enumerate("xy")
    )
    return similarity(one, other, _border(builder, "box_normalized")).value


# Suppression


def _candidates(builder: PaddleLegalizer) -> tuple[Candidates, Expr]:
    """
    The best boxes by class of each image, and how many boxes there are: boxes [images, boxes, 4]
    and scores [images, classes, boxes], or those of one image, [boxes, classes, 4] and [boxes,
    classes].
    """
    boxes, scores = builder.value("bboxes"), builder.value("scores")
    if len(scores.dims) == 2:
        rois = builder.optional("rois_num") if builder.has("rois_num") else None
        if rois is None or dims_of(rois)[0] != 1:
            builder.refuse("boxes of several images in one list", "[images, classes, boxes]")
        boxes = boxes.transpose([1, 0, 2])
        boxes = boxes.reshape([1, *boxes.dims])
        scores = scores.transpose([1, 0]).reshape([1, *boxes.dims[1:3]])
    found = candidates_of(
        boxes,
        scores,
        builder.real("score_threshold"),
        builder.integer("background_label"),
        builder.integer("nms_top_k"),
    )
    return found, scores.dims[2]


@legalizes("multiclass_nms3", "multiclass_nms")
def legalize_multiclass_nms(builder: PaddleLegalizer) -> Results:
    """The best boxes by class of each image: rows, where they were, and how many of each image."""
    found, count = _candidates(builder)
    left = suppressed_by_class(
        builder,
        found,
        count,
        builder.real("nms_threshold"),
        _border(builder, "normalized"),
        builder.real("nms_eta"),
        builder.integer("keep_top_k"),
        by_place=len(dims_of(builder.input("scores"))) == 2,
    )
    given = {"out": left.rows, "index": left.places, "nms_rois_num": left.counts}
    known = builder.operator.declared.results
    return builder.results(**{name: value for name, value in given.items() if name in known})


@legalizes("matrix_nms")
def legalize_matrix_nms(builder: PaddleLegalizer) -> Results:
    """As `multiclass_nms3`, but scores sink by the overlap with better boxes."""
    found, count = _candidates(builder)
    left = sunk_by_overlap(
        builder,
        found,
        count,
        builder.real("post_threshold"),
        _border(builder, "normalized"),
        builder.real("gaussian_sigma") if builder.flag("use_gaussian") else None,
        builder.integer("keep_top_k"),
    )
    return builder.results(out=left.rows, index=left.places, roisnum=left.counts)


@legalizes("nms")
def legalize_nms(builder: PaddleLegalizer) -> Results:
    """The boxes, best first, that no better one overlaps too much."""
    boxes = builder.value("x")
    count = boxes.dims[0]
    corners = [side.reshape([1, count]) for side in columns_of(boxes)]
    alive = corners[0].eq(corners[0]) | corners[0].ne(corners[0])
    kept = suppressed(builder, corners, alive, builder.real("threshold"))
    return nonzero_places(builder, kept.reshape([count]).value)


# Regions


@legalizes("roi_align")
def legalize_roi_align(builder: PaddleLegalizer) -> Results:
    """As ONNX has it; the images have numbers of regions."""
    boxes = builder.input("boxes")
    if builder.optional("boxes_num") is None:
        builder.refuse("regions whose images only a LoD tells", "numbers of regions")
    images = images_of(builder, builder.input("boxes_num"), dims_of(boxes)[0])
    return roi_align(
        builder,
        builder.input("x"),
        boxes,
        images.value,
        size=(builder.integer("pooled_height"), builder.integer("pooled_width")),
        samples=builder.integer("sampling_ratio"),
        scale=builder.real("spatial_scale"),
        is_aligned=builder.flag("aligned"),
    )


@legalizes("roi_pool", "psroi_pool")
def legalize_roi_pool(builder: PaddleLegalizer) -> Results:
    """The maximum over each bin, or the mean over each bin of the channel that belongs to it."""
    boxes, numbers = builder.value("boxes"), builder.optional("boxes_num")
    if numbers is None or (builder.name == "roi_pool" and builder.has_result("arg_max")):
        builder.refuse("regions whose images only a LoD tells, or places", "numbers of regions")
    images = images_of(builder, numbers, boxes.dims[0]).cast(boxes.element)
    rois = stack([images, *columns_of(boxes)], 1).value
    size = [builder.integer(f"pooled_{name}") for name in ("height", "width")]
    x, scale = builder.input("x"), builder.real("spatial_scale")
    if builder.name == "roi_pool":
        return builder.results(out=largest_of_bins(builder, x, rois, scale, size))
    if size[0] != size[1]:
        builder.refuse(f"bins {size}", "as many in both directions")
    return means_of_bins(builder, x, rois, scale, builder.integer("output_channels"), size[0])


@legalizes("box_clip")
def legalize_box_clip(builder: PaddleLegalizer) -> Results:
    """Boxes within the image, of which the sizes and the scale are known."""
    boxes, info = builder.value("input"), builder.value("im_info")
    if info.dims[0] != 1:
        builder.refuse("boxes of several images", "one image")
    size = [(info.pick(1, k) / info.pick(1, 2)).round().reshape([]) - 1 for k in (1, 0)]
    sides = [s.minimum(size[k % 2]).maximum(0) for k, s in enumerate(columns_of(boxes))]
    return stack(sides, len(boxes.dims) - 1).value


@legalizes("generate_proposals")
def legalize_generate_proposals(builder: PaddleLegalizer) -> Results:
    """Regions of an image: boxes around all places, moved and scaled, and their scores."""
    scores, deltas = builder.value("scores"), builder.value("bbox_deltas")
    images, count, rows, columns = scores.dims
    if images != 1:
        builder.refuse("proposals of several images", "one image")
    total = product([rows, columns, count])
    moved = deltas.reshape([count, 4, rows, columns]).transpose([2, 3, 0, 1])
    tables = (moved, builder.value("anchors"), builder.value("variances"))
    moves, anchors, factors = (columns_of(table.reshape([1, total, 4])) for table in tables)
    most = (builder.integer(f"{name}_nms_top_n") for name in ("pre", "post"))
    before, after = (number if number > 0 else -1 for number in most)
    rule = ProposalRule(
        before=before,
        after=after,
        threshold=builder.real("nms_thresh"),
        least=max(builder.real("min_size"), 1.0),
        border=_border(builder, "pixel_offset", True),
        decay=builder.real("eta"),
    )
    listed = scores.transpose([0, 2, 3, 1]).reshape([1, total])
    sizes = [builder.value("im_shape").pick(1, 1 - k).reshape([1, 1]) for k in (0, 1)]
    boxes, likely, number = proposals(builder, listed, moves, anchors, factors, sizes, rule)
    return builder.results(rpn_rois=boxes, rpn_roi_probs=likely, rpn_rois_num=number)


@legalizes("distribute_fpn_proposals")
def legalize_distribute(builder: PaddleLegalizer) -> Results:
    """The regions of each level by their areas, how many, and where each region went."""
    boxes = builder.value("fpn_rois")
    first, last, refer, scale = (
        builder.integer(name) for name in ("min_level", "max_level", "refer_level", "refer_scale")
    )
    levels, border = range(first, last + 1), _border(builder, "pixel_offset", True)
    images, total = None, Expr.const(1)
    if (numbers := builder.optional("rois_num")) is not None:
        images, total = images_of(builder, numbers, boxes.dims[0]), dims_of(numbers)[0]
    level = levels_of(boxes, levels, refer, float(scale), border)
    parts, counts, index = distributed(builder, boxes, level, levels, images, total)
    return builder.results(multi_fpn_rois=parts, multi_level_rois_num=counts, restore_index=index)


@legalizes("collect_fpn_proposals")
def legalize_collect(builder: PaddleLegalizer) -> Results:
    """The best regions of all levels."""
    boxes = concat(builder, builder.inputs("multi_level_rois"), 0)
    given: list[SSAValue] = builder.inputs("multi_level_scores")
    scores = concat(builder, [builder.reshape(s, [product(dims_of(s))]) for s in given], 0)
    numbers = builder.inputs("multi_level_rois_num")
    if numbers and any(dims_of(number)[0] != 1 for number in numbers):
        builder.refuse("regions of several images", "one image")
    _, order = best_of(TensorValue(builder, scores), builder.integer("post_nms_topn"))
    count = TensorValue.dim(builder, order.dims[0]).reshape([1]).cast(i32)
    rows = builder.add(GatherOp(boxes, order.value, 0))
    return builder.results(fpn_rois=rows, rois_num=count.value)
