"""`lowerdeck bench`: latency and memory, and with `--profile` where the time goes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.command import (
    add_cache_option,
    add_command,
    call,
    command_options,
    compiled,
    inputs_at,
    is_compiled,
    random_inputs,
    seconds,
    uncopied,
    with_open_dims,
    write_json,
)
from lowerdeck.tools.common import ToolError, about

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.compiler import KernelEvent, Model, Profile

_MOST_STREAMS = 1024


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(
        commands,
        "bench",
        run,
        "measure latency and memory",
        example="lowerdeck bench model.onnx --dim batch=8 --profile",
    )
    one.add_argument("--inputs", metavar="IN.npz", help="arrays by input name; else random ones")
    one.add_argument("--json", metavar="F", dest="report", help="also write the results to F")
    one.add_argument(
        "--by",
        choices=("time", "source"),
        default="time",
        help="order of the profile: slowest first, or source",
    )
    one.add_argument(
        "--trace",
        metavar="F",
        help="also write when each kernel runs to F, as JSON for Perfetto or chrome://tracing",
    )
    one.add_argument(
        "--wide",
        action="store_true",
        help="a profile with its texts in full, as where stdout is no terminal",
    )
    one.add_argument("--seconds", type=seconds, default=2.0, metavar="S", help="how long to run")
    one.add_argument(
        "--streams",
        type=_streams,
        default=1,
        metavar="N",
        help="runs at once, each in a thread of its own (default: 1)",
    )
    add_cache_option(one)


def _streams(text: str) -> int:
    """How many there are, from a command line."""
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_STREAMS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to {_MOST_STREAMS}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    from lowerdeck.tools.bench import measure
    from lowerdeck.tools.kernel_times import Report
    from lowerdeck.tools.peak import MultiplyAdds
    from lowerdeck.tools.progress import progress
    from lowerdeck.tools.trace import trace_data

    if args.streams > 1 and (args.profile or args.trace is not None):
        raise ToolError(
            "lowerdeck bench: --streams: a profile and a trace are of one run at a time"
        )
    with about(args.model), progress() as shown:
        options, sizes = with_open_dims(command_options(args, shown))
        options = replace(options, profile=options.profile or args.trace is not None)
        model = compiled(args, options)
        if args.inputs:
            inputs = inputs_at(args.inputs, model)
        elif is_compiled(args.model):
            inputs = _inputs_of(model, sizes)
        else:
            inputs = random_inputs(args, options, sizes)
        _try_once(model, inputs, is_random=not args.inputs)
        shown("measure")
        profile: Profile | None = None
        if options.profile:
            machine = MultiplyAdds()
            # Before and after, because other programs may run meanwhile.
            peak = machine.peak_flops(options.threads)
            profile = _profiled(model, inputs, args.seconds)
            peak = max(peak, machine.peak_flops(options.threads))
            result = Report(model.name, options.threads, profile, peak)
            text = result.text(args.by, wide=args.wide or not sys.stdout.isatty())
        else:
            result = measure(model, inputs, args.seconds, args.streams)
            text = result.text()
        events = _traced(model, inputs) if args.trace else []
    origin = "given" if args.inputs else "random"
    print(f"inputs     {_shapes(inputs) or 'none'} ({origin})")
    print(text)
    if args.trace:
        write_json(args.trace, trace_data(model.name, events, profile), indent=None)
    if args.report:
        write_json(args.report, result.data())
    return 0


def _try_once(model: Model, inputs: Mapping[str, NDArray[Any]], *, is_random: bool) -> None:
    """ToolError if the inputs are not those of the model, or it fails on them."""
    try:
        call(model, inputs)
    except ToolError as error:
        if not is_random:
            raise
        advice = "give others by --dim, --input-shape or --inputs"
        raise ToolError(f"{error}; random inputs were {_shapes(inputs)}: {advice}") from error


def _shapes(inputs: Mapping[str, NDArray[Any]]) -> str:
    return ", ".join(f"{name}: {a.dtype}{list(a.shape)}" for name, a in inputs.items())


def _inputs_of(model: Model, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Random inputs of a compiled model, of which no more than types and shapes is known."""
    from lowerdeck.dialects.dims import parse_text
    from lowerdeck.passes.machinery.fixed_dims import require_dims
    from lowerdeck.tools.sample_inputs import arrays_of

    dims = [parse_text(str(size)) for info in model.inputs for size in info.shape]
    require_dims(sizes, list(dict.fromkeys(name for dim in dims for name in sorted(dim.symbols))))
    return arrays_of({info.name: (info.dtype, info.shape) for info in model.inputs}, sizes)


def _profiled(model: Model, inputs: Mapping[str, NDArray[Any]], length: float) -> Profile:
    try:
        return model.profile(uncopied(inputs), seconds=length)
    except ValueError as error:
        raise ToolError(f"{model.name}: {error}") from error


def _traced(model: Model, inputs: Mapping[str, NDArray[Any]]) -> list[KernelEvent]:
    return model.trace(uncopied(inputs), seconds=0.2)
