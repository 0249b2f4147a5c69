"""Which function legalizes which operator of MXNet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer

Handler: TypeAlias = "Callable[[MxnetLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.mxnet")
"""By the first name of the operator."""
