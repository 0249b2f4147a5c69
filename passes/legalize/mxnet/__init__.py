"""From the mxnet dialect to core."""

from lowerdeck.passes.legalize.mxnet.framework import LegalizeMxnetPass

__all__ = ["LegalizeMxnetPass"]
