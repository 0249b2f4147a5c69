"""Formulas of losses and of what bounds them."""

from __future__ import annotations

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.core.types import i64
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
