"""Moments, and the normalization by neighboring channels."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, DivOp, MulOp, PowOp, SqrtOp, SubOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, f32
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.reduction import mean
from lowerdeck.passes.legalize.common.special import apply
from lowerdeck.passes.legalize.legalizer import refuse
from lowerdeck.passes.legalize.tensor_value import TensorValue


def wide_element(value: SSAValue) -> Attribute:
    """The type in which statistics of `value` are computed."""
    element = element_type(value)
    return f32 if element in (f16, bf16) else element


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
