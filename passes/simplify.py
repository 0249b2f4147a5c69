"""`simplify`: fewer and cheaper ops, bit for bit."""

from __future__ import annotations

from typing import ClassVar

from xdsl.passes import ModulePass

from lowerdeck.passes.driver import PassGroup
from lowerdeck.passes.simplify_arithmetic import SimplifyArithmeticPass
from lowerdeck.passes.simplify_movement import SimplifyMovementPass


class SimplifyPass(PassGroup):
    """
    `simplify-arithmetic` and `simplify-movement`, in turn, until neither finds anything.

    Each feeds the other: a broadcast constant that an op reads by itself may be neutral in it, and
    where an op gives its operand back, what moves its elements meets what moved them before.
    """

    name = "simplify"
    members: ClassVar[tuple[type[ModulePass], ...]] = (SimplifyArithmeticPass, SimplifyMovementPass)
    rounds = 8
