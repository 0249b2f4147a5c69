"""Kernels that bring a value into another layout."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.layout import LayoutAttr


def conversion(name: str, value: SSAValue, before: LayoutAttr, after: LayoutAttr) -> KernelOp:
    """A kernel that copies a value from one layout to another."""
    block = Block(arg_types=[value.type])
    block.add_op(YieldOp([block.args[0]]))
    kernel = KernelOp(name, [value], Region(block))
    kernel.properties["layouts"] = ArrayAttr([before, after])
    if isinstance(value.owner, Operation):
        kernel.location = value.owner.location
    return kernel
