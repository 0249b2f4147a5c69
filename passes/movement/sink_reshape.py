"""`sink-reshape`: maps are done before reshapes, where the ops around them can take them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from lowerdeck.passes.machinery.driver import Pattern, PatternPass
from lowerdeck.passes.movement.reshapes import SinkReshape


class SinkReshapePass(PatternPass):
    """
    Maps are done before reshapes, with the ops that compute what is reshaped.

    - f(reshape(x), c) -> reshape(f(x, c')) [f elementwise, with a result of the size of x; a
      convolution, product, pool, reduction or map computes x, which has no other use; c broadcasts
      to x, reshaped: it is one element, or has whole groups of the dimensions that the reshape
      takes together; it is none of that size that would be moved like x: x is computed by a map and
      c by a map, too, or by one of the other ops]
    - f(reshape(x), reshape(y), c) -> reshape(f(x, y, c')) [the same, of whatever x and y of equal
      dimensions]

    A reshape costs nothing by itself, but no kernel contains one: what is behind it is another pass
    over memory.
    """

    name = "sink-reshape"

    def patterns(self, module: ModuleOp) -> Sequence[Pattern[Any]]:
        return [SinkReshape()]
