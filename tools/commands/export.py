"""`lowerdeck export`: the model as ONNX, or as a net of Caffe."""

from __future__ import annotations

import argparse
from typing import Any

from lowerdeck.tools.command import (
    add_command,
    add_force_option,
    command_options,
    keep_others,
)
from lowerdeck.tools.common import ToolError, about


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(commands, "export", run, "write the model as ONNX or as a net of Caffe")
    one.add_argument(
        "-o",
        metavar="OUT",
        dest="out",
        required=True,
        help="file to write: .onnx; or .prototxt, and the .caffemodel beside it",
    )
    add_force_option(one)
    one.add_argument(
        "--dialect",
        choices=("bvlc", "ssd"),
        default="bvlc",
        help="layers that a net of Caffe may have: those of BVLC Caffe (default) or also of SSD",
    )


def run(args: argparse.Namespace) -> int:
    """Write the file, or list all that it cannot say."""
    from lowerdeck.exporters.errors import ExportError
    from lowerdeck.exporting import export_with, phase_of
    from lowerdeck.tools.progress import progress

    try:
        phase_of(args.out)
    except ValueError as error:
        raise ToolError(str(error)) from error
    keep_others(args, args.out)
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        try:
            export_with(args.model, args.out, options, dialect=args.dialect)
        except ExportError as error:
            lines = str(error).splitlines()
            starts = f"{args.model}: "
            raise ToolError(
                "\n".join(line if line.startswith(starts) else starts + line for line in lines)
            ) from error
    return 0
