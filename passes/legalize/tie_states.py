"""`tie-states`: inputs and outputs that the user calls a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from lowerdeck.dialects.core.defaults import take_defaults
from lowerdeck.dialects.core.names import STATES, unused_inputs, value_names
from lowerdeck.dialects.core.states import states_in
from lowerdeck.passes.machinery.context import options_of
from lowerdeck.passes.machinery.options import OptionError


class TieStatesPass(ModulePass):
    """
    Let inputs hold what outputs have held after the last run, as the option `states` says: the
    function gets `core.states`, with zeros before the first run, or the default of the input.

    OptionError lists the names that are no inputs and outputs, and those that are given twice or
    are states already. That types agree is checked once they are known, at the end of `optimized`.
    """

    name = "tie-states"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not (states := options_of(ctx).states):
            return
        main = next(
            (
                each
                for each in op.body.block.ops
                if isinstance(each, func.FuncOp) and each.sym_name.data == "main"
            ),
            None,
        )
        if main is None:
            raise OptionError([("state", "there is no function 'main', which could remember")])
        if problems := list(_problems(main, states)):
            raise OptionError([("state", text) for text in problems])
        known = cast("ArrayAttr[Attribute]", main.attributes.get(STATES, ArrayAttr(())))
        # What an input is when it is left out is what is remembered before the first run.
        first = {name: default.value for name, default in take_defaults(main, states).items()}
        new = (
            ArrayAttr([StringAttr(before), StringAttr(after), first.get(before, UnitAttr())])
            for before, after in states.items()
        )
        main.attributes[STATES] = ArrayAttr([*known, *new])


def _problems(main: func.FuncOp, states: Mapping[str, str]) -> Iterator[str]:
    type_ = main.function_type
    inputs = [*value_names(main.arg_attrs, len(type_.inputs)), *unused_inputs(main)]
    outputs = value_names(main.res_attrs, len(type_.outputs))
    tied = states_in(main.attributes.get(STATES))
    for before, after in states.items():
        text = f"{before}={after}"
        if before not in inputs:
            yield f"{text}: '{before}' is no input; the inputs are {_listed(inputs)}"
        if after not in outputs:
            yield f"{text}: '{after}' is no output; the outputs are {_listed(outputs)}"
        if list(states.values()).count(after) > 1:
            yield f"{text}: '{after}' is the output of several states"
        if any(before == one or after == other for one, other, _ in tied):
            yield f"{text}: the model says itself what it remembers"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
