"""`open-outputs`: when callers are told the sizes of outputs that depend on data."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.entry import OpenOutputOp, find_entry
from lowerdeck.dialects.walking import all_ops


class OpenOutputsPass(ModulePass):
    """
    Put a `buffer.open_output` before the first op that uses an output of data-dependent size.

    The dimensions of all other outputs follow from those of the inputs: they are written, and their
    capacities are checked, before the run begins. This pass runs when calls and copies have their
    final positions, so that nothing comes between the two.
    """

    name = "open-outputs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if (entry := find_entry(op)) is None:
            return
        block, late = entry.body.block, set[SSAValue](entry.late_outputs)
        for outer in list(block.ops):
            for inner in all_ops(outer):
                for value in inner.operands:
                    if value in late:
                        late.remove(value)
                        opened = OpenOutputOp(value)
                        opened.location = inner.location
                        block.insert_op_before(opened, outer)
