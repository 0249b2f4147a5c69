"""From the mindir dialect to core."""

from lowerdeck.passes.legalize.mindir.framework import LegalizeMindirPass

__all__ = ["LegalizeMindirPass"]
