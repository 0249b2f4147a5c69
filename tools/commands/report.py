"""`lowerdeck report`: layers, work, passes and memory of a model, and the roofline of a run."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from lowerdeck.dialects.files import replacing
from lowerdeck.tools.command import (
    add_cache_option,
    add_command,
    add_force_option,
    check_outputs,
    command_options,
    compiled,
    keep_others,
    random_inputs,
    uncopied,
    write_json,
)
from lowerdeck.tools.common import about


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(
        commands,
        "report",
        run,
        "say what a model consists of, what a run of it does, and the memory it needs; with "
        "--profile also how near its kernels are to what this machine can do",
        example="lowerdeck report model.onnx --target c99 --html report.html",
    )
    one.add_argument("--json", metavar="F", dest="json", help="also write the report to F")
    one.add_argument("--html", metavar="F", help="also write the report to F, with pictures")
    add_force_option(one)
    add_cache_option(one)
    one.add_argument("--wide", action="store_true", help="names in full")


def run(args: argparse.Namespace) -> int:
    """Print the report, and write it."""
    from lowerdeck.tools.progress import progress
    from lowerdeck.tools.report.html import html
    from lowerdeck.tools.report.report import report
    from lowerdeck.tools.report.roofline import measured

    check_outputs(args.json, args.html)
    keep_others(args, args.html)
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        found = report(args.model, options)
        if options.profile:
            model = compiled(args, options)
            inputs = uncopied(random_inputs(args, options))
            shown("measure")
            found = replace(found, roofline=measured(model, inputs, options.threads))
    print(found.text(wide=args.wide))
    if args.json:
        write_json(args.json, found.data())
    if args.html:
        with replacing(args.html) as file:
            file.write(html(found))
    return 0
