"""Reductions over dimensions, positions of extrema, and running sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from lowerdeck.dialects.core.tensor import ConcatOp, GatherOp, NonzeroOp
from lowerdeck.dialects.core.types import (
    bf16,
    dims_of,
    element_type,
    f16,
    f32,
    f64,
    i64,
    is_float,
    rank_of,
)
from lowerdeck.dialects.dims import product
from lowerdeck.dialects.onnx.ops import OnnxOp
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer
from lowerdeck.passes.legalize.onnx.registry import Results, legalizes
from lowerdeck.passes.legalize.quantity import Quantity, index_vector


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


class _Axes:
    """Reduction along axes that are known."""

    def __init__(self, lower: OnnxLegalizer, rank: int, axes: Sequence[int]) -> None:
        self.lower, self.rank, self.axes = lower, rank, axes

    def reduce(self, kind: str, x: SSAValue, keep: bool) -> SSAValue:
        """The elements along the axes combined."""
        return self.lower.reduce(kind, x, self.axes, keep)

    def drop(self, x: SSAValue) -> SSAValue:
        """`x` without the axes, along which it has been reduced to one."""
        return self.lower.squeeze(x, self.axes)

    def mean(self, x: SSAValue, keep: bool) -> SSAValue:
        """The mean along the axes."""
        return mean(self.lower, x, self.axes, keep)


class _DynamicAxes(_Axes):
    """
    Reduction along `count` distinct axes that only the data tells.

    Along each dimension the reduced tensor is put before the tensor itself, and a slice takes
    either of them: its start and size follow from a symbol that is 1 for an axis, else 0.
    """

    def __init__(self, lower: OnnxLegalizer, rank: int, axes: SSAValue, count: int) -> None:
        super().__init__(lower, rank, [])
        self.count = count
        column = Quantity(lower, lower.reshape(lower.cast(axes, i64), [count, 1]))
        index = index_vector(lower, rank, 2, 1)
        self.mask = (index.eq(column) | index.eq(column + rank)).reduce("max", [0])
        self.flags = lower.require_exprs(self.mask.cast(i64).value, "axes")

    def reduce(self, kind: str, x: SSAValue, keep: bool) -> SSAValue:
        lower = self.lower
        for axis, flag in enumerate(self.flags):
            reduced = lower.reduce(kind, x, [axis], keep_dims=True)
            size = 1 + (dims_of(x)[axis] - 1) * (1 - flag)
            x = lower.slice_axis(lower.add(ConcatOp([reduced, x], axis)), axis, 1 - flag, size)
        return x if keep else self.drop(x)

    def drop(self, x: SSAValue) -> SSAValue:
        lower = self.lower
        kept = lower.add(NonzeroOp((~self.mask).value, self.rank - self.count))
        indices = lower.reshape(kept, [self.rank - self.count])
        sizes = lower.add(GatherOp(lower.dims(dims_of(x)), indices, 0))
        return lower.reshape(x, lower.require_exprs(sizes, "sizes"))

    def mean(self, x: SSAValue, keep: bool) -> SSAValue:
        element = element_type(x)
        wide = self.lower.cast(x, f32 if element in (f16, bf16) else element)
        total = self.reduce("sum", wide, keep)
        count = product(
            1 + (dim - 1) * flag for dim, flag in zip(dims_of(x), self.flags, strict=True)
        )
        number = self.lower.cast(self.lower.dims([count], []), wide)
        return self.lower.cast(self.lower.add(DivOp(total, number)), element)


Reduction: TypeAlias = Callable[[_Axes, SSAValue, bool], SSAValue]


def _l1(axes: _Axes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.reduce("sum", axes.lower.add(AbsOp(x)), keep)


def _sum_square(axes: _Axes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.reduce("sum", axes.lower.add(MulOp(x, x)), keep)


def _l2(axes: _Axes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.lower.add(SqrtOp(_sum_square(axes, x, keep)))


def _log_sum(axes: _Axes, x: SSAValue, keep: bool) -> SSAValue:
    return axes.lower.add(LogOp(axes.reduce("sum", x, keep)))


def _log_sum_exp(axes: _Axes, x: SSAValue, keep: bool) -> SSAValue:
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


def _axes(op: OnnxOp, lower: OnnxLegalizer, rank: int) -> _Axes:
    if "axes" in op.schema.attributes:
        return _known_axes(lower, rank, lower.attrs.opt_ints("axes"))
    operand, keeps_all = lower.input("axes"), lower.attrs.flag("noop_with_empty_axes")
    axes = None if operand is None else lower.ints(operand)
    if operand is not None and axes is None:
        count = dims_of(operand)[0].value
        if count is None or count > rank:
            lower.refuse(f"axes of type {operand.type}", "as many axes as are known when compiling")
        if count:
            return _DynamicAxes(lower, rank, operand, count)
    return _Axes(lower, rank, []) if keeps_all and not axes else _known_axes(lower, rank, axes)


def _known_axes(lower: OnnxLegalizer, rank: int, axes: Sequence[int] | None) -> _Axes:
    return _Axes(lower, rank, sorted(lower.axes(axes, rank)) if axes else range(rank))


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
