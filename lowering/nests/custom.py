"""Operators from outside: a call of their C function."""

from __future__ import annotations

from lowerdeck.dialects.buffer.custom import InvokeOp
from lowerdeck.dialects.core.custom import CustomOp
from lowerdeck.lowering.nests.lower import KernelLowering, anchor


@anchor(CustomOp, alone=True)
def lower_custom(k: KernelLowering, op: CustomOp) -> None:
    """All of it at once, by one thread; workspace is one result more."""
    inputs = [k.inputs[value] for value in op.operands]
    k.builder.append(InvokeOp(op.operator, inputs, k.outputs, op.parameters))
