"""All legalizations: importing this module registers those of every topic."""

from types import ModuleType

from lowerdeck.passes.legalize.onnx import activation, elementwise
from lowerdeck.passes.legalize.onnx.registry import handler_of

TOPICS: tuple[ModuleType, ...] = (activation, elementwise)
"""The modules with handlers."""

__all__ = ["TOPICS", "handler_of"]
