"""The best boxes that do not overlap, by any of their classes or by each."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherOp, PadOp, TopKOp
from lowerdeck.dialects.core.types import f32
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.common.suppression import Rule, chosen
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue


@record
class Shown:
    """Which boxes are shown: from a score on, that share at most so much, up to a number."""

    least: float
    overlap: float
    most: int


def _rule(builder: Legalizer, boxes: TensorValue, overlap_limit: float) -> Rule:
    low = builder.scalar(-math.inf, f32)
    return Rule(boxes.reshape([1, *boxes.dims]), builder.scalar(overlap_limit, f32), low)


def by_best_score(
    builder: Legalizer,
    boxes: TensorValue,
    scores: TensorValue,
    shown: Shown,
    each: int,
    wanted: int,
) -> list[SSAValue]:
    """
    The boxes [N, 4] that are shown by the best of their scores [N, classes], each with its `each`
    best classes and zeros up to `wanted`: boxes, classes and scores of one image, and how many.
    """
    least, most = shown.least, shown.most
    lowest = TensorValue.number(builder, -math.inf, f32)
    best, numbers = builder.insert(TopKOp(scores.value, each, 1))
    top = TensorValue(builder, best).pick(1, 0)
    top = top.ge(least).where(top, lowest).reshape([1, boxes.dims[0]])
    found = chosen(builder, top, Expr.const(most), _rule(builder, boxes, shown.overlap))
    places, valid = found.places.reshape([most]), found.scores.reshape([most]).gt(-math.inf)

    def rows(values: TensorValue) -> TensorValue:
        part = builder.add(GatherOp(values.value, places.value, 0, inside=True))
        zero = TensorValue.number(builder, 0, values.element)
        shape = [most, *[1] * (len(values.dims) - 1)]
        return valid.reshape(shape).where(TensorValue(builder, part), zero)

    sides = rows(boxes).reshape([most, 1, 4]).broadcast([most, wanted, 4])
    kinds = _padded(builder, rows(TensorValue(builder, numbers)).cast(f32), wanted - each)
    values = _padded(builder, rows(TensorValue(builder, best)), wanted - each)
    total = most * wanted
    count = valid.cast(f32).reduce("sum", [0]).reshape([1])
    results = (
        sides.reshape([1, total, 4]), kinds.reshape([1, total]), values.reshape([1, total]), count
    )  # fmt: skip
    return [result.value for result in results]


def _padded(builder: Legalizer, x: TensorValue, more: int) -> TensorValue:
    """With columns of zeros."""
    return x if not more else TensorValue(builder, builder.add(PadOp(x.value, [0, 0], [0, more])))


def by_class(
    builder: Legalizer, boxes: TensorValue, scores: TensorValue, shown: Shown, per_class: int
) -> list[SSAValue]:
    """
    The boxes [N, 4] that are shown by their scores [N, classes] in each class, up to `per_class`,
    of which the best are: boxes, classes and scores of one image, and how many.
    """
    least, most = shown.least, shown.most
    lowest = TensorValue.number(builder, -math.inf, f32)
    classes = scores.dims[1]
    ordered = scores.ge(least).where(scores, lowest).transpose([1, 0])
    rule = _rule(builder, boxes, shown.overlap)
    found = chosen(builder, ordered, Expr.const(per_class), rule)
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
    sides = valid.reshape([most, 1]).where(rows, zero).reshape([1, most, 4])
    kind = valid.where(picked(kinds).cast(f32), zero).reshape([1, most])
    score = valid.where(top, zero).reshape([1, most])
    number = valid.cast(f32).reduce("sum", [0]).reshape([1])
    return [sides.value, kind.value, score.value, number.value]
