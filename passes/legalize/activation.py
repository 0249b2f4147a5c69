"""Activation functions, in forms that do not overflow."""

from __future__ import annotations

from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.special import log1p


def relu(x: Quantity) -> Quantity:
    """max(x, 0)"""
    return x.maximum(0)


def leaky_relu(x: Quantity, alpha: float) -> Quantity:
    """x, or alpha * x below zero"""
    return x.lt(0).where(x * alpha, x)


def thresholded_relu(x: Quantity, alpha: float) -> Quantity:
    """x above alpha, else 0"""
    return x.gt(alpha).where(x, 0)


def elu(x: Quantity, alpha: float) -> Quantity:
    """x, or alpha * (exp(x) - 1) below zero"""
    return x.lt(0).where((x.minimum(0).exp() - 1) * alpha, x)


def hard_sigmoid(x: Quantity, alpha: float, beta: float) -> Quantity:
    """max(0, min(1, alpha * x + beta))"""
    return (x * alpha + beta).minimum(1).maximum(0)


def softsign(x: Quantity) -> Quantity:
    """x / (1 + |x|)"""
    return x / (x.abs() + 1)


def softplus(x: Quantity) -> Quantity:
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|))"""
    return x.maximum(0) + log1p((-x.abs()).exp())


def log_softmax(x: Quantity, axis: int) -> Quantity:
    """x - m - log(sum(exp(x - m))), where m is the maximum along the axis"""
    centered = x - x.reduce("max", [axis], keep_dims=True)
    return centered - centered.exp().reduce("sum", [axis], keep_dims=True).log()
