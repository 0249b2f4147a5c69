"""Diagonals: taken, written, made."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.tensor import GatherNdOp, ScatterNdOp
from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.dialects.dims import Expr
from lowerdeck.passes.legalize.common.movement import concat, pad
from lowerdeck.passes.legalize.legalizer import Legalizer
from lowerdeck.passes.legalize.tensor_value import TensorValue, index_vector, stack


def _diagonal_places(
    builder: Legalizer, x: SSAValue, offset: int, first: int, second: int
) -> tuple[list[int], Expr, TensorValue]:
    """The order with the two dimensions first, how many places, and where [count, 2]."""
    dims = dims_of(x)
    rows, columns = dims[first] - max(-offset, 0), dims[second] - max(offset, 0)
    count = builder.symbols.largest(builder.symbols.smallest(rows, columns), 0)
    number = TensorValue.iota(builder, count)
    order = [first, second, *(k for k in range(len(dims)) if k not in (first, second))]
    return order, count, stack([number + max(-offset, 0), number + max(offset, 0)], 1)


def diagonal(builder: Legalizer, x: SSAValue, offset: int, first: int, second: int) -> SSAValue:
    """The elements of a diagonal, as the last dimension."""
    order, _, places = _diagonal_places(builder, x, offset, first, second)
    found = builder.add(GatherNdOp(builder.transpose(x, order), places.value))
    rank = rank_of(found)
    return builder.transpose(found, [*range(1, rank), 0])


def all_alike(builder: Legalizer, dims: Sequence[Expr], *, wraps: bool) -> TensorValue:
    """Where all indices are one; below a matrix that is tall it may begin anew, a row further."""
    rows = [TensorValue.iota(builder, dim).column(len(dims), k) for k, dim in enumerate(dims)]
    if wraps:
        rows[0] = rows[0] % TensorValue.dim(builder, dims[1] + 1)
    on = rows[0].eq(rows[1])
    for row in rows[2:]:
        on = on & rows[0].eq(row)
    return on


def with_diagonal(
    builder: Legalizer, x: SSAValue, source: SSAValue, offset: int, first: int, second: int
) -> SSAValue:
    """`x` with other elements on a diagonal of two dimensions, along the last one of `source`."""
    order, count, places = _diagonal_places(builder, x, offset, first, second)
    moved = builder.transpose(x, order)
    source = builder.broadcast(source, [*dims_of(moved)[2:], count])
    rank = rank_of(source)
    rows = builder.transpose(source, [rank - 1, *range(rank - 1)])
    result = builder.add(ScatterNdOp(moved, places.value, rows))
    return builder.transpose(result, [order.index(k) for k in range(rank_of(x))])


def embedded(builder: Legalizer, x: SSAValue, offset: int, first: int, second: int) -> SSAValue:
    """Zeros with a diagonal in two new dimensions."""
    rank = rank_of(x) + 1
    size = dims_of(x)[-1] + abs(offset)
    wide = pad(
        builder,
        x,
        [*[Expr.const(0)] * (rank - 2), Expr.const(max(offset, 0))],
        [*[Expr.const(0)] * (rank - 2), Expr.const(max(-offset, 0))],
        builder.scalar(0, x),
    )
    rows, columns = (index_vector(builder, size, 2, k) for k in range(2))
    on = (columns - rows).eq(offset)
    spread = builder.unsqueeze(wide, [rank - 2])
    full = builder.select(on.value, spread, builder.scalar(0, x))
    rest = iter(range(rank - 2))
    order = [
        rank - 2 if k == first else rank - 1 if k == second else next(rest) for k in range(rank)
    ]
    return builder.transpose(full, order)


def on_block_diagonal(builder: Legalizer, matrices: Sequence[SSAValue]) -> SSAValue:
    """Matrices along the diagonal of one of zeros."""
    total = sum((dims_of(value)[1] for value in matrices), Expr.const(0))
    rows: list[SSAValue] = []
    before = Expr.const(0)
    for value in matrices:
        width = dims_of(value)[1]
        left, right = [Expr.const(0), before], [Expr.const(0), total - before - width]
        rows.append(pad(builder, value, left, right, builder.scalar(0, value)))
        before = before + width
    return concat(builder, rows, 0)
