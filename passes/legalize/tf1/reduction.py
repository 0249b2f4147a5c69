"""Reductions over dimensions, positions of extrema, running sums, and ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import MulOp, SqrtOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp
from lowerdeck.dialects.core.tensor import GatherElementsOp
from lowerdeck.dialects.core.types import (
    element_type,
    i64,
    is_float,
    numpy_dtype,
    rank_of,
)
from lowerdeck.passes.legalize.quantity import Quantity, index_vector
from lowerdeck.passes.legalize.reduction import DynamicAxes, ReducedAxes
from lowerdeck.passes.legalize.sizes import length_of
from lowerdeck.passes.legalize.tf1.elementwise import narrowed, number, widened
from lowerdeck.passes.legalize.tf1.layout import axis_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes

Reduction: TypeAlias = Callable[[ReducedAxes, SSAValue, bool], SSAValue]


def _plain(kind: str) -> Reduction:
    return lambda axes, x, keep: axes.reduce(kind, x, keep)


def _mean(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    """Integers are summed in 64 bits, and the quotient is rounded toward zero."""
    element = element_type(x)
    wide = x if is_float(element) else axes.lower.cast(x, i64)
    return axes.lower.cast(axes.mean(wide, keep), element)


def _norm(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    lower = axes.lower
    return lower.add(SqrtOp(axes.reduce("sum", lower.add(MulOp(x, x)), keep)))


_REDUCTIONS: Mapping[str, Reduction] = {
    "All": _plain("min"),
    "Any": _plain("max"),
    "EuclideanNorm": _norm,
    "Max": _plain("max"),
    "Mean": _mean,
    "Min": _plain("min"),
    "Prod": _plain("prod"),
    "Sum": _plain("sum"),
}


@legalizes(*_REDUCTIONS)
def legalize_reduction(lower: Tf1Legalizer) -> Results:
    """The elements along the axes of the second operand combined."""
    x, keep = number(lower, 0), lower.attrs.flag("keep_dims")
    if lower.op_type == "EuclideanNorm" and not is_float(element_type(x)):
        lower.refuse(f"a norm of {element_type(x)}", "floating-point numbers")
    axes = _axes(lower, lower.operand(1), rank_of(x))
    return [_REDUCTIONS[lower.op_type](axes, x, keep)]


def _axes(lower: Tf1Legalizer, operand: SSAValue, rank: int) -> ReducedAxes:
    if (numbers := lower.ints(operand)) is not None:
        return ReducedAxes(lower, rank, sorted(lower.axes(numbers, rank)))
    count = length_of(lower, operand, "axes")
    return DynamicAxes(lower, rank, lower.reshape(operand, [count]), count)


@legalizes("L2Loss")
def legalize_half_sum_of_squares(lower: Tf1Legalizer) -> Results:
    """sum(x * x) / 2"""
    x = widened(lower, 0)
    return narrowed(lower, (x * x).reduce("sum", range(len(x.dims))) * 0.5)


@legalizes("ArgMax", "ArgMin")
def legalize_arg_reduction(lower: Tf1Legalizer) -> Results:
    """The index of the first extremum along an axis; NaN is passed over."""
    x = number(lower, "input")
    kind = "max" if lower.op_type == "ArgMax" else "min"
    if is_float(element_type(x)):
        worst = lower.scalar(-math.inf if kind == "max" else math.inf, x)
        x = lower.select(lower.compare("eq", x, x), x, worst)
    index = lower.add(ArgReduceOp(kind, x, axis_of(lower, "dimension", rank_of(x))))
    return [lower.cast(index, lower.attrs.element("output_type"))]


# Running along an axis


@legalizes("Cumsum", "Cumprod")
def legalize_cumulative(lower: Tf1Legalizer) -> Results:
    """Running sums or products, up to and including an element or before it."""
    x = number(lower, "x")
    kind = "sum" if lower.op_type == "Cumsum" else "prod"
    exclusive, reverse = lower.attrs.flag("exclusive"), lower.attrs.flag("reverse")
    axis = axis_of(lower, "axis", rank_of(x))
    return [lower.add(CumulativeOp(kind, x, axis, exclusive, reverse))]


@legalizes("CumulativeLogsumexp")
def legalize_cumulative_log_sum_exp(lower: Tf1Legalizer) -> Results:
    """Running log(sum(exp(x))): the rows of a matrix have the elements of each sum."""
    x = widened(lower, "x")
    exclusive, reverse = lower.attrs.flag("exclusive"), lower.attrs.flag("reverse")
    rank = len(x.dims)
    axis = axis_of(lower, "axis", rank)
    dims = list(x.dims)
    size = dims[axis]
    # Dimension `axis` numbers the sums, the one after it their elements.
    elements = x.reshape([*dims[:axis], 1, *dims[axis:]])
    row = index_vector(lower, size, rank + 1, axis)
    column = index_vector(lower, size, rank + 1, axis + 1)
    if reverse:
        row, column = column, row
    belongs = column.lt(row) if exclusive else column.le(row)
    # Of nothing but minus infinity, a finite maximum leaves minus infinity.
    lowest = float(np.finfo(numpy_dtype(x.element)).min)
    parts = belongs.where(elements, Quantity.number(lower, -math.inf, x.element))
    top = parts.reduce("max", [axis + 1], keep_dims=True).maximum(lowest)
    total = (parts - top).exp().reduce("sum", [axis + 1], keep_dims=True)
    return narrowed(lower, (total.log() + top).reshape(dims))


# Ranks


@legalizes("InTopK", "InTopKV2")
def legalize_in_top_k(lower: Tf1Legalizer) -> Results:
    """
    True if fewer than k predictions of a row exceed that of the target.

    False for a target that is no class, or if a prediction is not finite.
    """
    x = Quantity(lower, number(lower, "predictions"))
    target = Quantity(lower, lower.operand("targets")).cast(i64)
    rows, classes = x.dims
    limit = Quantity.dim(lower, classes)
    is_class = target.ge(0) & target.lt(limit)
    index = is_class.where(target, 0).reshape([rows, 1])
    own = Quantity(lower, lower.add(GatherElementsOp(x.value, index.value, 1)))
    above = x.gt(own).cast(i64).reduce("sum", [1])
    finite = x.abs().lt(math.inf).reduce("min", [1])
    if lower.op_type == "InTopK":
        k = Quantity.number(lower, lower.attrs.int("k"), i64)
    else:
        k = Quantity.of(lower, lower.operand("k")).cast(i64)
    return [(above.lt(k) & is_class & finite).value]
