"""Values that loops carry or models remember, updated only in part: no copy is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from lowerdeck.dialects.core.control_flow import KernelOp, YieldOp
from lowerdeck.dialects.core.tensor import ReshapeOp, ScatterElementsOp, ScatterNdOp
from lowerdeck.lowering.form.view_parts import source_of

Update = tuple[KernelOp, int]
"""A kernel that scatters into a tensor, and the position of that input."""


def find_updates(body: Block, argument: SSAValue, value: SSAValue) -> Sequence[Update]:
    """
    The kernels of a block that compute the next value from the current one, `argument`, each
    updating the result of the one before, in whatever shape. Empty if any other op is involved, or
    if a value is read after the kernel that updates it.
    """
    updates: list[Update] = []
    while (value := source_of(value)) is not argument:
        if (update := _update(value, body)) is None:
            return []
        updates.append(update)
        kernel, position = update
        value = kernel.inputs[position]
    updates.reverse()
    numbers = {op: k for k, op in enumerate(body.ops)}
    for kernel, position in updates:
        for use in _uses(source_of(kernel.inputs[position])):
            if use.operation is kernel and use.index == position:
                continue
            place = body.find_ancestor_op_in_block(use.operation)
            if place is None or numbers[place] >= numbers[kernel] or _is_view(place):
                return []
    return updates


def _update(value: SSAValue, body: Block) -> Update | None:
    """The kernel that computes a value from another one by scattering, if it does only that."""
    kernel = value.owner
    if not isinstance(kernel, KernelOp) or kernel.parent is not body or _is_view(kernel):
        return None
    scatters = [op for op in kernel.body.block.ops if not isinstance(op, YieldOp)]
    if len(scatters) != 1 or not isinstance(scatters[0], ScatterElementsOp | ScatterNdOp):
        return None
    changed = scatters[0].input
    # The same tensor may also be what is scattered into it.
    if not isinstance(changed, BlockArgument) or not changed.has_one_use():
        return None
    position = changed.index
    layouts = (kernel.layout_at(position), kernel.layout_at(len(kernel.inputs)))
    return (kernel, position) if all(layout.is_row_major for layout in layouts) else None


def _is_view(op: Operation) -> bool:
    return isinstance(op, KernelOp) and op.view is not None


def _uses(value: SSAValue) -> Iterator[Use]:
    """The uses of a value's memory: a reshape does not count, but its users do."""
    for use in value.uses:
        op: Operation = use.operation
        if isinstance(op, ReshapeOp):
            yield from _uses(op.result)
        else:
            yield use
