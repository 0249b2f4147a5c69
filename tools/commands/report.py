"""`lowerdeck report`: layers, work, passes and memory of a model, without running it."""

from __future__ import annotations

import argparse
from typing import Any

from lowerdeck.dialects.files import replacing
from lowerdeck.tools.command import (
    add_command,
    add_force_option,
    command_options,
    keep_others,
    write_json,
)
from lowerdeck.tools.common import about


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(
        commands,
        "report",
        run,
        "say what a model consists of, what a run of it does, and the memory it needs",
        example="lowerdeck report model.onnx --target c99 --html report.html",
    )
    one.add_argument("--json", metavar="F", dest="json", help="also write the report to F")
    one.add_argument("--html", metavar="F", help="also write the report to F, with pictures")
    add_force_option(one)
    one.add_argument("--wide", action="store_true", help="names in full")


def run(args: argparse.Namespace) -> int:
    """Print the report, and write it."""
    from lowerdeck.tools.progress import progress
    from lowerdeck.tools.report.html import html
    from lowerdeck.tools.report.report import report

    keep_others(args, args.html)
    with about(args.model), progress() as shown:
        found = report(args.model, command_options(args, shown))
    print(found.text(wide=args.wide))
    if args.json:
        write_json(args.json, found.data())
    if args.html:
        with replacing(args.html) as file:
            file.write(html(found))
    return 0
