"""Which function legalizes which operator of PaddlePaddle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from xdsl.ir import SSAValue

from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.paddle.legalizer import PaddleLegalizer

Handler: TypeAlias = "Callable[[PaddleLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.paddle")
"""By the name of the operator in PIR."""


def single(values: Mapping[str, Callable[[PaddleLegalizer], SSAValue]]) -> dict[str, Handler]:
    """Handlers of operators of one result, which a function gives."""
    return {name: partial(_only, function) for name, function in values.items()}


def _only(function: Callable[[PaddleLegalizer], SSAValue], builder: PaddleLegalizer) -> Results:
    return [function(builder)]
