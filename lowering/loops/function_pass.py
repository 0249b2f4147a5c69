"""Passes that see one function of a kernel at a time."""

from __future__ import annotations

from abc import abstractmethod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.dialects.buffer.kernel import FuncOp
from lowerdeck.lowering.targets import target_named
from lowerdeck.lowering.targets.base import Target
from lowerdeck.passes.machinery.context import options_of


class FunctionPass(ModulePass):
    """
    A pass that changes each function of a kernel by itself. What it does depends on the function
    and the target alone: not on locations, on names, on what else is in the module, or on options.
    So what became of a function holds for all that are equal (`buffers/finishing.py`).
    """

    @abstractmethod
    def run(self, function: FuncOp, target: Target) -> None:
        """Change one function."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_named(options_of(ctx).target)
        for function in list(op.body.block.ops):
            if isinstance(function, FuncOp):
                self.run(function, target)
