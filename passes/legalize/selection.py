"""Choosing elements: those that are not zero, one of many, the first ones in reverse."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import CountNonzeroOp, GatherNdOp, NonzeroOp
from lowerdeck.dialects.core.types import dims_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.quantity import Quantity, stack
from lowerdeck.passes.legalize.sizes import size_of


def nonzero(lower: Legalizer, x: SSAValue) -> SSAValue:
    """The i64 indices [rank, count] of the elements that are not zero."""
    count = size_of(lower, lower.add(CountNonzeroOp(x)), "the number of non-zero elements")
    return lower.add(NonzeroOp(x, count))


def one_hot(indices: Quantity, depth: Expr, axis: int) -> Quantity:
    """i1: a new dimension of `depth` at `axis`, where only the place of the index holds."""
    lower, rank = indices.lower, len(indices.dims)
    dims = list(indices.dims)
    dims.insert(axis, Expr.const(1))
    places = Quantity.iota(lower, depth).cast(indices.element).column(rank + 1, axis)
    return indices.reshape(dims).eq(places)


def reverse_sequence(
    lower: Legalizer, x: SSAValue, lengths: Quantity, batch: int, time: int
) -> SSAValue:
    """
    `x` with the first `lengths[b]` (i64) elements along `time` in reverse in each part of `batch`.

    The two axes are the first two.
    """
    length = lengths.column(2, batch)
    place = Quantity.iota(lower, dims_of(x)[time]).column(2, time)
    source = place.lt(length).where(length - 1 - place, place)
    row = Quantity.iota(lower, dims_of(x)[batch]).column(2, batch)
    grid = [part.broadcast(dims_of(x)[:2]) for part in (row, source)]
    indices = stack(grid if batch == 0 else grid[::-1], 2)
    return lower.add(GatherNdOp(x, indices.value))
