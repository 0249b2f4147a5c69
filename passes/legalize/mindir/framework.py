"""`legalize-mindir`: the walk over a function."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.mindir.ops import MindirOp
from lowerdeck.passes.legalize.common.walk import TableWalk
from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer
from lowerdeck.passes.legalize.mindir.registry import legalizes
from lowerdeck.passes.legalize.mindir.support import next_step


class MindirWalk(TableWalk):
    """The legalization of one function of mindir ops."""

    kind = MindirOp
    table = legalizes
    next_step = next_step

    def builder(self, op: MindirOp) -> MindirLegalizer:
        return MindirLegalizer(op, self.symbols)


infer_types = MindirWalk.infer


class LegalizeMindirPass(ModulePass):
    """
    Convert every mindir op to `core` ops with exact types.

    Primitives that PyTorch or TensorFlow have, too, mean what they mean there. What is carried by
    loops and yielded by branches gets the types that the bodies give. All ops that cannot be
    converted are listed in one LegalizationError.
    """

    name = "legalize-mindir"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        MindirWalk.run_on(op)
