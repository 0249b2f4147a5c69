"""
Kernels: from straight-line `core` ops to loop nests in `buffer`.

Importing registers all plain nests; strategies have better ones for many kernels.
"""

from lowerdeck.lowering.nests import (
    attention,
    contraction,
    custom,
    maps,
    reduction,
    selection,
    sparse,
    suppress,
    top_k,
)
from lowerdeck.lowering.nests.lower import ACCUMULATING, ALONE, ANCHORS, MAPS, KernelLowering

__all__ = [
    "ACCUMULATING",
    "ALONE",
    "ANCHORS",
    "MAPS",
    "KernelLowering",
    "attention",
    "contraction",
    "custom",
    "maps",
    "reduction",
    "selection",
    "sparse",
    "suppress",
    "top_k",
]
