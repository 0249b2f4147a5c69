"""The choice of detected boxes: those with the best scores that do not overlap."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherElementsOp, GatherNdOp, GatherOp, TopKOp
from lowerdeck.dialects.core.types import dims_of, element_type, f32, i32, i64
from lowerdeck.dialects.dims import Expr, minimum
from lowerdeck.passes.legalize.common.movement import pad
from lowerdeck.passes.legalize.common.suppression import Rule, chosen
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

_LOWEST_F32 = -3.4028234663852886e38

# One image


@legalizes("NonMaxSuppression")
def legalize_suppression(builder: Tf1Legalizer) -> Results:
    """By a threshold that is an attribute, whatever the scores."""
    most = builder.scalar(builder.attrs.float("iou_threshold"), f32)
    return [_kept(builder, most, builder.scalar(_LOWEST_F32, f32))[0]]


@legalizes("NonMaxSuppressionV2")
def legalize_suppression_threshold(builder: Tf1Legalizer) -> Results:
    """By a threshold that is an operand, whatever the scores."""
    x = number(builder, "scores")
    lowest = _LOWEST_F32 if element_type(x) == f32 else -65504.0
    return [_kept(builder, _threshold(builder, "iou_threshold"), builder.scalar(lowest, x))[0]]


@legalizes("NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
def legalize_suppression_scores(builder: Tf1Legalizer) -> Results:
    """
    Of scores above a threshold.

    V4 and V5 also give the number of boxes, and may fill up with zeros; V5 gives the scores, which
    sink with exp(-similarity^2 / (2 sigma)) unless sigma is zero.
    """
    most, least = _threshold(builder, "iou_threshold"), _threshold(builder, "score_threshold")
    if builder.op_type == "NonMaxSuppressionV3":
        return [_kept(builder, most, least)[0]]
    is_padded = builder.attrs.flag("pad_to_max_output_size")
    decay = _decay(builder) if builder.op_type == "NonMaxSuppressionV5" else None
    places, scores, count = _kept(builder, most, least, is_padded=is_padded, decay=decay)
    if builder.op_type == "NonMaxSuppressionV4":
        return [places, count]
    return [places, scores, count]


def _threshold(builder: Tf1Legalizer, name: str) -> SSAValue:
    """A scalar operand in the element type of the scores."""
    return builder.reshape(builder.cast(builder.operand(name), builder.operand("scores")), [])


def _decay(builder: Tf1Legalizer) -> SSAValue | None:
    sigma = TensorValue.of(builder, _threshold(builder, "soft_nms_sigma"))
    if sigma.array is None:
        builder.refuse("soft_nms_sigma that depends on data", "a constant")
    return None if sigma.is_all(0) else (-0.5 / sigma).value


def _kept(
    builder: Tf1Legalizer,
    most: SSAValue,
    least: SSAValue,
    *,
    is_padded: bool = False,
    decay: SSAValue | None = None,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The places of the boxes that are kept, their scores, and how many they are."""
    boxes, scores = (
        TensorValue(builder, number(builder, "boxes")),
        TensorValue(builder, number(builder, "scores")),
    )
    rule = Rule(boxes.reshape([1, scores.dims[0], 4]), most, least, decay)
    return _selection(builder, scores, rule, is_padded=is_padded)


def _selection(
    builder: Tf1Legalizer, scores: TensorValue, rule: Rule, *, is_padded: bool
) -> tuple[SSAValue, SSAValue, SSAValue]:
    limit = TensorValue.of(builder, builder.reshape(builder.operand("max_output_size"), []))
    wanted = size_of(builder, limit.cast(i64).maximum(0).value, "the number of boxes")
    count = scores.dims[0]
    rounds = minimum(wanted, count)
    found = chosen(builder, scores.reshape([1, count]), rounds, rule)
    # Once nothing is left, nothing comes any more.
    number_ = found.scores.gt(-math.inf).cast(i64).reduce("sum", [0, 1])
    size = size_of(builder, number_.value, "the number of boxes")
    results: list[SSAValue] = []
    for value in (found.places.cast(i32), found.scores):
        part = builder.slice_axis(value.reshape([rounds]).value, 0, 0, size)
        if is_padded:
            part = pad(builder, part, [Expr.const(0)], [wanted - size])
        results.append(part)
    return results[0], results[1], number_.cast(i32).value


