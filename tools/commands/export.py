"""`lowerdeck export`: the model as ONNX, or as a net of Caffe."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.command import (
    add_command,
    add_force_option,
    check_outputs,
    command_options,
    keep_others,
)
from lowerdeck.tools.common import ToolError, about

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


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
    check_outputs(args.out)
    keep_others(args, args.out)
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        try:
            module = export_with(args.model, args.out, options, dialect=args.dialect)
        except ExportError as error:
            lines = str(error).splitlines()
            starts = f"{args.model}: "
            raise ToolError(
                "\n".join(line if line.startswith(starts) else starts + line for line in lines)
            ) from error
    print(f"wrote {args.out}: {_contents(module)}")
    return 0


def _contents(module: ModuleOp) -> str:
    """What an exported module consists of."""
    from lowerdeck.dialects.frameworks import FrameworkOp
    from lowerdeck.passes.machinery.statistics import is_constant, statistics_of

    nodes = sum(isinstance(op, FrameworkOp) and not is_constant(op) for op in module.walk())
    found = statistics_of(module)
    what = "node" if nodes == 1 else "nodes"
    return f"{nodes} {what}, {found.parameters:,} parameters in {found.parameter_bytes:,} bytes"
