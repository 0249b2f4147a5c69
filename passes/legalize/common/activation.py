"""Activation functions, in forms that do not overflow."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.elementwise import ErfOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.passes.legalize.common.special import apply, expm1, log1p
from lowerdeck.passes.legalize.tensor_value import TensorValue


def relu(x: TensorValue) -> TensorValue:
    """max(x, 0)"""
    return x.maximum(0)


def leaky_relu(x: TensorValue, alpha: float) -> TensorValue:
    """x, or alpha * x below zero"""
    return x.lt(0).where(x * alpha, x)


def thresholded_relu(x: TensorValue, alpha: float) -> TensorValue:
    """x above alpha, else 0"""
    return x.gt(alpha).where(x, 0)


def elu(x: TensorValue, alpha: float) -> TensorValue:
    """x, or alpha * (exp(x) - 1) below zero"""
    return x.lt(0).where((x.minimum(0).exp() - 1) * alpha, x)


def scaled_elu(x: TensorValue, alpha: float, scale: float, inner: float) -> TensorValue:
    """x, or alpha * (exp(inner * x) - 1) below zero, both times a scale"""
    return x.lt(0).where(expm1(x.minimum(0) * inner) * (alpha * scale), x * scale)


def hard_sigmoid(x: TensorValue, alpha: float, beta: float) -> TensorValue:
    """max(0, min(1, alpha * x + beta))"""
    return (x * alpha + beta).minimum(1).maximum(0)


def softsign(x: TensorValue) -> TensorValue:
    """x / (1 + |x|)"""
    return x / (x.abs() + 1)


def softplus(x: TensorValue) -> TensorValue:
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))"""
    return x.maximum(0) + log1p((-x.abs()).exp())


def log_softmax(x: TensorValue, axis: int) -> TensorValue:
    """log(exp(x) / sum(exp(x))) along the axis"""
    return TensorValue(x.builder, x.builder.add(SoftmaxOp(x.value, axis, log=True)))


def sharp_softplus(x: TensorValue, beta: float, threshold: float) -> TensorValue:
    """log(1 + exp(beta * x)) / beta, and x where that is the same."""
    scaled = x * beta
    soft = scaled.maximum(0) + log1p((-scaled.abs()).exp())
    return scaled.gt(threshold).where(x, soft / beta)


def selu(x: TensorValue, scale: float, alpha: float) -> TensorValue:
    """scale * x, or scale * alpha * (exp(x) - 1) below zero"""
    return x.lt(0).where(expm1(x.minimum(0)) * (scale * alpha), x * scale)


def gelu(x: TensorValue, by_tanh: bool) -> TensorValue:
    """By the error function, or by tanh."""
    if by_tanh:
        inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
        return x * 0.5 * (apply(TanhOp, inner) + 1)
    return x * 0.5 * (apply(ErfOp, x * math.sqrt(0.5)) + 1)


def softshrink(x: TensorValue, limit: float) -> TensorValue:
    """x nearer to zero by a limit, zero within it, as a sum of parts: infinities become NaN"""
    above, below = x.gt(limit).cast(x.element), x.lt(-limit).cast(x.element)
    return above * (x - limit) + below * (x + limit)


def shrunk(x: TensorValue, limit: TensorValue, nearer: bool) -> TensorValue:
    """Zero within a limit; others remain, or are `nearer` to zero."""
    is_within = x.ge(-limit) & x.le(limit)
    if nearer:
        return is_within.where(x * 0, x.gt(limit).where(x - limit, x + limit))
    return (~is_within).where(x, 0)


def replaced_below(x: TensorValue, limit: float, value: float) -> TensorValue:
    """x above a limit, else a value, as a sum of parts: -infinity becomes NaN"""
    above = x.gt(limit).cast(x.element)
    return x * above + (1 - above) * value


def logit(x: TensorValue, eps: float) -> TensorValue:
    """log(x / (1 - x)), x between eps and 1 - eps; outside of 0 to 1 it is NaN without eps."""
    x = x.clip(eps, 1 - eps) if eps > 0 else x
    return (x / (1 - x)).log()


def log_sigmoid(x: TensorValue) -> TensorValue:
    """-m - log(exp(-m) + exp(-x - m)) for m = max(-x, 0), as one logarithm near one."""
    top = (-x).maximum(0)
    return -top - log1p((-x.abs()).exp()) + (x + top).minimum(0) * 0


def swiglu(x: TensorValue, y: TensorValue | None) -> TensorValue:
    """x * sigmoid(x) * y; without y, the halves of x along its last dimension are both."""
    if y is None:
        half, axis = x.dims[-1] // 2, len(x.dims) - 1
        parts = x.builder.split(x.value, axis, [half, half])
        x, y = (TensorValue(x.builder, part) for part in parts)
    return x * apply(SigmoidOp, x) * y


def safe_softmax(x: TensorValue, axis: int) -> TensorValue:
    """exp(x) / sum(exp(x)) along the axis; zero where all of it is -infinity."""
    builder = x.builder
    hidden = x.eq(-math.inf).reduce("min", [axis], keep_dims=True)
    found = builder.add(SoftmaxOp(x.value, axis))
    return TensorValue(builder, builder.select(hidden.value, builder.scalar(0, found), found))
