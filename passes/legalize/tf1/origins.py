"""Where values of raised functions come from, through loops, branches and what hands them on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from lowerdeck.dialects.core.control_flow import IfOp, LoopOp, YieldOp
from lowerdeck.dialects.tf1.ops import Tf1Op

Place: TypeAlias = "tuple[Operation, int]"
"""An operand: the op, and its number."""


def find_origins(start: Place, through: Callable[[Tf1Op], int | None]) -> list[Place]:
    """
    The operands at which values enter that may be the one at `start`.

    `through` gives the number of the operand that the result of an op is, or is made of; None for
    an op where values begin.
    """
    found: list[Place] = []
    seen: set[Place] = set()
    pending = [start]
    while pending:
        place = pending.pop()
        if place in seen:
            continue
        seen.add(place)
        op, number = place
        sources = _sources(op.operands[number], through)
        if sources:
            pending += sources
        else:
            found.append(place)
    return found


def _sources(value: SSAValue, through: Callable[[Tf1Op], int | None]) -> list[Place]:
    """The operands that a value may be; none for one that begins here."""
    if isinstance(value, BlockArgument):
        op, index = value.block.parent_op(), value.index - 1
    else:
        assert isinstance(value, OpResult)
        op, index = value.op, value.index
    match op:
        case LoopOp():
            (end,) = _ends(op)
            skipped = len(op.operands) - len(op.inits)
            return [(op, skipped + index), (end, (op.condition is not None) + index)]
        case IfOp():
            return [(end, index) for end in _ends(op)]
        case Tf1Op() if op.op_type in ("Identity", "RefIdentity"):
            return [(op, 0)]
        case Tf1Op() if (position := through(op)) is not None:
            return [(op, position)]
        case _:
            return []


def _ends(op: Operation) -> Iterator[YieldOp]:
    for region in op.regions:
        end = region.block.last_op
        assert isinstance(end, YieldOp)
        yield end
