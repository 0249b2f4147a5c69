"""What the commands of `lowerdeck` share: their parsers, their options, and the models they use."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from lowerdeck.dialects.files import is_special, replacing
from lowerdeck.frontends.frontend import graph_file, known_formats
from lowerdeck.tools.arguments import (
    add_options,
    checking_options,
    compile_options,
    inputs_among,
    load_plugins,
    read_arrays,
)
from lowerdeck.tools.common import ToolError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.compiler import Model
    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.ray import Cluster
    from lowerdeck.tools.progress import Progress

Command = Callable[[argparse.Namespace], int]
"""What a command does with its arguments; returns the exit status."""

EXAMPLE = "example: "
"""What the help of a command puts before an example."""

HOW_TO_COMPILE = "how to compile"
"""The title of the arguments that commands on models share."""

_LOG_LEVELS = ("error", "warning", "info", "debug")
"""Each says what those before it say, too."""

_CROWD = 8
"""Threads for each processor from which a number of threads is taken for a slip."""


class Parser(argparse.ArgumentParser):
    """Errors are one line, as those of the commands, and options are written in full."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("allow_abbrev", False)
        super().__init__(**options)

    def error(self, message: str) -> Any:
        """ToolError with the message."""
        raise ToolError(f"{self.prog}: {message}; see {self.prog} --help")


def add_command(
    commands: Any,
    name: str,
    function: Command,
    text: str,
    *,
    example: str = "",
    takes_several: bool = False,
) -> argparse.ArgumentParser:
    """The parser of a command on a model, or on several, with the arguments of all of them."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=text,
        epilog=f"{EXAMPLE}{example}" if example else None,
    )
    parser.set_defaults(command=function)
    dest, number = ("models", "*") if takes_several else ("model", None)
    formats = f"model file: {known_formats()}"
    parser.add_argument(dest, nargs=number, metavar="MODEL", help=formats)
    group = parser.add_argument_group(HOW_TO_COMPILE)
    add_options(group, command=name)
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="name each step on stderr, with the time, operations and rewrites of each pass",
    )
    parser.add_argument(
        "--log-level",
        choices=_LOG_LEVELS,
        default="warning",
        help="what else than results is said, on stderr: errors alone, warnings, too (default), "
        "each step as by -v, or each rewrite with its reason",
    )
    return parser


def commands_of(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The parsers of the commands, by name."""
    (action,) = [action for action in parser._actions if action.nargs == argparse.PARSER]
    return cast(Any, action).choices


def shared_arguments(command: argparse.ArgumentParser) -> list[argparse.Action]:
    """What says how to compile: commands on models take it where it has an effect."""
    groups = [group for group in command._action_groups if group.title == HOW_TO_COMPILE]
    return [
        action
        for group in groups
        for action in group._group_actions
        if action.help != argparse.SUPPRESS
    ]


def seconds(text: str) -> float:
    """A length of time from a command line."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return value


def command_options(args: argparse.Namespace, progress: Progress) -> CompileOptions:
    """The options of a command line; ToolError for what makes no sense."""
    from lowerdeck.lowering.pipeline import ALL_PASSES, check_options, passes_of_phase
    from lowerdeck.passes.machinery.contracts import PHASES

    start = time.perf_counter()
    level = _LOG_LEVELS.index(args.log_level)
    says_warnings, says_rewrites = level >= 1, level >= 3
    says_steps = level >= 2 or args.verbose

    def tell(what: object) -> None:
        passed = time.perf_counter() - start
        print(f"lowerdeck: {passed:8.3f} s  {what}", file=sys.stderr)

    def step(text: str) -> None:
        progress(text)
        # What is said of passes is said as they end.
        if says_steps and text not in ALL_PASSES:
            tell(text)

    load_plugins("lowerdeck", args.load)
    options = compile_options(args, step)
    options = replace(
        options,
        finished=tell if says_steps else None,
        rewritten=tell if says_rewrites else None,
        warn=options.warn if says_warnings else _say_nothing,
    )
    with checking_options("lowerdeck"):
        check_options(options)
    progress.expect([name for phase in PHASES for name in passes_of_phase(phase, options)])
    processors = os.cpu_count() or 1
    if says_warnings and options.threads > _CROWD * processors:
        print(
            f"lowerdeck: --threads {options.threads}: this machine has {processors} processors",
            file=sys.stderr,
        )
    return options


def _say_nothing(text: str) -> None:
    """What is told of is not said."""


def cluster_at(address: str | None, flag: str) -> Cluster:
    """A cluster of Ray; ToolError, which names the option that asks for it, if there is none."""
    from lowerdeck.ray import Cluster, RayError

    try:
        return Cluster(address)
    except RayError as error:
        raise ToolError(f"lowerdeck: {flag} ray: {error}") from error


def is_compiled(model: str) -> bool:
    """True for a folder that is no SavedModel: one that `lowerdeck compile` wrote."""
    return os.path.isdir(model) and graph_file(model) == model


def add_cache_option(parser: argparse.ArgumentParser) -> None:
    """`--no-cache`, which `compiled` reads."""
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="neither look for the compiled model in the cache nor keep it there",
    )


_HEAD, _MARK = 256, b"lowerdeck"
"""What files that lowerdeck wrote have near their beginning."""


def add_force_option(parser: argparse.ArgumentParser) -> None:
    """`--force`, which `keep_others` obeys."""
    parser.add_argument(
        "--force", action="store_true", help="replace files that lowerdeck did not write"
    )


def check_outputs(*paths: str | None) -> None:
    """
    ToolError for files that could not be written after all work is done: one in a folder that is
    not there, one that is a folder, and one that is asked for twice.
    """
    given = list(filter(None, paths))
    problems: list[str] = []
    for number, path in enumerate(given):
        if not os.path.isdir(folder := os.path.dirname(os.path.realpath(path))):
            problems.append(f"{path}: there is no folder {folder}")
        elif os.path.isdir(path):
            problems.append(f"{path}: is a folder, expected a file")
        elif not is_special(path) and any(
            os.path.realpath(path) == os.path.realpath(other) for other in given[:number]
        ):
            problems.append(f"{path}: two files of this name are asked for")
    if problems:
        raise ToolError("\n".join(problems))


def keep_others(args: argparse.Namespace, *paths: str | None) -> None:
    """ToolError that lists those of the files that would be replaced and are the user's own."""
    own = [path for path in filter(None, paths) if not args.force and not _may_replace(path)]
    if own:
        text = "is not a file that lowerdeck wrote; --force replaces it"
        raise ToolError("\n".join(f"{path}: {text}" for path in own))


