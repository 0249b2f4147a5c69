"""All legalizations: importing this module registers those of every topic."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from lowerdeck.passes.legalize.onnx import (
    activation,
    control_flow,
    conversion,
    convolution,
    elementwise,
    generators,
    image,
    indexing,
    learned,
    linear,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    sampling,
    sequences,
    shape,
    signal,
    sorting,
    support_vectors,
    tensor,
    trees,
)
from lowerdeck.passes.legalize.onnx.custom import custom_handler
from lowerdeck.passes.legalize.onnx.registry import Handler, registered_handler

if TYPE_CHECKING:
    from lowerdeck.dialects.onnx.ops import OnnxOp

TOPICS: tuple[ModuleType, ...] = (
    activation,
    control_flow,
    conversion,
    convolution,
    elementwise,
    generators,
    image,
    indexing,
    learned,
    linear,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    resize,
    sampling,
    sequences,
    shape,
    signal,
    sorting,
    support_vectors,
    tensor,
    trees,
)
"""The modules with handlers."""

__all__ = ["TOPICS", "handler_of"]


def handler_of(op: OnnxOp) -> Handler | None:
    """The function that legalizes an op, or None."""
    return registered_handler(op) or custom_handler(op)
