"""Integers that are operands: shapes, bounds and axes; known, symbolic or found at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import ScatterElementsOp
from lowerdeck.dialects.core.types import MAX_RANK, dims_of, i64, rank_of, static_shape
from lowerdeck.dialects.dims import Expr, maximum, minimum, product
from lowerdeck.dialects.records import record
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue

UNBOUNDED = 2**31 - 1
"""Bounds from here on mean "to the end": no dimension is as long."""


def sizes_of(builder: Legalizer, value: SSAValue, what: str) -> list[Expr]:
    """The elements of an integer tensor, which are sizes: what data decides is not negative."""
    sizes = builder.require_exprs(value, what)
    for size in sizes:
        if size.value is not None and size.value < 0:
            builder.refuse(f"{what} {size}", "no negative number")
    builder.symbols.assume_nonnegative(sizes)
    return sizes


def size_of(builder: Legalizer, value: SSAValue, what: str) -> Expr:
    """`sizes_of` for a tensor of one element."""
    return single(builder, sizes_of(builder, value, what), what)


def single(builder: Legalizer, values: Sequence[Expr], what: str) -> Expr:
    """The only one of `values`."""
    if len(values) != 1:
        builder.refuse(f"{len(values)} numbers as {what}", "one")
    return values[0]


def length_of(builder: Legalizer, value: SSAValue, what: str) -> int:
    """The number of elements of a vector (or scalar), which must be static."""
    shape = static_shape(value)
    if shape is None or len(shape) > 1:
        builder.refuse(f"{what} of type {value.type}", "a vector of known length")
    return shape[0] if shape else 1


def is_nonnegative(builder: Legalizer, value: Expr) -> bool:
    """True if the expression is known to be at least zero."""
    return builder.symbols.is_nonnegative(value)


def from_front(builder: Legalizer, index: Expr, dim: Expr) -> Expr:
    """An index of which negative ones count from the end of `dim`."""
    if is_nonnegative(builder, index):
        return index
    if index.value is not None or is_nonnegative(builder, -index - 1):
        return dim + index
    # A factor that is minus one where the index is negative, else zero. It is limited before it is
    # multiplied: the least number has no negative.
    return index - dim * maximum(minimum(index, 0), -1)


def limited(value: Expr) -> Expr:
    """A bound or a step; a number is no farther than `UNBOUNDED` from zero, which is the same."""
    if value.value is None:
        return value
    return Expr.const(min(max(value.value, -UNBOUNDED), UNBOUNDED))


@record
class Axes:
    """
    Which dimensions a list of numbers is about.

    `known` are distinct and counted from the front; without them, `runtime` is the i64 vector of
    the axes, counted from the front.
    """

    known: list[int] | None
    runtime: TensorValue | None = None

    @staticmethod
    def of(builder: Legalizer, value: SSAValue, rank: int) -> Axes:
        """The axes that an operand gives."""
        if (numbers := builder.ints(value)) is not None:
            return Axes(builder.axes(numbers, rank))
        count = length_of(builder, value, "axes")
        if count > MAX_RANK:
            builder.refuse(f"{count} axes", f"up to {MAX_RANK}")
        return Axes(None, (TensorValue.of(builder, value).cast(i64) % rank).reshape([count]))

    @property
    def count(self) -> int:
        """The number of axes."""
        return len(self.known or ()) if self.runtime is None else self.runtime.dims[0].value or 0

    def spread(self, builder: Legalizer, values: TensorValue, rank: int, fill: int) -> TensorValue:
        """The i64 vector with an entry a dimension: those of `values` at the axes, else `fill`."""
        assert self.runtime is not None
        filled = builder.tensor(np.full(rank, fill, np.int64))
        op = ScatterElementsOp(filled, self.runtime.value, values.cast(i64).value, 0)
        return TensorValue(builder, builder.add(op))


def without_ones(builder: Legalizer, x: SSAValue) -> SSAValue:
    """
    `x` without the dimensions that are known to be one. Of others it is assumed that they are not,
    as of a batch whose size is open: a run in which one is has a slice beyond the end, so it fails.
    """
    dims = dims_of(x)
    starts = [
        Expr.const(0) if dim.value is not None else maximum(minimum(dim, 1) * 2 - dim, 0)
        for dim in dims
    ]
    x = builder.slice(x, starts, dims)
    return builder.squeeze(x, [axis for axis, dim in enumerate(dims) if dim == 1])


def resolved_shape(
    builder: Legalizer, x: SSAValue, shape: SSAValue, allow_zero: bool
) -> list[Expr]:
    """
    The dimensions that Reshape gives to `x`: -1 is what is left, 0 (unless allowed) copies.

    Elements that only data decides are resolved at run time.
    """
    dims = dims_of(x)
    elements = builder.symbols.elements(shape)
    if elements is None:
        builder.refuse(f"a shape of type {shape.type}", "a vector of known length")
    entries: list[Expr | None] = list(elements.reshape(-1))
    resolved: list[Expr] = []
    for axis, entry in enumerate(entries):
        if entry is None or not (entry == -1 or is_nonnegative(builder, entry)):
            return _resolved_at_run_time(builder, x, shape, allow_zero)
        if entry == 0 and not allow_zero:
            if axis >= len(dims):
                builder.refuse(f"a copied dimension {axis}", f"less than {len(dims)}")
            entry = dims[axis]
        resolved.append(entry)
    missing = [axis for axis, entry in enumerate(resolved) if entry == -1]
    if len(missing) > 1:
        builder.refuse("more than one -1 in the shape", "at most one")
    for axis in missing:
        rest = product(entry for k, entry in enumerate(resolved) if k != axis)
        if rest == 0:
            builder.refuse(
                "-1 beside dimensions of 0", "a shape that says how long each dimension is"
            )
        resolved[axis] = product(dims) // rest
    return resolved


def _resolved_at_run_time(
    builder: Legalizer, x: SSAValue, shape: SSAValue, allow_zero: bool
) -> list[Expr]:
    count = length_of(builder, shape, "the shape")
    dims = [*dims_of(x), *[Expr.const(0)] * count][:count]
    entries = TensorValue.of(builder, shape).cast(i64)
    if not allow_zero:
        entries = entries.eq(0).where(TensorValue(builder, builder.dims(dims)), entries)
    missing = entries.eq(-1)
    rest = missing.where(TensorValue.number(builder, 1, i64), entries).reduce("prod", [0])
    total = TensorValue.dim(builder, product(dims_of(x)))
    resolved = missing.where(total // rest, entries)
    return sizes_of(builder, resolved.value, "the shape")


def kept_dims(builder: Legalizer, x: SSAValue, axes: Axes) -> list[Expr]:
    """The dimensions of `x` without those at axes that only data decides."""
    rank, count = rank_of(x), axes.count
    _, order = _order(builder, axes, rank)
    # Kept dimensions first, in their order: removed ones are counted behind them.
    rows = TensorValue(builder, np.arange(rank - count, dtype=np.int64)).reshape([rank - count, 1])
    dims = TensorValue(builder, builder.dims(dims_of(x)))
    chosen = rows.eq(order.reshape([1, rank])).cast(i64) * dims.reshape([1, rank])
    return sizes_of(builder, chosen.reduce("sum", [1]).value, "the dimensions")


def extended_dims(builder: Legalizer, x: SSAValue, axes: Axes) -> list[Expr]:
    """The dimensions of `x` with ones inserted at axes that only data decides."""
    rank = rank_of(x) + axes.count
    if rank_of(x) == 0:
        return [Expr.const(1)] * rank
    marked, order = _order(builder, axes, rank)
    dims = TensorValue(builder, builder.dims(dims_of(x)))
    columns = TensorValue(builder, np.arange(rank_of(x), dtype=np.int64)).reshape([1, rank_of(x)])
    chosen = order.reshape([rank, 1]).eq(columns).cast(i64) * dims.reshape([1, rank_of(x)])
    return sizes_of(builder, (chosen.reduce("sum", [1]) + marked).value, "the dimensions")


def _order(builder: Legalizer, axes: Axes, rank: int) -> tuple[TensorValue, TensorValue]:
    """For each dimension 1 if it is an axis; how many others precede it (`rank` if it is)."""
    ones = TensorValue(builder, np.ones(axes.count, np.int64))
    marked = axes.spread(builder, ones, rank, 0)
    before = TensorValue(builder, np.tril(np.ones((rank, rank), np.int64), -1))
    count = (before * (1 - marked).reshape([1, rank])).reduce("sum", [1])
    return marked, marked.eq(1).where(TensorValue.number(builder, rank, i64), count)
