"""lowerdeck: the user's command; each of its commands is a module of `commands`."""

# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from lowerdeck.dialects.files import is_special
from lowerdeck.tools.check import add_check
from lowerdeck.tools.command import Command, Parser
from lowerdeck.tools.commands import (
    batch,
    bench,
    cache,
    calibrate,
    compile,
    demo,
    export,
    ops,
    prune,
    quantize,
    report,
    run,
    tune,
    view,
)
from lowerdeck.tools.common import EXIT_CODES, run_tool
from lowerdeck.tools.completion import complete
from lowerdeck.tools.explain import add_explain
from lowerdeck.tools.reduce import add_reduce

COMMANDS = (
    compile,
    run,
    batch,
    bench,
    tune,
    export,
    quantize,
    prune,
    ops,
    report,
    view,
    demo,
    calibrate,
    cache,
)
"""Each has `add_to`, which adds its parser, in the order of the help."""


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of one command."""

    def start() -> int:
        parser = argument_parser()
        complete(parser)
        namespace = parser.parse_args(args)
        command: Command = namespace.command
        with _as_file(namespace):
            return command(namespace)

    return run_tool("lowerdeck", start)


@contextmanager
def _as_file(namespace: argparse.Namespace) -> Generator[None]:
    """A model that comes through a pipe, or `-`, is kept in a file: it is read more than once."""
    path = getattr(namespace, "model", None)
    if path is None or not (path == "-" or is_special(path)):
        yield
        return
    with TemporaryDirectory(prefix="lowerdeck-") as folder:
        namespace.model = os.path.join(folder, "model")
        with open(namespace.model, "wb") as file:
            if path == "-":
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with open(path, "rb") as source:
                    shutil.copyfileobj(source, file)
        yield


def argument_parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    parser = Parser(
        prog="lowerdeck", description="Compile trained models to plain C.", epilog=EXIT_CODES
    )
    parser.add_argument(
        "--version", action=_Version, help="version, and those of what it is built on"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    add_explain(commands)
    add_check(commands)
    add_reduce(commands)
    return parser


class _Version(argparse.Action):
    """Prints the versions on which results may depend, and leaves."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from lowerdeck.tools.versions import versions

        print("\n".join(f"{name} {version}" for name, version in versions()))
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
