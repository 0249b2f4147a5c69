"""Functions of one element, and sums, products and maxima of several blobs."""

from __future__ import annotations

from functools import reduce

import numpy as np

from lowerdeck.dialects.caffe.caffe_pb2 import EltwiseParameter
from lowerdeck.dialects.core.elementwise import PowOp, RectifyOp, SigmoidOp, TanhOp
from lowerdeck.dialects.core.reduce import SoftmaxOp
from lowerdeck.dialects.core.types import dims_of, f32, rank_of
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common import activation
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.tensor_value import TensorValue


@legalizes("AbsVal")
def legalize_abs_val(builder: CaffeLegalizer) -> Results:
    return [builder.bottom.abs().value]


@legalizes("BNLL")
def legalize_bnll(builder: CaffeLegalizer) -> Results:
    """log(1 + exp(x))"""
    return [activation.softplus(builder.bottom).value]


@legalizes("Clip")
def legalize_clip(builder: CaffeLegalizer) -> Results:
    """max(min, min(x, max)), where C++ chooses the constant if x is NaN."""
    p = builder.layer.clip_param
    below = builder.bottom.minimum(p.max)
    return [below.ge(p.min).where(below, p.min).value]


@legalizes("Dropout")
def legalize_dropout(builder: CaffeLegalizer) -> Results:
    """Nothing is dropped in tests; what is kept in training is scaled there."""
    return [builder.x]


@legalizes("ELU")
def legalize_elu(builder: CaffeLegalizer) -> Results:
    return [activation.elu(builder.bottom, builder.layer.elu_param.alpha).value]


@legalizes("Exp")
def legalize_exp(builder: CaffeLegalizer) -> Results:
    """base^(shift + scale x), computed as base^shift exp(log(base) scale x); base -1 is e."""
    p = builder.layer.exp_param
    inner = _log_base(builder, p.base) * np.float32(p.scale)
    with np.errstate(over="ignore"):
        outer = np.float32(np.power(np.e if p.base == -1 else p.base, p.shift))
    powers = _times(builder.bottom, float(inner)).exp()
    return [_times(powers, float(outer)).value]


@legalizes("Log")
def legalize_log(builder: CaffeLegalizer) -> Results:
    """log(shift + scale x) / log(base); base -1 is e."""
    p = builder.layer.log_param
    log_base = _log_base(builder, p.base)
    if log_base == 0:
        builder.refuse("base 1", "a base whose logarithm is not zero")
    logarithm = _plus(_times(builder.bottom, p.scale), p.shift).log()
    return [_times(logarithm, float(1 / log_base)).value]


def _log_base(builder: CaffeLegalizer, base: float) -> np.float32:
    if base == -1:
        return np.float32(1)
    if not 0 < base < np.inf:
        builder.refuse(f"base {base}", "a positive number, or -1 for e")
    return np.float32(np.log(base))


def _times(x: TensorValue, factor: float) -> TensorValue:
    return x if factor == 1 else x * factor


def _plus(x: TensorValue, shift: float) -> TensorValue:
    return x if shift == 0 else x + shift


@legalizes("Power")
def legalize_power(builder: CaffeLegalizer) -> Results:
    """(shift + scale x)^power; what does not depend on x is a constant, whatever x is."""
    p = builder.layer.power_param
    if p.power * p.scale == 0:
        with np.errstate(all="ignore"):
            value = np.power(np.float32(p.shift), np.float32(p.power)) if p.power else 1.0
        return [builder.broadcast(builder.scalar(float(value), f32), builder.shape)]
    base = _plus(_times(builder.bottom, p.scale), p.shift).value
    return [base if p.power == 1 else builder.add(PowOp(base, builder.scalar(p.power, base)))]


@legalizes("PReLU")
def legalize_prelu(builder: CaffeLegalizer) -> Results:
    """x, or slope * x below zero; one slope a channel, or one for all."""
    x = builder.bottom
    return [x.lt(0).where(x * builder.along(builder.blobs[0], 1), x).value]


@legalizes("ReLU")
def legalize_relu(builder: CaffeLegalizer) -> Results:
    return [rectified(builder.bottom, builder.layer.relu_param.negative_slope).value]


def rectified(x: TensorValue, slope: float) -> TensorValue:
    """
    max(x, 0) + slope * min(x, 0), as Caffe computes it: without a slope, -infinity becomes NaN.
    """
    if slope == 0:
        return apply(RectifyOp, x)
    if not np.isfinite(slope):
        return x.maximum(0) + x.minimum(0) * slope
    return activation.leaky_relu(x, slope)


@legalizes("ReLU6")
def legalize_relu6(builder: CaffeLegalizer) -> Results:
    """min(max(x, 0), 6)"""
    return [activation.relu(builder.bottom).minimum(6).value]


@legalizes("Sigmoid")
def legalize_sigmoid(builder: CaffeLegalizer) -> Results:
    return [builder.add(SigmoidOp(builder.x))]


@legalizes("Softmax")
def legalize_softmax(builder: CaffeLegalizer) -> Results:
    axis = builder.axis(builder.layer.softmax_param.axis, rank_of(builder.x))
    return [builder.add(SoftmaxOp(builder.x, axis))]


@legalizes("Swish")
def legalize_swish(builder: CaffeLegalizer) -> Results:
    """x * sigmoid(beta x)"""
    x = builder.bottom
    gate = apply(SigmoidOp, _times(x, builder.layer.swish_param.beta))
    return [(x * gate).value]


@legalizes("TanH")
def legalize_tanh(builder: CaffeLegalizer) -> Results:
    return [builder.add(TanhOp(builder.x))]


@legalizes("Threshold")
def legalize_threshold(builder: CaffeLegalizer) -> Results:
    """1 above the threshold, else 0; at the threshold and for NaN it is 0."""
    above = builder.bottom.gt(builder.layer.threshold_param.threshold)
    return [above.cast(f32).value]


@legalizes("Eltwise")
def legalize_eltwise(builder: CaffeLegalizer) -> Results:
    """
    The product, maximum, or sum with coefficients, of blobs of one shape, in their order. A maximum
    is the first blob where it is larger than the second one, else that; then each larger one. What
    has the coefficient 0 is not read, whatever it holds.
    """
    p = builder.layer.eltwise_param
    if len({dims_of(bottom) for bottom in builder.bottoms}) > 1:
        types = ", ".join(str(bottom.type) for bottom in builder.bottoms)
        builder.refuse(f"bottoms of types {types}", "equal ones")
    values = [TensorValue(builder, bottom) for bottom in builder.bottoms]
    match p.operation:
        case EltwiseParameter.PROD:
            result = reduce(lambda x, y: x * y, values)
        case EltwiseParameter.MAX:
            first, *others = values
            result = first.gt(others[0]).where(first, others[0])
            for x in others[1:]:
                result = x.gt(result).where(x, result)
        case _:
            factors = list(p.coeff) or [1.0] * len(values)
            pairs = zip(values, factors, strict=True)
            terms = [_times(x, factor) for x, factor in pairs if factor]
            if not terms:
                return [builder.broadcast(builder.scalar(0, f32), builder.shape)]
            result = reduce(lambda x, y: x + y, terms)
    return [result.value]
