"""Activation functions, by the formulas of the ONNX specification in forms that do not overflow."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import ErfOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, SoftmaxOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.common.activation import (
    elu,
    hard_sigmoid,
    leaky_relu,
    log_softmax,
    relu,
    softplus,
    softsign,
    thresholded_relu,
)
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector


def _operand(builder: OnnxLegalizer, index: int = 0) -> TensorValue:
    """An operand; half precision is computed in f32 and rounded once."""
    builder.attrs.ignore("consumed_inputs")
    x = TensorValue(builder, builder.operand(index))
    return x.cast(f32) if x.element in (f16, bf16) else x


def _result(builder: OnnxLegalizer, y: TensorValue) -> Results:
    return [y.cast(element_type(builder.operand(0))).value]


@legalizes("Relu")
def legalize_relu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """max(x, 0)"""
    builder.attrs.ignore("consumed_inputs")
    return [relu(TensorValue(builder, builder.operand(0))).value]


@legalizes("LeakyRelu")
def legalize_leaky_relu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x, or alpha * x below zero"""
    return _result(builder, leaky_relu(_operand(builder), builder.attrs.float("alpha")))


@legalizes("PRelu")
def legalize_prelu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x, or slope * x below zero; before opset 7 a vector of slopes belongs to the channels."""
    x, slope = _operand(builder), _operand(builder, 1)
    if op.since_version < 7 and len(slope.dims) == 1 and slope.dims[0] != 1:
        slope = slope.reshape([slope.dims[0], *[1] * (len(x.dims) - 2)])
    return _result(builder, x.lt(0).where(x * slope, x))


@legalizes("ThresholdedRelu")
def legalize_thresholded_relu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x above alpha, else 0"""
    return _result(builder, thresholded_relu(_operand(builder), builder.attrs.float("alpha")))


@legalizes("Elu")
def legalize_elu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x, or alpha * (exp(x) - 1) below zero"""
    return _result(builder, elu(_operand(builder), builder.attrs.float("alpha")))


@legalizes("Selu")
def legalize_selu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """gamma * (x, or alpha * (exp(x) - 1) from zero down)"""
    x = _operand(builder)
    return _result(builder, elu(x, builder.attrs.float("alpha")) * builder.attrs.float("gamma"))


@legalizes("Celu")
def legalize_celu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))"""
    x, alpha = _operand(builder), builder.attrs.float("alpha")
    return _result(builder, x.maximum(0) + (((x / alpha).exp() - 1) * alpha).minimum(0))


@legalizes("Gelu")
def legalize_gelu(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh"""
    x = _operand(builder)
    if builder.attrs.string("approximate", among=("none", "tanh")) == "none":
        inner = apply(ErfOp, x * math.sqrt(0.5))
    else:
        inner = apply(TanhOp, (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi))
    return _result(builder, x * 0.5 * (inner + 1))


@legalizes("Sigmoid")
def legalize_sigmoid(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """1 / (1 + exp(-x))"""
    return _result(builder, apply(SigmoidOp, _operand(builder)))


@legalizes("HardSigmoid")
def legalize_hard_sigmoid(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """max(0, min(1, alpha * x + beta))"""
    alpha, beta = builder.attrs.float("alpha"), builder.attrs.float("beta")
    return _result(builder, hard_sigmoid(_operand(builder), alpha, beta))


@legalizes("HardSwish")
def legalize_hard_swish(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x * max(0, min(1, alpha * x + 0.5)), where alpha is 1 / 6 as the f32 that attributes are."""
    x = _operand(builder)
    return _result(builder, x * hard_sigmoid(x, float(np.float32(1 / 6)), 0.5))


@legalizes("Swish")
def legalize_swish(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x * sigmoid(alpha * x)"""
    x, alpha = _operand(builder), builder.attrs.float("alpha")
    return _result(builder, x * apply(SigmoidOp, x if alpha == 1 else x * alpha))


@legalizes("Mish")
def legalize_mish(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x * tanh(log(1 + exp(x)))"""
    x = _operand(builder)
    return _result(builder, x * apply(TanhOp, softplus(x)))


@legalizes("Softplus")
def legalize_softplus(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """log(1 + exp(x))"""
    return _result(builder, softplus(_operand(builder)))


@legalizes("Softsign")
def legalize_softsign(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x / (1 + |x|)"""
    return _result(builder, softsign(_operand(builder)))


@legalizes("Shrink")
def legalize_shrink(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x + bias below -lambd, x - bias above lambd, else 0; integers are rounded in the end."""
    x, bias, lambd = _operand(builder), builder.attrs.float("bias"), builder.attrs.float("lambd")
    x = x if is_float(x.element) else x.cast(f64)
    return _result(builder, x.lt(-lambd).where(x + bias, x.gt(lambd).where(x - bias, 0)))


# Along an axis


@legalizes("Softmax", "LogSoftmax", "Hardmax", until=12)
def legalize_flat_softmax(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The function on the rows of a matrix: the dimensions from `axis` on are one row."""
    x = builder.operand(0)
    rank = rank_of(x)
    axis = builder.attrs.int("axis")
    axis = axis if axis == rank else builder.axis(axis, rank)
    rows = builder.flatten(x, axis)
    return [builder.reshape(_along(op, builder, rows, 1), dims_of(x))]


@legalizes("Softmax", "LogSoftmax", "Hardmax", since=13)
def legalize_softmax(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The function along `axis`."""
    x = builder.operand(0)
    return [_along(op, builder, x, builder.axis(builder.attrs.int("axis"), rank_of(x)))]


def _along(op: OnnxOp, builder: OnnxLegalizer, value: SSAValue, axis: int) -> SSAValue:
    if op.op_type == "Softmax":
        return builder.add(SoftmaxOp(value, axis))
    if dims_of(value)[axis] == 0:
        return value
    element = element_type(value)
    value = builder.cast(value, f32) if element in (f16, bf16) else value
    x = TensorValue(builder, value)
    if op.op_type == "LogSoftmax":
        return log_softmax(x, axis).cast(element).value
    best = TensorValue(builder, builder.add(ArgReduceOp("max", value, axis, keep_dims=True)))
    index = index_vector(builder, x.dims[axis], len(x.dims), axis)
    return index.eq(best).cast(element).value
