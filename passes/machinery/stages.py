"""Parts of the compiler's way that a pipeline can name: `pre`, `opt` and `post`."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.driver import is_enabled
from lowerdeck.passes.machinery.pipeline import PASSES, STAGES


class Stage(ModulePass, ABC):
    """
    The passes of one stage, under its name.

    Runners (`run_passes`) take them one by one, so that each is seen, checked and timed by itself.
    """

    optional: ClassVar[bool] = True

    @property
    def names(self) -> list[str]:
        """Those of its passes, in order."""
        return STAGES[self.name]()

    def passes(self) -> Iterator[ModulePass]:
        """They themselves."""
        return (PASSES[name]()() for name in self.names)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not is_enabled(self, options_of(ctx)):
            return
        for pass_ in self.passes():
            if is_enabled(pass_, options_of(ctx)):
                pass_.apply(ctx, op)
