"""How many statements of C the ops of a driver are, at most."""

from __future__ import annotations

from functools import singledispatch

from xdsl.ir import Block, Operation

from lowerdeck.dialects.buffer import driver, kernel
from lowerdeck.dialects.buffer.entry import OpenOutputOp
from lowerdeck.dialects.core.control_flow import names_in

_SCOPE = 3
"""A block that gives memory back: the mark, a condition, and the call."""

_PAIR = 5
"""A pair of slots: two declarations, and three statements that swap them."""

_SYMBOL = 2
"""The declaration, and a use that keeps compilers from warning of none."""

_SIZE = 3 + _SYMBOL
"""A size that changes: its variable, what it is set to in two places, and the symbol."""

CALL_OF_SECTION = 3
"""The call, and a look at what it returns."""


def statements_of_block(block: Block) -> int:
    """The sum over its ops."""
    return sum(map(statements, block.ops))


def statements_of_section(op: driver.SectionOp) -> int:
    """Those of the function that it is."""
    return statements_of_block(op.body.block) + 1 + len(op.results) + len(op.made_symbols)


@singledispatch
def statements(op: Operation) -> int:
    """Statements that an op of the driver prints, with the ops in it."""
    return 1


@statements.register(kernel.YieldOp)
@statements.register(kernel.ReturnOp)
def _(op: Operation) -> int:
    return 0


@statements.register
def _(op: OpenOutputOp) -> int:
    """They are counted with the arguments."""
    return 0


@statements.register
def _(op: driver.AllocOp) -> int:
    """From the allocator: size, test, pointer, test."""
    return 6 if op.dynamic.value.data else 1


@statements.register
def _(op: driver.CheckStatusOp) -> int:
    """Threads agree; a test."""
    return 3


@statements.register(driver.RequireOp)
@statements.register(driver.MarkOp)
def _(op: driver.RequireOp | driver.MarkOp) -> int:
    """A condition, and what depends on it."""
    return 2


@statements.register
def _(op: driver.BindOp) -> int:
    return _SYMBOL * len(op.made_symbols)


@statements.register(driver.OnceOp)
@statements.register(driver.ShareOp)
def _(op: driver.OnceOp | driver.ShareOp) -> int:
    """A condition, or the parts and a loop over them."""
    return 2 + statements_of_block(op.body.block)


@statements.register
def _(op: driver.SectionOp) -> int:
    """A function of its own: here only the call, with variables for what it gives."""
    return CALL_OF_SECTION + len(op.results) + len(op.made_symbols)


@statements.register
def _(op: driver.IfOp) -> int:
    """A result is declared, set in two places and used."""
    around = 1 + 4 * len(op.results) + _SIZE * len(op.made_symbols) + 2 * _SCOPE
    return around + sum(statements_of_block(region.block) for region in op.regions)


@statements.register
def _(op: driver.LoopOp) -> int:
    """Variables, the loop, the body, and at its end what the next iteration begins with."""
    own = _PAIR * (len(op.slots) // 2) + 4 * len(op.owned)
    sizes = (_SIZE + _SYMBOL) * len(names_in(op.carried_symbols))
    return 3 + _SYMBOL + _SCOPE + own + sizes + statements_of_block(op.body.block)
