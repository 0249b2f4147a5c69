"""From the pt2 dialect to core."""

from lowerdeck.passes.legalize.pt2.framework import LegalizePt2Pass

__all__ = ["LegalizePt2Pass"]
