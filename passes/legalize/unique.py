"""The different elements of a tensor."""

from __future__ import annotations

from copy import copy

from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from lowerdeck.dialects.core.control_flow import LoopOp, YieldOp
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import GatherOp, ScatterElementsOp, TopKOp
from lowerdeck.dialects.core.types import i64, is_float, tensor
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.quantity import Quantity, concat
from lowerdeck.passes.legalize.selection import nonzero


def unique(lower: Legalizer, x: Quantity, axis: int, ordered: bool) -> list[SSAValue]:
    """
    The different parts along `axis`, and of each the first place and the number, and for each part
    of the input its place among them: values, first places, places, numbers.

    Parts are sorted by their elements in C order if `ordered`, else by their first place.
    """
    count = x.dims[axis]
    front = x.transpose([axis, *(k for k in range(len(x.dims)) if k != axis)])
    rows = front.reshape([count, product(front.dims[1:])])
    order = _sorted_rows(lower, rows)
    starts = _starts(lower, _rows_at(lower, rows, order))
    group = _running(lower, starts) - 1
    firsts = _nonzero_places(lower, starts.value)
    total = firsts.dims[0]
    indices = _rows_at(lower, order, firsts)
    bounds = concat([firsts, Quantity.dim(lower, count).reshape([1])], 0)
    counts = Quantity(lower, lower.slice(bounds.value, [1], [total])) - firsts
    if not ordered:
        rank = _order(lower, indices)
        indices, counts = (_rows_at(lower, part, rank) for part in (indices, counts))
        place = _scattered(lower, total, rank, Quantity.iota(lower, total))
        group = _rows_at(lower, place, group)
    inverse = _scattered(lower, count, order, group)
    values = lower.add(GatherOp(x.value, indices.value, axis))
    return [values, indices.value, inverse.value, counts.value]


def _order(lower: Legalizer, keys: Quantity) -> Quantity:
    """The places of a vector's elements in ascending order; of equal ones in their order."""
    top = TopKOp(keys.value, keys.dims[0], 0, largest=False)
    return Quantity(lower, lower.insert(top)[1])


def _rows_at(lower: CoreBuilder, rows: Quantity, places: Quantity) -> Quantity:
    return Quantity(lower, lower.add(GatherOp(rows.value, places.value, 0)))


def _sorted_rows(lower: Legalizer, rows: Quantity) -> Quantity:
    """The order of the rows: stable sorts by each column, from the last to the first."""
    count, columns = rows.dims
    if columns == 1:
        return _order(lower, rows.reshape([count]))
    table, start = rows.value, Quantity.iota(lower, count).value
    block = Block(arg_types=[tensor(i64, []), start.type])
    inner = copy(lower)
    inner.point = InsertPoint.at_end(block)
    iteration = lower.symbols.fresh(nonnegative=True)
    column = Quantity(inner, table).pick(1, columns - 1 - Expr.symbol(iteration))
    order = Quantity(inner, block.args[1])
    inner.insert(
        YieldOp([_rows_at(inner, order, _order(inner, _rows_at(inner, column, order))).value])
    )
    trips = lower.dims([columns], [])
    loop = LoopOp(trips, None, [start], Region(block), iteration=iteration)
    return Quantity(lower, lower.insert(loop)[0])


def _starts(lower: Legalizer, rows: Quantity) -> Quantity:
    """i1: whether a sorted row differs from the one before; NaN is one element."""
    places = Quantity.iota(lower, rows.dims[0])
    before = _rows_at(lower, rows, (places - 1).maximum(0))
    differ = before.ne(rows)
    if is_float(rows.element):
        differ = differ & (before.eq(before) | rows.eq(rows))
    return differ.reduce("max", [1]) | places.eq(0)


def _running(lower: Legalizer, flags: Quantity) -> Quantity:
    return Quantity(lower, lower.add(CumulativeOp("sum", flags.cast(i64).value, 0)))


def _nonzero_places(lower: Legalizer, flags: SSAValue) -> Quantity:
    found = nonzero(lower, flags)
    return Quantity(lower, lower.squeeze(found, [0]))


def _scattered(lower: Legalizer, size: Expr, places: Quantity, values: Quantity) -> Quantity:
    """A vector with each value at its place."""
    empty = lower.broadcast(lower.scalar(0, i64), [size])
    return Quantity(lower, lower.add(ScatterElementsOp(empty, places.value, values.value, 0)))
