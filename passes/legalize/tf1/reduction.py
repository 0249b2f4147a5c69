"""Reductions over dimensions, positions of extrema, running sums, and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import MulOp, SqrtOp
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp
from lowerdeck.dialects.core.tensor import GatherElementsOp
from lowerdeck.dialects.core.types import (
    element_type,
    i64,
    is_float,
    rank_of,
)
from lowerdeck.passes.legalize.common.reduction import DynamicAxes, ReducedAxes, Reduction, combined
from lowerdeck.passes.legalize.sizes import length_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector
from lowerdeck.passes.legalize.tf1.elementwise import narrowed, number, widened
from lowerdeck.passes.legalize.tf1.layout import axis_of
from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer
from lowerdeck.passes.legalize.tf1.registry import Results, legalizes


def _mean(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    """Integers are summed in 64 bits, and the quotient is rounded toward zero."""
    element = element_type(x)
    wide = x if is_float(element) else axes.builder.cast(x, i64)
    return axes.builder.cast(axes.mean(wide, keep), element)


def _norm(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    builder = axes.builder
    return builder.add(SqrtOp(axes.reduce("sum", builder.add(MulOp(x, x)), keep)))


_REDUCTIONS: Mapping[str, Reduction] = {
    "All": combined("min"),
    "Any": combined("max"),
    "EuclideanNorm": _norm,
    "Max": combined("max"),
    "Mean": _mean,
    "Min": combined("min"),
    "Prod": combined("prod"),
    "Sum": combined("sum"),
}


@legalizes(*_REDUCTIONS)
def legalize_reduction(builder: Tf1Legalizer) -> Results:
    """The elements along the axes of the second operand combined."""
    x, keep = number(builder, 0), builder.attrs.flag("keep_dims")
    if builder.op_type == "EuclideanNorm" and not is_float(element_type(x)):
        builder.refuse(f"a norm of {element_type(x)}", "floating-point numbers")
    axes = _axes(builder, builder.operand(1), rank_of(x))
    return [_REDUCTIONS[builder.op_type](axes, x, keep)]


def _axes(builder: Tf1Legalizer, operand: SSAValue, rank: int) -> ReducedAxes:
    if (numbers := builder.ints(operand)) is not None:
        return ReducedAxes(builder, rank, sorted(builder.axes(numbers, rank)))
    count = length_of(builder, operand, "axes")
    return DynamicAxes(builder, rank, builder.reshape(operand, [count]), count)


@legalizes("L2Loss")
def legalize_half_sum_of_squares(builder: Tf1Legalizer) -> Results:
    """sum(x * x) / 2"""
    x = widened(builder, 0)
    return narrowed(builder, (x * x).reduce("sum", range(len(x.dims))) * 0.5)


@legalizes("ArgMax", "ArgMin")
def legalize_arg_reduction(builder: Tf1Legalizer) -> Results:
    """The index of the first extremum along an axis; NaN is passed over."""
    x = number(builder, "input")
    kind = "max" if builder.op_type == "ArgMax" else "min"
    if is_float(element_type(x)):
        worst = builder.scalar(-math.inf if kind == "max" else math.inf, x)
        x = builder.select(builder.compare("eq", x, x), x, worst)
    index = builder.add(ArgReduceOp(kind, x, axis_of(builder, "dimension", rank_of(x))))
    return [builder.cast(index, builder.attrs.element("output_type"))]


# Running along an axis


@legalizes("Cumsum", "Cumprod")
def legalize_cumulative(builder: Tf1Legalizer) -> Results:
    """Running sums or products, up to and including an element or before it."""
    x = number(builder, "x")
    kind = "sum" if builder.op_type == "Cumsum" else "prod"
    exclusive, reverse = builder.attrs.flag("exclusive"), builder.attrs.flag("reverse")
    axis = axis_of(builder, "axis", rank_of(x))
    return [builder.add(CumulativeOp(kind, x, axis, exclusive, reverse))]


@legalizes("CumulativeLogsumexp")
def legalize_cumulative_log_sum_exp(builder: Tf1Legalizer) -> Results:
    """Running log(sum(exp(x))): the rows of a matrix have the elements of each sum."""
    x = widened(builder, "x")
    exclusive, reverse = builder.attrs.flag("exclusive"), builder.attrs.flag("reverse")
    rank = len(x.dims)
    axis = axis_of(builder, "axis", rank)
    dims = list(x.dims)
    size = dims[axis]
    # Dimension `axis` numbers the sums, the one after it their elements.
    elements = x.reshape([*dims[:axis], 1, *dims[axis:]])
    row = index_vector(builder, size, rank + 1, axis)
    column = index_vector(builder, size, rank + 1, axis + 1)
    if reverse:
        row, column = column, row
    belongs = column.lt(row) if exclusive else column.le(row)
    parts = belongs.where(elements, TensorValue.number(builder, -math.inf, x.element))
    top = parts.reduce("max", [axis + 1], keep_dims=True)
    top = top.abs().ne(math.inf).where(top, 0)  # infinities have no differences
    total = (parts - top).exp().reduce("sum", [axis + 1], keep_dims=True)
    return narrowed(builder, (total.log() + top).reshape(dims))


# Ranks


@legalizes("InTopK", "InTopKV2")
def legalize_in_top_k(builder: Tf1Legalizer) -> Results:
    """
    True if fewer than k predictions of a row exceed that of the target.

    False for a target that is not a class, or if a prediction is not finite.
    """
    x = TensorValue(builder, number(builder, "predictions"))
    target = TensorValue(builder, builder.operand("targets")).cast(i64)
    rows, classes = x.dims
    limit = TensorValue.dim(builder, classes)
    is_class = target.ge(0) & target.lt(limit)
    index = is_class.where(target, 0).reshape([rows, 1])
    own = TensorValue(builder, builder.add(GatherElementsOp(x.value, index.value, 1)))
    above = x.gt(own).cast(i64).reduce("sum", [1])
    finite = x.abs().lt(math.inf).reduce("min", [1])
    if builder.op_type == "InTopK":
        k = TensorValue.number(builder, builder.attrs.int("k"), i64)
    else:
        k = TensorValue.of(builder, builder.operand("k")).cast(i64)
    return [(above.lt(k) & is_class & finite).value]
