"""Which function legalizes which class of Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.keras.legalizer import KerasLegalizer

Handler: TypeAlias = "Callable[[KerasLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.keras")
"""Which classes of Keras are compiled."""
