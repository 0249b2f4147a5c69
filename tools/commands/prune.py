"""`lowerdeck prune`: a model without the weakest channels of its layers, as ONNX."""

from __future__ import annotations

import argparse
from dataclasses import replace
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
    one = add_command(commands, "prune", run, "write the model without its weakest channels")
    one.add_argument(
        "-o",
        metavar="OUT.onnx",
        dest="out",
        required=True,
        help="file to write",
    )
    add_force_option(one)
    one.add_argument(
        "--keep",
        metavar="PART",
        required=True,
        help="what is left of the channels of each layer, above 0, at most 1: 0.7 or 70%%",
    )


def run(args: argparse.Namespace) -> int:
    """Write the model, and tell what is left."""
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.exporters.errors import ExportError
    from lowerdeck.exporting import export_with, phase_of
    from lowerdeck.tools.progress import progress

    keep = _part(args.keep)
    try:
        is_onnx = phase_of(args.out) == "onnx"
    except ValueError as error:
        raise ToolError(str(error)) from error
    if not is_onnx:
        raise ToolError(f"-o {args.out}: expected an .onnx file")
    check_outputs(args.out)
    keep_others(args, args.out)
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        whole, _ = import_and_lower(args.model, "optimized", options)
        passes = [f"prune-channels{{keep={keep!r}}}", "drop-zero-channels", "dce"]
        own = [options.extra_passes] if options.extra_passes else []
        options = replace(options, extra_passes=",".join([*own, *passes]))
        left, _ = import_and_lower(args.model, "optimized", options)
        before, after = _size(whole), _size(left)
        if after == before:
            raise ToolError(
                f"{args.model}: no channel can go: what layers compute is read as a whole, or "
                f"{keep:g} of its channels are all"
            )
        try:
            export_with(args.model, args.out, options)
        except ExportError as error:
            raise ToolError(str(error)) from error
    for what, (one, other) in zip(
        ("multiplications", "parameters"), zip(before, after, strict=True), strict=True
    ):
        print(f"{what}: {other:,} of {one:,} ({other / one:.1%})")
    print(f"wrote {args.out}")
    return 0


def _part(text: str) -> float:
    """A part of 1, as a number or in percent; ToolError."""
    try:
        part = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        part = 0.0
    if not 0 < part <= 1:
        raise ToolError(f"--keep {text}: expected a part, above 0 and at most 1, as 0.7 or 70%")
    return part


def _size(module: ModuleOp) -> tuple[int, int]:
    """Multiplications of layers with constant weights, open sizes as 1, and parameters."""
    from lowerdeck.passes.fuse.layers import layers_of
    from lowerdeck.passes.machinery.statistics import statistics_of

    return sum(layer.products for layer in layers_of(module)), statistics_of(module).parameters
