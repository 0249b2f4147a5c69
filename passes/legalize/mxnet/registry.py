"""Which function legalizes which operator of MXNet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.mxnet.legalizer import MxnetLegalizer

Results: TypeAlias = "Sequence[SSAValue | None]"
"""One value a result of the op, None for results that must not be used."""
Handler: TypeAlias = "Callable[[MxnetLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.mxnet")
"""By the first name of the operator."""
