"""All ops of a part of a module, in the order of the text, and what each reads."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from xdsl.ir import Block, Operation, Region, SSAValue

operands_of: Callable[[Operation], tuple[SSAValue, ...]] = attrgetter("_operands")
"""What `op.operands` is a view of, as it is now: to go through it takes half the time."""


def all_ops(root: Operation | Region | Block) -> list[Operation]:
    """
    The ops that `walk` of xDSL gives, an op before those in its regions, as they are now.

    Nested generators, which `walk` is, take several times as long, and a list may be changed under.
    """
    found: list[Operation] = []
    if isinstance(root, Operation):
        found.append(root)
        for region in root.regions:
            _add_region(region, found)
    elif isinstance(root, Region):
        _add_region(root, found)
    else:
        _add_block(root, found)
    return found


def _add_region(region: Region, found: list[Operation]) -> None:
    block = region.first_block
    while block is not None:
        _add_block(block, found)
        block = block.next_block


def _add_block(block: Block, found: list[Operation]) -> None:
    add, op = found.append, block.first_op
    while op is not None:
        add(op)
        if op.regions:
            for region in op.regions:
                _add_region(region, found)
        op = op.next_op
