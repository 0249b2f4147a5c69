"""Tensors made from numbers and sizes: ranges and diagonals."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, f64, i64, is_float, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.sizes import is_nonnegative, size_of
from lowerdeck.passes.legalize.tensor_value import TensorValue


def range_of(
    builder: Legalizer, start: TensorValue, limit: TensorValue, delta: TensorValue
) -> SSAValue:
    """start + i * delta for i below max(ceil((limit - start) / delta), 0), of scalars."""
    if is_float(start.element):
        count = _float_count(builder, start, limit, delta)
    else:
        count = _integer_count(builder, *(part.cast(i64) for part in (start, limit, delta)))
    indices = TensorValue.iota(builder, count).cast(start.element)
    return (start + indices * delta).value


def _float_count(
    builder: Legalizer, start: TensorValue, limit: TensorValue, delta: TensorValue
) -> Expr:
    wide = [part.cast(f64) for part in (start, limit, delta)]
    count = ((wide[1] - wide[0]) / wide[2]).ceil().maximum(0.0).cast(i64)
    return size_of(builder, count.value, "the length")


def _integer_count(
    builder: Legalizer, start: TensorValue, limit: TensorValue, delta: TensorValue
) -> Expr:
    first, last, step = (builder.require_expr(q.value, "a bound") for q in (start, limit, delta))
    if step == 0:
        builder.refuse("a delta of 0", "another number")
    are_sizes = all(b.value is not None or is_nonnegative(builder, b) for b in (first, last))
    if step.value is not None and (are_sizes or (first == 0 and step == 1)):
        return builder.symbols.largest((last - first).ceildiv(step), 0)
    return size_of(builder, _count_of_any(builder, start, limit, delta).value, "the length")


def _count_of_any(
    builder: Legalizer, start: TensorValue, limit: TensorValue, delta: TensorValue
) -> TensorValue:
    """
    The length for any three numbers: their difference may be beyond all integers, so quotients and
    remainders are compared. -1, which is no length, for a delta of 0 and more than there can be.
    """
    forward, rest, more = delta.gt(0), start % delta, limit % delta
    is_more = forward.where(more.gt(rest).cast(i64), more.lt(rest).cast(i64))
    count = limit.quotient(delta) - start.quotient(delta) + is_more
    is_some = (forward & limit.gt(start)) | (delta.lt(0) & limit.lt(start))
    estimate = (limit.cast(f64) - start.cast(f64)) / delta.cast(f64)
    is_impossible = delta.eq(0) | estimate.gt(float(1 << 60))
    none, impossible = (TensorValue.number(builder, number, i64) for number in (0, -1))
    return is_impossible.where(impossible, is_some.where(count, none))


def diagonals(builder: Legalizer, x: SSAValue) -> TensorValue:
    """The i64 matrix column - row for the last two dimensions of `x`."""
    if (rank := rank_of(x)) < 2:
        builder.refuse(f"a tensor of {rank} dimensions", "2 or more")
    rows, columns = (TensorValue.iota(builder, dim) for dim in dims_of(x)[-2:])
    return columns.column(2, 1) - rows.column(2, 0)


def evenly_spaced(start: TensorValue, end: TensorValue, steps: int) -> TensorValue:
    """So many numbers between two floats, the first half from the one, the others from the end."""
    builder, wide = start.builder, start.element
    start, end = start.reshape([1]), end.reshape([1])
    number = TensorValue(builder, np.arange(steps)).cast(wide)
    step = (end - start) / float(max(steps - 1, 1))
    low = start + step * number
    high = end - step * (number * -1 + float(steps - 1))
    first = TensorValue(builder, np.arange(steps) < max(steps // 2, steps == 1))
    return first.where(low, high)
