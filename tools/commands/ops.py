"""`lowerdeck ops`: the operators of a model, and which of them can be compiled."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.command import add_command, command_options, module_at, write_json
from lowerdeck.tools.common import about

if TYPE_CHECKING:
    from lowerdeck.tools.list_ops import Operator

_REFUSED = re.compile(r"^.*?: node '.*?'(?:, '.*?')* \((\w+)\): ", re.MULTILINE)
"""The operator in a line that refuses a node."""


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(commands, "ops", run, "list the operators, and which can be compiled")
    one.add_argument("--json", metavar="F", help="also write the list to F")


def _entry(operator: Operator, *, is_refused: bool) -> dict[str, Any]:
    """An operator as JSON has it."""
    return {
        "domain": operator.domain,
        "operator": operator.op_type,
        "version": operator.version,
        "support": operator.support,
        "is_compiled": operator.support is not None and not is_refused,
        "nodes": operator.nodes,
        "advice": operator.next_step or None,
    }


def _print(operators: list[Operator], refused: set[str], refusal: str) -> None:
    """The list as text."""
    for operator in operators:
        text = str(operator)
        print(f"{text}, but refused as it is used" if operator.op_type in refused else text)
    if refusal:
        print(refusal)


def run(args: argparse.Namespace) -> int:
    """Print the list; the status is 1 if something cannot be compiled."""
    from lowerdeck.dialects.core.custom import CustomOp
    from lowerdeck.dialects.errors import CompileError
    from lowerdeck.frontends.errors import FrontendError
    from lowerdeck.tools.list_ops import left_out, used_operators
    from lowerdeck.tools.progress import progress

    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        operators = used_operators(args.model, options)
        refusal = ""
        try:
            module = module_at(args, options, "legal")
            if not any(isinstance(op, CustomOp) for op in module.walk()):
                operators = left_out(operators)
        except (FrontendError, CompileError) as error:
            # An operator may also be refused for the way in which a node uses it.
            if all(operator.support is not None for operator in operators):
                refusal = str(error)
        refused = set(_REFUSED.findall(refusal))
        if args.json:
            entries = [_entry(each, is_refused=each.op_type in refused) for each in operators]
            write_json(args.json, {"operators": entries, "refusal": refusal or None})
        _print(operators, refused, refusal)
    return 1 if refusal or any(operator.support is None for operator in operators) else 0
