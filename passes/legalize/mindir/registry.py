"""Which function legalizes which primitive of MindSpore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.mindir.legalizer import MindirLegalizer

Results: TypeAlias = "Sequence[SSAValue | None]"
"""One value a result of the op, None for results that must not be used."""
Handler: TypeAlias = "Callable[[MindirLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.mindir")
