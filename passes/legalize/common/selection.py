"""Choosing elements: those that are not zero, one of many, the first ones in reverse."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import CountNonzeroOp, GatherNdOp, GatherOp, NonzeroOp
from lowerdeck.dialects.core.types import dims_of, i64
from lowerdeck.dialects.dims import Expr, product
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.sizes import size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue, stack


def nonzero(builder: Legalizer, x: SSAValue) -> SSAValue:
    """The i64 indices [rank, count] of the elements that are not zero."""
    count = size_of(builder, builder.add(CountNonzeroOp(x)), "the number of non-zero elements")
    return builder.add(NonzeroOp(x, count))


def nonzero_places(builder: Legalizer, x: SSAValue) -> SSAValue:
    """The i64 places [count] of the elements of a vector that are not zero."""
    return builder.squeeze(nonzero(builder, x), [0])


def one_hot(indices: TensorValue, depth: Expr, axis: int) -> TensorValue:
    """i1: a new dimension of `depth` at `axis`, where only the place of the index holds."""
    builder, rank = indices.builder, len(indices.dims)
    dims = list(indices.dims)
    dims.insert(axis, Expr.const(1))
    places = TensorValue.iota(builder, depth).cast(indices.element).column(rank + 1, axis)
    return indices.reshape(dims).eq(places)


def reverse_sequence(
    builder: Legalizer, x: SSAValue, lengths: TensorValue, batch: int, time: int
) -> SSAValue:
    """
    `x` with the first `lengths[b]` (i64) elements along `time` in reverse in each part of `batch`.

    The two axes are the first two.
    """
    length = lengths.column(2, batch)
    place = TensorValue.iota(builder, dims_of(x)[time]).column(2, time)
    source = place.lt(length).where(length - 1 - place, place)
    row = TensorValue.iota(builder, dims_of(x)[batch]).column(2, batch)
    grid = [part.broadcast(dims_of(x)[:2]) for part in (row, source)]
    indices = stack(grid if batch == 0 else grid[::-1], 2)
    return builder.add(GatherNdOp(x, indices.value))


def written_where(
    builder: Legalizer, x: TensorValue, mask: TensorValue, source: TensorValue
) -> TensorValue:
    """The elements of a source, in order, where a mask (i1) of the shape of `x` holds."""
    source = source.reshape([product(source.dims)])
    flags = mask.reshape([product(mask.dims)]).cast(i64)
    number = TensorValue(builder, builder.add(CumulativeOp("sum", flags.value, 0))) - 1
    number = number.maximum(0).minimum(TensorValue.dim(builder, source.dims[0] - 1))
    values = TensorValue(builder, builder.add(GatherOp(source.value, number.value, 0)))
    return mask.where(values.reshape(mask.dims), x)
