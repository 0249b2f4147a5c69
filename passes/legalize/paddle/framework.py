"""
`legalize-paddle`: the walk over a function.

A handler sees one op whose operands are `core` values with exact types already, builds `core` ops
before it, and returns a value for each of its results:

    @legalizes("relu")
    def legalize_relu(builder: PaddleLegalizer) -> Results:
        return [builder.value("x").maximum(0).value]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.paddle.ops import PaddleOp
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.legalizer import RefusalError
from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer
from lowerdeck.passes.legalize.paddle.registry import legalizes
from lowerdeck.passes.legalize.paddle.support import next_step
from lowerdeck.passes.legalize.tf1.control_flow import legalize_if, legalize_loop
from lowerdeck.passes.legalize.walk import FunctionWalk


class PaddleWalk(FunctionWalk):
    """The legalization of one function of paddle ops."""

    def converts(self, op: Operation) -> bool:
        return isinstance(op, PaddleOp | IfOp | LoopOp)

    def convert(self, op: Operation) -> None:
        match op:
            case IfOp():
                legalize_if(op, self)
            case LoopOp():
                legalize_loop(op, self)
            case PaddleOp():
                self._node(op)
            case _:
                raise TypeError(f"{op.name} is not converted")

    def _node(self, op: PaddleOp) -> None:
        handler = legalizes.get(op.schema.target)
        if handler is None:
            raise RefusalError(f"no legalization for {op.op_type}; {next_step(op.schema.target)}")
        builder = PaddleLegalizer(op, self.symbols)

        def results() -> Sequence[SSAValue | None]:
            values = list(handler(builder))
            for index, value in enumerate(values[: len(op.results)]):
                if value is not None:
                    builder.require_element(index, value)
            return values

        self.handle(op, builder, results)


def infer_types(function: func.FuncOp) -> None:
    """Set the types in a function of paddle ops, as far as they can be found."""
    annotate(function, PaddleWalk)


@dataclass(frozen=True)
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
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and _holds_ops(function):
                PaddleWalk(function).run()


def _holds_ops(function: func.FuncOp) -> bool:
    return any(isinstance(op, PaddleOp) for op in function.walk())
