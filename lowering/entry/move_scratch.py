"""`move-scratch`: large buffers of kernels come from the workspace, not from the stack."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.lowered import lowered_functions
from lowerdeck.lowering.entry.stack import scratch_bytes
from lowerdeck.passes.machinery.context import options_of


def _too_many(function: kernel.FuncOp, most: int) -> list[kernel.ScratchOp]:
    """The largest buffers of a function on the stack, so many that the others have `most` bytes."""
    ops = [op for op in all_ops(function) if isinstance(op, kernel.ScratchOp)]
    ops.sort(key=scratch_bytes, reverse=True)
    total = sum(map(scratch_bytes, ops))
    found: list[kernel.ScratchOp] = []
    for op in ops:
        if total <= most:
            break
        found.append(op)
        total -= scratch_bytes(op)
    return found


def _make_arguments(function: kernel.FuncOp, ops: Sequence[kernel.ScratchOp]) -> list[RefType]:
    """Let a function take buffers as its last outputs; returns their types."""
    block = function.body.block
    for op in ops:
        op.ref.replace_all_uses_with(block.insert_arg(op.ref.type, len(block.args)))
        op.detach()
        op.erase()
    function.properties["outputs"] = IntAttr(function.outputs.data + len(ops))
    return [ref_type(argument) for argument in block.args[len(block.args) - len(ops) :]]


def _give(call: entry_ops.CallOp, types: Sequence[RefType]) -> None:
    """Let a call hand over workspace, too."""
    block = call.parent
    assert block is not None
    allocations = [entry_ops.AllocOp(type_) for type_ in types]
    for op in allocations:
        op.location = call.location
    block.insert_ops_before(allocations, call)
    made: list[SSAValue] = [op.result for op in allocations]
    call.operands = [*call.operands, *made]


class MoveScratchPass(ModulePass):
    """
    Let no kernel have buffers of more than the option `max_stack` bytes on the stack.

    Where the `buffer.scratch` of a function are more, the largest become outputs of it that nobody
    reads, and its calls give it workspace for them; it shares that with what other kernels use.

    Functions that threads share keep theirs: each of the threads, of which there may be any number,
    has a stack of its own.
    """

    name = "move-scratch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        most = options_of(ctx).max_stack
        taken: dict[str, list[RefType]] = {}
        for name, function in lowered_functions(op, self.name).items():
            if function.parallel is None and (moved := _too_many(function, most)):
                taken[name] = _make_arguments(function, moved)
        for call in list(entry.walk()):
            if isinstance(call, entry_ops.CallOp):
                types = taken.get(call.callee.root_reference.data, [])
                if types:
                    _give(call, types)
