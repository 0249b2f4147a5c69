"""
`legalize-pt2`: the walk over a function.

A handler sees one op whose operands are `core` values with exact types already, builds `core` ops
before it, and returns a value for each of its results:

    @legalizes("relu")
    def legalize_relu(builder: Pt2Legalizer) -> Results:
        return [builder.value("self").maximum(0).value]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.dialects.core.types import dims_of, element_type
from lowerdeck.dialects.pt2.ops import Pt2Op
from lowerdeck.passes.legalize.inference import annotate
from lowerdeck.passes.legalize.legalizer import RefusalError
from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer
from lowerdeck.passes.legalize.pt2.registry import handler_of
from lowerdeck.passes.legalize.pt2.support import next_step
from lowerdeck.passes.legalize.tf1.control_flow import legalize_if, legalize_loop
from lowerdeck.passes.legalize.walk import FunctionWalk


class Pt2Walk(FunctionWalk):
    """The legalization of one function of pt2 ops."""

    def converts(self, op: Operation) -> bool:
        return isinstance(op, Pt2Op | IfOp | LoopOp)

    def convert(self, op: Operation) -> None:
        match op:
            case IfOp():
                legalize_if(op, self)
            case LoopOp():
                legalize_loop(op, self)
            case Pt2Op():
                self._node(op)
            case _:
                raise TypeError(f"{op.name} is not converted")

    def _node(self, op: Pt2Op) -> None:
        handler = handler_of(op.op_type)
        if handler is None:
            raise RefusalError(f"no legalization for {op.op_type}; {next_step(op.op_type)}")
        builder = Pt2Legalizer(op, self.symbols)

        def results() -> Sequence[SSAValue | None]:
            values = list(handler(builder))
            if op.is_in_place and values[0] is not None:
                into = op.operands[0]
                value = builder.cast(values[0], element_type(into))
                values[0] = builder.broadcast(value, dims_of(into))
            for index, value in enumerate(values):
                if value is not None and not op.is_in_place:
                    builder.require_element(index, value)
            return values

        self.handle(op, builder, results)


def infer_types(function: func.FuncOp) -> None:
    """Set the types in a function of pt2 ops, as far as they can be found."""
    annotate(function, Pt2Walk)


class LegalizePt2Pass(ModulePass):
    """
    Convert every pt2 op to `core` ops with exact types.

    Operands of several types become what PyTorch's promotion says, which is compared with the type
    that the file states. What is carried by loops and yielded by branches gets the types that the
    bodies give. All ops that cannot be converted are listed in one LegalizationError.
    """

    name = "legalize-pt2"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and _holds_ops(function):
                Pt2Walk(function).run()


def _holds_ops(function: func.FuncOp) -> bool:
    return any(isinstance(op, Pt2Op) for op in function.walk())
