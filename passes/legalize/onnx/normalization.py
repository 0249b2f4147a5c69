"""Normalizations, and Dropout."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    DivOp,
    MulOp,
    SqrtOp,
    SubOp,
)
from lowerdeck.dialects.core.linear import BatchNormOp, LayerNormOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, i1, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.normalization import (
    by_neighbors,
    deviation,
    moments,
    sum_of_squares,
    wide_element,
)
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.reduction import mean


def _per_channel(lower: OnnxLegalizer, parameter: SSAValue, rank: int) -> SSAValue:
    """A vector over dimension 1 of a tensor of `rank` dimensions."""
    return lower.reshape(parameter, [*dims_of(parameter), *[1] * (rank - 2)])


# Batch normalization


@legalizes("BatchNormalization", until=13)
def legalize_batch_norm_by_outputs(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """(x - mean) / sqrt(var + epsilon) * scale + bias; more than one output means training."""
    lower.attrs.ignore("consumed_inputs", "is_test", "momentum")
    if any(lower.wants(index) for index in range(1, len(op.results))):
        lower.refuse("outputs of training", "one output", "export the model for inference")
    x, *parameters = (lower.operand(k) for k in range(5))
    epsilon = lower.attrs.float("epsilon")
    if op.since_version >= 9 or lower.attrs.flag("spatial"):
        return [_batch_norm(lower, x, parameters, epsilon)]
    scale, bias, center, variance = parameters
    rest = lower.add(DivOp(lower.add(SubOp(x, center)), deviation(lower, variance, epsilon)))
    return [lower.add(AddOp(lower.add(MulOp(rest, scale)), bias))]


@legalizes("BatchNormalization", since=14)
def legalize_batch_norm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """(x - mean) / sqrt(var + epsilon) * scale + bias, by given statistics or the batch's own."""
    x, scale, bias, center, variance = (lower.operand(k) for k in range(5))
    epsilon, momentum = lower.attrs.float("epsilon"), lower.attrs.float("momentum")
    if not lower.attrs.flag("training_mode"):
        return [_batch_norm(lower, x, [scale, bias, center, variance], epsilon)]
    lower.require_rank(x, range(2, 1 << 16), "X")
    axes = [k for k in range(rank_of(x)) if k != 1]
    batch_mean, _, batch_variance = moments(lower, lower.cast(x, wide_element(x)), axes)
    statistics = [lower.reshape(v, [dims_of(x)[1]]) for v in (batch_mean, batch_variance)]
    running = [
        _running(lower, old, new, momentum)
        for old, new in zip((center, variance), statistics, strict=True)
    ]
    return [_batch_norm(lower, x, [scale, bias, *statistics], epsilon), *running]


def _running(lower: OnnxLegalizer, old: SSAValue, new: SSAValue, momentum: float) -> SSAValue:
    """old * momentum + new * (1 - momentum)"""
    new = lower.cast(new, old)
    kept = lower.add(MulOp(old, lower.scalar(momentum, old)))
    return lower.add(AddOp(kept, lower.add(MulOp(new, lower.scalar(1 - momentum, old)))))


def _batch_norm(
    lower: OnnxLegalizer, x: SSAValue, parameters: Sequence[SSAValue], epsilon: float
) -> SSAValue:
    """Computed in the widest type, and without a channel dimension for a vector of one channel."""
    wide = x
    for value in parameters:
        if element_type(x) in (f16, bf16) and element_type(value) != element_type(x):
            wide = value
    shape = dims_of(x)
    value = lower.reshape(x, [shape[0], 1]) if len(shape) == 1 else x
    values = [lower.cast(parameter, wide) for parameter in parameters]
    result = lower.add(BatchNormOp(lower.cast(value, wide), *values, epsilon=epsilon))
    return lower.reshape(lower.cast(result, x), shape)


# Normalization over trailing dimensions


@legalizes("InstanceNormalization")
def legalize_instance_norm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Each channel of each sample by its own mean and variance, then scale and bias."""
    lower.attrs.ignore("consumed_inputs")
    x = lower.operand("input")
    rank = rank_of(x)
    scale = _per_channel(lower, lower.operand("scale"), rank)
    bias = _per_channel(lower, lower.operand("B"), rank)
    return [_layer_norm(lower, x, scale, bias, lower.attrs.float("epsilon"), 2)]


@legalizes("GroupNormalization")
def legalize_group_norm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Groups of channels by their own mean and variance; scale and bias per channel (or group)."""
    lower.attrs.ignore("stash_type")  # statistics are never computed in half precision
    x, scale, bias = (lower.operand(k) for k in range(3))
    groups, dims = lower.attrs.int("num_groups"), dims_of(x)
    per_group = dims[1] // groups
    shape = [groups, 1 if op.since_version < 21 else per_group, *[1] * (len(dims) - 2)]
    parts = lower.reshape(x, [dims[0], groups, per_group, *dims[2:]])
    scale, bias = lower.reshape(scale, shape), lower.reshape(bias, shape)
    result = _layer_norm(lower, parts, scale, bias, lower.attrs.float("epsilon"), 2)
    return [lower.reshape(result, dims)]


def _layer_norm(
    lower: OnnxLegalizer,
    x: SSAValue,
    scale: SSAValue,
    bias: SSAValue | None,
    epsilon: float,
    axis: int,
) -> SSAValue:
    wide = wide_element(x)
    for parameter in (scale, bias):
        x = x if parameter is None else _sized(lower, x, dims_of(parameter))
    scale = _fitted(lower, lower.cast(scale, wide), dims_of(x))
    bias = None if bias is None else _fitted(lower, lower.cast(bias, wide), dims_of(x))
    result = lower.add(LayerNormOp(lower.cast(x, wide), scale, bias, epsilon, axis))
    return lower.cast(result, x)


