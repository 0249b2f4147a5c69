"""Matrix products: one element of the result at a time, for schedules to tile."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.linear import MatmulOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.dims import Expr
from lowerdeck.lowering.kernels import scalars
from lowerdeck.lowering.kernels.convolution import PART, sum_in_parts
from lowerdeck.lowering.kernels.lower import Index, KernelLowering, broadcast_index

COLUMN = "n"
"""The label of the loop over columns of a product. `m` is that over rows, `b0`, `b1`, ... are those
over the matrices of a batch."""


def row_labels(rank: int) -> list[str]:
    """The labels of the loops over all dimensions of a result of this rank but the last."""
    return [*(f"b{axis}" for axis in range(rank - 2)), "m"]


def lower_tiled_matmul(k: KernelLowering, op: MatmulOp) -> None:
    """Independent loops over the elements of the result, and a sum in f32 in each of them."""
    dims = dims_of(op.result)
    labels = [*row_labels(len(dims)), COLUMN]
    with k.builder.labeled_nest(list(zip(labels, dims, strict=True)), parallel=True) as at:
        k.finish(op, at, _sum(k, op, at))


def _sum(k: KernelLowering, op: MatmulOp, at: Index) -> SSAValue:
    b, dims = k.builder, dims_of(op.result)
    left = [*broadcast_index(at[:-2], dims_of(op.lhs)[:-2], dims[:-2]), at[-2]]
    right = broadcast_index(at[:-2], dims_of(op.rhs)[:-2], dims[:-2])
    zero = scalars.constant(b, 0, element_type(op.lhs))

    def add_product(i: Expr, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        factor = k.element(op.rhs, [*right, i, at[-1]])
        return [b.fma(k.element(op.lhs, [*left, i]), factor, values[0])]

    depth = dims_of(op.lhs)[-1]
    if depth.value is None:
        return b.carry(depth, [zero], add_product)[0]
    return sum_in_parts(
        b,
        depth.value,
        PART,
        zero,
        lambda first, count, start: b.carry(
            count, [start], lambda i, values: add_product(first + i, values)
        )[0],
    )
