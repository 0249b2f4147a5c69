"""From the paddle dialect to core."""

from lowerdeck.passes.legalize.paddle.framework import LegalizePaddlePass

__all__ = ["LegalizePaddlePass"]
