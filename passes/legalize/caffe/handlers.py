"""All legalizations: importing this module registers those of every topic."""

from types import ModuleType

from lowerdeck.passes.legalize.caffe import (
    detection,
    elementwise,
    forks,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    recurrent,
    reduction,
    regions,
    sources,
)
from lowerdeck.passes.legalize.caffe.registry import legalizes

TOPICS: tuple[ModuleType, ...] = (
    detection,
    elementwise,
    forks,
    linear,
    losses,
    movement,
    normalization,
    pooling,
    recurrent,
    reduction,
    regions,
    sources,
)
"""The modules with handlers."""

handler_of = legalizes.get

__all__ = ["TOPICS", "handler_of"]
