"""The amount of arithmetic of an op, independent of the algorithm."""

from __future__ import annotations

from xdsl.ir import Operation

from lowerdeck.dialects.core.attention import AttentionOp
from lowerdeck.dialects.core.control_flow import KernelOp
from lowerdeck.dialects.core.linear import ConvOp, ConvTransposeOp, MatmulOp
from lowerdeck.dialects.core.types import DimsAttr, dims_of
from lowerdeck.dialects.dims import Expr, product


def multiply_adds(op: Operation) -> Expr:
    """
    The multiply-adds of a convolution or matrix product; zero for other ops.

    Every tap of a window counts, also on padding, as is usual.
    """
    match op:
        case ConvOp():
            return product([*dims_of(op.result), *dims_of(op.weight)[1:]])
        case ConvTransposeOp():
            return product([*dims_of(op.input), *dims_of(op.weight)[1:]])
        case MatmulOp():
            return product([*dims_of(op.result), dims_of(op.lhs)[-1]])
        case AttentionOp():
            depth, keys = dims_of(op.query)[-1], op.score_dims[-1]
            return product(op.score_dims) * depth + product(dims_of(op.result)) * keys
        case _:
            return Expr.const(0)


def multiply_adds_of_kernel(kernel: KernelOp) -> DimsAttr | None:
    """The `multiply_adds` property of calls of a kernel; None if there are none."""
    total = sum(map(multiply_adds, kernel.body.block.ops), Expr.const(0))
    return None if total == 0 else DimsAttr.of([total])
