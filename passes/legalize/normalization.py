"""Moments, and the normalization by neighboring channels."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.elementwise import AddOp, DivOp, MulOp, PowOp, SqrtOp, SubOp
from lowerdeck.dialects.core.reduce import PoolOp
from lowerdeck.dialects.core.types import bf16, dims_of, element_type, f16, f32
from lowerdeck.dialects.dims import product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.reduction import mean


def wide_element(value: SSAValue) -> Attribute:
    """The type in which statistics of `value` are computed."""
    element = element_type(value)
    return f32 if element in (f16, bf16) else element


def moments(
    lower: CoreBuilder, x: SSAValue, axes: Sequence[int]
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The mean, x - mean, and the variance along `axes`, which stay as ones."""
    center = mean(lower, x, axes, keep_dims=True)
    rest = lower.add(SubOp(x, center))
    return center, rest, mean(lower, lower.add(MulOp(rest, rest)), axes, keep_dims=True)


def deviation(lower: CoreBuilder, variance: SSAValue, epsilon: float) -> SSAValue:
    """sqrt(variance + epsilon)"""
    return lower.add(SqrtOp(lower.add(AddOp(variance, lower.scalar(epsilon, variance)))))


def sum_of_squares(lower: CoreBuilder, x: SSAValue, axis: int, before: int, after: int) -> SSAValue:
    """The sum of the squares of an element and its `before` and `after` neighbors along `axis`."""
    dims = dims_of(x)
    square = lower.add(MulOp(x, x))
    pool = PoolOp(
        "sum",
        lower.reshape(square, [product(dims[:axis]), 1, dims[axis], product(dims[axis + 1 :])]),
        kernel=[before + 1 + after, 1],
        strides=[1, 1],
        dilations=[1, 1],
        pads_begin=[before, 0],
        pads_end=[after, 0],
    )
    return lower.reshape(lower.add(pool), dims)


def by_neighbors(
    lower: CoreBuilder, x: SSAValue, total: SSAValue, alpha: float, bias: float, beta: float
) -> SSAValue:
    """x / (bias + alpha * total)^beta"""
    scaled = lower.add(MulOp(total, lower.scalar(alpha, x)))
    base = lower.add(AddOp(scaled, lower.scalar(bias, x)))
    return lower.add(DivOp(x, lower.add(PowOp(base, lower.scalar(beta, x)))))
