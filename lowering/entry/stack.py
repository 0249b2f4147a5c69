"""How much stack a run takes, by the call tree of its functions."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import EntryOp, OpenOutputOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.targets.base import Target

_ALIGNMENT = 64
"""In bytes, of buffers on the stack."""

_FRAME = 512
"""Bytes of what else a function has there: saved registers, and scalars that it has none for."""

_VECTORS = 24
"""How many vectors a kernel may have there, for which there are no registers."""

_POINTER = 8
_SPAN = 16

_POINTERS = (entry_ops.AllocOp, entry_ops.ViewOp, entry_ops.WeightOp, OpenOutputOp)
"""The ops of the entry function that declare a pointer."""


def scratch_bytes(op: kernel.ScratchOp) -> int:
    """The stack that a buffer takes."""
    size = ref_type(op.ref).bytes.value
    assert size is not None
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def stack_bytes(entry: EntryOp, functions: Mapping[str, kernel.FuncOp], target: Target) -> int:
    """
    An upper bound of the stack that optimized code takes in a thread: the deepest chain of calls.

    Counted are buffers, pointers of the entry function and a frame for each call; what functions of
    custom operators take, and an allocator, comes on top.
    """
    spilled = _VECTORS * 4 * target.lanes if target.lanes > 1 else 0
    kernels = {name: spilled + _frame_of_kernel(function) for name, function in functions.items()}
    ports = len(entry.body.block.args)
    checks = _FRAME + _SPAN * (ports + 2)
    return _FRAME + max(checks, _POINTER * ports + _frame(entry.body.block, kernels))


def _frame_of_kernel(function: kernel.FuncOp) -> int:
    scratch = (op for op in all_ops(function) if isinstance(op, kernel.ScratchOp))
    return _FRAME + sum(map(scratch_bytes, scratch))


def _frame(block: Block, kernels: Mapping[str, int]) -> int:
    """A function of the entry function's ops, and the deepest that it calls."""
    own, deepest = 0, 0
    blocks = [block]
    while blocks:
        for op in blocks.pop().ops:
            match op:
                case entry_ops.CallOp():
                    deepest = max(deepest, kernels[op.callee.root_reference.data])
                case entry_ops.SectionOp():
                    deepest = max(deepest, _frame(op.body.block, kernels))
                case _:
                    blocks += [region.block for region in op.regions]
            own += len(op.results) if isinstance(op, entry_ops.SectionOp) else 0
            own += isinstance(op, _POINTERS)
    return _FRAME + _POINTER * own + deepest
