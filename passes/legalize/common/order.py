"""What the order of elements tells: one place of it, the most frequent element, the middle."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import GatherElementsOp, ScatterElementsOp, ScatterNdOp, TopKOp
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

Found = list[SSAValue]
"""Values, and their i64 places."""


def ordered(
    builder: CoreBuilder, x: SSAValue, axis: int, largest: bool, count: Expr | None = None
) -> Found:
    """The first `count` elements in order along an axis; equal ones keep theirs, NaN is largest."""
    return list(builder.insert(TopKOp(x, count or dims_of(x)[axis], axis, largest)))


def kth(builder: Legalizer, x: SSAValue, axis: int, k: Expr, keep: bool) -> Found:
    """The k-th smallest, from 0 on; the axis is kept as one, or goes."""
    found = [builder.slice_axis(v, axis, k, 1) for v in ordered(builder, x, axis, False)]
    return found if keep else [builder.squeeze(value, [axis]) for value in found]


def most_frequent(builder: Legalizer, x: SSAValue, axis: int, keep: bool) -> Found:
    """The most frequent element, of equally frequent ones the smallest; where it is last."""
    dim = dims_of(x)[axis]
    values, places = ordered(builder, x, axis, False)
    rows = TensorValue(builder, builder.unsqueeze(values, [axis]))
    columns = TensorValue(builder, builder.unsqueeze(values, [axis + 1]))
    count = rows.eq(columns).cast(i64).reduce("sum", [axis + 1])
    number = TensorValue.iota(builder, dim).column(rank_of(x), axis)
    key = count * TensorValue.dim(builder, dim + 1) - number
    first = builder.add(ArgReduceOp("max", key.value, axis, True))
    best = builder.add(GatherElementsOp(count.value, first, axis))
    last = (TensorValue(builder, first) + TensorValue(builder, best) - 1).value
    found = [
        builder.add(GatherElementsOp(values, first, axis)),
        builder.add(GatherElementsOp(places, last, axis)),
    ]
    return found if keep else [builder.squeeze(value, [axis]) for value in found]


def middle(
    x: TensorValue, axes: Sequence[int], element: Attribute, *, lower: bool, skips: bool
) -> TensorValue:
    """
    The middle one of the order along axes, which stay as ones: the lower of two or their mean, in
    an element type. NaN is the median of what has one, unless it `skips` them.
    """
    builder, rank = x.builder, len(x.dims)
    rest = [k for k in range(rank) if k not in axes]
    last, count = len(rest), product(x.dims[axis] for axis in axes)
    rows = x.transpose([*rest, *axes]).reshape([*(x.dims[k] for k in rest), count])
    values = ordered(builder, rows.value, last, False)[0]
    whole = TensorValue(builder, values)
    if skips:
        number = whole.eq(whole).cast(i64).reduce("sum", [last], True)
        places = [((number - 1) // 2).maximum(0).value, (number // 2).value]
        parts = [builder.add(GatherElementsOp(values, place, last)) for place in places]
    else:
        parts = [builder.slice_axis(values, last, k, 1) for k in ((count - 1) // 2, count // 2)]
    low, high = (TensorValue(builder, part).cast(element) for part in parts)
    found = low if lower else (low + high) / 2
    end = TensorValue(builder, builder.slice_axis(values, last, count - 1, 1))
    if not skips:
        found = end.ne(end).where(end.cast(found.element), found)
    return found.reshape([1 if k in axes else dim for k, dim in enumerate(x.dims)])


def counted(builder: Legalizer, places: SSAValue, values: SSAValue, size: Expr | int) -> SSAValue:
    """The sums of values at places of a vector of zeros."""
    zeros = builder.broadcast(builder.scalar(0, values), [size])
    return builder.add(ScatterElementsOp(zeros, places, values, 0, "add"))


def rows_by_segment(
    builder: Legalizer, rows: SSAValue, target: TensorValue, count: Expr, kind: str
) -> SSAValue:
    """Rows that go to one of `count` places (SUM, MEAN, MAX or MIN of them); nothing is zero."""
    dims = [count, *dims_of(rows)[1:]]
    column = target.reshape([target.dims[0], 1]).value
    zeros = builder.broadcast(builder.scalar(0, rows), dims)
    if kind in ("SUM", "MEAN"):
        total = TensorValue(builder, builder.add(ScatterNdOp(zeros, column, rows, "add")))
    else:
        low = builder.scalar(-math.inf if kind == "MAX" else math.inf, rows)
        start = builder.broadcast(low, dims)
        total = TensorValue(builder, builder.add(ScatterNdOp(start, column, rows, kind.lower())))
    if kind == "SUM":
        return total.value
    ones = builder.broadcast(builder.scalar(1, rows), dims_of(rows))
    number = TensorValue(builder, builder.add(ScatterNdOp(zeros, column, ones, "add")))
    found = total / number.maximum(1) if kind == "MEAN" else number.gt(0).where(total, 0)
    return found.value
