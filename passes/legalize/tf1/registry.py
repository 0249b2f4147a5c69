"""Which function legalizes which TensorFlow operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.tf1.legalizer import Tf1Legalizer

Results: TypeAlias = "Sequence[SSAValue | None]"
"""One value a result of the node, None for results that must not be used."""
Handler: TypeAlias = "Callable[[Tf1Legalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.tf1")
