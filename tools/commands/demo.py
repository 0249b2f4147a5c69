"""`lowerdeck demo`: the networks that are part of the package, compiled and tried."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    text = "compile the digits networks to C and compare them with their frameworks"
    one = commands.add_parser("demo", help=text, description=text)
    one.add_argument(
        "-o",
        metavar="DIR",
        dest="out",
        type=Path,
        default=Path("build"),
        help="folder to write the C to, a folder for each network (default: %(default)s)",
    )
    one.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Compile, run and compare; 1 if a network disagrees with its framework."""
    from lowerdeck.digits.demo import main

    return main(args.out)
