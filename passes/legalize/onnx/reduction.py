"""Reductions over dimensions, positions of extrema, and running sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.elementwise import (
    AbsOp,
    AddOp,
    LogOp,
    MulOp,
    SqrtOp,
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
from lowerdeck.passes.legalize.common.reduction import (
    DynamicAxes,
    ReducedAxes,
    Reduction,
    combined,
    log_sum_exp,
)
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes


def _l1(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.reduce("sum", axes.builder.add(AbsOp(x)), keep)


def _sum_square(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.reduce("sum", axes.builder.add(MulOp(x, x)), keep)


def _l2(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.builder.add(SqrtOp(_sum_square(axes, x, keep)))


def _log_sum(axes: ReducedAxes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.builder.add(LogOp(axes.reduce("sum", x, keep)))


_REDUCTIONS: Mapping[str, Reduction] = {
    "ReduceL1": _l1,
    "ReduceL2": _l2,
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": combined("max"),
    "ReduceMean": lambda axes, x, keep: axes.mean(x, keep),
    "ReduceMin": combined("min"),
    "ReduceProd": combined("prod"),
    "ReduceSum": combined("sum"),
    "ReduceSumSquare": _sum_square,
}
_FLOAT_ONLY = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")


@legalizes(*_REDUCTIONS)
def legalize_reduction(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Elements along `axes` (an attribute, later an operand) combined; without axes, along all."""
    x = builder.operand("data")
    keep = builder.attrs.flag("keepdims")
    axes = _axes(op, builder, rank_of(x))
    element = element_type(x)
    if op.op_type in _FLOAT_ONLY and not is_float(element):
        x = builder.cast(x, f64)
    return [builder.cast(_REDUCTIONS[op.op_type](axes, x, keep), element)]


def _axes(op: OnnxOp, builder: OnnxLegalizer, rank: int) -> ReducedAxes:
    if "axes" in op.schema.attributes:
        return _known_axes(builder, rank, builder.attrs.opt_ints("axes"))
    operand, keeps_all = builder.input("axes"), builder.attrs.flag("noop_with_empty_axes")
    axes = None if operand is None else builder.ints(operand)
    if operand is not None and axes is None:
        builder.require_rank(operand, 1, "axes")
        count = dims_of(operand)[0].value
        if count is None or count > rank:
            builder.refuse(
                f"axes of type {operand.type}", "as many axes as are known when compiling"
            )
        if count:
            return DynamicAxes(builder, rank, operand, count)
    return (
        ReducedAxes(builder, rank, [])
        if keeps_all and not axes
        else _known_axes(builder, rank, axes)
    )


def _known_axes(builder: OnnxLegalizer, rank: int, axes: Sequence[int] | None) -> ReducedAxes:
    return ReducedAxes(builder, rank, sorted(builder.axes(axes, rank)) if axes else range(rank))


@legalizes("ArgMax", "ArgMin")
def legalize_arg_reduction(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """The index of the first (or last) extremum along an axis."""
    x = builder.operand("data")
    axis = builder.axis(builder.attrs.int("axis"), rank_of(x))
    keep = builder.attrs.flag("keepdims")
    last = op.since_version >= 12 and builder.attrs.flag("select_last_index")
    kind = "max" if op.op_type == "ArgMax" else "min"
    return [builder.add(ArgReduceOp(kind, x, axis, keep, last))]


@legalizes("CumSum", "CumProd")
def legalize_cumulative(op: OnnxOp, builder: OnnxLegalizer) -> Results:
    """Running sums or products; with an axis that depends on data, one for each axis to choose."""
    x, axis = builder.operand("x"), builder.operand("axis")
    kind = "sum" if op.op_type == "CumSum" else "prod"
    exclusive, reverse = builder.attrs.flag("exclusive"), builder.attrs.flag("reverse")

    def along(axis: int) -> SSAValue:
        return builder.add(CumulativeOp(kind, x, axis, exclusive, reverse))

    rank = rank_of(x)
    if (numbers := builder.ints(axis)) is not None:
        if len(numbers) != 1:
            builder.refuse(f"'axis' of {len(numbers)} numbers", "one number")
        return [along(builder.axis(numbers[0], rank))]
    axis = builder.reshape(axis, [])
    negative = builder.compare("lt", axis, builder.scalar(0, axis))
    axis = builder.select(negative, builder.add(AddOp(axis, builder.scalar(rank, axis))), axis)
    result = along(0)
    for k in range(1, rank):
        chosen = builder.compare("eq", axis, builder.scalar(k, axis))
        result = builder.select(chosen, along(k), result)
    return [result]
