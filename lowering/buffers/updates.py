"""Carried values that an iteration changes in a few places: their memory need not be copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from lowerdeck.dialects.core.control_flow import KernelOp, LoopOp, YieldOp
from lowerdeck.dialects.core.tensor import ReshapeOp, ScatterElementsOp, ScatterNdOp

Update = tuple[KernelOp, int]
"""A kernel that scatters into a tensor, and which of its inputs that is."""


def find_updates(loop: LoopOp, number: int) -> Sequence[Update]:
    """
    The kernels by which the next value of a carried one comes from it, each changing what the one
    before has made. No kernels if there is anything else to it, or if something reads a value after
    the kernel that changes it.
    """
    body, argument = loop.body.block, loop.carried_args[number]
    updates: list[Update] = []
    value = loop.yielded_carried[number]
    while value is not argument:
        if (update := _update(value, body)) is None:
            return []
        updates.append(update)
        kernel, position = update
        value = kernel.inputs[position]
    updates.reverse()
    numbers = {op: k for k, op in enumerate(body.ops)}
    for kernel, position in updates:
        for use in _uses(kernel.inputs[position]):
            if use.operation is kernel and use.index == position:
                continue
            place = body.find_ancestor_op_in_block(use.operation)
            if place is None or numbers[place] >= numbers[kernel] or _is_view(place):
                return []
    return updates


def _update(value: SSAValue, body: Block) -> Update | None:
    """What makes a value of another one by scattering, if that is all it does."""
    kernel = value.owner
    if not isinstance(kernel, KernelOp) or kernel.parent is not body or _is_view(kernel):
        return None
    scatters = [op for op in kernel.body.block.ops if not isinstance(op, YieldOp)]
    if len(scatters) != 1 or not isinstance(scatters[0], ScatterElementsOp | ScatterNdOp):
        return None
    changed = scatters[0].input
    if not isinstance(changed, BlockArgument):
        return None
    position = changed.index
    layouts = (kernel.layout_at(position), kernel.layout_at(len(kernel.inputs)))
    return (kernel, position) if all(layout.is_row_major for layout in layouts) else None


def _is_view(op: Operation) -> bool:
    return isinstance(op, KernelOp) and op.view is not None


def _uses(value: SSAValue) -> Iterator[Use]:
    """The uses of a value's memory: a reshape is none, but what reads it is."""
    for use in value.uses:
        op: Operation = use.operation
        if isinstance(op, ReshapeOp):
            yield from _uses(op.result)
        else:
            yield use
