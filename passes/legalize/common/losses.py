"""Formulas of losses and of what bounds them."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.types import i1, i64
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.selection import one_hot
from lowerdeck.passes.legalize.common.special import apply, log1p
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue


def clip_by_norm(x: TensorValue, limit: float) -> TensorValue:
    """Scaled down so that the Euclidean norm of all elements is at most a number."""
    norm = apply(SqrtOp, (x * x).reduce("sum", list(range(len(x.dims)))))
    return norm.gt(limit).where(x * limit / norm, x)


def log_loss(p: TensorValue, label: TensorValue, epsilon: float) -> TensorValue:
    """-label * log(p + epsilon) - (1 - label) * log(1 - p + epsilon)"""
    return -(label * (p + epsilon).log()) - (1 - label) * (1 - p + epsilon).log()


def smoothed(label: TensorValue, prior: TensorValue | None, epsilon: float) -> TensorValue:
    """(1 - epsilon) * label + epsilon * prior; without one all classes are as likely."""
    rest = label * (1 - epsilon)
    if prior is not None:
        return rest + prior.reshape([product(prior.dims)]) * epsilon
    size = TensorValue.dim(label.builder, label.dims[-1]).cast(label.element)
    return rest + TensorValue.number(label.builder, epsilon, label.element) / size


def huber(gap: TensorValue, limit: float) -> TensorValue:
    """Half the square of a distance up to a limit, then as steep as there."""
    return gap.lt(limit).where(gap * gap * 0.5, (gap - limit / 2) * limit)


def divergence(x: TensorValue, target: TensorValue, *, is_log: bool) -> TensorValue:
    """target * (log(target) - x), of the target or its logarithm"""
    if is_log:
        return target.exp() * (target - x)
    log = target.eq(0).where(target * 0, target * target.log())
    return log - target * x


def binary_entropy(p: TensorValue, target: TensorValue) -> TensorValue:
    """-(t log(p) + (1 - t) log(1 - p)); logarithms are at least -100."""
    loss = -(target * p.log().maximum(-100.0))
    return loss - (1 - target) * log1p(-p).maximum(-100.0)


def binary_entropy_of_logits(
    x: TensorValue, target: TensorValue, weight: TensorValue | None
) -> TensorValue:
    """The same of sigmoid(x), with a weight of what is true."""
    rest = log1p((-x.abs()).exp()) + (-x).maximum(0)
    if weight is not None:
        rest = rest * ((weight - 1.0) * target + 1)
    return (1 - target) * x + rest


def _spread(x: TensorValue, axis: int, weight: TensorValue | None, smoothing: float) -> TensorValue:
    """What is smoothed, over all classes."""
    if (count := x.dims[axis].value) is None:
        refuse("an open number of classes", "a known one")
    return (-x if weight is None else -x * weight) * (smoothing / float(count))


def loss_of_shares(
    x: TensorValue, target: TensorValue, axis: int, weight: TensorValue | None, smoothing: float
) -> TensorValue:
    """The cross entropy of logarithms and of shares of classes along an axis, by their weights."""
    spread = _spread(x, axis, weight, smoothing)
    share = x if weight is None else x * weight
    return (spread - share * target.cast(x.element) * (1 - smoothing)).reduce("sum", [axis])


def loss_of_classes(
    x: TensorValue,
    target: TensorValue,
    axis: int,
    weight: TensorValue | None,
    smoothing: float,
    ignored: int,
) -> tuple[TensorValue, TensorValue]:
    """
    The opposite of logarithms at classes, of which one is ignored, by their weights, which are the
    second result.
    """
    spread = _spread(x, axis, weight, smoothing)
    zero = TensorValue.number(x.builder, 0, x.element)
    kept = target.ne(ignored)
    place = kept.where(target.cast(i64), TensorValue.number(x.builder, 0, i64))
    chosen = one_hot(place, x.dims[axis], axis)
    loss = -chosen.where(x, zero).reduce("sum", [axis])
    weights = kept.cast(x.element)
    if weight is not None:
        weights = weights * chosen.where(weight, zero).reduce("sum", [axis])
    loss = loss * weights
    if smoothing:
        loss = loss * (1 - smoothing) + spread.reduce("sum", [axis])
    return kept.where(loss, zero), weights


# Margins


def _above(x: TensorValue) -> TensorValue:
    """x where it is more than zero, else zero, also for NaN."""
    return x.gt(0).where(x, 0)


def hinge(x: TensorValue, target: TensorValue, margin: float) -> TensorValue:
    """x, unless the target is -1, and how far it stays below a margin, unless that is 1."""
    below = (margin - x).maximum(0)
    return target.ne(1).where(below, 0) + target.ne(-1).where(x, 0)


def ranking(a: TensorValue, b: TensorValue, target: TensorValue, margin: float) -> TensorValue:
    """How far `a` stays below what is a margin above `b`, for a target of 1."""
    return (-target * (a - b) + margin).maximum(0)


def angles(
    a: TensorValue, b: TensorValue, target: TensorValue, axis: int, margin: float
) -> TensorValue:
    """1 less the cosine for a target of 1, and what is above a margin of it for one of -1."""
    sizes = [(x * x).reduce("sum", [axis]) + 1e-12 for x in (a, b)]
    cosine = (a * b).reduce("sum", [axis]) / apply(SqrtOp, sizes[0] * sizes[1])
    unlike = (cosine - margin).maximum(0)
    return target.eq(1).where(1 - cosine, 0) + target.eq(-1).where(unlike, 0)


def margin_of_class(
    x: TensorValue, target: TensorValue, weight: TensorValue | None, margin: float, power: float
) -> TensorValue:
    """
    The mean over the last dimension of how far other elements are above the class's, less a
    margin, by the weight of the class.
    """
    x = x if x.dims else x.reshape([1])
    axis = len(x.dims) - 1
    chosen = one_hot(target.reshape(x.dims[:-1]).cast(i64), x.dims[axis], axis)
    zero = TensorValue.number(x.builder, 0, x.element)
    gap = _above(margin - chosen.where(x, zero).reduce("sum", [axis], True) + x)
    gap = gap * gap if power == 2 else gap
    if weight is not None:
        gap = gap * chosen.where(weight, zero).reduce("sum", [axis], True)
    total = chosen.where(zero, gap).reduce("sum", [axis]).reshape(target.dims)
    return total / TensorValue.dim(x.builder, x.dims[axis]).cast(x.element)


def margin_of_classes(x: TensorValue, target: TensorValue) -> TensorValue:
    """The same of all classes of a row of `target` before its first negative number."""
    x, target = (value if value.dims else value.reshape([1]) for value in (x, target))
    axis, count = len(x.dims), TensorValue.dim(x.builder, x.dims[-1])
    ends = CumulativeOp("sum", target.lt(0).cast(i64).value, axis - 1)
    is_class = TensorValue(x.builder, x.builder.add(ends)).eq(0)
    column = [*target.dims, 1]
    chosen = one_hot(target.cast(i64), x.dims[-1], axis) & is_class.reshape(column)
    zero = TensorValue.number(x.builder, 0, x.element)
    wide = x.reshape([*x.dims[:-1], 1, x.dims[-1]])
    own = chosen.where(wide, zero).reduce("sum", [axis], True)
    is_other = ~chosen.cast(i64).reduce("max", [axis - 1], True).cast(i1)
    gap = (is_other & is_class.reshape(column)).where(_above(1 - own + wide), zero)
    return gap.reduce("sum", [axis - 1, axis]) / count.cast(x.element)


def poisson(
    x: TensorValue, target: TensorValue, epsilon: float, *, is_log: bool, is_full: bool
) -> TensorValue:
    """The opposite of the logarithm of a probability, without what depends on the target alone."""
    loss = x.exp() - target * x if is_log else x - target * (x + epsilon).log()
    if not is_full:
        return loss
    rest = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
    return loss + target.le(1).where(TensorValue.number(x.builder, 0, x.element), rest)
