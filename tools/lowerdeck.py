"""lowerdeck: the user's command."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lowerdeck.dialects.files import replacing
from lowerdeck.frontends.frontend import graph_file
from lowerdeck.tools.arguments import read_arrays
from lowerdeck.tools.check import add_check
from lowerdeck.tools.command import Command, add_command, command_options
from lowerdeck.tools.common import ToolError, about, run_tool
from lowerdeck.tools.explain import add_explain
from lowerdeck.tools.reduce import add_reduce

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.compiler import Model, Profile
    from lowerdeck.passes.options import CompileOptions


class _Parser(argparse.ArgumentParser):
    """Errors are one line, as those of the commands."""

    def error(self, message: str) -> Any:
        """ToolError with the message."""
        raise ToolError(f"{self.prog}: {message}; see {self.prog} --help")


def main(args: Sequence[str] | None = None) -> int:
    """The exit status of one command."""

    def run() -> int:
        namespace = argument_parser().parse_args(args)
        command: Command = namespace.command
        return command(namespace)

    return run_tool("lowerdeck", run)


def argument_parser() -> argparse.ArgumentParser:
    """The commands and their arguments."""
    parser = _Parser(prog="lowerdeck", description="Compile trained models to plain C.")
    parser.add_argument("--version", action="version", version=f"lowerdeck {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    one = add_command(
        commands, "compile", _compile, "write C, header, weights, build file, library"
    )
    one.add_argument("-o", metavar="DIR", dest="out", required=True, help="folder to write to")
    one.add_argument(
        "--tune", type=float, metavar="SECONDS", help="try other schedules for about so long"
    )
    one.add_argument("--inputs", metavar="IN.npz", help="arrays to tune with; else random ones")
    one.add_argument(
        "--schedules",
        metavar="F",
        help="with --tune write what was found to F; else compile with what F holds",
    )

    one = add_command(commands, "run", _run, "run a model on arrays")
    one.add_argument("--inputs", metavar="IN.npz", help="arrays by input name")
    one.add_argument("--outputs", metavar="OUT.npz", required=True, help="file to write")
    one.add_argument(
        "--interpret", action="store_true", help="run the reference interpreter instead of C"
    )

    one = add_command(commands, "bench", _bench, "measure latency and memory")
    one.add_argument("--inputs", metavar="IN.npz", help="arrays by input name; else random ones")
    one.add_argument("--json", metavar="F", dest="report", help="also write the results to F")
    one.add_argument(
        "--by",
        choices=("time", "source"),
        default="time",
        help="order of the profile: slowest first, or source",
    )
    one.add_argument("--seconds", type=float, default=2.0, metavar="S", help="how long to run")

    one = add_command(commands, "export", _export, "write the model as ONNX or as a net of Caffe")
    one.add_argument(
        "-o",
        metavar="OUT",
        dest="out",
        required=True,
        help="file to write: .onnx; or .prototxt, and the .caffemodel beside it",
    )
    one.add_argument(
        "--dialect",
        choices=("bvlc", "ssd"),
        default="bvlc",
        help="layers that a net of Caffe may have: those of BVLC Caffe (default) or also of SSD",
    )

    add_command(commands, "ops", _ops, "list the operators, and which can be compiled")
    add_explain(commands)
    add_check(commands)
    add_reduce(commands)
    return parser


def _version() -> str:
    from importlib.metadata import version

    return version("lowerdeck")


def _compile(args: argparse.Namespace) -> int:
    from lowerdeck.binding import read_metadata
    from lowerdeck.compiler import build, generate, publish
    from lowerdeck.lowering.targets import obstacle
    from lowerdeck.tools.progress import progress

    parent = os.path.dirname(os.path.abspath(args.out))
    os.makedirs(parent, exist_ok=True)
    with (
        about(args.model),
        progress() as shown,
        tempfile.TemporaryDirectory(prefix=".lowerdeck-", dir=parent) as scratch,
    ):
        options = command_options(args, shown)
        if args.tune is not None:
            options = _tuned(args, options)
        elif args.schedules is not None:
            options = _with_schedules(args.schedules, options)
        generate(args.model, scratch, options)
        if (reason := obstacle(options.target) or _no_compiler()) is not None:
            print(f"lowerdeck: {reason}; wrote no library", file=sys.stderr)
        else:
            shown("C compiler")
            build(scratch)
        print(_memory_text(read_metadata(scratch)))
        publish(scratch, args.out)
    return 0


def _tuned(args: argparse.Namespace, options: CompileOptions) -> CompileOptions:
    """The options with the best schedules that are found."""
    import numpy as np

    from lowerdeck.binding import RunError
    from lowerdeck.tune import tune, write_schedules

    inputs = read_arrays(args.inputs) if args.inputs else _sample_inputs(args, options)
    arrays = {n: np.require(array, requirements=["C", "A"]) for n, array in inputs.items()}

    def tell(text: str) -> None:
        print(f"lowerdeck: tune: {text}", file=sys.stderr)

    try:
        tuned = tune(args.model, options, arrays, args.tune, tell)
    except (ValueError, RunError) as error:
        raise ToolError(f"{args.model}: {error}") from error
    if args.schedules is not None:
        write_schedules(args.schedules, tuned.schedules)
    return tuned


def _with_schedules(path: str, options: CompileOptions) -> CompileOptions:
    """The options with the schedules of a file."""
    from lowerdeck.tune import read_schedules

    try:
        return replace(options, schedules=read_schedules(path))
    except ValueError as error:
        raise ToolError(str(error)) from error


def _memory_text(metadata: Mapping[str, Any]) -> str:
    """What the model occupies, and how near that is to what no plan of memory gets below."""
    memory: Mapping[str, int | str | None] = metadata["memory"]
    arena = memory["arena"]
    weights = f"weights {metadata['weights_size']:,} bytes"
    if not isinstance(arena, int):
        return f"{weights}\narena {arena} bytes"
    text = f"{weights}\narena {arena:,} bytes"
    for key, what in (("live", "in use at once"), ("row_major", "of their values")):
        if isinstance(size := memory[key], int) and size:
            text += f", {arena / size:.2f} times the {size:,} {what}"
    return text


def _no_compiler() -> str | None:
    from lowerdeck.build import find_compiler

    return "no C compiler found" if find_compiler() is None else None


def _run(args: argparse.Namespace) -> int:
    from lowerdeck.tools.progress import progress

    inputs = read_arrays(args.inputs) if args.inputs else {}
    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        outputs = _interpret(args, options, inputs) if args.interpret else None
        if outputs is None:
            outputs = _call(_compiled(args, options), inputs)
    _write_arrays(args.outputs, outputs)
    return 0


def _interpret(
    args: argparse.Namespace, options: CompileOptions, inputs: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """The outputs by the interpreter, of the module before any optimization."""
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.dialects.interpret import run_module

    module, _ = import_and_lower(args.model, "legal", options)
    options.progress("interpret")
    return dict(run_module(module, inputs))


def _compiled(args: argparse.Namespace, options: CompileOptions) -> Model:
    """The model; a folder that `lowerdeck compile` wrote is loaded."""
    from lowerdeck.compiler import compile_with, load

    if not _is_compiled(args.model):
        return compile_with(args.model, options)
    try:
        return load(args.model, threads=options.threads)
    except ValueError as error:
        raise ToolError(str(error)) from error


def _is_compiled(model: str) -> bool:
    """True for a folder that is no SavedModel: one that `lowerdeck compile` wrote."""
    return os.path.isdir(model) and graph_file(model) == model


def _call(model: Model, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    from lowerdeck.binding import RunError

    try:
        return model(inputs)
    except (ValueError, RunError) as error:
        raise ToolError(f"{model.name}: {error}") from error


def _write_arrays(path: str, arrays: Mapping[str, Any]) -> None:
    import numpy as np

    with replacing(path, "wb") as file:
        np.savez(file, **arrays)


def _bench(args: argparse.Namespace) -> int:
    from lowerdeck.tools.bench import measure
    from lowerdeck.tools.kernel_times import Report
    from lowerdeck.tools.peak import MultiplyAdds
    from lowerdeck.tools.progress import progress

    with about(args.model), progress() as shown:
        options = command_options(args, shown)
        model = _compiled(args, options)
        inputs = read_arrays(args.inputs) if args.inputs else _sample_inputs(args, options)
        _call(model, inputs)
        shown("measure")
        if args.profile:
            profile = _profiled(model, inputs, args.seconds)
            peak = MultiplyAdds().peak_flops(options.threads)
            result = Report(model.name, options.threads, profile, peak)
            text = result.text(args.by)
        else:
            result = measure(model, inputs, args.seconds)
            text = result.text()
    print(text)
    if args.report:
        with replacing(args.report) as file:
            json.dump(result.data(), file, indent=2)
            file.write("\n")
    return 0


def _profiled(model: Model, inputs: Mapping[str, NDArray[Any]], seconds: float) -> Profile:
    import numpy as np

    arrays = {n: np.require(array, requirements=["C", "A"]) for n, array in inputs.items()}
    try:
        return model.profile(arrays, seconds=seconds)
    except ValueError as error:
        raise ToolError(f"{model.name}: {error}") from error


def _sample_inputs(args: argparse.Namespace, options: CompileOptions) -> dict[str, NDArray[Any]]:
    from xdsl.utils.exceptions import VerifyException

    from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs

    if _is_compiled(args.model):
        raise ToolError(f"{args.model}: random inputs need the model file; give --inputs")
    try:
        return sample_inputs(inputs_of(_legal(args, options)))
    except VerifyException as error:
        raise ToolError(f"{args.model}: {error}; give --inputs") from error


def _legal(args: argparse.Namespace, options: CompileOptions) -> ModuleOp:
    from lowerdeck.compiler import import_and_lower

    return import_and_lower(args.model, "legal", options)[0]


def _export(args: argparse.Namespace) -> int:
    from lowerdeck.exporters.errors import ExportError
    from lowerdeck.exporting import export_with, phase_of
    from lowerdeck.tools.progress import progress

    try:
        phase_of(args.out)
    except ValueError as error:
        raise ToolError(str(error)) from error
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


def _ops(args: argparse.Namespace) -> int:
    from lowerdeck.dialects.errors import CompileError

    from lowerdeck.frontends.errors import FrontendError
    from lowerdeck.tools.list_ops import used_operators
    from lowerdeck.tools.progress import progress

    with about(args.model), progress() as shown:
        operators = used_operators(args.model, command_options(args, shown))
        for operator in operators:
            print(operator)
        if all(operator.support is not None for operator in operators):
            # An operator may still be refused for the way in which a node uses it.
            try:
                _legal(args, command_options(args, shown))
            except (FrontendError, CompileError) as error:
                print(error)
                return 1
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
