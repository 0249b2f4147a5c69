"""From the darknet dialect to core."""

from lowerdeck.passes.legalize.darknet.framework import LegalizeDarknetPass

__all__ = ["LegalizeDarknetPass"]
