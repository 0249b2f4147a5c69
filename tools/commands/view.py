"""`lowerdeck view`: a model, or IR of any level, as a page that needs nothing else."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from lowerdeck.dialects.files import replacing
from lowerdeck.tools.arguments import read_arrays
from lowerdeck.tools.command import (
    add_cache_option,
    add_command,
    add_force_option,
    check_outputs,
    command_options,
    compiled,
    inputs_at,
    keep_others,
    random_inputs,
    uncopied,
)
from lowerdeck.tools.common import ToolError, about

if TYPE_CHECKING:
    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.tools.view.stages import Stage


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(
        commands,
        "view",
        run,
        "write a page with a picture of the graph, or of what passes make of it",
        example="lowerdeck view model.onnx --passes -o model.html",
    )
    add = one.add_argument
    add("--compare", metavar="MODEL2", help="another model, to be shown beside it")
    add("-o", metavar="OUT.html", dest="out", help="file to write (default: NAME.html here)")
    add("--svg", metavar="OUT.svg", help="write the picture alone; needs node")
    add("--phase", metavar="PHASE", help="compile so far first (default: show what was read)")
    add("--passes", action="store_true", help="all that passes change on the way to the phase")
    add("--before", metavar="PASS", help="the module before a pass, and after it or --after")
    add("--after", metavar="PASS", help="the module after a pass, and before it or --before")
    add("--times", metavar="F.json", help="times that bench --profile --json wrote, as colors")
    add(
        "--errors",
        action="store_true",
        help="run the C and the interpreter, and color by how far each value is from what it is "
        "there",
    )
    add("--inputs", metavar="IN.npz", help="arrays to run on; else random ones")
    add_force_option(one)
    add_cache_option(one)


def run(args: argparse.Namespace) -> int:
    """Write the page."""
    from lowerdeck.tools.progress import progress
    from lowerdeck.tools.view import page

    out = args.out
    if out is None and not args.svg:
        stem = os.path.splitext(os.path.basename(os.path.normpath(args.model)))[0]
        out = f"{stem}.html"
    check_outputs(out, args.svg)
    keep_others(args, out, args.svg)
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        data = _data(args, options)
        options.progress("write")
        if args.svg:
            try:
                text = page.svg(data)
            except page.NoJavaScriptError as error:
                raise ToolError(f"lowerdeck view: --svg: {error}") from error
            with replacing(args.svg) as file:
                file.write(text)
        if out is not None:
            with replacing(out) as file:
                file.write(page.page(data))
    print("\n".join(f"wrote {path}" for path in (args.svg, out) if path))
    return 0


def _data(args: argparse.Namespace, options: CompileOptions) -> dict[str, Any]:
    """What the page shows."""
    from lowerdeck.frontends import facts_of
    from lowerdeck.tools.view.graph import Graph

    graph = Graph()
    stages = _compared(args, options, graph) if args.compare else _stages(args, options, graph)
    data: dict[str, Any] = {
        "title": os.path.basename(os.path.normpath(args.model)),
        **graph.data(),
        "stages": [stage.data() for stage in stages],
        "facts": facts_of(args.model),
    }
    if args.times:
        data["kernels"] = _read_times(args.times)
    elif args.profile:
        data["kernels"] = _measured_times(args, options)
    if args.errors:
        from lowerdeck.tools.view.errors import measured_errors

        given = read_arrays(args.inputs) if args.inputs else None
        data["errors"] = measured_errors(args.model, options, given)
    return data


def _stages(args: argparse.Namespace, options: CompileOptions, graph: Any) -> list[Stage]:
    from lowerdeck.dialects.recursion import working_on_modules
    from lowerdeck.lowering.pipeline import ALL_PASSES, no_pass, run_to_phase
    from lowerdeck.passes.machinery.type_inference import infer_types
    from lowerdeck.reading import read_model
    from lowerdeck.tools.view.stages import Recording, Stage

    before, after = args.before or args.after, args.after or args.before
    for name in filter(None, (before, after)):
        if name not in ALL_PASSES:
            raise ToolError(f"lowerdeck view: {no_pass(name, ALL_PASSES)}")
    phase = _checked_phase(args.phase)
    steps = args.passes or before is not None
    with working_on_modules():
        module, context = read_model(args.model, options)
        infer_types(module)
        recording = Recording(context.recorder, graph, before, after)
        if phase is None and not steps:
            return [Stage("as read", "imported", graph.stage(module))]
        recording.start(module)
        run_to_phase(
            context, module, phase or "scheduled" if before else phase or "optimized", recording
        )
        if not steps:
            return [Stage(f"phase {phase}", phase or "", graph.stage(module))]
    stages = recording.found()
    if before is not None and len(stages) < 2:
        raise ToolError(
            f"{args.model}: {before} and {after} do not both run on the way to "
            f"{phase or 'scheduled'}"
        )
    return stages


def _checked_phase(phase: str | None) -> str | None:
    from lowerdeck.dialects.frameworks import exports
    from lowerdeck.passes.machinery.contracts import PHASES

    known = (*PHASES, *exports())
    if phase is not None and phase not in known:
        raise ToolError(f"lowerdeck view: --phase: '{phase}' is none of {', '.join(known)}")
    return phase


def _compared(args: argparse.Namespace, options: CompileOptions, graph: Any) -> list[Stage]:
    """Two files as two stages, at the same phase."""
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.reading import read_model
    from lowerdeck.tools.view.stages import Stage

    if args.passes or args.before or args.after:
        raise ToolError("lowerdeck view: --compare shows models at one --phase, not what passes do")
    phase = _checked_phase(args.phase)
    modules = [
        (read_model(path, options) if phase is None else import_and_lower(path, phase, options))[0]
        for path in (args.model, args.compare)
    ]
    graph.match(*modules)
    return [
        Stage(path, phase or "imported", graph.stage(module))
        for path, module in zip((args.model, args.compare), modules, strict=True)
    ]


def _read_times(path: str) -> list[dict[str, Any]]:
    """The kernels of a profile that `bench` wrote; ToolError for another file."""
    with open(path, encoding="utf-8") as file:
        try:
            read: Any = json.load(file)
            kernels = cast("list[Mapping[str, Any]]", read["kernels"])
            return [_kernel(list(one["nodes"]), float(one["seconds"])) for one in kernels]
        except (ValueError, KeyError, TypeError) as error:
            raise ToolError(f"{path}: is no profile of bench --profile --json") from error


def _kernel(nodes: list[str], seconds: float) -> dict[str, Any]:
    return {"nodes": nodes, "seconds": seconds}


def _measured_times(args: argparse.Namespace, options: CompileOptions) -> list[dict[str, Any]]:
    """Those of the kernels of the model, run here."""
    model = compiled(args, options)
    inputs = inputs_at(args.inputs, model) if args.inputs else random_inputs(args, options)
    profile = model.profile(uncopied(inputs), seconds=1.0)
    return [_kernel(list(one.nodes), one.seconds) for one in profile.kernels]
