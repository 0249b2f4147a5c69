"""`move-scratch`: large buffers of kernels come from the workspace, not from the stack."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import IntAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import find_entry
from lowerdeck.dialects.buffer.operands import parameter
from lowerdeck.dialects.buffer.types import RefType, ref_type
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.conditions import places_of
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


def _make_arguments(
    function: kernel.FuncOp, ops: Sequence[kernel.ScratchOp], *, is_planned: bool
) -> list[RefType]:
    """
    Let a function take buffers as its last outputs; returns their types. They have no more rows
    than are used if the entry function knows these sizes when it plans memory.
    """
    block = function.body.block
    for op in ops:
        type_ = _used_type(op) if is_planned else ref_type(op.ref)
        argument = block.insert_arg(type_, len(block.args))
        op.ref.replace_all_uses_with(argument)
        op.detach()
        op.erase()
    function.properties["outputs"] = IntAttr(function.outputs.data + len(ops))
    return [ref_type(argument) for argument in block.args[len(block.args) - len(ops) :]]


def _used_type(op: kernel.ScratchOp) -> RefType:
    type_ = ref_type(op.ref)
    if op.used is None:
        return type_
    return RefType.of(type_.element, [*op.used.data, *type_.dims.data[1:]])


def _give(call: entry_ops.CallOp, types: Sequence[RefType]) -> None:
    """Let a call hand over workspace, too."""
    block = call.parent
    assert block is not None
    values = {str(parameter(k)): value for k, value in enumerate(call.symbols.data)}
    allocations = [
        entry_ops.AllocOp(
            RefType.of(type_.element, [dim.substitute(values) for dim in type_.dims.data])
        )
        for type_ in types
    ]
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
    Of sizes of inputs, no more of it is reserved than is used.

    Functions that threads share keep theirs: each of the threads, of which there may be any number,
    has a stack of its own.
    """

    name = "move-scratch"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        most = options_of(ctx).max_stack
        calls = [call for call in entry.walk() if isinstance(call, entry_ops.CallOp)]
        known = places_of(entry).keys()
        # Sizes that data decide are unknown when the workspace is planned.
        unplanned = {
            call.callee.string_value()
            for call in calls
            if any(not size.symbols <= known for size in call.symbols.data)
        }
        taken: dict[str, list[RefType]] = {}
        for name, function in lowered_functions(op, self.name).items():
            if function.parallel is None and (moved := _too_many(function, most)):
                taken[name] = _make_arguments(function, moved, is_planned=name not in unplanned)
        for call in calls:
            if types := taken.get(call.callee.string_value()):
                _give(call, types)