def _sized(lower: OnnxLegalizer, x: SSAValue, parameter: Sequence[Expr]) -> SSAValue:
    """The input with the sizes that its parameter is known to have."""
    dims = list(dims_of(x))
    first = len(dims) - len(parameter)
    for axis, size in enumerate(parameter, first):
        if axis >= 0 and size.value not in (None, 1) and dims[axis].value is None:
            dims[axis] = size
    return lower.reshape(x, dims)


def _fitted(lower: OnnxLegalizer, parameter: SSAValue, dims: Sequence[Expr]) -> SSAValue:
    """A parameter that is known to broadcast to `dims`; unknown sizes are made so."""
    own = dims_of(parameter)
    if len(own) > len(dims):
        lower.refuse(f"a parameter of {len(own)} dimensions", f"at most {len(dims)}")
    fitting = [
        size if size.value is not None else dim
        for size, dim in zip(own, dims[len(dims) - len(own) :], strict=True)
    ]
    return lower.broadcast(parameter, fitting)


@legalizes("LayerNormalization")
def legalize_layer_norm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The dimensions from `axis` on by their mean and variance, which are results too."""
    x, scale, bias = lower.operand("X"), lower.operand("Scale"), lower.input("B")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    epsilon = lower.attrs.float("epsilon")
    stash = lower.element(lower.attrs.int("stash_type"))
    result = _layer_norm(lower, x, scale, bias, epsilon, axis)
    if not (lower.wants(1) or lower.wants(2)):
        return [result]
    axes = list(range(axis, rank_of(x)))
    center, _, variance = moments(lower, lower.cast(x, wide_element(x)), axes)
    root = deviation(lower, variance, epsilon)
    inverse = lower.add(DivOp(lower.scalar(1, root), root))
    return [result, lower.cast(center, stash), lower.cast(inverse, stash)][: len(op.results)]


@legalizes("RMSNormalization")
def legalize_rms_norm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x / sqrt(mean(x * x) + epsilon) * scale over the dimensions from `axis` on."""
    lower.attrs.ignore("stash_type")  # never half precision
    x = lower.operand("X")
    wide = lower.cast(x, wide_element(x))
    axes = list(range(lower.axis(lower.attrs.int("axis"), rank_of(x)), rank_of(x)))
    square = mean(lower, lower.add(MulOp(wide, wide)), axes, keep_dims=True)
    unit = lower.add(DivOp(wide, deviation(lower, square, lower.attrs.float("epsilon"))))
    return [lower.add(MulOp(lower.cast(unit, scale := lower.operand("scale")), scale))]


@legalizes("MeanVarianceNormalization")
def legalize_mean_variance_norm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """(x - mean) / (sqrt(variance) + 1e-9)"""
    x = lower.operand("X")
    axes = sorted(lower.axes(lower.attrs.ints("axes"), rank_of(x)))
    _, rest, variance = moments(lower, lower.cast(x, wide_element(x)), axes)
    root = lower.add(SqrtOp(variance))
    root = lower.add(AddOp(root, lower.scalar(1e-9, root)))
    return [lower.cast(lower.add(DivOp(rest, root)), x)]


# Normalization by neighbors, and by norms


@legalizes("LRN")
def legalize_lrn(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x / (bias + alpha / size * s)^beta, where s sums the squares of `size` channels around."""
    x, size = lower.operand("X"), lower.attrs.int("size")
    before, after = (size - 1) // 2, size // 2
    total = sum_of_squares(lower, x, 1, before, after)
    alpha, bias, beta = (lower.attrs.float(name) for name in ("alpha", "bias", "beta"))
    return [by_neighbors(lower, x, total, alpha / size, bias, beta)]


@legalizes("LpNormalization")
def legalize_lp_norm(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """x / |x|_p along `axis`, for p = 1 and 2; zero where the norm is."""
    x, p = lower.operand("input"), lower.attrs.int("p")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    if p not in (1, 2):
        lower.refuse(f"p = {p}", "1 or 2")
    part = lower.add(AbsOp(x)) if p == 1 else lower.add(MulOp(x, x))
    norm = lower.reduce("sum", part, [axis], keep_dims=True)
    norm = norm if p == 1 else lower.add(SqrtOp(norm))
    zero = lower.scalar(0, x)
    return [lower.select(lower.compare("eq", norm, zero), zero, lower.add(DivOp(x, norm)))]


# Dropout


@legalizes("Dropout")
def legalize_dropout(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The input, and a mask that keeps everything: inference."""
    lower.attrs.ignore("consumed_inputs", "is_test", "seed")
    x = lower.operand(0)
    if op.since_version >= 12:
        _require_inference(lower)
    else:
        lower.attrs.float("ratio")
    if not lower.wants(1):
        return [x]
    one = lower.scalar(1, i1 if op.since_version >= 10 else x)
    return [x, lower.broadcast(one, dims_of(x))]


def _require_inference(lower: OnnxLegalizer) -> None:
    training, ratio = lower.input("training_mode"), lower.input("ratio")
    if training is None:
        return
    is_training = lower.constant(training)
    drops = None if ratio is None else lower.constant(ratio)
    if is_training is not None and not is_training.any():
        return
    if drops is not None and not drops.any():
        return
    lower.refuse("training_mode", "inference", "export the model for inference")
