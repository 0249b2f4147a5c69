"""Activation functions, and Softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from lowerdeck.dialects.core.elementwise import ErfOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import rank_of
from lowerdeck.passes.legalize.activation import (
    elu,
    leaky_relu,
    log_softmax,
    relu,
    softplus,
    softsign,
)
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.special import apply
from lowerdeck.passes.legalize.tf1.elementwise import narrowed, number, widened
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_ALPHA = 1.6732632423543772848170429916717


def relu6(x: Quantity) -> Quantity:
    """min(max(x, 0), 6)"""
    return x.clip(0, 6)


def _selu(x: Quantity) -> Quantity:
    return elu(x, _SELU_ALPHA) * _SELU_SCALE


def gelu(x: Quantity) -> Quantity:
    """x / 2 * (1 + erf(x / sqrt(2)))"""
    return x * 0.5 * (apply(ErfOp, x * math.sqrt(0.5)) + 1)


def approximate_gelu(x: Quantity) -> Quantity:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))"""
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (apply(TanhOp, inner) + 1)


FUNCTIONS: Mapping[str, Callable[[Quantity], Quantity]] = {
    "Elu": partial(elu, alpha=1),
    "Relu": relu,
    "Relu6": relu6,
    "Selu": _selu,
    "Sigmoid": partial(apply, SigmoidOp),
    "Softplus": softplus,
    "Softsign": softsign,
    "Tanh": partial(apply, TanhOp),
}
"""The activation functions without parameters."""


@legalizes(*FUNCTIONS)
def legalize_activation(lower: Tf1Legalizer) -> Results:
    """A function of one element."""
    return narrowed(lower, FUNCTIONS[lower.op_type](widened(lower, 0)))


@legalizes("LeakyRelu")
def legalize_leaky_relu(lower: Tf1Legalizer) -> Results:
    """x, or alpha * x below zero"""
    return narrowed(lower, leaky_relu(widened(lower, 0), lower.attrs.float("alpha")))


@legalizes("Softmax")
def legalize_softmax(lower: Tf1Legalizer) -> Results:
    """exp(x) / sum(exp(x)) along the last dimension"""
    x = number(lower, "logits")
    return [lower.add(SoftmaxOp(x, lower.axis(-1, rank_of(x))))]


@legalizes("LogSoftmax")
def legalize_log_softmax(lower: Tf1Legalizer) -> Results:
    """x - log(sum(exp(x))) along the last dimension"""
    x = widened(lower, "logits")
    return narrowed(lower, log_softmax(x, lower.axis(-1, len(x.dims))))
