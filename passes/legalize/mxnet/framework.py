"""`legalize-mxnet`: the walk over a function."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.mxnet.ops import MxnetOp
from lowerdeck.dialects.mxnet.ranks import ranks
from lowerdeck.passes.legalize.common.walk import TableWalk
from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer
from lowerdeck.passes.legalize.mxnet.registry import legalizes
from lowerdeck.passes.legalize.mxnet.support import next_step


class MxnetWalk(TableWalk):
    """The legalization of one function of mxnet ops."""

    kind = MxnetOp
    table = legalizes
    next_step = next_step
    ranks = ranks()

    def builder(self, op: MxnetOp) -> MxnetLegalizer:
        builder = MxnetLegalizer(op, self)
        builder.require_inputs()
        return builder


infer_types = MxnetWalk.infer


class LegalizeMxnetPass(ModulePass):
    """
    Convert every mxnet op to `core` ops with exact types.

    An operator means what it does in inference. All ops that cannot be converted are listed in one
    LegalizationError.
    """

    name = "legalize-mxnet"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        MxnetWalk.run_on(op)
