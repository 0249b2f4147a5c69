"""Operand alignment of the binary operators before opset 7."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowerdeck.dialects.core.types import dims_of, rank_of
from lowerdeck.passes.legalize.onnx.legalizer import OnnxLegalizer


def aligned(builder: OnnxLegalizer) -> tuple[SSAValue, SSAValue]:
    """
    The two operands of a binary operator, the second shaped so that numpy's rules apply.

    Before opset 7 `broadcast` allows the second operand to have fewer dimensions, which correspond
    to those of the first from `axis` on, or to its last ones without `axis`.
    """
    lhs, rhs = builder.operand(0), builder.operand(1)
    builder.attrs.ignore("consumed_inputs")
    axis = builder.attrs.opt_int("axis")
    if not builder.attrs.flag("broadcast"):
        if rank_of(lhs) != rank_of(rhs):
            builder.refuse(
                f"operands of {rank_of(lhs)} and {rank_of(rhs)} dimensions without `broadcast`",
                "equal shapes",
            )
        return lhs, rhs
    if axis is None or rank_of(rhs) == 0:
        return lhs, rhs
    axis = builder.axis(axis, rank_of(lhs))
    missing = rank_of(lhs) - axis - rank_of(rhs)
    if missing < 0:
        builder.refuse(f"{rank_of(rhs)} dimensions from axis {axis} on", f"{rank_of(lhs) - axis}")
    return lhs, builder.reshape(rhs, [*dims_of(rhs), *[1] * missing])
