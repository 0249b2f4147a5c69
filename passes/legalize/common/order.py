"""What the order of elements tells: one place of it, the most frequent element, the middle."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import Attribute, SSAValue

from lowerdeck.dialects.core.reduce import ArgReduceOp
from lowerdeck.dialects.core.tensor import (
    GatherElementsOp,
    GatherOp,
    ScatterElementsOp,
    ScatterNdOp,
    TopKOp,
)
from lowerdeck.dialects.core.types import dims_of, element_type, i32, i64, is_float, rank_of
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.promotion import wide_element
from lowerdeck.passes.legalize.common.recurrent import State, run_steps
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


def counted(builder: CoreBuilder, places: SSAValue, values: SSAValue, size: Expr | int) -> SSAValue:
    """The sums of values at places of a vector of zeros."""
    zeros = builder.broadcast(builder.scalar(0, values), [size])
    return builder.add(ScatterElementsOp(zeros, places, values, 0, "add"))


def rows_by_segment(
    builder: Legalizer, rows: SSAValue, target: TensorValue, count: Expr, kind: str
) -> SSAValue:
    """
    Rows that go to one of `count` places (SUM, MEAN, MAX or MIN of them); nothing is zero. Half
    precision is added up in f32 and rounded once.
    """
    element = element_type(rows)
    rows = builder.cast(rows, wide_element(rows))
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
        return builder.cast(total.value, element)
    ones = builder.broadcast(builder.scalar(1, i64), target.dims)
    number = TensorValue(builder, counted(builder, target.value, ones, count)).cast(total.element)
    number = number.column(len(dims), 0)
    found = total / number.maximum(1) if kind == "MEAN" else number.gt(0).where(total, 0)
    return builder.cast(found.value, element)


def number_below(borders: TensorValue, x: TensorValue, right: bool) -> TensorValue:
    """
    For each element of x [..., n] the number, i64, of sorted borders, a vector or [..., m], that
    are below it or, at the `right`, not above.
    """
    row, wide = borders, x.reshape([*x.dims, 1])
    if len(borders.dims) > 1:
        row = borders.reshape([*borders.dims[:-1], 1, borders.dims[-1]])
    below = ~wide.lt(row) if right else ~wide.le(row)
    return below.cast(i64).reduce("sum", [len(x.dims)])


def first_extremum(builder: Legalizer, x: SSAValue, kind: str, axis: int, keep: bool) -> SSAValue:
    """Where the first extremum is, or the first NaN: it comes before all other numbers."""
    found = builder.add(ArgReduceOp(kind, x, axis, keep))
    if not is_float(element_type(x)):
        return found
    has_nan, first = first_nan(builder, x, axis, keep)
    return builder.select(has_nan, first, found)


def first_nan(builder: Legalizer, x: SSAValue, axis: int, keep: bool) -> tuple[SSAValue, SSAValue]:
    """Whether there is a NaN along an axis, and where the first one is."""
    value = TensorValue(builder, x)
    is_nan = value.ne(value)
    has_nan = is_nan.reduce("max", [axis], keep)
    place = builder.add(ArgReduceOp("max", is_nan.cast(i32).value, axis, keep))
    return has_nan.value, place


def _at(values: TensorValue, index: TensorValue) -> TensorValue:
    """The elements at places along the last dimension, one in each row."""
    builder, last = values.builder, len(values.dims) - 1
    wide = index.broadcast([*values.dims[:last], 1])
    return TensorValue(builder, builder.add(GatherElementsOp(values.value, wide.value, last)))


def middle_number(rows: TensorValue) -> list[TensorValue]:
    """
    The lower one of those in the middle of the order along the last dimension, which stays as one,
    that are numbers, and where it is.
    """
    last = len(rows.dims) - 1
    found = ordered(rows.builder, rows.value, last, False)
    values, places = (TensorValue(rows.builder, part) for part in found)
    count = values.eq(values).cast(i64).reduce("sum", [last], keep_dims=True)
    middle = (count - 1).maximum(0) // 2
    return [_at(part, middle) for part in (values, places)]


def quantiles(
    rows: TensorValue, parts: Sequence[float], mode: str, *, skips: bool
) -> list[TensorValue]:
    """
    What lies at parts of the order along the last dimension, which stays as one: between two
    neighbors (linear), the nearest, the lower or higher one, or the midpoint. What has a NaN has
    no other quantile, unless it `skips` them.
    """
    builder, last = rows.builder, len(rows.dims) - 1
    values = TensorValue(builder, ordered(builder, rows.value, last, False)[0])
    count = TensorValue.dim(builder, values.dims[last]).reshape([1] * (last + 1))
    if skips:
        count = values.eq(values).cast(i64).reduce("sum", [last], keep_dims=True)
    has_nan = values.ne(values).reduce("max", [last], keep_dims=True)
    results: list[TensorValue] = []
    for part in parts:
        place = ((count - 1).cast(values.element) * part).maximum(0)
        place = {"lower": place.floor, "higher": place.ceil, "nearest": place.round}.get(
            mode, lambda place=place: place
        )()
        low = place.floor()
        a, b = (_at(values, index.cast(i64)) for index in (low, place.ceil()))
        weight = place - low
        if mode == "midpoint":
            weight = weight.gt(0).cast(values.element) * 0.5
        found = a
        if mode in ("linear", "midpoint"):
            found = weight.lt(0.5).where(a + weight * (b - a), b - (b - a) * (1 - weight))
        results.append(found if skips else has_nan.where(found * math.nan, found))
    return results


def running_extremum(builder: Legalizer, x: TensorValue, axis: int, *, is_max: bool) -> Found:
    """The extremum so far along an axis, and where the last one is; NaN is more than all."""
    rank = len(x.dims)
    order = [axis, *(k for k in range(rank) if k != axis)]
    rows = x.transpose(order).value
    length, rest = dims_of(rows)[0], dims_of(rows)[1:]

    def step(inner: CoreBuilder, number: Expr, state: State) -> tuple[State, State]:
        index = inner.dims([number], [])
        row = TensorValue(inner, inner.add(GatherOp(rows, index, 0, inside=True)))
        best, where = state
        better = row.ge(best) if is_max else row.le(best)
        if is_float(row.element):
            better = (better & best.eq(best)) | row.ne(row)
        better = better | TensorValue(inner, index).eq(0)
        best = better.where(row, best)
        where = better.where(TensorValue(inner, inner.broadcast(index, rest)), where)
        return (best, where), (best, where)

    first = builder.broadcast(builder.scalar(0, rows), rest)
    nowhere = builder.broadcast(builder.scalar(0, i64), rest)
    _, results = run_steps(builder, length, [first, nowhere], step)
    back = [order.index(k) for k in range(rank)]
    return [builder.transpose(value, back) for value in results]


def histogram(x: TensorValue, low: TensorValue, high: TensorValue, bins: int) -> TensorValue:
    """How many elements of a vector lie in each of equal intervals, the last of which is closed."""
    builder = x.builder
    inside = x.ge(low) & x.le(high)
    place = inside.where((x - low) * float(bins) / (high - low), 0.0).cast(i64)
    place = place.minimum(bins - 1)
    return TensorValue(builder, counted(builder, place.value, inside.cast(x.element).value, bins))
