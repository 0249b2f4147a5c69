"""`simplify`: fewer and cheaper ops, with bit-identical results."""

from __future__ import annotations

from typing import ClassVar

from xdsl.passes import ModulePass

from lowerdeck.passes.fold.simplify_arithmetic import SimplifyArithmeticPass
from lowerdeck.passes.machinery.driver import PassGroup
from lowerdeck.passes.movement.simplify_movement import SimplifyMovementPass


class SimplifyPass(PassGroup):
    """
    `simplify-arithmetic` and `simplify-movement`, alternating, until neither changes anything.

    Each enables the other: a broadcast constant that is folded into its user may be its neutral
    element, and where an op is replaced by its operand, movement ops around it become adjacent.
    """

    name = "simplify"
    members: ClassVar[tuple[type[ModulePass], ...]] = (SimplifyArithmeticPass, SimplifyMovementPass)
    rounds = 8
