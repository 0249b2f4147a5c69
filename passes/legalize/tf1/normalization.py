"""Normalization by statistics of channels, and by neighboring channels."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.linear import BatchNormOp, LayerNormOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.common.normalization import local_response, moments
from lowerdeck.passes.legalize.tensor_value import TensorValue
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.fusion import activation
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.windows import Layout

_FACTOR = "exponential_avg_factor"


@legalizes("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def legalize_batch_norm(builder: Tf1Legalizer) -> Results:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, by given or own statistics."""
    # Version 3 has a result that only gradients on other devices read.
    return [*_batch_norm(builder), builder.scalar(0, builder.operand("scale"))]


@legalizes("_FusedBatchNormEx")
def legalize_fused_batch_norm(builder: Tf1Legalizer) -> Results:
    """A normalization, to which `side_input` is added before the activation function."""
    builder.attrs.ignore("num_side_inputs")
    result, *statistics = _batch_norm(builder)
    assert result is not None
    for side in builder.operands("side_input"):
        result = builder.add(AddOp(result, side))
    mode = builder.attrs.string("activation_mode")
    return [result if mode == "Identity" else activation(builder, mode, result), *statistics]


def _batch_norm(builder: Tf1Legalizer) -> Results:
    """Computed in the type of the parameters: the normalized input, and its statistics."""
    x, scale, offset = (number(builder, name) for name in ("x", "scale", "offset"))
    epsilon = builder.attrs.float("epsilon")
    axis = Layout.of(builder).axis(rank_of(x))
    wide = builder.cast(x, scale)
    if not builder.attrs.flag("is_training"):
        builder.attrs.ignore(_FACTOR)
        center, variance = number(builder, "mean"), number(builder, "variance")
        norm = BatchNormOp(wide, scale, offset, center, variance, epsilon, axis)
        return [builder.cast(builder.add(norm), x), center, variance, center, variance]
    wanted = [index for index in range(1, 5) if builder.wants(index)]
    if axis == 1 and dims_of(x)[0] == 1 and not wanted:
        builder.attrs.ignore(_FACTOR)
        return [builder.cast(_layer_norm(builder, wide, scale, offset, epsilon), x)]
    axes = [k for k in range(rank_of(x)) if k != axis]
    center, _, variance = moments(builder, wide, axes)
    center, variance = (builder.squeeze(value, axes) for value in (center, variance))
    norm = BatchNormOp(wide, scale, offset, center, variance, epsilon, axis)
    factor = builder.attrs.float(_FACTOR) if builder.attrs.has(_FACTOR) else 1.0
    unbiased = _unbiased(builder, variance, product(dims_of(x)[k] for k in axes))
    running = [
        _running(builder, builder.operand("mean"), center, factor),
        _running(builder, builder.operand("variance"), unbiased, factor),
    ]
    return [builder.cast(builder.add(norm), x), *running, center, variance]


def _layer_norm(
    builder: Tf1Legalizer, x: SSAValue, scale: SSAValue, offset: SSAValue, epsilon: float
) -> SSAValue:
    """A batch of one image is normalized row by row: so libraries normalize layers."""
    dims = [dims_of(x)[1], *[1] * (rank_of(x) - 2)]
    scale, offset = builder.reshape(scale, dims), builder.reshape(offset, dims)
    return builder.add(LayerNormOp(x, scale, offset, epsilon, 2))


def _unbiased(builder: Tf1Legalizer, variance: SSAValue, count: Expr) -> SSAValue:
    """The variance by count - 1 instead of count elements."""
    total = TensorValue.dim(builder, count)
    element = element_type(variance)
    factor = total.cast(element) / (total - 1).maximum(1).cast(element)
    return (TensorValue(builder, variance) * factor).value


def _running(builder: Tf1Legalizer, old: SSAValue, new: SSAValue, factor: float) -> SSAValue:
    """old * (1 - factor) + new * factor"""
    if factor == 1:
        return new
    kept = builder.add(MulOp(old, builder.scalar(1 - factor, old)))
    return builder.add(AddOp(kept, builder.add(MulOp(new, builder.scalar(factor, new)))))


@legalizes("BatchNormWithGlobalNormalization")
def legalize_global_batch_norm(builder: Tf1Legalizer) -> Results:
    """(t - m) / sqrt(v + epsilon) * gamma + beta, or without gamma."""
    x, center, variance, offset, gamma = (number(builder, index) for index in range(5))
    scale = gamma
    if not builder.attrs.flag("scale_after_normalization"):
        scale = builder.broadcast(builder.scalar(1, gamma), dims_of(center))
    epsilon, axis = builder.attrs.float("variance_epsilon"), rank_of(x) - 1
    return [builder.add(BatchNormOp(x, scale, offset, center, variance, epsilon, axis))]


@legalizes("LRN")
def legalize_lrn(builder: Tf1Legalizer) -> Results:
    """x / (bias + alpha * s)^beta, where s sums the squares of `depth_radius` channels around."""
    x, radius = number(builder, "input"), builder.attrs.int("depth_radius")
    alpha, bias, beta = (builder.attrs.float(name) for name in ("alpha", "bias", "beta"))
    reach, axis = (radius, radius), rank_of(x) - 1
    return [local_response(builder, x, axis, reach, alpha, bias, beta)]
