"""
`legalize-darknet`: the walk over a function.

A handler sees one layer whose operands are `core` values with exact types already, builds `core`
ops before it, and returns its result and what its states are after the call:

    @legalizes("empty")
    def legalize_empty(builder: DarknetLegalizer) -> Results:
        return [builder.input()]
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from lowerdeck.dialects.darknet.ops import DarknetOp
from lowerdeck.dialects.darknet.shapes import ShapeError
from lowerdeck.passes.legalize.darknet.legalizer import DarknetLegalizer
from lowerdeck.passes.legalize.darknet.registry import Results, legalizes
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.legalizer import RefusalError
from lowerdeck.passes.legalize.walk import FunctionWalk


class DarknetWalk(FunctionWalk):
    """The legalization of one function of darknet ops."""

    def converts(self, op: Operation) -> bool:
        return isinstance(op, DarknetOp)

    def convert(self, op: Operation) -> None:
        assert isinstance(op, DarknetOp)
        handler = legalizes.get(op.op_type)
        if handler is None:
            raise RefusalError(f"no legalization for {op.op_type}")
        builder = DarknetLegalizer(op, self.symbols)

        def results() -> Results:
            try:
                builder.check()
                return handler(builder)
            except ShapeError as error:
                raise RefusalError(str(error)) from None

        self.handle(op, builder, results)


def infer_types(function: func.FuncOp) -> None:
    """Set the types in a function of darknet ops, as far as they can be found."""
    annotate(function, DarknetWalk)


class LegalizeDarknetPass(ModulePass):
    """
    Convert every darknet op to `core` ops with exact types.

    All layers that cannot be converted are listed in one LegalizationError.
    """

    name = "legalize-darknet"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                DarknetWalk(function).run()
