"""TFLite_Detection_PostProcess: boxes from their codes, and those that are shown."""

from __future__ import annotations

import math

import numpy as np

from lowerdeck.dialects.core.tensor import GatherOp, PadOp, TopKOp
from lowerdeck.dialects.core.types import element_type, f32, f64, ui8
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.suppression import Rule, chosen, corners, overlap
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer
from lowerdeck.passes.legalize.tflite.registry import Results, legalizes


def _floats(builder: TfliteLegalizer, index: int) -> TensorValue:
    """An input of floats, or of bytes as floats."""
    x = builder.value(index)
    if element_type(builder.input(index)) != ui8:
        return x
    q = builder.quantization(index)
    return (x.cast(f32) - q.zero) * q.scale


def _decoded(builder: TfliteLegalizer) -> TensorValue:
    """[N, 4]: the corners y1, x1, y2, x2 of boxes, whose codes are relative to anchors."""
    codes, anchors = _floats(builder, 0), _floats(builder, 2)
    if codes.dims[0] != Expr.const(1):
        builder.refuse(f"{codes.dims[0]} images", "1")
    names = ("y_scale", "x_scale", "h_scale", "w_scale")
    y, x, h, w = (
        codes.pick(0, 0).pick(1, k).cast(f64) / float(np.float32(builder.option(name)))
        for k, name in enumerate(names)
    )
    at = [anchors.pick(1, k).cast(f64) for k in range(4)]
    center = [(y * at[2] + at[0]).cast(f32), (x * at[3] + at[1]).cast(f32)]
    half = [(h.exp() * 0.5 * at[2]).cast(f32), (w.exp() * 0.5 * at[3]).cast(f32)]
    first = [c - s for c, s in zip(center, half, strict=True)]
    last = [c + s for c, s in zip(center, half, strict=True)]
    return stack([*first, *last], 1)


@legalizes("TFLite_Detection_PostProcess")
def legalize_detection(builder: TfliteLegalizer) -> Results:
    """
    The best boxes that do not overlap: of the best class of each anchor, or of each class by
    itself. What lies behind their number is zero.
    """
    boxes, scores = _decoded(builder), _floats(builder, 1).pick(0, 0)
    classes, most = int(builder.option("num_classes")), int(builder.option("max_detections"))
    per_class = int(builder.option("detections_per_class")) or 100
    each = min(int(builder.option("max_classes_per_detection")), classes)
    if each < 1 or most < 1:
        builder.refuse(f"{most} detections of {each} classes", "at least one of each")
    first = (scores.dims[1] - classes).value
    if first not in (0, 1):
        builder.refuse(f"{scores.dims[1]} scores for {classes} classes", f"{classes} or one more")
    kept = builder.slice_axis(scores.value, 1, first, classes)
    least = float(np.float32(builder.option("nms_score_threshold")))
    scores = TensorValue(builder, kept)
    lowest = TensorValue.number(builder, -math.inf, f32)
    if not builder.flag("use_regular_nms"):
        builder.ignore("detections_per_class")
        return _fast(builder, boxes, scores, lowest, least, most, each)
    return _regular(builder, boxes, scores, lowest, least, most, min(per_class, most))


def _rule(builder: TfliteLegalizer, boxes: TensorValue, groups: int = 1) -> Rule:
    most = float(np.float32(builder.option("nms_iou_threshold")))
    count = boxes.dims[0]
    sides = [builder.broadcast(side, [groups, count]) for side in corners(boxes, count)]
    low = builder.scalar(-math.inf, f32)
    return Rule(overlap(sides), builder.scalar(most, f32), low)


def _fast(
    builder: TfliteLegalizer,
    boxes: TensorValue,
    scores: TensorValue,
    lowest: TensorValue,
    least: float,
    most: int,
    each: int,
) -> Results:
    """By the best score of each box, with its best classes."""
    wanted = int(builder.option("max_classes_per_detection"))
    best, numbers = builder.insert(TopKOp(scores.value, each, 1))
    top = TensorValue(builder, best).pick(1, 0)
    top = top.ge(least).where(top, lowest).reshape([1, boxes.dims[0]])
    found = chosen(builder, top, Expr.const(most), _rule(builder, boxes))
    places, valid = found.places.reshape([most]), found.scores.reshape([most]).gt(-math.inf)

    def rows(values: TensorValue) -> TensorValue:
        part = builder.add(GatherOp(values.value, places.value, 0, inside=True))
        zero = TensorValue.number(builder, 0, values.element)
        shape = [most, *[1] * (len(values.dims) - 1)]
        return valid.reshape(shape).where(TensorValue(builder, part), zero)

    shown = rows(boxes).reshape([most, 1, 4]).broadcast([most, wanted, 4])
    kinds = _padded(builder, rows(TensorValue(builder, numbers)).cast(f32), wanted - each)
    values = _padded(builder, rows(TensorValue(builder, best)), wanted - each)
    total = most * wanted
    count = valid.cast(f32).reduce("sum", [0]).reshape([1])
    results = (
        shown.reshape([1, total, 4]), kinds.reshape([1, total]), values.reshape([1, total]), count
    )  # fmt: skip
    return [result.value for result in results]


def _padded(builder: TfliteLegalizer, x: TensorValue, more: int) -> TensorValue:
    """With columns of zeros."""
    return x if not more else TensorValue(builder, builder.add(PadOp(x.value, [0, 0], [0, more])))


def _regular(
    builder: TfliteLegalizer,
    boxes: TensorValue,
    scores: TensorValue,
    lowest: TensorValue,
    least: float,
    most: int,
    per_class: int,
) -> Results:
    """By the scores of each class, of which the best are shown."""
    builder.ignore("max_classes_per_detection")
    classes = scores.dims[1]
    by_class = scores.ge(least).where(scores, lowest).transpose([1, 0])
    rule = _rule(builder, boxes, scores.dims[1].value or 1)
    found = chosen(builder, by_class, Expr.const(per_class), rule)
    count = classes * per_class
    values = found.scores.transpose([1, 0]).reshape([count])
    places = found.places.transpose([1, 0]).reshape([count])
    kinds = TensorValue.iota(builder, count) // per_class
    if (missing := most - (count.value or 0)) > 0:
        ends = ([0], [missing], builder.scalar(-math.inf, f32))
        values = TensorValue(builder, builder.add(PadOp(values.value, *ends)))
    best, order = builder.insert(TopKOp(values.value, most, 0))
    top = TensorValue(builder, best)
    valid = top.gt(-math.inf)
    index = TensorValue(builder, order).minimum((count - 1).value or 0)

    def picked(source: TensorValue) -> TensorValue:
        part = builder.add(GatherOp(source.value, index.value, 0, inside=True))
        return TensorValue(builder, part)

    zero = TensorValue.number(builder, 0, f32)
    anchor = picked(places)
    rows = TensorValue(builder, builder.add(GatherOp(boxes.value, anchor.value, 0, inside=True)))
    shown = valid.reshape([most, 1]).where(rows, zero).reshape([1, most, 4])
    kind = valid.where(picked(kinds).cast(f32), zero).reshape([1, most])
    score = valid.where(top, zero).reshape([1, most])
    number = valid.cast(f32).reduce("sum", [0]).reshape([1])
    return [shown.value, kind.value, score.value, number.value]
