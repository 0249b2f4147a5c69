"""Formulas of losses and of what bounds them."""

from __future__ import annotations

from lowerdeck.dialects.core.elementwise import SqrtOp
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.common.special import apply
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
