"""
Kernels: from straight-line `core` ops to loop nests in `buffer`.

Importing registers all rules.
"""

from lowerdeck.lowering.kernels import (
    attention,
    bands,
    contraction,
    maps,
    reduction,
    selection,
    transposes,
)
from lowerdeck.lowering.kernels.lower import ACCUMULATING, ALONE, ANCHORS, MAPS, KernelLowering

__all__ = [
    "ACCUMULATING",
    "ALONE",
    "ANCHORS",
    "MAPS",
    "KernelLowering",
    "attention",
    "bands",
    "contraction",
    "maps",
    "reduction",
    "selection",
    "transposes",
]
