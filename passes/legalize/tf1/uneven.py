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
from lowerdeck.passes.legalize.quantity import Quantity


def uniform_lengths(builder: CoreBuilder, elements: SSAValue) -> SSAValue:
    """The lengths of elements that all have the one that their tensor says."""
    count, length = dims_of(elements)[:2]
    return builder.broadcast(builder.dims([length], []), [count])


def split_rows(lower: Legalizer, value: SSAValue, lengths: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Consecutive rows of `value` as elements of the given lengths (integers [n])."""
    lengths = lower.cast(lengths, i64)
    count = dims_of(lengths)[0]
    longest = maximum(_number(lower, lower.reduce("max", lengths, [0])), 0)
    starts = lower.add(CumulativeOp("sum", lengths, 0, exclusive=True))
    valid = _valid(lower, lengths, count, longest)
    positions = _column(lower, starts, count) + Quantity.of(lower, _row(lower, longest))
    rows = lower.add(GatherOp(value, valid.where(positions, 0).value, 0))
    rest = [1] * (rank_of(rows) - 2)
    mask = valid.reshape([count, longest, *rest]).value
    return lower.select(mask, rows, lower.scalar(0, rows)), lengths


def joined_rows(lower: Legalizer, elements: SSAValue, lengths: SSAValue) -> SSAValue:
    """The rows of all elements, one after the other."""
    count, longest, *rest = dims_of(elements)
    valid = _valid(lower, lower.reshape(lengths, [count]), count, longest).value
    total = _number(lower, lower.add(CountNonzeroOp(valid)))
    places = Quantity.of(lower, lower.add(NonzeroOp(valid, total)))
    position = places.pick(0, 0) * Quantity.dim(lower, longest) + places.pick(0, 1)
    flat = lower.reshape(elements, [count * longest, *rest])
    return lower.add(GatherOp(flat, position.value, 0))


def element_at(
    lower: Legalizer, elements: SSAValue, lengths: SSAValue, index: SSAValue
) -> SSAValue:
    """The element at an i64 scalar, of its own length."""
    length = _number(lower, lower.add(GatherOp(lengths, index, 0)))
    return lower.slice_axis(lower.add(GatherOp(elements, index, 0)), 0, 0, length)


def with_element(
    lower: Legalizer, elements: SSAValue, lengths: SSAValue, index: SSAValue, value: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The array with `value` as the element at an i64 scalar."""
    length, *rest = dims_of(value)
    longest = maximum(dims_of(elements)[1], length)
    elements = _padded(lower, elements, 1, longest)
    row = lower.reshape(_padded(lower, value, 0, longest), [1, longest, *rest])
    position = lower.reshape(index, [1, 1])
    return (
        lower.add(ScatterNdOp(elements, position, row)),
        lower.add(ScatterNdOp(lengths, position, lower.dims([length]))),
    )


def rows_at(
    lower: Legalizer, elements: SSAValue, lengths: SSAValue, indices: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The elements at i64 indices."""
    return lower.add(GatherOp(elements, indices, 0)), lower.add(GatherOp(lengths, indices, 0))


def stacked(lower: Legalizer, elements: SSAValue, lengths: SSAValue) -> SSAValue:
    """The elements as one tensor; that their lengths are equal is checked at run time."""
    shortest, longest = (_number(lower, lower.reduce(k, lengths, [0])) for k in ("min", "max"))
    longest = maximum(longest, 0)  # of no elements at all
    count, _, *rest = dims_of(elements)
    rows = lower.slice_axis(elements, 1, 0, longest)
    return lower.reshape(rows, [count, minimum(shortest, longest), *rest])


def appended(
    lower: Legalizer, elements: SSAValue, lengths: SSAValue, value: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The array with `value` as one element more."""
    length, *rest = dims_of(value)
    longest = maximum(dims_of(elements)[1], length)
    elements = _padded(lower, elements, 1, longest)
    row = lower.reshape(_padded(lower, value, 0, longest), [1, longest, *rest])
    return (
        lower.add(ConcatOp([elements, row], 0)),
        lower.add(ConcatOp([lengths, lower.dims([length])], 0)),
    )


def resized(lower: Legalizer, value: SSAValue, size: Expr) -> SSAValue:
    """A tensor with rows of zeros behind its own, or only its first ones, up to `size`."""
    count, *rest = dims_of(value)
    longer = maximum(count, size)
    value = lower.reshape(_padded(lower, value, 0, longer), [longer, *rest])
    return lower.slice_axis(value, 0, 0, size)


def _number(lower: Legalizer, scalar: SSAValue) -> Expr:
    """An integer that is known at run time, as an expression."""
    found = lower.exprs(scalar)
    assert found is not None
    return found[0]


def _row(lower: Legalizer, size: Expr) -> SSAValue:
    return lower.add(IotaOp([size]))


def _column(lower: Legalizer, value: SSAValue, count: Expr) -> Quantity:
    return Quantity.of(lower, lower.reshape(value, [count, 1]))


def _valid(lower: Legalizer, lengths: SSAValue, count: Expr, longest: Expr) -> Quantity:
    """Which of the padded rows are an element's own, i1 [n, longest]."""
    return Quantity.of(lower, _row(lower, longest)).lt(_column(lower, lengths, count))


def _padded(lower: Legalizer, value: SSAValue, axis: int, size: Expr) -> SSAValue:
    """`value` with zeros up to `size` along a dimension."""
    dims: Sequence[Expr] = dims_of(value)
    more = size - dims[axis]
    if more == 0:
        return value
    end = [more if k == axis else Expr.const(0) for k in range(len(dims))]
    return lower.add(PadOp(value, [0] * len(dims), end, lower.scalar(0, value)))
