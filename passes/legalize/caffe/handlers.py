"""All legalizations: importing this module registers those of every topic."""

from types import ModuleType

from lowerdeck.passes.legalize.caffe import (
    elementwise,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    recurrent,
    reduction,
    sources,
)
from lowerdeck.passes.legalize.caffe.registry import legalizes

TOPICS: tuple[ModuleType, ...] = (
    elementwise,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    recurrent,
    reduction,
    sources,
)
"""The modules with handlers."""

handler_of = legalizes.get

__all__ = ["TOPICS", "handler_of"]
