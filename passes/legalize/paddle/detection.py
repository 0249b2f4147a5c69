"""Boxes of detectors: decoding, priors, suppression, and regions of images."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import PowOp, SigmoidOp, SqrtOp
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import (
    GatherOp,
    ScatterElementsOp,
)
from lowerdeck.dialects.core.types import dims_of, f32, i32, i64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.boxes import (
    best_kept,
    best_of,
    columns_of,
    decoded,
    picked,
    similarity,
)
from lowerdeck.passes.legalize.common.movement import concat
from lowerdeck.passes.legalize.common.selection import nonzero_places
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.common.suppression import suppressed
from lowerdeck.passes.legalize.onnx.applied import roi_align
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack

# Decoding


@legalizes("yolo_box")
def legalize_yolo_box(builder: PaddleLegalizer) -> Results:
    """
    Corners [images, boxes, 4] within the images, and scores by class; boxes of little confidence
    are zero. The input is [images, anchors * (5 + classes), rows, columns].
    """
    x, classes = builder.value("x"), builder.integer("class_num")
    anchors = np.array(builder.numbers("anchors"), np.float32).reshape(-1, 2)
    count = len(anchors)
    images, _, rows, columns = x.dims
    known = None
    if builder.flag("iou_aware"):
        front = TensorValue(builder, builder.slice_axis(x.value, 1, 0, count))
        known = apply(SigmoidOp, front)
        rest = builder.slice_axis(x.value, 1, count, x.dims[1] - count)
        x = TensorValue(builder, rest)
    x = x.reshape([images, count, 5 + classes, rows, columns])
    sizes = builder.value("img_size").cast(x.element)
    ratio, scale = builder.integer("downsample_ratio"), float(builder.number("scale_x_y"))
    corners: list[tuple[TensorValue, TensorValue]] = []
    for axis, (dim, place) in enumerate(((columns, 3), (rows, 2))):
        image = sizes.pick(1, 1 - axis).reshape([images, 1, 1, 1])
        number = TensorValue.iota(builder, dim).cast(x.element).column(4, place)
        length = TensorValue.dim(builder, dim).cast(x.element)
        offset = apply(SigmoidOp, x.pick(2, axis)) * scale - 0.5 * (scale - 1)
        middle = (number + offset) * image / length
        anchor = TensorValue(builder, anchors[:, axis].copy()).cast(x.element).column(4, 1)
        side = x.pick(2, 2 + axis).exp() * anchor * image / (length * float(ratio))
        low, high = middle - side / 2, middle + side / 2
        if builder.flag("clip_bbox"):
            low, high = low.maximum(0), high.minimum(image - 1)
        corners.append((low, high))
    sure = apply(SigmoidOp, x.pick(2, 4))
    if known is not None:
        factor = float(builder.number("iou_aware_factor"))
        sure = _power(sure, 1 - factor) * _power(known, factor)
    is_sure = sure.ge(float(builder.number("conf_thresh")))
    total = product([Expr.const(count), rows, columns])
    boxes = stack([corners[0][0], corners[1][0], corners[0][1], corners[1][1]], 4)
    wide = is_sure.reshape([*is_sure.dims, 1])
    boxes = wide.where(boxes, 0).reshape([images, total, 4])
    start = builder.slice_axis(x.value, 2, 5, classes)
    likely = apply(SigmoidOp, TensorValue(builder, start)).transpose([0, 1, 3, 4, 2])
    scores = wide.where(likely * sure.reshape(wide.dims), 0).reshape([images, total, classes])
    return builder.results(boxes=boxes.value, scores=scores.value)


def _power(x: TensorValue, exponent: float) -> TensorValue:
    op = PowOp(x.value, x.builder.scalar(exponent, x.element))
    return TensorValue(x.builder, x.builder.add(op))


@legalizes("box_coder")
def legalize_box_coder(builder: PaddleLegalizer) -> Results:
    """Boxes relative to priors [N, M, 4], or from what is relative to them."""
    prior, target = builder.value("prior_box"), builder.value("target_box")
    border = 0.0 if builder.flag("box_normalized") else 1.0
    is_encoding = builder.text("code_type") == "encode_center_size"
    axis = 0 if is_encoding else builder.integer("axis")
    count = prior.dims[0]
    shape = [1, count] if axis == 0 else [count, 1]

    def by_prior(value: TensorValue) -> TensorValue:
        return value.reshape(shape)

    sides = [prior.pick(1, 2 + k) - prior.pick(1, k) + border for k in (0, 1)]
    middles = [by_prior(prior.pick(1, k) + sides[k] * 0.5) for k in (0, 1)]
    sides = [by_prior(side) for side in sides]
    factors = _variances(builder, shape)
    if is_encoding:
        rows = target.dims[0]
        found: list[TensorValue] = []
        for k in (0, 1):
            middle = ((target.pick(1, k) + target.pick(1, 2 + k)) * 0.5).reshape([rows, 1])
            found.append((middle - middles[k]) / sides[k])
        for k in (0, 1):
            side = (target.pick(1, 2 + k) - target.pick(1, k) + border).reshape([rows, 1])
            found.append((side / sides[k]).abs().log())
        if factors is not None:
            found = [value / factor for value, factor in zip(found, factors, strict=True)]
        return [stack(found, 2).value]
    parts = [target.pick(2, k) for k in range(4)]
    if factors is not None:
        parts = [part * factor for part, factor in zip(parts, factors, strict=True)]
    left, top, right, bottom = decoded([*middles, *sides], parts)
    return [stack([left, top, right - border, bottom - border], 2).value]


def _variances(builder: PaddleLegalizer, shape: list[Expr | int]) -> list[TensorValue] | None:
    """What each coordinate is multiplied by, if anything."""
    if builder.optional("prior_box_var") is not None:
        table = builder.value("prior_box_var")
        if len(table.dims) == 1:
            return [table.pick(0, k) for k in range(4)]
        return [table.pick(1, k).reshape(shape) for k in range(4)]
    given = builder.numbers("variance")
    element = builder.value("prior_box").element
    return [TensorValue.number(builder, number, element) for number in given] or None


# Priors


@legalizes("prior_box")
def legalize_prior_box(builder: PaddleLegalizer) -> Results:
    """Boxes of several sizes and shapes around every place, [rows, columns, boxes, 4]."""
    ratios = [1.0]
    for ratio in builder.numbers("aspect_ratios"):
        if all(abs(ratio - known) >= 1e-6 for known in ratios):
            ratios += [ratio, 1.0 / ratio] if builder.flag("flip") else [ratio]
    largest = builder.numbers("max_sizes")
    sizes: list[tuple[float, float]] = []
    for place, least in enumerate(builder.numbers("min_sizes")):
        own = [(least * math.sqrt(ratio), least / math.sqrt(ratio)) for ratio in ratios]
        square = math.sqrt(least * largest[place]) if largest else 0.0
        between = [(square, square)] if largest else []
        if builder.flag("min_max_aspect_ratios_order"):
            sizes += [own[0], *between, *own[1:]]
        else:
            sizes += [*own, *between]
    return _around(builder, sizes, builder.flag("clip"))


def _around(
    builder: PaddleLegalizer, sizes: list[tuple[float, float]], is_clipped: bool
) -> Results:
    """Boxes of sizes (width, height) around every place, relative to the image; variances."""
    space, image = dims_of(builder.input("input"))[2:], dims_of(builder.input("image"))[2:]
    shape = [*space, Expr.const(len(sizes))]
    offset = float(builder.number("offset"))
    lows: list[TensorValue] = []
    highs: list[TensorValue] = []
    for axis, name in ((1, "step_w"), (0, "step_h")):
        length = TensorValue.dim(builder, image[axis]).cast(f32)
        dim = TensorValue.dim(builder, space[axis]).cast(f32)
        given = float(builder.number(name))
        step = length / dim if given == 0 else TensorValue.number(builder, given, f32)
        number = TensorValue.iota(builder, space[axis]).cast(f32)
        middle = ((number + offset) * step).column(3, axis)
        half = np.array([size[1 - axis] / 2 for size in sizes], np.float32)
        half = TensorValue(builder, half).column(3, 2)
        lows.append(((middle - half) / length).broadcast(shape))
        highs.append(((middle + half) / length).broadcast(shape))
    boxes = stack([*lows, *highs], 3)
    boxes = boxes.clip(0, 1) if is_clipped else boxes
    variances = TensorValue(builder, np.array(builder.numbers("variances"), np.float32))
    return [boxes.value, variances.broadcast([*shape, 4]).value]


@legalizes("anchor_generator")
def legalize_anchors(builder: PaddleLegalizer) -> Results:
    """Boxes of several areas and shapes around every place, [rows, columns, boxes, 4]."""
    space = dims_of(builder.input("input"))[2:]
    stride = builder.numbers("stride")
    offset = float(builder.number("offset"))
    sizes: list[tuple[float, float]] = []
    for ratio in builder.numbers("aspect_ratios"):
        width = math.floor(math.sqrt(stride[0] * stride[1] / ratio) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for size in builder.numbers("anchor_sizes"):
            sizes.append((size / stride[0] * width, size / stride[1] * height))
    shape = [*space, Expr.const(len(sizes))]
    lows: list[TensorValue] = []
    highs: list[TensorValue] = []
    for k, axis in ((0, 1), (1, 0)):
        number = TensorValue.iota(builder, space[axis]).cast(f32)
        middle = (number * stride[k] + offset * (stride[k] - 1)).column(3, axis)
        half = np.array([0.5 * (size[k] - 1) for size in sizes], np.float32)
        half = TensorValue(builder, half).column(3, 2)
        lows.append((middle - half).broadcast(shape))
        highs.append((middle + half).broadcast(shape))
    variances = TensorValue(builder, np.array(builder.numbers("variances"), np.float32))
    return [stack([*lows, *highs], 3).value, variances.broadcast([*shape, 4]).value]


@legalizes("iou_similarity")
def legalize_similarity(builder: PaddleLegalizer) -> Results:
    """Intersection over union of all pairs of boxes."""
    one, other = (
        [side.column(2, axis) for side in columns_of(builder.value(name))]
        for axis, name in enumerate("xy")
    )
    border = 0 if builder.flag("box_normalized") else 1
    return [similarity(one, other, border).value]


# Suppression


def _candidates(
    builder: PaddleLegalizer, boxes: TensorValue, scores: TensorValue
) -> tuple[TensorValue, TensorValue, TensorValue, list[TensorValue]]:
    """
    The best boxes by class of each image: classes, scores, -inf for what is none, places, and
    corners, [images, classes, boxes] each.
    """
    images, classes, count = scores.dims
    candidates = scores.gt(float(builder.number("score_threshold")))
    background = builder.integer("background_label")
    class_ = TensorValue.iota(builder, classes).column(3, 1)
    if background >= 0:
        candidates = candidates & class_.ne(background)
    top = builder.integer("nms_top_k")
    values, places = best_of(candidates.where(scores, -math.inf), top)
    corners = [
        picked(side.reshape([images, 1, count]).broadcast(scores.dims), places)
        for side in columns_of(boxes)
    ]
    return class_.cast(values.element).broadcast(values.dims), values, places, corners


@legalizes("multiclass_nms3", "multiclass_nms")
def legalize_multiclass_nms(builder: PaddleLegalizer) -> Results:
    """
    The best boxes by class of each image: rows [class, score, corners], where they were, and how
    many each image has. Boxes are [images, boxes, 4], scores [images, classes, boxes].
    """
    boxes, scores = builder.value("bboxes"), builder.value("scores")
    if len(scores.dims) != 3 or (builder.has("rois_num") and builder.optional("rois_num")):
        builder.refuse("boxes of their own for each class", "[images, classes, boxes]")
    images, classes, count = scores.dims
    class_, values, places, corners = _candidates(builder, boxes, scores)
    size = values.dims[2]
    flat = [images * classes, size]
    kept = suppressed(
        builder,
        [corner.reshape(flat) for corner in corners],
        values.gt(-math.inf).reshape(flat),
        float(builder.number("nms_threshold")),
        border=0 if builder.flag("normalized") else 1,
        must_meet=True,
        decay=float(builder.number("nms_eta")),
    ).reshape([images, classes * size])
    if (most := builder.integer("keep_top_k")) >= 0:
        kept = best_kept(kept, values.reshape(kept.dims), most)
    columns = [class_, values, *corners]
    total = product(values.dims)
    table = stack(columns, 3).reshape([total, 6])
    image = TensorValue.iota(builder, images).column(3, 0)
    index = (image * TensorValue.dim(builder, count) + places).reshape([total])
    rows = nonzero_places(builder, kept.reshape([total]).value)
    places_ = builder.unsqueeze(builder.add(GatherOp(index.value, rows, 0)), [1])
    number = kept.cast(i64).reduce("sum", [1]).cast(i32)
    values_ = {
        "out": builder.add(GatherOp(table.value, rows, 0)),
        "index": builder.cast(places_, i32),
        "nms_rois_num": number.value,
    }
    return builder.results(
        **{
            name: value
            for name, value in values_.items()
            if name in builder.operator.declared.results
        }
    )


@legalizes("nms")
def legalize_nms(builder: PaddleLegalizer) -> Results:
    """The boxes, best first, that no better one overlaps too much."""
    boxes = builder.value("x")
    count = boxes.dims[0]
    corners = [boxes.pick(1, k).reshape([1, count]) for k in range(4)]
    alive = corners[0].eq(corners[0]) | corners[0].ne(corners[0])
    kept = suppressed(builder, corners, alive, float(builder.number("threshold")))
    return [nonzero_places(builder, kept.reshape([count]).value)]


# Regions


@legalizes("roi_align")
def legalize_roi_align(builder: PaddleLegalizer) -> Results:
    """As ONNX has it; the images have numbers of regions."""
    x, boxes = builder.input("x"), builder.input("boxes")
    found = roi_align(
        builder,
        x,
        boxes,
        _images(builder, dims_of(boxes)[0]),
        size=(builder.integer("pooled_height"), builder.integer("pooled_width")),
        samples=builder.integer("sampling_ratio"),
        scale=float(builder.number("spatial_scale")),
        is_aligned=builder.flag("aligned"),
    )
    return [found]


def _images(builder: PaddleLegalizer, count: Expr) -> SSAValue:
    """The number of the image that each region is of."""
    if builder.optional("boxes_num") is None:
        builder.refuse("regions whose images only a LoD tells", "numbers of regions")
    return _image_of(builder, "boxes_num", count)


def _image_of(builder: PaddleLegalizer, name: str, count: Expr) -> SSAValue:
    """The image of each of `count` regions, of which an operand has the numbers by image."""
    numbers = builder.cast(builder.input(name), i64)
    ends = TensorValue(builder, builder.add(CumulativeOp("sum", numbers, 0)))
    place = TensorValue.iota(builder, count).reshape([count, 1])
    return ends.le(place).cast(i64).reduce("sum", [1]).value


# Proposals


_LARGEST_STEP = math.log(1000.0 / 16.0)


@legalizes("generate_proposals")
def legalize_generate_proposals(builder: PaddleLegalizer) -> Results:
    """
    Regions of images: boxes around all places, moved and scaled, within the image, the best ones
    that do not overlap; their scores, and how many each image has.
    """
    scores, deltas = builder.value("scores"), builder.value("bbox_deltas")
    images, count, rows, columns = scores.dims
    if images != 1:
        builder.refuse("proposals of several images", "one image")
    total = product([rows, columns, count])
    score = scores.transpose([0, 2, 3, 1]).reshape([1, total])
    moved = deltas.reshape([count, 4, rows, columns]).transpose([2, 3, 0, 1]).reshape([total, 4])
    anchors = builder.value("anchors").reshape([total, 4])
    variances = builder.value("variances").reshape([total, 4])
    best, order = best_of(score, _most(builder, "pre_nms_top_n"))
    border = 1.0 if builder.flag("pixel_offset") else 0.0
    sizes = builder.value("im_shape")
    least = max(float(builder.number("min_size")), 1.0)
    lows: list[TensorValue] = []
    highs: list[TensorValue] = []
    kept = best.eq(best) | best.ne(best)
    for k in (0, 1):

        def column(table: TensorValue, place: int) -> TensorValue:
            return picked(table.pick(1, place).reshape([1, total]), order)

        low, high = column(anchors, k), column(anchors, 2 + k)
        side = high - low + border
        middle = low + side * 0.5
        shift = column(variances, k) * column(moved, k)
        grown = (column(variances, 2 + k) * column(moved, 2 + k)).minimum(_LARGEST_STEP)
        middle, side = middle + shift * side, side * grown.exp()
        limit = sizes.pick(1, 1 - k).reshape([1, 1])
        low = (middle - side * 0.5).minimum(limit - border).maximum(0)
        high = (middle + side * 0.5 - border).minimum(limit - border).maximum(0)
        length = high - low + border
        kept = kept & length.ge(least)
        if border:
            kept = kept & (low + length * 0.5).le(limit)
        lows.append(low)
        highs.append(high)
    corners = [*lows, *highs]
    limit_ = _most(builder, "post_nms_top_n")
    kept = suppressed(
        builder,
        corners,
        kept,
        float(builder.number("nms_thresh")),
        most=None if limit_ < 0 else Expr.const(limit_),
        border=border,
        must_meet=True,
        decay=float(builder.number("eta")),
    )
    size = kept.dims[1]
    places = nonzero_places(builder, kept.reshape([size]).value)
    table = stack(corners, 2).reshape([size, 4])
    number = kept.cast(i64).reduce("sum", [1]).cast(i32)
    return builder.results(
        rpn_rois=builder.add(GatherOp(table.value, places, 0)),
        rpn_roi_probs=builder.add(GatherOp(best.reshape([size, 1]).value, places, 0)),
        rpn_rois_num=number.value,
    )


def _most(builder: PaddleLegalizer, name: str) -> int:
    """A number of boxes; -1 for all."""
    number = builder.integer(name)
    return number if number > 0 else -1


@legalizes("distribute_fpn_proposals")
def legalize_distribute(builder: PaddleLegalizer) -> Results:
    """The regions of each level by their areas, how many, and where each region went."""
    boxes = builder.value("fpn_rois")
    count = boxes.dims[0]
    border = 1.0 if builder.flag("pixel_offset") else 0.0
    first, last, refer, scale = (
        builder.integer(name) for name in ("min_level", "max_level", "refer_level", "refer_scale")
    )
    sides = [boxes.pick(1, 2 + k) - boxes.pick(1, k) + border for k in (0, 1)]
    is_proper = (sides[0] - border).ge(0) & (sides[1] - border).ge(0)
    area = is_proper.where(sides[0] * sides[1], 0)
    size = apply(SqrtOp, area) / float(scale) + 1e-6
    level = ((size.log() * (1 / math.log(2))).floor() + float(refer)).clip(first, last).cast(i64)
    images = None
    if builder.optional("rois_num") is not None:
        images = TensorValue(builder, _image_of(builder, "rois_num", count))
        total = dims_of(builder.input("rois_num"))[0]
    else:
        total = Expr.const(1)
    parts: list[SSAValue] = []
    numbers: list[SSAValue] = []
    orders: list[SSAValue] = []
    for number in range(first, last + 1):
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
    zeros = builder.broadcast(builder.scalar(0, i64), dims_of(order))
    back = ScatterElementsOp(zeros, order, TensorValue.iota(builder, dims_of(order)[0]).value, 0)
    index = builder.unsqueeze(builder.cast(builder.add(back), i32), [1])
    return builder.results(multi_fpn_rois=parts, multi_level_rois_num=numbers, restore_index=index)


@legalizes("collect_fpn_proposals")
def legalize_collect(builder: PaddleLegalizer) -> Results:
    """The best regions of all levels."""
    boxes = concat(builder, builder.inputs("multi_level_rois"), 0)
    given = builder.inputs("multi_level_scores")
    scores = concat(builder, [builder.reshape(s, [builder.total(s)]) for s in given], 0)
    numbers = builder.inputs("multi_level_rois_num")
    if numbers and any(dims_of(number)[0] != 1 for number in numbers):
        builder.refuse("regions of several images", "one image")
    _, order = best_of(TensorValue(builder, scores), builder.integer("post_nms_topn"))
    count = TensorValue.dim(builder, order.dims[0]).reshape([1]).cast(i32)
    return builder.results(
        fpn_rois=builder.add(GatherOp(boxes, order.value, 0)), rois_num=count.value
    )


@legalizes("matrix_nms")
def legalize_matrix_nms(builder: PaddleLegalizer) -> Results:
    """
    As `multiclass_nms3`, but scores sink by the overlap with better boxes, all at once (Wang et
    al., SOLOv2).
    """
    boxes, scores = builder.value("bboxes"), builder.value("scores")
    images, classes, count = scores.dims
    low = TensorValue.number(builder, -math.inf, scores.element)
    class_, values, places, corners = _candidates(builder, boxes, scores)
    size = values.dims[2]
    overlap = similarity(
        [corner.reshape([images, classes, size, 1]) for corner in corners],
        [corner.reshape([images, classes, 1, size]) for corner in corners],
        0 if builder.flag("normalized") else 1,
        must_meet=True,
    )
    number = TensorValue.iota(builder, size)
    is_better = number.reshape([size, 1]).gt(number.reshape([1, size]))
    overlap = is_better.where(overlap, 0)
    most = overlap.reduce("max", [3])
    other = most.reshape([images, classes, 1, size])
    if builder.flag("use_gaussian"):
        sigma = float(builder.number("gaussian_sigma"))
        decay = ((other * other - overlap * overlap) * sigma).exp()
    else:
        decay = (1 - overlap) / (1 - other)
    decay = is_better.where(decay, 1).reduce("min", [3])
    is_one = values.gt(-math.inf)
    sunk = is_one.where(values * decay.minimum(1), low)
    least = float(builder.number("post_threshold"))
    sunk = sunk.gt(least).where(sunk, low)
    flat = [images, classes * size]
    best, order = best_of(sunk.reshape(flat), builder.integer("keep_top_k"))
    kept = best.gt(-math.inf)
    total = product(best.dims)
    columns = [class_, *corners]
    columns = [picked(column.reshape(flat), order) for column in columns]
    table = stack([columns[0], best, *columns[1:]], 2).reshape([total, 6])
    image = TensorValue.iota(builder, images).column(2, 0)
    index = image * TensorValue.dim(builder, count) + picked(places.reshape(flat), order)
    rows = nonzero_places(builder, kept.reshape([total]).value)
    places_ = builder.unsqueeze(builder.add(GatherOp(index.reshape([total]).value, rows, 0)), [1])
    return builder.results(
        out=builder.add(GatherOp(table.value, rows, 0)),
        index=builder.cast(places_, i32),
        roisnum=kept.cast(i64).reduce("sum", [1]).cast(i32).value,
    )
