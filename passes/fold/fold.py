"""`fold`: constant folding, at compile time, of values, control flow and shapes."""

from __future__ import annotations

from typing import ClassVar

from xdsl.passes import ModulePass

from lowerdeck.passes.fold.fold_constants import FoldConstantsPass
from lowerdeck.passes.fold.fold_control_flow import FoldControlFlowPass
from lowerdeck.passes.fold.fold_identities import FoldIdentitiesPass
from lowerdeck.passes.fold.fold_symbols import FoldSymbolsPass
from lowerdeck.passes.machinery.driver import PassGroup


class FoldPass(PassGroup):
    """
    `fold-constants`, `fold-identities`, `fold-control-flow` and `fold-symbols`, alternating, until
    none of them changes anything (at most 8 rounds).

    Each enables the others: a constant decides a branch, its ops bind symbols to constants, and a
    shape that becomes static makes a reshape the identity.
    """

    name = "fold"
    members: ClassVar[tuple[type[ModulePass], ...]] = (
        FoldConstantsPass,
        FoldIdentitiesPass,
        FoldControlFlowPass,
        FoldSymbolsPass,
    )
    rounds = 8
