"""`lowerdeck calibrate`: measures what this machine does in a cycle, for `--target native`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    text = "measure this machine, in about a minute: native code is chosen by the numbers then"
    one = commands.add_parser("calibrate", help=text, description=text)
    one.add_argument(
        "-o",
        metavar="FILE",
        dest="out",
        type=Path,
        help="write the numbers to FILE, which nothing reads (default: where --target native finds "
        "them, in the cache folder)",
    )
    one.add_argument(
        "--target",
        metavar="T",
        default="native",
        help="compile the measurements for this target; others than native need -o",
    )
    one.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Measure, print and write; ToolError if code for the target does not run here."""
    from lowerdeck.cache import usable_folder
    from lowerdeck.dialects.files import replacing
    from lowerdeck.lowering.targets import NATIVE, obstacle, own_file, processor_name
    from lowerdeck.lowering.targets.machine import text_of
    from lowerdeck.tools.calibrate import measure
    from lowerdeck.tools.common import ToolError

    try:
        reason = obstacle(args.target)
    except ValueError as error:
        reason = str(error)
    if reason is not None:
        raise ToolError(f"--target: {reason}")
    path: Path | None = args.out
    if path is None and args.target != NATIVE:
        raise ToolError(f"--target {args.target}: only native has numbers of its own; give -o")
    if path is None and (usable_folder() is None or (path := own_file()) is None):
        raise ToolError("there is no cache folder; LOWERDECK_CACHE names one, or give -o")
    assert path is not None
    machine = measure(args.target, print)
    if args.out is None:
        path.parent.mkdir(exist_ok=True)
    with replacing(str(path)) as file:
        file.write(text_of(machine, processor_name()))
    print(path)
    return 0
