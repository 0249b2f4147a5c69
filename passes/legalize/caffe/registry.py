"""Which function legalizes which type of layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.caffe.legalizer import CaffeLegalizer

Results: TypeAlias = "Sequence[SSAValue | None]"
"""One value a top, None for tops that must not be used."""
Handler: TypeAlias = "Callable[[CaffeLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.caffe")
