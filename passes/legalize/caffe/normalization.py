"""Layers that bring blobs to a scale, given or found."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.caffe.caffe_pb2 import BNParameter, LRNParameter
from lowerdeck.dialects.caffe.layers import has_own_scale, is_segnet_norm
from lowerdeck.dialects.core.elementwise import AddOp, DivOp, MulOp, SqrtOp, SubOp
from lowerdeck.dialects.core.linear import BatchNormOp
from lowerdeck.dialects.core.types import dims_of, f32, rank_of
from lowerdeck.dialects.dims import exprs
from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer
from lowerdeck.passes.legalize.caffe.registry import Results, legalizes
from lowerdeck.passes.legalize.common.normalization import (
    by_neighbors,
    deviation,
    moments,
    sum_of_squares,
)
from lowerdeck.passes.legalize.common.pooling import pool
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.windows import Window
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.machinery.values import uniform_value

_SEGNET_EPSILON = 1e-9

# Batch normalization and scale


@legalizes("BatchNorm")
def legalize_batch_norm(builder: CaffeLegalizer) -> Results:
    """
    (x - mean) / sqrt(variance + eps) with the stored statistics, which are sums: the third blob is
    what they are divided by, where 0 makes zeros of them. There is no scale and no bias.

    With `use_global_stats: false` the statistics are those of the batch. In NVIDIA's fork scale
    and bias may be two more blobs; then nothing is divided.
    """
    p = builder.layer.batch_norm_param
    if p.HasField("use_global_stats") and not p.use_global_stats:
        result = TensorValue(builder, _by_own_moments(builder, p.eps))
        if has_own_scale(builder.layer):
            axis = 1 if rank_of(builder.x) > 1 else 0
            scale, bias = (builder.along(blob, axis) for blob in builder.blobs[3:])
            result = result * scale + bias
        return [result.value]
    x = builder.x if rank_of(builder.x) > 1 else builder.unsqueeze(builder.x, [1])
    if has_own_scale(builder.layer):
        mean_, variance, _, scale, bias = builder.blobs
    else:
        mean_, variance = (_unscaled(builder, blob) for blob in builder.blobs[:2])
        channels = dims_of(mean_)[0].value or 0
        scale, bias = (builder.tensor(np.full(channels, number, np.float32)) for number in (1, 0))
    result = builder.add(BatchNormOp(x, scale, bias, mean_, variance, p.eps))
    return [builder.reshape(result, builder.shape)]


def _unscaled(builder: CaffeLegalizer, blob: SSAValue) -> SSAValue:
    """A sum of statistics times 1 / factor, or 0 if the factor is 0."""
    factor = TensorValue(builder, builder.blobs[2])
    zero, one = (TensorValue.number(builder, number, f32) for number in (0, 1))
    return (TensorValue(builder, blob) * factor.eq(0).where(zero, one / factor)).value


def _by_own_moments(builder: CaffeLegalizer, epsilon: float) -> SSAValue:
    axes = [axis for axis in range(rank_of(builder.x)) if axis != 1]
    _, centered, variance = moments(builder, builder.x, axes)
    return builder.add(DivOp(centered, deviation(builder, variance, epsilon)))


@legalizes("BN")
def legalize_bn(builder: CaffeLegalizer) -> Results:
    """
    SegNet's: x * scale + shift for inference, else with x brought to the moments of the batch.
    Others': slope, bias, mean and variance are blobs.
    """
    p = builder.layer.bn_param
    channels = builder.shape[1]
    scale, shift, *stored = (builder.reshape(blob, [channels]) for blob in builder.blobs)
    if stored:
        mean_, variance = stored
        return [builder.add(BatchNormOp(builder.x, scale, shift, mean_, variance, p.eps))]
    x = builder.bottom
    if not (is_segnet_norm(builder.layer) and p.bn_mode == BNParameter.INFERENCE):
        x = TensorValue(builder, _by_own_moments(builder, _SEGNET_EPSILON))
    return [(x * builder.along(scale, 1) + builder.along(shift, 1)).value]


@legalizes("Scale")
def legalize_scale(builder: CaffeLegalizer) -> Results:
    """
    x * scale + bias, along the dimensions from `axis` on that the scale has.

    The scale is the first blob or the second bottom; both may have a bias behind them. Behind a
    BatchNorm layer whose only user this is, scale and bias become those of its `core.batch_norm`.
    """
    p = builder.layer.scale_param
    learned = len(builder.bottoms) == 1
    scale = builder.blobs[0] if learned else builder.bottoms[1]
    bias = builder.blobs[-1] if p.bias_term else None
    axis = _start(builder, p.axis, scale)
    normalization = builder.x.owner
    if learned and isinstance(normalization, BatchNormOp):
        if _is_plain(normalization) and (axis, rank_of(scale)) == (normalization.axis.data, 1):
            return [_scaled_normalization(builder, normalization, scale, bias)]
    result = builder.bottom * builder.along(scale, axis)
    return [result.value if bias is None else (result + builder.along(bias, axis)).value]


def _is_plain(op: BatchNormOp) -> bool:
    """True if the op neither scales nor adds, and the layer in question is its only user."""
    is_unscaled = uniform_value(op.scale) == 1 and uniform_value(op.bias) == 0
    return is_unscaled and op.result.has_one_use()


def _scaled_normalization(
    builder: CaffeLegalizer, op: BatchNormOp, scale: SSAValue, bias: SSAValue | None
) -> SSAValue:
    builder.absorb(op)
    new = BatchNormOp(
        op.input,
        scale,
        op.bias if bias is None else bias,
        op.mean,
        op.variance,
        op.epsilon.value.data,
        op.axis.data,
    )
    return builder.add(new)


def _start(builder: CaffeLegalizer, axis: int, value: SSAValue) -> int:
    """The dimension from which on `value` runs; a single number runs along none."""
    return builder.axis(axis, rank_of(builder.x)) if rank_of(value) else 0


@legalizes("Bias")
def legalize_bias(builder: CaffeLegalizer) -> Results:
    """x + bias, as Scale has it."""
    bias = builder.blobs[0] if len(builder.bottoms) == 1 else builder.bottoms[1]
    axis = _start(builder, builder.layer.bias_param.axis, bias)
    return [(builder.bottom + builder.along(bias, axis)).value]


# By what is in the blob


@legalizes("LRN")
def legalize_lrn(builder: CaffeLegalizer) -> Results:
    """
    Across channels x / (k + alpha / size * sum of squares)^beta; within a channel the squares of a
    window are averaged with its padding, and k is 1 whatever it says.
    """
    p = builder.layer.lrn_param
    size, reach = p.local_size, (p.local_size - 1) // 2
    if p.norm_region == LRNParameter.ACROSS_CHANNELS:
        total = sum_of_squares(builder, builder.x, 1, reach, reach)
        return [by_neighbors(builder, builder.x, total, p.alpha / size, p.k, p.beta)]
    ones, pads = [1, 1], list(exprs([reach, reach]))
    window = Window(exprs([size, size]), ones, ones, pads, pads, list(exprs([0, 0])))
    square = builder.add(MulOp(builder.x, builder.x))
    average = pool(builder, "average", square, window, count_pads=True)
    return [by_neighbors(builder, builder.x, average, p.alpha, 1, p.beta)]


@legalizes("MVN")
def legalize_mvn(builder: CaffeLegalizer) -> Results:
    """(x - mean) / (sqrt(variance) + eps) for each channel, or each item; of four dimensions."""
    p = builder.layer.mvn_param
    axes = [1, 2, 3] if p.across_channels else [2, 3]
    x = builder.reshape(builder.x, [*builder.shape, *[1] * (4 - rank_of(builder.x))])
    center = mean(builder, x, axes, keep_dims=True)
    rest = builder.add(SubOp(x, center))
    if not p.normalize_variance:
        return [rest]
    variance = mean(builder, builder.add(MulOp(rest, rest)), axes, keep_dims=True)
    spread = builder.add(AddOp(builder.add(SqrtOp(variance)), builder.scalar(p.eps, f32)))
    return [builder.add(DivOp(rest, spread))]


@legalizes("Normalize")
def legalize_normalize(builder: CaffeLegalizer) -> Results:
    """x / sqrt(sum of squares + eps) * scale; the sum is over channels, or all of an item."""
    p = builder.layer.norm_param
    axes = list(range(1, rank_of(builder.x))) if p.across_spatial else [1]
    total = (builder.bottom * builder.bottom).reduce("sum", axes, keep_dims=True)
    norm = builder.add(SqrtOp((total + p.eps).value))
    return [
        (builder.bottom / TensorValue(builder, norm) * builder.along(builder.blobs[0], 1)).value
    ]