def _may_replace(path: str) -> bool:
    if not os.path.isfile(path) or not os.path.getsize(path):
        return True  # there is nothing to lose, or it is a device or a folder, which tells itself
    with open(path, "rb") as file:
        return _MARK in file.read(_HEAD)


def compiled(args: argparse.Namespace, options: CompileOptions) -> Model:
    """The model; a folder that `lowerdeck compile` wrote is loaded."""
    from lowerdeck.compiler import compile_with, load

    if not is_compiled(args.model):
        return compile_with(args.model, options, cache=not args.no_cache)
    if options.dims:
        raise ToolError(f"{args.model}: is compiled: --dim is for a model that has yet to be")
    try:
        return load(args.model, threads=options.threads)
    except ValueError as error:
        raise ToolError(str(error)) from error


def call(model: Model, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The outputs of a run; ToolError if the inputs are not those of the model, or it fails."""
    from lowerdeck.binding import RunError

    try:
        return model(inputs)
    except (ValueError, RunError) as error:
        raise ToolError(f"{model.name}: {error}") from error


def inputs_at(path: str, model: Model) -> dict[str, NDArray[Any]]:
    """The arrays of a file for a compiled model."""
    return inputs_among(read_arrays(path), [one.name for one in model.inputs])


def uncopied(inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Inputs as they can be read in place, so that no run of many copies them."""
    import numpy as np

    return {n: np.require(array, requirements=["C", "A"]) for n, array in inputs.items()}


def write_json(path: str, data: Any, *, indent: int | None = 2) -> None:
    """Write `data` as JSON, with a new line at the end; the file appears when it is whole."""
    with replacing(path) as file:
        json.dump(data, file, indent=indent)
        file.write("\n")


def module_at(args: argparse.Namespace, options: CompileOptions, phase: str) -> ModuleOp:
    """The module of the model at the end of a phase."""
    from lowerdeck.compiler import import_and_lower

    return import_and_lower(args.model, phase, options)[0]


def with_open_dims(options: CompileOptions) -> tuple[CompileOptions, Mapping[str, int]]:
    """The options for a model whose dimensions stay open, and the sizes of inputs in them."""
    return replace(options, dims=None), options.dims or {}


def random_inputs(
    args: argparse.Namespace, options: CompileOptions, sizes: Mapping[str, int] | None = None
) -> dict[str, NDArray[Any]]:
    """
    Inputs for a model whose user gave none, but what it remembers; `sizes` are those of open
    dimensions.
    """
    from xdsl.utils.exceptions import VerifyException

    from lowerdeck.dialects.core.states import states_of
    from lowerdeck.dialects.interpret import find_function
    from lowerdeck.passes.machinery.fixed_dims import open_dims, require_dims
    from lowerdeck.tools.sample_inputs import inputs_of, sample_inputs

    module = module_at(args, options, "legal")
    require_dims(sizes or {}, open_dims(module))
    held = {state.before for state in states_of(find_function(module, "main"))}
    inputs = {name: value for name, value in inputs_of(module).items() if name not in held}
    try:
        return sample_inputs(inputs, sizes)
    except VerifyException as error:
        raise ToolError(f"{args.model}: {error}; give --inputs") from error
