"""An upper bound on the number of C statements for the ops of an entry function."""

from __future__ import annotations

from functools import singledispatch

from xdsl.ir import Block, Operation

from lowerdeck.dialects.buffer import entry_ops, kernel
from lowerdeck.dialects.buffer.entry import OpenOutputOp
from lowerdeck.dialects.core.control_flow import names_in

_SCOPE = 3
"""A block that releases memory: the mark, a condition, and the call."""

_PAIR = 5
"""A pair of slots: two declarations, and three statements that swap them."""

_SYMBOL = 2
"""The declaration, and a use that avoids the warning for unused variables."""

_SIZE = 3 + _SYMBOL
"""A size that changes: its variable, two assignments, and the symbol."""

CALL_OF_SECTION = 3
"""The call, and a check of its status."""


def statements_of_block(block: Block) -> int:
    """The sum over the ops of a block."""
    return sum(map(statements, block.ops))


def statements_of_section(op: entry_ops.SectionOp) -> int:
    """The statements of the function of a section."""
    return statements_of_block(op.body.block) + 1 + len(op.results) + len(op.made_symbols)


@singledispatch
def statements(op: Operation) -> int:
    """The C statements of an op of the entry function, with its nested ops."""
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
def _(op: entry_ops.AllocOp) -> int:
    """From the allocator: size, test, pointer, test."""
    return 6 if op.dynamic.value.data else 1


@statements.register
def _(op: entry_ops.CheckStatusOp) -> int:
    """Threads agree; a test."""
    return 3


@statements.register(entry_ops.RequireOp)
@statements.register(entry_ops.MarkOp)
def _(op: entry_ops.RequireOp | entry_ops.MarkOp) -> int:
    """A condition and the statement that it guards."""
    return 2


@statements.register
def _(op: entry_ops.BindOp) -> int:
    return _SYMBOL * len(op.made_symbols)


@statements.register(entry_ops.OnceOp)
@statements.register(entry_ops.ShareOp)
def _(op: entry_ops.OnceOp | entry_ops.ShareOp) -> int:
    """A condition, or the parts and a loop over them."""
    return 2 + statements_of_block(op.body.block)


@statements.register
def _(op: entry_ops.SectionOp) -> int:
    """A separate function: only the call counts here, with variables for its results."""
    return CALL_OF_SECTION + len(op.results) + len(op.made_symbols)


@statements.register
def _(op: entry_ops.IfOp) -> int:
    """A result is declared, assigned in two places and used."""
    around = 1 + 4 * len(op.results) + _SIZE * len(op.made_symbols) + 2 * _SCOPE
    return around + sum(statements_of_block(region.block) for region in op.regions)


@statements.register
def _(op: entry_ops.LoopOp) -> int:
    """Variables, the loop, the body, and the assignments for the next iteration at its end."""
    own = _PAIR * (len(op.slots) // 2) + 4 * len(op.owned)
    sizes = (_SIZE + _SYMBOL) * len(names_in(op.carried_symbols))
    return 3 + _SYMBOL + _SCOPE + own + sizes + statements_of_block(op.body.block)
