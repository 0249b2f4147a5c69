"""Activation functions, and Softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from lowerdeck.dialects.core.elementwise import ErfOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import rank_of
from lowerdeck.passes.legalize.common.activation import (
    elu,
    leaky_relu,
    log_softmax,
    relu,
    softplus,
    softsign,
)
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import narrowed, number, widened
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

SELU_SCALE = 1.0507009873554804934193349852946
SELU_ALPHA = 1.6732632423543772848170429916717


def relu6(x: TensorValue) -> TensorValue:
    """min(max(x, 0), 6)"""
    return x.clip(0, 6)


def _selu(x: TensorValue) -> TensorValue:
    return elu(x, SELU_ALPHA) * SELU_SCALE


def gelu(x: TensorValue) -> TensorValue:
    """x / 2 * (1 + erf(x / sqrt(2)))"""
    return x * 0.5 * (apply(ErfOp, x * math.sqrt(0.5)) + 1)


def approximate_gelu(x: TensorValue) -> TensorValue:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))"""
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (apply(TanhOp, inner) + 1)


FUNCTIONS: Mapping[str, Callable[[TensorValue], TensorValue]] = {
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
def legalize_activation(builder: Tf1Legalizer) -> Results:
    """A function of one element."""
    return narrowed(builder, FUNCTIONS[builder.op_type](widened(builder, 0)))


@legalizes("LeakyRelu")
def legalize_leaky_relu(builder: Tf1Legalizer) -> Results:
    """x, or alpha * x below zero"""
    return narrowed(builder, leaky_relu(widened(builder, 0), builder.attrs.float("alpha")))


@legalizes("Softmax")
def legalize_softmax(builder: Tf1Legalizer) -> Results:
    """exp(x) / sum(exp(x)) along the last dimension"""
    x = number(builder, "logits")
    return [builder.add(SoftmaxOp(x, builder.axis(-1, rank_of(x))))]


@legalizes("LogSoftmax")
def legalize_log_softmax(builder: Tf1Legalizer) -> Results:
    """x - log(sum(exp(x))) along the last dimension"""
    x = widened(builder, "logits")
    return narrowed(builder, log_softmax(x, builder.axis(-1, len(x.dims))))
