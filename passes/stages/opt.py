"""`opt`: fewer ops by formulas."""

from __future__ import annotations

from lowerdeck.passes.machinery.stages import Stage


class OptPass(Stage):
    """
    The passes that make fewer ops by formulas, in the order of the phase `optimized`: transposes
    move, `fuse` finds formulas and fills weights, strides and crops move up, and `fold`, `simplify`
    and `cse` clean up.
    """

    name = "opt"
