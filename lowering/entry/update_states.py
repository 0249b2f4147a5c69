"""`update-states`: what a model remembers is read and written in one place."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer import entry_ops
from lowerdeck.dialects.buffer.entry import EntryOp, find_entry
from lowerdeck.dialects.buffer.types import ref_type
from lowerdeck.dialects.walking import all_ops
from lowerdeck.lowering.entry.aliases import find_roots
from lowerdeck.lowering.errors import LoweringError


class UpdateStatesPass(ModulePass):
    """
    Let one buffer hold a state before and after a run: that of the output.

    - every use of the buffer before comes before the first use of the one after -> the one after
      in place of the one before
    - otherwise the state is computed in a new buffer and copied to its place at the end of the run

    What kernels update in place (`bufferize`) or write over what they read (`compute-in-place`) is
    of the first kind. Runs before memory is planned, which has to see the new buffers.
    """

    name = "update-states"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None or not entry.states_args:
            return
        _require_known_sizes(entry)
        uses = _uses_by_root(entry)
        for before, after in entry.states_args:
            if before is None or not before.uses:
                continue
            if not uses[before][1] < uses[after][0]:
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


def _uses_by_root(entry: EntryOp) -> Mapping[SSAValue, tuple[int, int]]:
    """The numbers of the first and the last op of the entry function that access a state."""
    roots = find_roots(entry)
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
