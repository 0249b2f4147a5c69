"""Which function legalizes which operator of PaddlePaddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer

Handler: TypeAlias = "Callable[[PaddleLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.paddle")
"""By the name of the operator in PIR."""
