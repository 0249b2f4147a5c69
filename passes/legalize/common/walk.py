"""The walk of a legalization whose functions hold ops of a framework, `core.if` and `core.loop`."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp
from lowerdeck.passes.legalize.common.control_flow import legalize_if, legalize_loop
from lowerdeck.passes.legalize.walk import FunctionWalk


class StructuredWalk(FunctionWalk):
    """The legalization of one function with structured control flow."""

    kind: ClassVar[type[Operation]]
    """The class of the framework's ops."""

    @abstractmethod
    def legalize(self, op: Operation) -> None:
        """Replace one of the framework's ops, as `convert`."""

    def converts(self, op: Operation) -> bool:
        return isinstance(op, (self.kind, IfOp, LoopOp))

    def convert(self, op: Operation) -> None:
        if isinstance(op, IfOp):
            legalize_if(op, self)
        elif isinstance(op, LoopOp):
            legalize_loop(op, self)
        else:
            self.legalize(op)

    @classmethod
    def run_on(cls, module: ModuleOp) -> None:
        """Legalize all functions that hold ops of the framework."""
        for function in list(module.walk()):
            if isinstance(function, func.FuncOp) and cls._is_needed(function):
                cls(function).run()

    @classmethod
    def _is_needed(cls, function: func.FuncOp) -> bool:
        return any(isinstance(op, cls.kind) for op in function.walk())
