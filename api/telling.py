"""The observer that tells a user what a compilation does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from lowerdeck.lowering.pipeline import Observer
    from lowerdeck.passes.machinery.context import LowerdeckContext


def telling(context: LowerdeckContext) -> Observer:
    """Tells of each pass as it begins and, if that is asked for, as it ends; of each phase then."""
    from lowerdeck.lowering.pipeline import Observer
    from lowerdeck.passes.machinery.options import FinishedPass

    options, recorder = context.options, context.recorder

    class Telling(Observer):
        operations = rewrites = 0
        start = 0.0

        @property
        def watches_kernels(self) -> bool:
            return options.finished is not None

        def before_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
            options.progress(pass_.name)
            if options.finished is not None:
                self.operations, self.rewrites = _operations(module), recorder.rewrites
                self.start = time.perf_counter()

        def after_pass(self, pass_: ModulePass, phase: str, module: ModuleOp) -> None:
            if options.finished is None:
                return
            seconds, after = time.perf_counter() - self.start, _operations(module)
            rewrites = recorder.rewrites - self.rewrites
            options.finished(FinishedPass(pass_.name, seconds, self.operations, after, rewrites))

        def after_phase(self, phase: str, module: ModuleOp) -> None:
            options.progress(phase)

    return Telling()


def _operations(module: ModuleOp) -> int:
    return sum(1 for _ in module.walk())
