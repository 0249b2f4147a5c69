"""`lowerdeck ops`: the operators of a model, and which of them can be compiled."""

from __future__ import annotations

import argparse
from typing import Any

from lowerdeck.tools.command import add_command, command_options, module_at
from lowerdeck.tools.common import about


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    add_command(commands, "ops", run, "list the operators, and which can be compiled")


def run(args: argparse.Namespace) -> int:
    """Print the list; the status is 1 if something cannot be compiled."""
    from lowerdeck.dialects.errors import CompileError
    from lowerdeck.frontends.errors import FrontendError
    from lowerdeck.tools.list_ops import used_operators
    from lowerdeck.tools.progress import progress

    with about(args.model), progress() as shown:
        operators = used_operators(args.model, command_options(args, shown))
        for operator in operators:
            print(operator)
        if all(operator.support is not None for operator in operators):
            # An operator may still be refused for the way in which a node uses it.
            try:
                module_at(args, command_options(args, shown), "legal")
            except (FrontendError, CompileError) as error:
                print(error)
                return 1
            return 0
    return 1
