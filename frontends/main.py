"""What a model becomes: a module whose only function is `main`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, LocationAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from lowerdeck.dialects.core.names import STATES, named
from lowerdeck.dialects.records import record


@record
class State:
    """What is remembered from call to call."""

    before: str
    """The name of the input that holds it."""
    after: str
    """That of the output."""
    value: SSAValue
    """What it holds after a call."""
    first: Attribute
    """The constant that it begins with."""


def main_module(
    block: Block,
    inputs: Sequence[str],
    results: Sequence[tuple[str, SSAValue]],
    states: Sequence[State],
    location: LocationAttr,
) -> ModuleOp:
    """
    The module of a function with this body, whose arguments are the inputs, then the states, and
    which returns the results, then the states.
    """
    last = func.ReturnOp(*(value for _, value in results), *(state.value for state in states))
    block.add_op(last)
    main = func.FuncOp(
        "main",
        (block.arg_types, last.arguments.types),
        Region(block),
        arg_attrs=named([*inputs, *(state.before for state in states)]),
        res_attrs=named([*(name for name, _ in results), *(state.after for state in states)]),
    )
    main.location = last.location = location
    if states:
        main.attributes[STATES] = ArrayAttr(
            ArrayAttr([StringAttr(state.before), StringAttr(state.after), state.first])
            for state in states
        )
    return ModuleOp([main])


def fresh(base: str, taken: set[str]) -> str:
    """A name that is not taken, and is from now on."""
    name, count = base, 1
    while name in taken:
        name, count = f"{base}_{count}", count + 1
    taken.add(name)
    return name
