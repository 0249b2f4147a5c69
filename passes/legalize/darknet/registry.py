"""Which function legalizes which section of DarkNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.darknet.legalizer import DarknetLegalizer

Results: TypeAlias = "Sequence[SSAValue]"
"""The result of the layer, then its states after the call."""
Handler: TypeAlias = "Callable[[DarknetLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.darknet")
