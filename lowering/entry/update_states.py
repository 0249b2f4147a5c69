"""`update-states`: what a model remembers is read and written in one place."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.aliases import Roots, find_roots
from lowerdeck.lowering.entry.lowered import lowered_functions
from lowerdeck.lowering.entry.moving import move, moves_in_order, place_of
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.passes.machinery.context import recorder_of
from lowerdeck.passes.machinery.recorder import Recorder


class UpdateStatesPass(ModulePass):
    """
    Let one buffer hold a state before and after a run: that of the output.

    - every use of the buffer before comes before the first use of the one after -> the one after
      in place of the one before
    - the last use of the one before and the first use of the one after are a kernel that moves what
      it reads, to the front or within it -> the same, and the kernel loads and stores in order
    - otherwise the state is computed in a new buffer and copied to its place at the end of the run

    What kernels update in place (`bufferize`) or write over what they read (`compute-in-place`) is
    of the first kind. Runs before memory is planned, which has to see the new buffers.
    """

    name = "update-states"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None or not entry.states_args:
            return
        recorder = recorder_of(ctx)
        _require_known_sizes(entry)
        roots, functions = find_roots(entry), lowered_functions(op, self.name)
        uses = _uses_by_root(entry, roots)
        ops = list(entry.body.block.ops)
        for before, after in entry.states_args:
            if before is None or not before.uses:
                continue
            last, first = uses[before][1], uses[after][0]
            is_moved = False
            if last == first and isinstance(call := ops[first], entry_ops.CallOp):
                offsets = _places_in(call, before, after, roots)
                is_moved = offsets is not None and _move(call, offsets, functions, recorder)
            if not (last < first or is_moved):
                _compute_elsewhere(entry, after)
            before.replace_all_uses_with(after)


def _require_known_sizes(entry: EntryOp) -> None:
    for _, after in entry.states_args:
        if (type_ := ref_type(after)).elements.value is None:
            raise LoweringError(
                entry,
                f"remembers a {type_}, the size of which is open; fix it with --dim or "
                "--input-shape",
            )


def _uses_by_root(entry: EntryOp, roots: Roots) -> Mapping[SSAValue, tuple[int, int]]:
    """The numbers of the first and the last op of the entry function that access a state."""
    states: set[SSAValue] = {each for pair in entry.states_args for each in pair if each}
    never = len(entry.body.block.ops)
    found = {value: (never, -1) for value in states}
    for number, outer in enumerate(entry.body.block.ops):
        for op in all_ops(outer):
            if isinstance(op, entry_ops.ViewOp):
                continue
            for root in {root for value in op.operands for root in roots[value]} & states:
                found[root] = (min(found[root][0], number), number)
    return found


def _places_in(
    call: entry_ops.CallOp, before: SSAValue, after: SSAValue, roots: Roots
) -> Mapping[int, int] | None:
    """
    The operands of a call that lie in what a state was, and where; None if that is open, or if its
    result is not all that the state is then.
    """
    *operands, result = call.arguments
    own = place_of(result)
    if own is None or own.root is not after or own.offset:
        return None
    if ref_type(result).elements != ref_type(after).elements:
        return None
    offsets: dict[int, int] = {}
    for number, operand in enumerate(operands):
        if roots[operand].isdisjoint({before, after}):
            continue
        place = place_of(operand)
        if place is None or place.root is not before:
            return None
        offsets[number] = place.offset
    return offsets


def _move(
    call: entry_ops.CallOp,
    offsets: Mapping[int, int],
    functions: Mapping[str, FuncOp],
    recorder: Recorder,
) -> bool:
    """True if a call now moves what a state was to where it belongs, in one buffer."""
    function = functions[call.callee.root_reference.data]
    reason = "what a state was moves within its buffer"
    is_moved = moves_in_order(function, offsets) and recorder.decide(
        UpdateStatesPass.name, "move-state", [call], reason
    )
    if is_moved:
        move(call, function, offsets)
    return is_moved


def _compute_elsewhere(entry: EntryOp, after: BlockArgument) -> None:
    """A new buffer in place of a state, which becomes the state at the end."""
    block = entry.body.block
    first, last = block.first_op, block.last_op
    assert first is not None
    assert last is not None
    new = entry_ops.AllocOp(ref_type(after))
    after.replace_all_uses_with(new.result)
    copy = entry_ops.CopyOp(new.result, after)
    new.location = copy.location = entry.location
    block.insert_op_before(new, first)
    block.insert_op_before(copy, last)
