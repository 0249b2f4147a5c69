"""The values of a body that differ between iterations of a loop to be unrolled or vectorized."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue

from lowerdeck.dialects.buffer.kernel import ForOp, LoadOp, ScratchOp, StoreOp, YieldOp
from lowerdeck.dialects.walking import all_ops, operands_of


def varying_values(block: Block, seeds: Iterable[SSAValue]) -> set[SSAValue]:
    """
    The values that depend on `seeds`, in a block and the regions of its ops: scratch, too, of which
    an iteration reads at a fixed place what it has written there.
    """
    varying = set(seeds)
    _spread(block, varying)
    while found := _written_scratch(block, varying):
        varying |= found
        _spread(block, varying)
    return varying


def _written_scratch(block: Block, varying: set[SSAValue]) -> set[SSAValue]:
    """Scratch in the block that holds what varies, which is read as if it did not."""
    return {
        inner.ref
        for op in block.ops
        for inner in (all_ops(op) if op.regions else (op,))
        if type(inner) is ScratchOp and inner.ref not in varying and _hides(inner.ref, varying)
    }


def _hides(memory: SSAValue, varying: set[SSAValue]) -> bool:
    users = [use.operation for use in memory.uses]
    stores = any(type(user) is StoreOp and is_varying(user, varying) for user in users)
    return stores and any(type(user) is LoadOp and not is_varying(user, varying) for user in users)


def _spread(block: Block, varying: set[SSAValue]) -> None:
    for op in block.ops:
        if type(op) is ForOp:
            _spread_loop(op, varying)
            continue
        inside = bool(op.regions) and _spread_inside(op, varying)
        if inside or not varying.isdisjoint(operands_of(op)):
            varying.update(op.results)


def _spread_inside(op: Operation, varying: set[SSAValue]) -> bool:
    """True if what the regions of an op yield varies."""
    blocks = [block for region in op.regions for block in region.blocks]
    for inner in blocks:
        _spread(inner, varying)
    return any(value in varying for inner in blocks for value in _uses(inner))


def _uses(block: Block) -> Iterable[SSAValue]:
    last = block.last_op
    return () if last is None else last.operands


def _spread_loop(op: ForOp, varying: set[SSAValue]) -> None:
    """A carried value varies if its initial value does or the value that the body yields."""
    arguments = op.body.block.args[1:]
    last = op.body.block.last_op
    assert isinstance(last, YieldOp)
    for init, argument in zip(op.inits, arguments, strict=True):
        if init in varying:
            varying.add(argument)
    while True:
        _spread(op.body.block, varying)
        added = [
            argument
            for argument, value in zip(arguments, last.values, strict=True)
            if value in varying and argument not in varying
        ]
        if not added:
            break
        varying.update(added)
    for result, argument in zip(op.results, arguments, strict=True):
        if argument in varying:
            varying.add(result)


def is_varying(op: Operation, varying: set[SSAValue]) -> bool:
    """True if an op, or one in its regions, uses a varying value, or is scratch that varies."""
    if type(op) is ScratchOp:
        return op.ref in varying
    if not op.regions:
        return not varying.isdisjoint(operands_of(op))
    return any(operand in varying for inner in all_ops(op) for operand in operands_of(inner))
