"""`lowerdeck run`: a model on arrays."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lowerdeck.dialects.files import replacing
from lowerdeck.tools.arguments import inputs_among, read_arrays
from lowerdeck.tools.command import (
    add_cache_option,
    add_command,
    call,
    command_options,
    compiled,
    module_at,
)
from lowerdeck.tools.common import about

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lowerdeck.passes.machinery.options import CompileOptions


def add_to(commands: Any) -> None:
    """Add the command to the parser of the tool."""
    one = add_command(
        commands,
        "run",
        run,
        "run a model on arrays, and say what the outputs hold",
        example="lowerdeck run model.onnx --inputs in.npz --save out.npz",
    )
    one.add_argument(
        "--inputs",
        metavar="IN.npz",
        help="arrays by input name; of a file in which "
        "some names begin with input: these alone, without it",
    )
    # --outputs is the older name, one letter away from --output, which names tensors.
    one.add_argument(
        "--save",
        "--outputs",
        dest="outputs",
        metavar="OUT.npz",
        help="file to write the outputs to",
    )
    one.add_argument(
        "--interpret", action="store_true", help="run the reference interpreter instead of C"
    )
    one.add_argument(
        "--steps",
        type=int,
        default=1,
        metavar="N",
        help="call a model that remembers so many times with these inputs (default: 1)",
    )
    one.add_argument("-q", "--quiet", action="store_true", help="no summary of the outputs")
    add_cache_option(one)


def run(args: argparse.Namespace) -> int:
    """Run the model; write and describe what it returns, of several calls the last time."""
    from lowerdeck.tools.progress import progress
    from lowerdeck.tools.summary import described

    given = read_arrays(args.inputs) if args.inputs else {}
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        if args.interpret:
            outputs = _interpret(args, options, given)
        else:
            model = compiled(args, options)
            inputs = inputs_among(given, [one.name for one in model.inputs])
            for _ in range(args.steps - 1):
                call(model, inputs)
            outputs = call(model, inputs)
    if args.outputs:
        _write_arrays(args.outputs, outputs)
    if not args.quiet:
        for name, array in outputs.items():
            print(described(name, array))
    return 0


def _interpret(
    args: argparse.Namespace, options: CompileOptions, given: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """The outputs by the interpreter, of the module before any optimization."""
    from lowerdeck.dialects.interpret.calls import Calls
    from lowerdeck.tools.sample_inputs import inputs_of

    module = module_at(args, options, "legal")
    options.progress("interpret")
    calls = Calls(module)
    states = calls.states
    inputs = inputs_among(given, [name for name in inputs_of(module) if name not in states])
    for _ in range(args.steps - 1):
        calls(inputs)
    return dict(calls(inputs))


def _write_arrays(path: str, arrays: Mapping[str, Any]) -> None:
    import numpy as np

    with replacing(path, "wb") as file:
        np.savez(file, **arrays)
