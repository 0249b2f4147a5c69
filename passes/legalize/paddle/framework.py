"""`legalize-paddle`: the walk over a function."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.paddle.ops import PaddleOp
from lowerdeck.dialects.paddle.ranks import ranks
from lowerdeck.passes.legalize.common.walk import TableWalk
from lowerdeck.passes.legalize.paddle.arrays import CreateArrayOp
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import legalizes
from lowerdeck.passes.legalize.paddle.support import next_step


class PaddleWalk(TableWalk):
    """The legalization of one function of paddle ops."""

    kind = PaddleOp
    table = legalizes
    next_step = next_step
    ranks = ranks()

    def is_transient(self, op: Operation) -> bool:
        return isinstance(op, CreateArrayOp)

    def builder(self, op: PaddleOp) -> PaddleLegalizer:
        return PaddleLegalizer(op, self.symbols, self.companions)

    def name_of(self, op: PaddleOp) -> str:
        return op.schema.target

    def legalize(self, op: Operation) -> None:
        if not isinstance(op, CreateArrayOp):  # it stands for the array while that is empty
            super().legalize(op)


infer_types = PaddleWalk.infer


class LegalizePaddlePass(ModulePass):
    """
    Convert every paddle op to `core` ops with exact types.

    The types of elements are compared with those that the file states. What is carried by loops and
    yielded by branches gets the types that the bodies give. All ops that cannot be converted are
    listed in one LegalizationError.
    """

    name = "legalize-paddle"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        PaddleWalk.run_on(op)
