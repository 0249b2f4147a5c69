"""What the commands of `lowerdeck` share: their common arguments, and the options made of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from lowerdeck.frontends.frontend import known_formats
from lowerdeck.tools.arguments import add_options, checking_options, compile_options

if TYPE_CHECKING:
    from lowerdeck.passes.options import CompileOptions
    from lowerdeck.tools.progress import Progress

Command: TypeAlias = Callable[[argparse.Namespace], int]
"""Runs, and returns its exit status."""


def add_command(commands: Any, name: str, function: Command, text: str) -> argparse.ArgumentParser:
    """The parser of a new command, with what all commands take."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=function)
    add = parser.add_argument
    add("model", metavar="MODEL", help=f"model file: {known_formats()}")
    add_options(parser)
    add("-v", "--verbose", action="store_true", help="name each step on stderr")
    return parser


def command_options(args: argparse.Namespace, progress: Progress) -> CompileOptions:
    """The options of a command line; ToolError if they make no sense."""
    from lowerdeck.lowering.pipeline import check_options

    def step(text: str) -> None:
        progress(text)
        if args.verbose:
            print(f"lowerdeck: {text}", file=sys.stderr)

    options = compile_options(args, step)
    with checking_options("lowerdeck"):
        check_options(options)
    return options
