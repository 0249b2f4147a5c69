"""All legalizations: importing this module registers those of every topic."""

from types import ModuleType

from lowerdeck.passes.legalize.tf1 import (
    activation,
    audio,
    basic,
    convolution,
    counting,
    decomposition,
    detection,
    elementwise,
    generators,
    image,
    indexing,
    layout,
    linear,
    loss,
    matrix,
    normalization,
    patches,
    pooling,
    quantization,
    quantized,
    recurrent,
    reduction,
    scatter,
    shape,
    slicing,
    sorting,
    tensor_array,
    tensor_list,
    variables,
)
from lowerdeck.passes.legalize.tf1.registry import legalizes

TOPICS: tuple[ModuleType, ...] = (
    activation,
    audio,
    basic,
    convolution,
    counting,
    decomposition,
    detection,
    elementwise,
    generators,
    image,
    indexing,
    layout,
    linear,
    loss,
    matrix,
    normalization,
    patches,
    pooling,
    quantization,
    quantized,
    recurrent,
    reduction,
    scatter,
    shape,
    slicing,
    sorting,
    tensor_array,
    tensor_list,
    variables,
)
"""The modules with handlers."""

handler_of = legalizes.get

__all__ = ["TOPICS", "handler_of"]
