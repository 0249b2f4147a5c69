"""Which function legalizes which operator of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from lowerdeck.passes.legalize.common.walk import Results
from lowerdeck.passes.legalize.table import HandlerTable

if TYPE_CHECKING:
    from lowerdeck.passes.legalize.tflite.legalizer import TfliteLegalizer

Handler: TypeAlias = "Callable[[TfliteLegalizer], Results]"

legalizes: HandlerTable[Handler] = HandlerTable("lowerdeck.passes.legalize.tflite")
