"""Activation functions, in forms that do not overflow."""

from __future__ import annotations

from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.passes.legalize.common.special import log1p
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
