"""The different elements of a tensor."""

from __future__ import annotations

from copy import copy

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherOp, ScatterElementsOp, TopKOp
from lowerdeck.dialects.core.types import dims_of, i64, is_float, tensor
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.common.selection import nonzero
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, concat


def unique(
    builder: Legalizer, x: TensorValue, axis: int, ordered: bool, *, merges_nan: bool = True
) -> list[SSAValue]:
    """
    The different parts along `axis`, and of each the first place and the number, and for each part
    of the input its place among them: values, first places, places, numbers.

    Parts are sorted by their elements in C order if `ordered`, else by their first place. NaN is
    one element if `merges_nan`, else each is another.
    """
    count = x.dims[axis]
    front = x.transpose([axis, *(k for k in range(len(x.dims)) if k != axis)])
    rows = front.reshape([count, product(front.dims[1:])])
    order = _sorted_rows(builder, rows)
    starts = _starts(builder, _rows_at(builder, rows, order), merges_nan)
    group = _running(builder, starts) - 1
    firsts = _nonzero_places(builder, starts.value)
    total = firsts.dims[0]
    indices = _rows_at(builder, order, firsts)
    bounds = concat([firsts, TensorValue.dim(builder, count).reshape([1])], 0)
    counts = TensorValue(builder, builder.slice(bounds.value, [1], [total])) - firsts
    if not ordered:
        rank = _order(builder, indices)
        indices, counts = (_rows_at(builder, part, rank) for part in (indices, counts))
        place = _scattered(builder, total, rank, TensorValue.iota(builder, total))
        group = _rows_at(builder, place, group)
    inverse = _scattered(builder, count, order, group)
    values = builder.add(GatherOp(x.value, indices.value, axis))
    return [values, indices.value, inverse.value, counts.value]


def _order(builder: Legalizer, keys: TensorValue) -> TensorValue:
    """The places of a vector's elements in ascending order; of equal ones in their order."""
    top = TopKOp(keys.value, keys.dims[0], 0, largest=False)
    return TensorValue(builder, builder.insert(top)[1])


def _rows_at(builder: CoreBuilder, rows: TensorValue, places: TensorValue) -> TensorValue:
    return TensorValue(builder, builder.add(GatherOp(rows.value, places.value, 0)))


def _sorted_rows(builder: Legalizer, rows: TensorValue) -> TensorValue:
    """The order of the rows: stable sorts by each column, from the last to the first."""
    count, columns = rows.dims
    if columns == 1:
        return _order(builder, rows.reshape([count]))
    table, start = rows.value, TensorValue.iota(builder, count).value
    block = Block(arg_types=[tensor(i64, []), start.type])
    inner = copy(builder)
    inner.point = InsertPoint.at_end(block)
    iteration = builder.symbols.fresh(nonnegative=True)
    column = TensorValue(inner, table).pick(1, columns - 1 - Expr.symbol(iteration))
    order = TensorValue(inner, block.args[1])
    inner.insert(
        YieldOp([_rows_at(inner, order, _order(inner, _rows_at(inner, column, order))).value])
    )
    trips = builder.dims([columns], [])
    loop = LoopOp(trips, None, [start], Region(block), iteration=iteration)
    return TensorValue(builder, builder.insert(loop)[0])


def _starts(builder: Legalizer, rows: TensorValue, merges_nan: bool) -> TensorValue:
    """i1: whether a sorted row differs from the one before."""
    places = TensorValue.iota(builder, rows.dims[0])
    before = _rows_at(builder, rows, (places - 1).maximum(0))
    differ = before.ne(rows)
    if merges_nan and is_float(rows.element):
        differ = differ & (before.eq(before) | rows.eq(rows))
    return differ.reduce("max", [1]) | places.eq(0)


def _running(builder: Legalizer, flags: TensorValue) -> TensorValue:
    return TensorValue(builder, builder.add(CumulativeOp("sum", flags.cast(i64).value, 0)))


def _nonzero_places(builder: Legalizer, flags: SSAValue) -> TensorValue:
    found = nonzero(builder, flags)
    return TensorValue(builder, builder.squeeze(found, [0]))


def _scattered(
    builder: Legalizer, size: Expr, places: TensorValue, values: TensorValue
) -> TensorValue:
    """A vector with each value at its place."""
    empty = builder.broadcast(builder.scalar(0, i64), [size])
    return TensorValue(
        builder, builder.add(ScatterElementsOp(empty, places.value, values.value, 0))
    )


def runs(builder: Legalizer, x: SSAValue) -> list[SSAValue]:
    """The rows of equal elements of a vector: what they are of, where each element is, how long."""
    rows, number = TensorValue(builder, x), TensorValue.iota(builder, dims_of(x)[0])
    before = _rows_at(builder, rows, (number - 1).maximum(0))
    starts = before.ne(rows) | number.eq(0)
    places = _nonzero_places(builder, starts.value)
    end = TensorValue.dim(builder, dims_of(x)[0]).reshape([1])
    bounds = concat([places, end], 0).value
    counts = TensorValue(builder, builder.slice(bounds, [1], places.dims)) - places
    group = _running(builder, starts) - 1
    return [_rows_at(builder, rows, places).value, group.value, counts.value]
