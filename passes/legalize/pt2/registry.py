"""Which function legalizes which operator of PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.pt2.legalizer import Pt2Legalizer

Results: TypeAlias = "Sequence[SSAValue | None]"
"""One value a result of the op, None for results that must not be used."""
Handler: TypeAlias = "Callable[[Pt2Legalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.pt2")
"""By the operator: without `aten.` and, where all overloads are one, without the overload."""


def handler_of(target: str) -> Handler | None:
    """The function for an overload, or for its operator."""
    name = target.removeprefix("aten.")
    return legalizes.get(name) or legalizes.get(name.rpartition(".")[0])
