"""Kernels that bring a value into another layout."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.layout import LayoutAttr
from lowerdeck.lowering.strategies.facts import anchors_of


def conversion(name: str, value: SSAValue, before: LayoutAttr, after: LayoutAttr) -> KernelOp:
    """A kernel that copies a value from one layout to another."""
    block = Block(arg_types=[value.type])
    block.add_op(YieldOp([block.args[0]]))
    kernel = KernelOp(name, [value], Region(block))
    kernel.properties["layouts"] = ArrayAttr([before, after])
    if isinstance(value.owner, Operation):
        kernel.location = value.owner.location
    return kernel


def computed_there(copy: KernelOp) -> KernelOp | None:
    """
    A kernel that computes what a copy reads in the layout of the copy, so that it is written once;
    not yet in a block. None if it is anything else than maps, or is read by others.
    """
    (value,) = copy.inputs
    source = value.owner
    if not is_made_by_maps(copy, value):
        return None
    assert isinstance(source, KernelOp)
    layouts = [source.layout_at(position) for position in range(len(source.inputs) + 1)]
    kernel = KernelOp(copy.sym_name.data, source.inputs, source.body.clone())
    kernel.properties["layouts"] = ArrayAttr([*layouts[:-1], copy.layout_at(1)])
    kernel.location = source.location
    return kernel


def is_made_by_maps(kernel: KernelOp, value: SSAValue) -> bool:
    """True for an input of a kernel that another one of maps alone computes, for it alone."""
    source = value.owner
    if not isinstance(source, KernelOp) or source.parent is not kernel.parent:
        return False
    if len(source.results) != 1 or len(list(value.uses)) != 1 or anchors_of(source):
        return False
    layouts = [source.layout_at(position) for position in range(len(source.inputs) + 1)]
    is_plain = all(layout.is_row_major for layout in layouts)
    return is_plain and source.view is None and source.in_place is None
