"""All legalizations: importing this module registers those of every topic."""

from types import ModuleType

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
from lowerdeck.passes.legalize.onnx.registry import handler_of

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
