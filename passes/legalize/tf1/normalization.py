"""Normalization by statistics of channels, and by neighboring channels."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, MulOp
from lowerdeck.dialects.core.linear import BatchNormOp, LayerNormOp
from lowerdeck.dialects.core.types import dims_of, element_type, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.normalization import by_neighbors, moments, sum_of_squares
from lowerdeck.passes.legalize.quantity import Quantity
from lowerdeck.passes.legalize.tf1.elementwise import number
from lowerdeck.passes.legalize.tf1.fusion import activation
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes
from lowerdeck.passes.legalize.tf1.windows import Layout

_FACTOR = "exponential_avg_factor"


@legalizes("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def legalize_batch_norm(lower: Tf1Legalizer) -> Results:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, by given or own statistics."""
    return _batch_norm(lower)


@legalizes("_FusedBatchNormEx")
def legalize_fused_batch_norm(lower: Tf1Legalizer) -> Results:
    """A normalization, to which `side_input` is added before the activation function."""
    lower.attrs.ignore("num_side_inputs")
    result, *statistics = _batch_norm(lower)
    assert result is not None
    for side in lower.operands("side_input"):
        result = lower.add(AddOp(result, side))
    mode = lower.attrs.string("activation_mode")
    return [result if mode == "Identity" else activation(lower, mode, result), *statistics]


def _batch_norm(lower: Tf1Legalizer) -> Results:
    """Computed in the type of the parameters: the normalized input, and its statistics."""
    x, scale, offset = (number(lower, name) for name in ("x", "scale", "offset"))
    epsilon = lower.attrs.float("epsilon")
    axis = Layout.of(lower).axis(rank_of(x))
    wide = lower.cast(x, scale)
    if not lower.attrs.flag("is_training"):
        lower.attrs.ignore(_FACTOR)
        center, variance = number(lower, "mean"), number(lower, "variance")
        norm = BatchNormOp(wide, scale, offset, center, variance, epsilon, axis)
        return [lower.cast(lower.add(norm), x), center, variance, center, variance]
    wanted = [index for index in range(1, 5) if lower.wants(index)]
    if axis == 1 and dims_of(x)[0] == 1 and not wanted:
        lower.attrs.ignore(_FACTOR)
        return [lower.cast(_layer_norm(lower, wide, scale, offset, epsilon), x)]
    axes = [k for k in range(rank_of(x)) if k != axis]
    center, _, variance = moments(lower, wide, axes)
    center, variance = (lower.squeeze(value, axes) for value in (center, variance))
    norm = BatchNormOp(wide, scale, offset, center, variance, epsilon, axis)
    factor = lower.attrs.float(_FACTOR) if lower.attrs.has(_FACTOR) else 1.0
    unbiased = _unbiased(lower, variance, product(dims_of(x)[k] for k in axes))
    running = [
        _running(lower, lower.operand("mean"), center, factor),
        _running(lower, lower.operand("variance"), unbiased, factor),
    ]
    return [lower.cast(lower.add(norm), x), *running, center, variance]


def _layer_norm(
    lower: Tf1Legalizer, x: SSAValue, scale: SSAValue, offset: SSAValue, epsilon: float
) -> SSAValue:
    """A batch of one image is normalized row by row: so libraries normalize layers."""
    dims = [dims_of(x)[1], *[1] * (rank_of(x) - 2)]
    scale, offset = lower.reshape(scale, dims), lower.reshape(offset, dims)
    return lower.add(LayerNormOp(x, scale, offset, epsilon, 2))


def _unbiased(lower: Tf1Legalizer, variance: SSAValue, count: Expr) -> SSAValue:
    """The variance by count - 1 instead of count elements."""
    total = Quantity.dim(lower, count)
    element = element_type(variance)
    factor = total.cast(element) / (total - 1).maximum(1).cast(element)
    return (Quantity(lower, variance) * factor).value


def _running(lower: Tf1Legalizer, old: SSAValue, new: SSAValue, factor: float) -> SSAValue:
    """old * (1 - factor) + new * factor"""
    if factor == 1:
        return new
    kept = lower.add(MulOp(old, lower.scalar(1 - factor, old)))
    return lower.add(AddOp(kept, lower.add(MulOp(new, lower.scalar(factor, new)))))


@legalizes("BatchNormWithGlobalNormalization")
def legalize_global_batch_norm(lower: Tf1Legalizer) -> Results:
    """(t - m) / sqrt(v + epsilon) * gamma + beta, or without gamma."""
    x, center, variance, offset, gamma = (number(lower, index) for index in range(5))
    scale = gamma
    if not lower.attrs.flag("scale_after_normalization"):
        scale = lower.broadcast(lower.scalar(1, gamma), dims_of(center))
    epsilon, axis = lower.attrs.float("variance_epsilon"), rank_of(x) - 1
    return [lower.add(BatchNormOp(x, scale, offset, center, variance, epsilon, axis))]


@legalizes("LRN")
def legalize_lrn(lower: Tf1Legalizer) -> Results:
    """x / (bias + alpha * s)^beta, where s sums the squares of `depth_radius` channels around."""
    x, radius = number(lower, "input"), lower.attrs.int("depth_radius")
    total = sum_of_squares(lower, x, rank_of(x) - 1, radius, radius)
    alpha, bias, beta = (lower.attrs.float(name) for name in ("alpha", "bias", "beta"))
    return [by_neighbors(lower, x, total, alpha, bias, beta)]
