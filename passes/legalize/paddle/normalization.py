"""Normalizations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import BatchNormOp, LayerNormOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike
from lowerdeck.passes.legalize.common.normalization import (
    deviation,
    local_response,
    moments,
    spectral_norm,
    wide_element,
)
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import Results, legalizes
from lowerdeck.passes.legalize.tensor_value import TensorValue


def _vector(
    builder: PaddleLegalizer, name: str, fill: float, like: SSAValue, dims: Sequence[ExprLike]
) -> SSAValue:
    """Numbers in the type of a value, or one for all."""
    found = builder.optional(name)
    if found is None:
        return builder.broadcast(builder.scalar(fill, like), dims)
    return builder.reshape(builder.cast(found, like), dims)


@legalizes("batch_norm", "sync_batch_norm")
def legalize_batch_norm(builder: PaddleLegalizer) -> Results:
    """By the moments of the training."""
    if not (builder.flag("is_test") or builder.flag("use_global_stats")):
        builder.refuse("batch_norm in training", "is_test", "call model.eval()")
    x = builder.first(builder.input("x"))
    wide = builder.cast(x, wide_element(x))
    channels = [dims_of(x)[1]]
    names = {"scale": 1.0, "bias": 0.0, "mean": 0.0, "variance": 1.0}
    scale, bias, center, variance = (
        _vector(builder, name, fill, wide, channels) for name, fill in names.items()
    )
    epsilon = builder.real("epsilon")
    found = builder.add(BatchNormOp(wide, scale, bias, center, variance, epsilon))
    return builder.results(out=builder.back(builder.cast(found, x)))


@legalizes("layer_norm", "skip_layernorm")
def legalize_layer_norm(builder: PaddleLegalizer) -> Results:
    """By the moments of the last dimensions, of a sum in optimized files."""
    x = builder.input("x")
    if builder.name == "skip_layernorm":
        x = (builder.value("x") + builder.value("y")).value
    wide = builder.cast(x, wide_element(x))
    axis = builder.integer("begin_norm_axis")
    shape = dims_of(x)[axis:]
    scale = _vector(builder, "scale", 1.0, wide, shape)
    bias = None
    if builder.optional("bias") is not None:
        bias = _vector(builder, "bias", 0.0, wide, shape)
    op = LayerNormOp(wide, scale, bias, builder.real("epsilon"), axis)
    return builder.results(out=builder.cast(builder.add(op), x))


@legalizes("group_norm", "instance_norm")
def legalize_group_norm(builder: PaddleLegalizer) -> Results:
    """By the moments of groups of channels, or of each one."""
    is_group = builder.name == "group_norm"
    x = builder.first(builder.input("x")) if is_group else builder.input("x")
    batch, channels, *space = dims_of(x)
    groups = Expr.const(builder.integer("groups")) if is_group else channels
    wide = builder.cast(x, wide_element(x))
    split = builder.reshape(wide, [batch, groups, channels // groups, *space])
    _, rest, variance = moments(builder, split, list(range(2, rank_of(split))))
    size = deviation(builder, variance, builder.real("epsilon"))
    y = (TensorValue(builder, rest) / TensorValue(builder, size)).reshape(dims_of(x))
    y = _affine(builder, y, [channels, *[1] * len(space)])
    found = builder.cast(y.value, x)
    return builder.results(y=builder.back(found) if is_group else found)


def _affine(builder: PaddleLegalizer, y: TensorValue, dims: Sequence[ExprLike]) -> TensorValue:
    """y * scale + bias, as far as they are there."""
    if builder.optional("scale") is not None:
        y = y * TensorValue.of(builder, _vector(builder, "scale", 1.0, y.value, dims))
    if builder.has("bias") and builder.optional("bias") is not None:
        y = y + TensorValue.of(builder, _vector(builder, "bias", 0.0, y.value, dims))
    return y


@legalizes("rms_norm")
def legalize_rms_norm(builder: PaddleLegalizer) -> Results:
    """By the mean of squares of the last dimensions."""
    x = builder.wide()
    shape = builder.ints_of("normalized_shape") if builder.get("normalized_shape") else [0]
    axes = list(range(len(x.dims) - len(shape), len(x.dims)))
    squares = mean(builder, (x * x).value, axes, True)
    size = TensorValue(builder, deviation(builder, squares, builder.number("epsilon")))
    y = _affine(builder, x / size, [x.dims[axis] for axis in axes])
    return builder.results(y=builder.narrow(y))


@legalizes("spectral_norm")
def legalize_spectral_norm(builder: PaddleLegalizer) -> Results:
    """By the largest singular value of the weights as a matrix."""
    weight, u, v = (builder.value(name) for name in ("weight", "u", "v"))
    axis, steps = builder.along(weight.value, "dim"), builder.integer("power_iters")
    return spectral_norm(weight, axis, u, v, steps, builder.real("eps"))


@legalizes("lrn")
def legalize_lrn(builder: PaddleLegalizer) -> Results:
    """By the squares of neighboring channels."""
    x = builder.first(builder.input("x"))
    size = builder.integer("n")
    reach = (size - 1) // 2, size // 2
    alpha, k, beta = (builder.real(name) for name in ("alpha", "k", "beta"))
    found = local_response(builder, x, 1, reach, alpha, k, beta)
    return builder.results(out=builder.back(found))


@legalizes("affine_channel")
def legalize_affine_channel(builder: PaddleLegalizer) -> Results:
    """x * scale + bias, of each channel."""
    x = builder.value("x")
    axis = len(x.dims) - 1 if builder.text("data_layout") == "NHWC" else 1
    return _affine(builder, x, [dim if k == axis else 1 for k, dim in enumerate(x.dims)])
