"""`lowerdeck quantize`: ranges for layers that are computed from bytes, and which ones are."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lowerdeck.dialects.files import replacing
from lowerdeck.tools.command import (
    add_command,
    add_force_option,
    check_outputs,
    command_options,
    keep_others,
)
from lowerdeck.tools.common import ToolError, about

if TYPE_CHECKING:
    from lowerdeck.passes.machinery.ranges import Ranges

_METHODS = ("mse", "min-max", "percentile", "entropy")


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(commands, "quantize", run, "find how layers are quantized, from samples")
    one.add_argument(
        "-o",
        metavar="OUT.json",
        dest="out",
        required=True,
        help="file to write: what --ranges of other commands reads; with --gptq the model, .onnx",
    )
    one.add_argument(
        "--calibration",
        metavar="DATA",
        help="samples of the inputs: an .npz file with an array for each input, an .npy file for "
        "the only one, a .parquet, .arrow or .feather file with a column for each (needs pyarrow), "
        "or a folder of such files; arrays may have one more dimension, for samples",
    )
    one.add_argument(
        "--method",
        choices=_METHODS,
        default="mse",
        help="how ranges are found (default: mse, the least square error)",
    )
    one.add_argument(
        "--max-drop",
        metavar="METRIC=VALUE",
        help="what may be lost: top1 (share of other decisions) or error (difference of outputs by "
        "norm); layers that would lose more stay in f32 with --precision auto. One sample in four "
        "is held back, and verifies the whole",
    )
    one.add_argument(
        "--smooth",
        metavar="A",
        nargs="?",
        const=0.5,
        type=float,
        help="divide the channels of what layers read by factors, by which weights are multiplied "
        "(SmoothQuant): from 0, weights differ least, to 1, inputs do (default: 0.5)",
    )
    one.add_argument("--html", metavar="F", help="also write the report to F, with a picture")
    add_force_option(one)
    one.add_argument(
        "--gptq",
        metavar="F",
        nargs="?",
        const="int4",
        help="write the model with matrices in four bits a weight, rounded so that products of the "
        "samples change least: int4 (default), or int4:BLOCK",
    )


def run(args: argparse.Namespace) -> int:
    """Write the ranges, and tell what they are."""
    from lowerdeck.budgets import BudgetError
    from lowerdeck.calibration import CalibrationError
    from lowerdeck.quantizing import quantize_with
    from lowerdeck.tools.progress import progress

    check_outputs(args.out, args.html)
    keep_others(args, args.html)
    if args.gptq is not None:
        return _write_weights(args)
    budget = None if args.max_drop is None else _budget(args.max_drop)
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        try:
            ranges = quantize_with(
                args.model,
                args.calibration,
                options,
                method=args.method,
                max_drop=budget,
                smooth=args.smooth,
            )
        except (CalibrationError, BudgetError) as error:
            raise ToolError(str(error)) from error
    with replacing(args.out) as file:
        file.write(ranges.text)
        if args.html:
            from lowerdeck.tools.report.ranges import html_of_ranges

            with replacing(args.html) as page:
                page.write(html_of_ranges(ranges, os.path.basename(os.path.normpath(args.model))))
    for line in report(ranges):
        print(line)
    print(f"wrote {args.out}")
    return 0


def _write_weights(args: argparse.Namespace) -> int:
    """Write the model with rounded weights."""
    from lowerdeck.calibration import CalibrationError
    from lowerdeck.exporters.errors import ExportError
    from lowerdeck.rounding import quantize_weights_with
    from lowerdeck.tools.progress import progress

    if args.calibration is None:
        raise ToolError("--gptq needs samples: --calibration DATA")
    if args.max_drop is not None or args.html is not None or args.smooth is not None:
        raise ToolError(
            "--gptq has no budget, no factors and no report: leave --max-drop, --smooth and --html "
            "out"
        )
    with about(args.model), progress() as shown:
        options = replace(command_options(args, shown), weight_format=args.gptq)
        try:
            quantize_weights_with(args.model, args.calibration, args.out, options)
        except (CalibrationError, ExportError, ValueError) as error:
            raise ToolError(str(error)) from error
    print(f"wrote {args.out}")
    return 0


def _budget(text: str) -> tuple[str, float]:
    """`METRIC=VALUE`, the value as a number or in percent; ToolError."""
    name, _, number = text.partition("=")
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        raise ToolError(f"--max-drop {text}: expected METRIC=VALUE, as top1=0.5%") from None
    return name, value


def report(ranges: Ranges) -> list[str]:
    """The layers as a table, and what the whole loses."""
    from lowerdeck.tools.report.ranges import HEAD, rows_of, totals_of
    from lowerdeck.tools.text_table import table_lines

    return [*table_lines(HEAD, rows_of(ranges), left=(0, 1)), *totals_of(ranges)]