@legalizes("NonMaxSuppressionWithOverlaps")
def legalize_suppression_overlaps(builder: Tf1Legalizer) -> Results:
    """By a matrix of overlaps: element [i, j] says how box i overlaps a chosen box j."""
    overlaps = builder.transpose(number(builder, "overlaps"), [1, 0])
    scores = TensorValue(builder, number(builder, "scores"))

    def similarity(inner: Legalizer, best: TensorValue) -> TensorValue:
        found = inner.add(GatherOp(overlaps, best.value, 0))
        return TensorValue(inner, inner.reshape(found, [1, scores.dims[0]]))

    thresholds = (_threshold(builder, f"{name}_threshold") for name in ("overlap", "score"))
    return [_selection(builder, scores, Rule(similarity, *thresholds), is_padded=False)[0]]


# Batches of images with classes


@legalizes("CombinedNonMaxSuppression")
def legalize_combined_suppression(builder: Tf1Legalizer) -> Results:
    """
    The best boxes of all classes, after suppression in each class of each image.

    boxes [images, boxes, classes or 1, 4], scores [images, boxes, classes].
    """
    boxes = TensorValue(builder, number(builder, "boxes"))
    scores = TensorValue(builder, number(builder, "scores")).transpose([0, 2, 1])
    images, classes, count = scores.dims
    per_class = size_of(
        builder, builder.operand("max_output_size_per_class"), "the number of boxes"
    )
    total = size_of(builder, builder.operand("max_total_size"), "the number of boxes")
    if builder.attrs.flag("pad_per_class"):
        total = minimum(total, per_class * classes)
    rounds = minimum(per_class, count)
    # Classes that have no boxes of their own share those of the last one.
    own = TensorValue.iota(builder, classes).minimum(TensorValue.dim(builder, boxes.dims[2] - 1))
    whole = TensorValue(builder, builder.add(GatherOp(boxes.value, own.value, 2)))
    whole = whole.transpose([0, 2, 1, 3]).reshape([images * classes, count, 4])
    thresholds = (_threshold(builder, f"{name}_threshold") for name in ("iou", "score"))
    rule = Rule(whole, *thresholds)
    found = chosen(builder, scores.reshape([images * classes, count]), rounds, rule)
    candidates = rounds * classes

    def by_image(value: TensorValue) -> TensorValue:
        return value.transpose([1, 0]).reshape([images, candidates])

    shown = minimum(total, candidates)
    values, order = map(
        lambda value: TensorValue(builder, value),
        builder.insert(TopKOp(by_image(found.scores).value, shown, 1)),
    )
    places = TensorValue(
        builder, builder.add(GatherElementsOp(by_image(found.places).value, order.value, 1))
    )
    class_ = order // TensorValue.dim(builder, rounds).maximum(1)
    is_valid = values.gt(-math.inf)
    index = stack([places, class_.minimum(TensorValue.dim(builder, boxes.dims[2] - 1))], 2)
    picked = TensorValue(builder, builder.add(GatherNdOp(boxes.value, index.value, 1)))
    if builder.attrs.flag("clip_boxes"):
        picked = picked.clip(0, 1)
    results = [
        is_valid.reshape([images, shown, 1]).where(picked, 0),
        is_valid.where(values, 0),
        is_valid.where(class_.cast(f32), 0),
    ]
    more = total - shown
    filled = [_filled(builder, value, more) for value in results]
    return [*filled, is_valid.cast(i32).reduce("sum", [1]).value]


def _filled(builder: Tf1Legalizer, value: TensorValue, more: Expr) -> SSAValue:
    """Zeros behind dimension 1."""
    rank = len(dims_of(value.value))
    end = [more if k == 1 else Expr.const(0) for k in range(rank)]
    return pad(builder, value.value, [Expr.const(0)] * rank, end)
