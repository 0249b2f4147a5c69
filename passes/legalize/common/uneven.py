"""
Arrays whose elements have different lengths: the elements padded with zeros to the longest
one and stacked, [n, longest, rest...], and their lengths, i64 [n].
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.constant import IotaOp
from lowerdeck.dialects.core.reduce import CumulativeOp
from lowerdeck.dialects.core.tensor import (
    ConcatOp,
    CountNonzeroOp,
    GatherOp,
    NonzeroOp,
    PadOp,
    ScatterNdOp,
)
from lowerdeck.dialects.core.types import dims_of, i64, rank_of
from lowerdeck.dialects.dims import Expr, maximum, minimum
from lowerdeck.passes.legalize.builder import CoreBuilder
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue


def uniform_lengths(builder: CoreBuilder, elements: SSAValue) -> SSAValue:
    """The lengths of elements that all have the one that their tensor says."""
    count, length = dims_of(elements)[:2]
    return builder.broadcast(builder.dims([length], []), [count])


def split_rows(builder: Legalizer, value: SSAValue, lengths: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Consecutive rows of `value` as elements of the given lengths (integers [n])."""
    lengths = builder.cast(lengths, i64)
    count = dims_of(lengths)[0]
    longest = maximum(_number(builder, builder.reduce("max", lengths, [0])), 0)
    starts = builder.add(CumulativeOp("sum", lengths, 0, exclusive=True))
    valid = _valid(builder, lengths, count, longest)
    positions = _column(builder, starts, count) + TensorValue.of(builder, _row(builder, longest))
    rows = builder.add(GatherOp(value, valid.where(positions, 0).value, 0))
    rest = [1] * (rank_of(rows) - 2)
    mask = valid.reshape([count, longest, *rest]).value
    return builder.select(mask, rows, builder.scalar(0, rows)), lengths


def joined_rows(builder: Legalizer, elements: SSAValue, lengths: SSAValue) -> SSAValue:
    """The rows of all elements, one after the other."""
    count, longest, *rest = dims_of(elements)
    valid = _valid(builder, builder.reshape(lengths, [count]), count, longest).value
    total = _number(builder, builder.add(CountNonzeroOp(valid)))
    places = TensorValue.of(builder, builder.add(NonzeroOp(valid, total)))
    position = places.pick(0, 0) * TensorValue.dim(builder, longest) + places.pick(0, 1)
    flat = builder.reshape(elements, [count * longest, *rest])
    return builder.add(GatherOp(flat, position.value, 0))


def element_at(
    builder: Legalizer, elements: SSAValue, lengths: SSAValue, index: SSAValue
) -> SSAValue:
    """The element at an i64 scalar, of its own length."""
    length = _number(builder, builder.add(GatherOp(lengths, index, 0)))
    return builder.slice_axis(builder.add(GatherOp(elements, index, 0)), 0, 0, length)


def with_element(
    builder: Legalizer, elements: SSAValue, lengths: SSAValue, index: SSAValue, value: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The array with `value` as the element at an i64 scalar."""
    length, *rest = dims_of(value)
    longest = maximum(dims_of(elements)[1], length)
    elements = _padded(builder, elements, 1, longest)
    row = builder.reshape(_padded(builder, value, 0, longest), [1, longest, *rest])
    position = builder.reshape(index, [1, 1])
    return (
        builder.add(ScatterNdOp(elements, position, row)),
        builder.add(ScatterNdOp(lengths, position, builder.dims([length]))),
    )


def rows_at(
    builder: Legalizer, elements: SSAValue, lengths: SSAValue, indices: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The elements at i64 indices."""
    return builder.add(GatherOp(elements, indices, 0)), builder.add(GatherOp(lengths, indices, 0))


def stacked(builder: Legalizer, elements: SSAValue, lengths: SSAValue) -> SSAValue:
    """The elements as one tensor; that their lengths are equal is checked at run time."""
    shortest, longest = (_number(builder, builder.reduce(k, lengths, [0])) for k in ("min", "max"))
    longest = maximum(longest, 0)  # of no elements at all
    count, _, *rest = dims_of(elements)
    rows = builder.slice_axis(elements, 1, 0, longest)
    return builder.reshape(rows, [count, minimum(shortest, longest), *rest])


def appended(
    builder: Legalizer, elements: SSAValue, lengths: SSAValue, value: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The array with `value` as one element more."""
    length, *rest = dims_of(value)
    longest = maximum(dims_of(elements)[1], length)
    elements = _padded(builder, elements, 1, longest)
    row = builder.reshape(_padded(builder, value, 0, longest), [1, longest, *rest])
    return (
        builder.add(ConcatOp([elements, row], 0)),
        builder.add(ConcatOp([lengths, builder.dims([length])], 0)),
    )


def resized(builder: Legalizer, value: SSAValue, size: Expr) -> SSAValue:
    """A tensor with rows of zeros behind its own, or only its first ones, up to `size`."""
    count, *rest = dims_of(value)
    longer = maximum(count, size)
    value = builder.reshape(_padded(builder, value, 0, longer), [longer, *rest])
    return builder.slice_axis(value, 0, 0, size)


def _number(builder: Legalizer, scalar: SSAValue) -> Expr:
    """An integer that is known at run time, as an expression."""
    found = builder.exprs(scalar)
    assert found is not None
    return found[0]


def _row(builder: Legalizer, size: Expr) -> SSAValue:
    return builder.add(IotaOp([size]))


def _column(builder: Legalizer, value: SSAValue, count: Expr) -> TensorValue:
    return TensorValue.of(builder, builder.reshape(value, [count, 1]))


def _valid(builder: Legalizer, lengths: SSAValue, count: Expr, longest: Expr) -> TensorValue:
    """Which of the padded rows are an element's own, i1 [n, longest]."""
    return TensorValue.of(builder, _row(builder, longest)).lt(_column(builder, lengths, count))


def _padded(builder: Legalizer, value: SSAValue, axis: int, size: Expr) -> SSAValue:
    """`value` with zeros up to `size` along a dimension."""
    dims: Sequence[Expr] = dims_of(value)
    more = size - dims[axis]
    if more == 0:
        return value
    end = [more if k == axis else Expr.const(0) for k in range(len(dims))]
    return builder.add(PadOp(value, [0] * len(dims), end, builder.scalar(0, value)))
