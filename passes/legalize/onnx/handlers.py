"""All legalizations: importing this module registers those of every topic."""

from types import ModuleType

from lowerdeck.passes.legalize.onnx import (
    activation,
    control_flow,
    convolution,
    elementwise,
    generators,
    indexing,
    linear,
    normalization,
    pooling,
    reduction,
    sequences,
    shape,
    sorting,
    tensor,
)
from lowerdeck.passes.legalize.onnx.registry import handler_of

TOPICS: tuple[ModuleType, ...] = (
    activation,
    convolution,
    control_flow,
    elementwise,
    generators,
    indexing,
    linear,
    normalization,
    pooling,
    reduction,
    sequences,
    shape,
    sorting,
    tensor,
)
"""The modules with handlers."""

__all__ = ["TOPICS", "handler_of"]
