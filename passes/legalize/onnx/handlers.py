"""The legalization of an op, wherever in this package it is defined."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from lowerdeck.passes.legalize.onnx.custom import custom_handler
from lowerdeck.passes.legalize.onnx.registry import Handler, registered_handler
from lowerdeck.passes.legalize.table import import_modules

if TYPE_CHECKING:
    from lowerdeck.dialects.onnx.ops import OnnxOp


def handler_of(op: OnnxOp) -> Handler | None:
    """The function that legalizes an op, or None."""
    _load()
    return registered_handler(op) or custom_handler(op)


@cache
def _load() -> None:
    import_modules("lowerdeck.passes.legalize.onnx")
