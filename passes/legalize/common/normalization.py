"""Moments, and what is normalized by them, by statistics of training, and by neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, DivOp, MulOp, PowOp, SqrtOp, SubOp
from lowerdeck.dialects.core.linear import BatchNormOp, LayerNormOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr, ExprLike, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue


def moments(
    builder: CoreBuilder, x: SSAValue, axes: Sequence[int]
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The mean, x - mean, and the variance along `axes`, which stay as ones."""
    center = mean(builder, x, axes, keep_dims=True)
    rest = builder.add(SubOp(x, center))
    return center, rest, mean(builder, builder.add(MulOp(rest, rest)), axes, keep_dims=True)


def deviation(builder: CoreBuilder, variance: SSAValue, epsilon: float) -> SSAValue:
    """sqrt(variance + epsilon)"""
    return builder.add(SqrtOp(builder.add(AddOp(variance, builder.scalar(epsilon, variance)))))


def by_length(x: TensorValue, axes: Sequence[int], least: float) -> TensorValue:
    """Vectors along `axes` by the roots of their sums of squares, which are at `least` a number."""
    return x / apply(SqrtOp, (x * x).reduce("sum", axes, True).maximum(least))


Parameter: TypeAlias = "SSAValue | None"
"""Numbers in any type of floats, or none."""


def _filled(
    builder: CoreBuilder, value: Parameter, fill: float, like: SSAValue, dims: Sequence[ExprLike]
) -> SSAValue:
    """A parameter in the type of a value, one number for all where it is not given."""
    if value is None:
        return builder.broadcast(builder.scalar(fill, like), dims)
    return builder.reshape(builder.cast(value, like), dims)


def affine(
    y: TensorValue, scale: Parameter, bias: Parameter, dims: Sequence[ExprLike]
) -> TensorValue:
    """y * scale + bias, as far as they are there, in a shape that broadcasts."""
    builder = y.builder
    if scale is not None:
        y = y * TensorValue.of(builder, builder.cast(scale, y.element)).reshape(dims)
    if bias is not None:
        y = y + TensorValue.of(builder, builder.cast(bias, y.element)).reshape(dims)
    return y


def by_statistics(
    builder: CoreBuilder, x: SSAValue, parameters: Sequence[Parameter], epsilon: float
) -> SSAValue:
    """
    (x - mean) / sqrt(variance + epsilon) * scale + bias of each channel of x [N, C, ...], by scale,
    bias, mean and variance [C] of training; in at least single precision.
    """
    wide = builder.cast(x, wide_element(x))
    values = [
        _filled(builder, value, fill, wide, [dims_of(x)[1]])
        for value, fill in zip(parameters, (1.0, 0.0, 0.0, 1.0), strict=True)
    ]
    return builder.cast(builder.add(BatchNormOp(wide, *values, epsilon=epsilon)), x)


def by_last_axes(
    builder: CoreBuilder,
    x: SSAValue,
    scale: Parameter,
    bias: Parameter,
    epsilon: float,
    axis: int,
) -> SSAValue:
    """By mean and variance of the dimensions from `axis` on, in at least single precision."""
    wide = builder.cast(x, wide_element(x))
    shape = dims_of(x)[axis:]
    scale = _filled(builder, scale, 1.0, wide, shape)
    bias = None if bias is None else _filled(builder, bias, 0.0, wide, shape)
    return builder.cast(builder.add(LayerNormOp(wide, scale, bias, epsilon, axis)), x)


def by_groups(
    builder: CoreBuilder,
    x: SSAValue,
    groups: Expr,
    scale: Parameter,
    bias: Parameter,
    epsilon: float,
) -> tuple[SSAValue, TensorValue, TensorValue]:
    """
    By mean and deviation [N, groups, 1, ...] of groups of channels of x [N, C, ...], which are the
    second and third result, in at least single precision; then scale and bias [C].
    """
    batch, channels, *space = dims_of(x)
    wide = builder.cast(x, wide_element(x))
    split = builder.reshape(wide, [batch, groups, channels // groups, *space])
    center, rest, variance = moments(builder, split, list(range(2, rank_of(split))))
    size = TensorValue(builder, deviation(builder, variance, epsilon))
    y = (TensorValue(builder, rest) / size).reshape(dims_of(x))
    y = affine(y, scale, bias, [channels, *[1] * len(space)])
    return builder.cast(y.value, x), TensorValue(builder, center), size


def by_root_mean_square(
    x: TensorValue, count: int, scale: Parameter, bias: Parameter, epsilon: float
) -> TensorValue:
    """x by the root of the mean of the squares of its last dimensions, then scale and bias."""
    rank = len(x.dims)
    squares = mean(x.builder, (x * x).value, list(range(rank - count, rank)), True)
    size = TensorValue(x.builder, deviation(x.builder, squares, epsilon))
    return affine(x / size, scale, bias, x.dims[rank - count :])


def sum_of_squares(
    builder: CoreBuilder, x: SSAValue, axis: int, before: int, after: int
) -> SSAValue:
    """The sum of the squares of an element and its `before` and `after` neighbors along `axis`."""
    dims = dims_of(x)
    square = builder.add(MulOp(x, x))
    pool = PoolOp(
        "sum",
        builder.reshape(square, [product(dims[:axis]), 1, dims[axis], product(dims[axis + 1 :])]),
        kernel=[before + 1 + after, 1],
        strides=[1, 1],
        dilations=[1, 1],
        pads_begin=[before, 0],
        pads_end=[after, 0],
    )
    return builder.reshape(builder.add(pool), dims)


def local_response(
    builder: CoreBuilder,
    x: SSAValue,
    axis: int,
    reach: tuple[int, int],
    alpha: float,
    bias: float,
    beta: float,
) -> SSAValue:
    """x / (bias + alpha * s)^beta, where s sums the squares of so many neighbors on either side."""
    return by_neighbors(builder, x, sum_of_squares(builder, x, axis, *reach), alpha, bias, beta)


def by_neighbors(
    builder: CoreBuilder, x: SSAValue, total: SSAValue, alpha: float, bias: float, beta: float
) -> SSAValue:
    """x / (bias + alpha * total)^beta"""
    scaled = builder.add(MulOp(total, builder.scalar(alpha, x)))
    base = builder.add(AddOp(scaled, builder.scalar(bias, x)))
    return builder.add(DivOp(x, builder.add(PowOp(base, builder.scalar(beta, x)))))


_MOST_STEPS = 100


def spectral_norm(
    weight: TensorValue, axis: int, u: TensorValue, v: TensorValue, steps: int, least: float
) -> TensorValue:
    """
    Weights over the largest singular value of their matrix, whose rows are along an axis. `steps`
    of the power iteration find it from u and v (Miyato et al., spectral normalization); `least` is
    added to norms.
    """
    if not 0 <= steps <= _MOST_STEPS:
        refuse(f"{steps} power iterations", f"up to {_MOST_STEPS}")
    rest = [k for k in range(len(weight.dims)) if k != axis]
    size, length = weight.dims[axis], product(weight.dims[k] for k in rest)
    table = weight.transpose([axis, *rest]).reshape([size, length])
    u, v = u.reshape([size, 1]), v.reshape([1, length])

    def unit(x: TensorValue) -> TensorValue:
        return x / (apply(SqrtOp, (x * x).reduce("sum", [0, 1])) + least)

    for _ in range(steps):
        v = unit((table * u).reduce("sum", [0], keep_dims=True))
        u = unit((table * v).reduce("sum", [1], keep_dims=True))
    return weight / (table * u * v).reduce("sum", [0, 1])
