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
from lowerdeck.passes.legalize.common.normalization import (
    deviation,
    local_response,
    moments,
)
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes


def _per_channel(builder: OnnxLegalizer, parameter: SSAValue, rank: int) -> SSAValue:
    """A vector over dimension 1 of a tensor of `rank` dimensions."""
    return builder.reshape(parameter, [*dims_of(parameter), *[1] * (rank - 2)])


# Batch normalization


@legalizes("BatchNormalization", until=13)
def legalize_batch_norm_by_outputs(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """(x - mean) / sqrt(var + epsilon) * scale + bias; more than one output means training."""
    builder.attrs.ignore("consumed_inputs", "is_test", "momentum")
    if any(builder.wants(index) for index in range(1, len(op.results))):
        builder.refuse("outputs of training", "one output", "export the model for inference")
    x, *parameters = (builder.operand(k) for k in range(5))
    epsilon = builder.attrs.float("epsilon")
    if op.since_version >= 9 or builder.attrs.flag("spatial"):
        return [_batch_norm(builder, x, parameters, epsilon)]
    scale, bias, center, variance = parameters
    rest = builder.add(DivOp(builder.add(SubOp(x, center)), deviation(builder, variance, epsilon)))
    return [builder.add(AddOp(builder.add(MulOp(rest, scale)), bias))]


@legalizes("BatchNormalization", since=14)
def legalize_batch_norm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """(x - mean) / sqrt(var + epsilon) * scale + bias, by given statistics or the batch's own."""
    x, scale, bias, center, variance = (builder.operand(k) for k in range(5))
    epsilon, momentum = builder.attrs.float("epsilon"), builder.attrs.float("momentum")
    if not builder.attrs.flag("training_mode"):
        return [_batch_norm(builder, x, [scale, bias, center, variance], epsilon)]
    builder.require_rank(x, range(2, 1 << 16), "X")
    axes = [k for k in range(rank_of(x)) if k != 1]
    batch_mean, _, batch_variance = moments(builder, builder.cast(x, wide_element(x)), axes)
    statistics = [builder.reshape(v, [dims_of(x)[1]]) for v in (batch_mean, batch_variance)]
    running = [
        _running(builder, old, new, momentum)
        for old, new in zip((center, variance), statistics, strict=True)
    ]
    return [_batch_norm(builder, x, [scale, bias, *statistics], epsilon), *running]


def _running(builder: OnnxLegalizer, old: SSAValue, new: SSAValue, momentum: float) -> SSAValue:
    """old * momentum + new * (1 - momentum)"""
    new = builder.cast(new, old)
    kept = builder.add(MulOp(old, builder.scalar(momentum, old)))
    return builder.add(AddOp(kept, builder.add(MulOp(new, builder.scalar(1 - momentum, old)))))


def _batch_norm(
    builder: OnnxLegalizer, x: SSAValue, parameters: Sequence[SSAValue], epsilon: float
) -> SSAValue:
    """Computed in the widest type, and without a channel dimension for a vector of one channel."""
    wide = x
    for value in parameters:
        if element_type(x) in (f16, bf16) and element_type(value) != element_type(x):
            wide = value
    shape = dims_of(x)
    value = builder.reshape(x, [shape[0], 1]) if len(shape) == 1 else x
    values = [builder.cast(parameter, wide) for parameter in parameters]
    result = builder.add(BatchNormOp(builder.cast(value, wide), *values, epsilon=epsilon))
    return builder.reshape(builder.cast(result, x), shape)


# Normalization over trailing dimensions


@legalizes("InstanceNormalization")
def legalize_instance_norm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Each channel of each sample by its own mean and variance, then scale and bias."""
    builder.attrs.ignore("consumed_inputs")
    x = builder.operand("input")
    rank = rank_of(x)
    scale = _per_channel(builder, builder.operand("scale"), rank)
    bias = _per_channel(builder, builder.operand("B"), rank)
    return [_layer_norm(builder, x, scale, bias, builder.attrs.float("epsilon"), 2)]


@legalizes("GroupNormalization")
def legalize_group_norm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Groups of channels by their own mean and variance; scale and bias per channel (or group)."""
    builder.attrs.ignore("stash_type")  # statistics are never computed in half precision
    x, scale, bias = (builder.operand(k) for k in range(3))
    groups, dims = builder.attrs.int("num_groups"), dims_of(x)
    per_group = dims[1] // groups
    shape = [groups, 1 if op.since_version < 21 else per_group, *[1] * (len(dims) - 2)]
    parts = builder.reshape(x, [dims[0], groups, per_group, *dims[2:]])
    scale, bias = builder.reshape(scale, shape), builder.reshape(bias, shape)
    result = _layer_norm(builder, parts, scale, bias, builder.attrs.float("epsilon"), 2)
    return [builder.reshape(result, dims)]


def _layer_norm(
    builder: OnnxLegalizer,
    x: SSAValue,
    scale: SSAValue,
    bias: SSAValue | None,
    epsilon: float,
    axis: int,
) -> SSAValue:
    wide = wide_element(x)
    for parameter in (scale, bias):
        x = x if parameter is None else _sized(builder, x, dims_of(parameter))
    scale = _fitted(builder, builder.cast(scale, wide), dims_of(x))
    bias = None if bias is None else _fitted(builder, builder.cast(bias, wide), dims_of(x))
    result = builder.add(LayerNormOp(builder.cast(x, wide), scale, bias, epsilon, axis))
    return builder.cast(result, x)


def _sized(builder: OnnxLegalizer, x: SSAValue, parameter: Sequence[Expr]) -> SSAValue:
    """The input with the sizes that its parameter is known to have."""
    dims = list(dims_of(x))
    first = len(dims) - len(parameter)
    for axis, size in enumerate(parameter, first):
        if axis >= 0 and size.value not in (None, 1) and dims[axis].value is None:
            dims[axis] = size
    return builder.reshape(x, dims)


def _fitted(builder: OnnxLegalizer, parameter: SSAValue, dims: Sequence[Expr]) -> SSAValue:
    """A parameter that is known to broadcast to `dims`; unknown sizes are made so."""
    own = dims_of(parameter)
    if len(own) > len(dims):
        builder.refuse(f"a parameter of {len(own)} dimensions", f"at most {len(dims)}")
    fitting = [
        size if size.value is not None else dim
        for size, dim in zip(own, dims[len(dims) - len(own) :], strict=True)
    ]
    return builder.broadcast(parameter, fitting)


@legalizes("LayerNormalization")
def legalize_layer_norm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The dimensions from `axis` on by their mean and variance, which are results too."""
    x, scale, bias = builder.operand("X"), builder.operand("Scale"), builder.input("B")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    epsilon = builder.attrs.float("epsilon")
    stash = builder.element(builder.attrs.int("stash_type"))
    result = _layer_norm(builder, x, scale, bias, epsilon, axis)
    if not (builder.wants(1) or builder.wants(2)):
        return [result]
    axes = list(range(axis, rank_of(x)))
    center, _, variance = moments(builder, builder.cast(x, wide_element(x)), axes)
    root = deviation(builder, variance, epsilon)
    inverse = builder.add(DivOp(builder.scalar(1, root), root))
    return [result, builder.cast(center, stash), builder.cast(inverse, stash)][: len(op.results)]


@legalizes("RMSNormalization")
def legalize_rms_norm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x / sqrt(mean(x * x) + epsilon) * scale over the dimensions from `axis` on."""
    builder.attrs.ignore("stash_type")  # never half precision
    x = builder.operand("X")
    wide = builder.cast(x, wide_element(x))
    axes = list(range(builder.axis(builder.attrs.int("axis"), rank_of(x)), rank_of(x)))
    square = mean(builder, builder.add(MulOp(wide, wide)), axes, keep_dims=True)
    unit = builder.add(DivOp(wide, deviation(builder, square, builder.attrs.float("epsilon"))))
    return [builder.add(MulOp(builder.cast(unit, scale := builder.operand("scale")), scale))]


@legalizes("MeanVarianceNormalization")
def legalize_mean_variance_norm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """(x - mean) / (sqrt(variance) + 1e-9)"""
    x = builder.operand("X")
    axes = sorted(builder.axes(builder.attrs.ints("axes"), rank_of(x)))
    _, rest, variance = moments(builder, builder.cast(x, wide_element(x)), axes)
    root = builder.add(SqrtOp(variance))
    root = builder.add(AddOp(root, builder.scalar(1e-9, root)))
    return [builder.cast(builder.add(DivOp(rest, root)), x)]


# Normalization by neighbors, and by norms


@legalizes("LRN")
def legalize_lrn(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x / (bias + alpha / size * s)^beta, where s sums the squares of `size` channels around."""
    x, size = builder.operand("X"), builder.attrs.int("size")
    reach = (size - 1) // 2, size // 2
    alpha, bias, beta = (builder.attrs.float(name) for name in ("alpha", "bias", "beta"))
    return [local_response(builder, x, 1, reach, alpha / size, bias, beta)]


@legalizes("LpNormalization")
def legalize_lp_norm(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """x / |x|_p along `axis`, for p = 1 and 2; zero where the norm is."""
    x, p = builder.operand("input"), builder.attrs.int("p")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    if p not in (1, 2):
        builder.refuse(f"p = {p}", "1 or 2")
    part = builder.add(AbsOp(x)) if p == 1 else builder.add(MulOp(x, x))
    norm = builder.reduce("sum", part, [axis], keep_dims=True)
    norm = norm if p == 1 else builder.add(SqrtOp(norm))
    zero = builder.scalar(0, x)
    return [builder.select(builder.compare("eq", norm, zero), zero, builder.add(DivOp(x, norm)))]


# Dropout


@legalizes("Dropout")
def legalize_dropout(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The input, and a mask that keeps everything: inference."""
    builder.attrs.ignore("consumed_inputs", "is_test", "seed")
    x = builder.operand(0)
    if op.since_version >= 12:
        _require_inference(builder)
    else:
        builder.attrs.float("ratio")
    if not builder.wants(1):
        return [x]
    one = builder.scalar(1, i1 if op.since_version >= 10 else x)
    return [x, builder.broadcast(one, dims_of(x))]


def _require_inference(builder: OnnxLegalizer) -> None:
    training, ratio = builder.input("training_mode"), builder.input("ratio")
    if training is None:
        return
    is_training = builder.constant(training)
    drops = None if ratio is None else builder.constant(ratio)
    if is_training is not None and not is_training.any():
        return
    if drops is not None and not drops.any():
        return
    builder.refuse("training_mode", "inference", "export the model for inference")
