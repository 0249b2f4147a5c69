"""Reductions over dimensions, positions of extrema, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    DivOp,
    ExpOp,
    LogOp,
    MulOp,
    SqrtOp,
    SubOp,
)
from lowerdeck.dialects.core.reduce import ArgReduceOp, CumulativeOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.onnx.builder import CoreBuilder
from lowerdeck.passes.legalize.onnx.legalizer import Legalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes

Reduction: TypeAlias = Callable[[Legalizer, SSAValue, Sequence[int], bool], SSAValue]


def mean(
    lower: CoreBuilder, value: SSAValue, axes: Sequence[int], keep_dims: bool = False
) -> SSAValue:
    """The mean along `axes`; of half precision it is computed in f32, where counts are exact."""
    element = element_type(value)
    wide = f32 if element in (f16, bf16) else element
    dims = dims_of(value)
    total = lower.reduce("sum", lower.cast(value, wide), axes, keep_dims)
    count = lower.cast(lower.dims([product(dims[axis] for axis in axes)], []), wide)
    return lower.cast(lower.add(DivOp(total, count)), element)


def _plain(kind: str, lower: Legalizer, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return lower.reduce(kind, x, axes, keep)


def _l1(lower: Legalizer, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return lower.reduce("sum", lower.add(AbsOp(x)), axes, keep)


def _sum_square(lower: Legalizer, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return lower.reduce("sum", lower.add(MulOp(x, x)), axes, keep)


def _l2(lower: Legalizer, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return lower.add(SqrtOp(_sum_square(lower, x, axes, keep)))


def _log_sum(lower: Legalizer, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    return lower.add(LogOp(lower.reduce("sum", x, axes, keep)))


def _log_sum_exp(lower: Legalizer, x: SSAValue, axes: Sequence[int], keep: bool) -> SSAValue:
    """m + log(sum(exp(x - m))), where m is the maximum, or 0 if that is infinite."""
    top = lower.reduce("max", x, axes, keep_dims=True)
    is_finite = lower.compare("lt", lower.add(AbsOp(top)), lower.scalar(np.inf, x))
    top = lower.select(is_finite, top, lower.scalar(0, x))
    total = lower.reduce("sum", lower.add(ExpOp(lower.add(SubOp(x, top)))), axes, keep)
    top = top if keep else lower.squeeze(top, axes)
    return lower.add(AddOp(lower.add(LogOp(total)), top))


_REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": partial(_plain, "max"),
    "ReduceMean": mean,
    "ReduceMin": partial(_plain, "min"),
    "ReduceProd": partial(_plain, "prod"),
    "ReduceSum": partial(_plain, "sum"),
    "ReduceSumSquare": _sum_square,
}
_FLOAT_ONLY = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")


@legalizes(*_REDUCTIONS)
def legalize_reduction(op: OnnxOp, lower: Legalizer) -> Results:
    """Elements along `axes` (an attribute, later an operand) combined; without axes, along all."""
    x = lower.operand("data")
    keep = lower.attrs.flag("keepdims")
    axes = _axes(op, lower, rank_of(x))
    element = element_type(x)
    if op.op_type in _FLOAT_ONLY and not is_float(element):
        x = lower.cast(x, f64)
    return [lower.cast(_REDUCTIONS[op.op_type](lower, x, axes, keep), element)]


def _axes(op: OnnxOp, lower: Legalizer, rank: int) -> list[int]:
    if "axes" in op.schema.attributes:
        axes = lower.attrs.opt_ints("axes")
    else:
        operand = lower.input("axes")
        axes = None if operand is None else lower.require_ints(operand, "axes")
        if lower.attrs.flag("noop_with_empty_axes") and not axes:
            return []
    return sorted(lower.axes(axes, rank)) if axes else list(range(rank))


@legalizes("ArgMax", "ArgMin")
def legalize_arg_reduction(op: OnnxOp, lower: Legalizer) -> Results:
    """The index of the first (or last) extremum along an axis."""
    x = lower.operand("data")
    axis = lower.axis(lower.attrs.int("axis"), rank_of(x))
    keep = lower.attrs.flag("keepdims")
    last = op.since_version >= 12 and lower.attrs.flag("select_last_index")
    kind = "max" if op.op_type == "ArgMax" else "min"
    return [lower.add(ArgReduceOp(kind, x, axis, keep, last))]


@legalizes("CumSum", "CumProd")
def legalize_cumulative(op: OnnxOp, lower: Legalizer) -> Results:
    """Running sums or products; with an axis that depends on data, one for each axis to choose."""
    x, axis = lower.operand("x"), lower.operand("axis")
    kind = "sum" if op.op_type == "CumSum" else "prod"
    exclusive, reverse = lower.attrs.flag("exclusive"), lower.attrs.flag("reverse")

    def along(axis: int) -> SSAValue:
        return lower.add(CumulativeOp(kind, x, axis, exclusive, reverse))

    rank = rank_of(x)
    if (number := lower.ints(axis)) is not None:
        return [along(lower.axis(number[0], rank))]
    axis = lower.reshape(axis, [])
    negative = lower.compare("lt", axis, lower.scalar(0, axis))
    axis = lower.select(negative, lower.add(AddOp(axis, lower.scalar(rank, axis))), axis)
    result = along(0)
    for k in range(1, rank):
        chosen = lower.compare("eq", axis, lower.scalar(k, axis))
        result = lower.select(chosen, along(k), result)
    return [result]
