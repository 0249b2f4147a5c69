"""Regions whose ops are in no order."""

from __future__ import annotations

from xdsl.traits import OpTrait


class HasGraphRegion(OpTrait):
    """
    The op's region is one of MLIR's graph regions: its ops are in no order, and a value may be used
    before it is defined.
    """
