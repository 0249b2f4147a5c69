"""Which function legalizes which class of Keras."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer

Results: TypeAlias = "Sequence[SSAValue]"
Handler: TypeAlias = "Callable[[KerasLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.keras")
"""Which classes of Keras are compiled."""
