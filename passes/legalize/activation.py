"""Activation functions, in forms that do not overflow."""

from __future__ import annotations

import math

from lowerdeck.dialects.core.elementwise import SinhOp, UnaryOp
from lowerdeck.passes.legalize.quantity import Quantity


def apply(function: type[UnaryOp], x: Quantity) -> Quantity:
    """A function of one element that `Quantity` has no method for."""
    return Quantity(x.lower, x.lower.add(function(x.value)))


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


def log1p(x: Quantity) -> Quantity:
    """log(1 + x), also where 1 + x rounds x away: what was lost scales with the logarithm"""
    total = x + 1
    exact = total.log() * (x / (total - 1))
    return total.eq(1).where(x, total.abs().lt(math.inf).where(exact, total.log()))


def expm1(x: Quantity) -> Quantity:
    """exp(x) - 1 = 2 exp(x / 2) sinh(x / 2), where the difference cancels nothing"""
    half = x * 0.5
    small = apply(SinhOp, half.clip(-1, 1)) * half.exp() * 2
    return x.abs().lt(1).where(small, x.exp() - 1)


def log_softmax(x: Quantity, axis: int) -> Quantity:
    """x - m - log(sum(exp(x - m))), where m is the maximum along the axis"""
    centered = x - x.reduce("max", [axis], keep_dims=True)
    return centered - centered.exp().reduce("sum", [axis], keep_dims=True).log()
