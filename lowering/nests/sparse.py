"""Products with matrices of which only some blocks are there."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import SparseProductOp
from lowerdeck.dialects.core.types import dims_of, f32
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.nests import scalars
from lowerdeck.lowering.nests.lower import Index, KernelLowering, anchor


@anchor(SparseProductOp)
def lower_sparse_product(k: KernelLowering, op: SparseProductOp) -> None:
    """One element of the result at a time."""
    axis, (_, width, _) = op.axis.data, op.sizes
    with k.builder.nest(dims_of(op.result), parallel=True) as at:
        k.finish(op, at, sum_of_blocks(k, op, at, (at[axis] // width, at[axis] % width)))


def sum_of_blocks(
    k: KernelLowering, op: SparseProductOp, at: Index, place: tuple[Expr, Expr]
) -> SSAValue:
    """The sum for an element of the result: by its panel, and its column in that."""
    b, axis, (panel, column) = k.builder, op.axis.data, place
    zero = scalars.constant(b, 0, f32)
    start = zero if op.bias is None else k.element(op.bias, [at[axis]])

    def number(value: SSAValue, where: Index) -> Expr:
        return b.from_integer(scalars.cast(b, k.element(value, where), i32, i64))

    def add_one(block: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        source = [*at[:axis], number(op.rows, [block]), *at[axis + 1 :]]
        factor = k.element(op.input, source)
        return [b.fma(factor, k.element(op.blocks, [block, column]), values[0])]

    def add_part(part: Expr, total: SSAValue) -> SSAValue:
        first, end = (number(op.starts, [panel, part + n]) for n in (0, 1))
        return b.carry(end, [total], add_one, first)[0]

    if (parts := op.sizes[2]) == 1:
        return add_part(Expr.const(0), start)
    return b.carry(
        parts, [start], lambda part, values: [scalars.add(b, values[0], add_part(part, zero))]
    )[0]
