"""
`legalize-keras`: the walk over a function.

A handler sees the call of one layer, builds `core` ops before it, and returns its results:

    @legalizes("Flatten")
    def legalize_flatten(builder: KerasLegalizer) -> Results:
        return [builder.flatten(builder.input(0), 1)]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.keras.ops import KerasOp
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer
from lowerdeck.passes.legalize.keras.registry import legalizes
from lowerdeck.passes.legalize.keras.support import next_step
from lowerdeck.passes.legalize.legalizer import RefusalError
from lowerdeck.passes.legalize.walk import FunctionWalk


class KerasWalk(FunctionWalk):
    """The legalization of one function of keras ops."""

    def converts(self, op: Operation) -> bool:
        return isinstance(op, KerasOp)

    def convert(self, op: Operation) -> None:
        assert isinstance(op, KerasOp)
        handler = legalizes.get(op.op_type)
        if handler is None:
            raise RefusalError(f"no legalization for {op.op_type}; {next_step(op.op_type)}")
        builder = KerasLegalizer(op, self.symbols)

        def results() -> Sequence[SSAValue | None]:
            values = handler(builder)
            builder.require_read()
            return values

        self.handle(op, builder, results)


def infer_types(function: func.FuncOp) -> None:
    """Set the types in a function of keras ops, as far as they can be found."""
    annotate(function, KerasWalk)


class LegalizeKerasPass(ModulePass):
    """
    Convert every keras op to `core` ops with exact types.

    A layer means what it does in inference, in the words of the version that wrote the model, and
    computes in the type of its policy. All ops that cannot be converted are listed in one
    LegalizationError.
    """

    name = "legalize-keras"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and _holds_ops(function):
                KerasWalk(function).run()


def _holds_ops(function: func.FuncOp) -> bool:
    return any(isinstance(op, KerasOp) for op in function.walk())
