"""Reductions over dimensions, positions of extrema, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    ExpOp,
    LogOp,
    MulOp,
    SqrtOp,
    SubOp,
)
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp
from lowerdeck.dialects.core.types import (
    dims_of,
    element_type,
    f64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.reduction import DynamicAxes, ReducedAxes

Reduction: TypeAlias = Callable[[ReducedAxes, SSAValue, bool], SSAValue]


def _l1(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.reduce("sum", axes.lower.add(AbsOp(x)), keep)


def _sum_square(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.reduce("sum", axes.lower.add(MulOp(x, x)), keep)


def _l2(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.lower.add(SqrtOp(_sum_square(axes, x, keep)))


def _log_sum(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.lower.add(LogOp(axes.reduce("sum", x, keep)))


def _log_sum_exp(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    """m + log(sum(exp(x - m))), where m is the maximum, or 0 if that is infinite."""
    lower = axes.lower
    top = axes.reduce("max", x, True)
    is_finite = lower.compare("lt", lower.add(AbsOp(top)), lower.scalar(np.inf, x))
    top = lower.select(is_finite, top, lower.scalar(0, x))
    total = axes.reduce("sum", lower.add(ExpOp(lower.add(SubOp(x, top)))), keep)
    top = top if keep else axes.drop(top)
    return lower.add(AddOp(lower.add(LogOp(total)), top))


def _plain(kind: str) -> Reduction:
    return lambda axes, x, keep: axes.reduce(kind, x, keep)


_REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": _plain("max"),
    "ReduceMean": lambda axes, x, keep: axes.mean(x, keep),
    "ReduceMin": _plain("min"),
    "ReduceProd": _plain("prod"),
    "ReduceSum": _plain("sum"),
    "ReduceSumSquare": _sum_square,
}
_FLOAT_ONLY = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")


@legalizes(*_REDUCTIONS)
def legalize_reduction(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Elements along `axes` (an attribute, later an operand) combined; without axes, along all."""
    x = lower.operand("data")
    keep = lower.attrs.flag("keepdims")
    axes = _axes(op, lower, rank_of(x))
    element = element_type(x)
    if op.op_type in _FLOAT_ONLY and not is_float(element):
        x = lower.cast(x, f64)
    return [lower.cast(_REDUCTIONS[op.op_type](axes, x, keep), element)]


def _axes(op: OnnxOp, lower: OnnxLegalizer, rank: int) -> ReducedAxes:
    if "axes" in op.schema.attributes:
        return _known_axes(lower, rank, lower.attrs.opt_ints("axes"))
    operand, keeps_all = lower.input("axes"), lower.attrs.flag("noop_with_empty_axes")
    axes = None if operand is None else lower.ints(operand)
    if operand is not None and axes is None:
        lower.require_rank(operand, 1, "axes")
        count = dims_of(operand)[0].value
        if count is None or count > rank:
            lower.refuse(f"axes of type {operand.type}", "as many axes as are known when compiling")
        if count:
            return DynamicAxes(lower, rank, operand, count)
    return (
        ReducedAxes(lower, rank, []) if keeps_all and not axes else _known_axes(lower, rank, axes)
    )


def _known_axes(lower: OnnxLegalizer, rank: int, axes: Sequence[int] | None) -> ReducedAxes:
    return ReducedAxes(lower, rank, sorted(lower.axes(axes, rank)) if axes else range(rank))


@legalizes("ArgMax", "ArgMin")
def legalize_arg_reduction(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """The index of the first (or last) extremum along an axis."""
    x = lower.operand("data")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    keep = lower.attrs.flag("keepdims")
    last = op.since_version >= 12 and lower.attrs.flag("select_last_index")
    kind = "max" if op.op_type == "ArgMax" else "min"
    return [lower.add(ArgReduceOp(kind, x, axis, keep, last))]


@legalizes("CumSum", "CumProd")
def legalize_cumulative(op: OnnxOp, lower: OnnxLegalizer) -> Results:
    """Running sums or products; with an axis that depends on data, one for each axis to choose."""
    x, axis = lower.operand("x"), lower.operand("axis")
    kind = "sum" if op.op_type == "CumSum" else "prod"
    exclusive, reverse = lower.attrs.flag("exclusive"), lower.attrs.flag("reverse")

    def along(axis: int) -> SSAValue:
        return lower.add(CumulativeOp(kind, x, axis, exclusive, reverse))

    rank = rank_of(x)
    if (numbers := lower.ints(axis)) is not None:
        if len(numbers) != 1:
            lower.refuse(f"'axis' of {len(numbers)} numbers", "one number")
        return [along(lower.axis(numbers[0], rank))]
    axis = lower.reshape(axis, [])
    negative = lower.compare("lt", axis, lower.scalar(0, axis))
    axis = lower.select(negative, lower.add(AddOp(axis, lower.scalar(rank, axis))), axis)
    result = along(0)
    for k in range(1, rank):
        chosen = lower.compare("eq", axis, lower.scalar(k, axis))
        result = lower.select(chosen, along(k), result)
    return [result]
