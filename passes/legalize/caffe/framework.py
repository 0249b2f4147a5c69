"""
`legalize-caffe`: the walk over a function, and what a handler works with.

A handler sees one layer whose operands are `core` values with exact types already, builds `core`
ops before it, and returns a value for each of its tops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from lowerdeck.passes.legalize.legalizer import Legalizer, RefusalError
from lowerdeck.passes.legalize.table import HandlerTable
from lowerdeck.passes.legalize.walk import FunctionWalk

Results: TypeAlias = "Sequence[SSAValue | None]"
Handler: TypeAlias = Callable[[Operation, Legalizer], Results]

legalizes: HandlerTable[Handler] = HandlerTable()


class _CaffeWalk(FunctionWalk):
    """The legalization of one function of caffe ops."""

    def converts(self, op: Operation) -> bool:
        return op.name.startswith("caffe.")

    def convert(self, op: Operation) -> None:
        handler = legalizes.get(op.name.removeprefix("caffe."))
        if handler is None:
            raise RefusalError(f"no legalization for {op.name}")
        lower = Legalizer(op, self.symbols)
        self.handle(op, lower, lambda: handler(op, lower))


@dataclass(frozen=True)
class LegalizeCaffePass(ModulePass):
    """
    Convert every caffe op to `core` ops with exact types.

    All layers that cannot be converted are listed in one LegalizationError.
    """

    name = "legalize-caffe"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in list(op.walk()):
            if isinstance(function, func.FuncOp) and not function.is_declaration:
                _CaffeWalk(function).run()
