"""Command line options that the tools share, and values of options that need parsing."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

from lowerdeck.dialects.frameworks import OptionValue, declared_options
from lowerdeck.lowering.targets import target_names
from lowerdeck.passes.machinery.options import (
    PRECISIONS,
    WEIGHT_FORMATS,
    CompileOptions,
    OptionError,
    split_weights,
)
from lowerdeck.passes.machinery.ranges import Ranges
from lowerdeck.tools.common import ToolError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Elsewhere(argparse.Action):
    """An option of other commands."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs="?", **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        (flag,) = self.option_strings
        *others, last = _TAKEN_BY[flag]
        owners = f"{', '.join(others)} and {last}" if others else last
        raise ToolError(f"{parser.prog}: {flag} has no effect here; it is for {owners}")


class JoinAction(argparse.Action):
    """Comma lists of a repeated option are one list."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest, None)
        setattr(namespace, self.dest, f"{before},{values}" if before else values)


class Arguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: str, **options: Any) -> Any:
        """Add one, as argparse has it."""
        ...

    def set_defaults(self, **values: Any) -> None:
        """Values of what has no argument, as argparse has it."""
        ...


_TO_LOOPS = (
    *("compile", "run", "batch", "bench", "tune", "report", "view", "explain", "check", "reduce"),
)
"""The commands that lower a model."""

_SWITCHES = frozenset(
    {"--fast-math", "--strict-accuracy", "--small-weights", "--embed-weights", "--profile"}
)
"""Options without a value."""

_TAKEN_BY: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("--extra-passes", "--disable", "--rewrite-limit", "--fast-math"),
        (*_TO_LOOPS, "export", "prune"),
    ),
    "--skip-nodes": (*_TO_LOOPS, "export", "prune", "quantize"),
    **dict.fromkeys(("--state", "--threads", "--max-stack"), _TO_LOOPS),
    "--target": tuple(name for name in _TO_LOOPS if name != "tune"),
    **dict.fromkeys(("--strategy", "--disable-strategy"), _TO_LOOPS),
    **dict.fromkeys(("--strict-accuracy", "--small-weights", "--weight-format"), _TO_LOOPS),
    **dict.fromkeys(("--precision", "--ranges"), (*_TO_LOOPS, "export")),
    "--embed-weights": ("compile", "check", "reduce"),
    "--profile": ("compile", "bench", "report", "view"),
    **dict.fromkeys(("--name", "--byte-order"), ("compile",)),
}
"""The commands in which an option has an effect, unless it has one in all that are on models."""

_MEANT_OTHERWISE = {"batch": ("--output",)}
"""Options that a command has a meaning of its own for."""


def add_options(
    parser: Arguments,
    *,
    target_flag: str = "--target",
    target: str = "native",
    command: str | None = None,
) -> None:
    """
    What every tool that compiles a model lets its user ask for; `compile_options` reads it.

    An option that has no effect in a command is refused there, with the commands that take it.
    """

    def add(flag: str, **options: Any) -> None:
        owners = _TAKEN_BY.get(flag)
        if flag in _MEANT_OTHERWISE.get(command or "", ()):
            parser.set_defaults(**{flag.removeprefix("--"): options.get("default")})
            return
        if command is None or owners is None or command in owners:
            parser.add_argument(flag, **options)
            return
        options = {name: options[name] for name in ("dest", "default") if name in options}
        if flag in _SWITCHES:
            options["default"] = False
        parser.add_argument(flag, action=_Elsewhere, help=argparse.SUPPRESS, **options)

    for name, option in declared_options().items():
        flag = f"--{name.replace('_', '-')}"
        if option.is_flag:
            add(flag, dest=name, action="store_const", const="yes", help=option.help)
        else:
            listed = {"action": JoinAction} if option.is_list else {}
            add(flag, dest=name, metavar=option.metavar, help=option.help, **listed)
    add(
        "--import-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="what the frontend of a plugin lets its user say of a model; repeatable",
    )
    add(
        "--output",
        action="append",
        metavar="NAME",
        help="tensor to return; repeatable",
    )
    add(
        "--input-shape",
        action="append",
        default=[],
        metavar="NAME=1,2,3",
        help="shape of an input; repeatable",
    )
    add(
        "--dim",
        action="append",
        default=[],
        dest="dims",
        metavar="NAME=N",
        help="size of an open dimension of the inputs, which the model is compiled for; bench "
        "leaves it open, and chooses random inputs of that size; repeatable",
    )
    add(
        "--set",
        action="append",
        default=[],
        dest="fixed",
        metavar="NAME=VALUE",
        help="make an input a constant: true, a number for all of its elements, [[1,2],[3,4]], or "
        "@file.npy; repeatable",
    )
    add(
        "--state",
        action="append",
        default=[],
        metavar="IN=OUT",
        help="let the input IN hold what the output OUT has held after the last run, such as a "
        "cache; first its default or zeros; repeatable",
    )
    add(
        target_flag,
        dest="compile_for",
        default=target,
        metavar="T",
        help=f"machine to generate C for: {', '.join(target_names())} (default: {target})",
    )
    add(
        "--name",
        metavar="NAME",
        help="what identifiers and files of the C begin with (default: that of the model's file)",
    )
    add("--threads", type=int, default=1, metavar="N", help="threads of one run (default: 1)")
    add(
        "--load",
        action="append",
        default=[],
        metavar="FILE|MODULE",
        help="load a plugin: a Python file or an importable module with passes, targets, "
        "strategies, frontends or operators; repeatable",
    )
    add(
        "--extra-passes",
        default="",
        metavar="SPEC",
        help="passes to run at the end of the phase optimized: name,name{option=value},...",
    )
    add("--disable", action="append", default=[], metavar="PASS,...", help="leave passes out")
    add(
        "--disable-strategy",
        action="append",
        default=[],
        metavar="NAME",
        help="run no kernel by this strategy; repeatable",
    )
    add(
        "--strategy",
        action="append",
        default=[],
        metavar="NAME",
        help="run kernels by this strategy wherever it can; repeatable",
    )
    add(
        "--skip-nodes",
        action="append",
        default=[],
        metavar="REGEX,...",
        help="source nodes that optional rewrites leave alone, or places in IR text as a whole "
        "(in.mlir:3:.*); repeatable",
    )
    add("--rewrite-limit", type=int, metavar="N", help="make the first N rewrites only")
    add(
        "--strict-accuracy",
        action="store_true",
        help="leave out what is faster but adds to rounding errors",
    )
    add(
        "--small-weights",
        action="store_true",
        help="leave out what is faster but stores weights padded, transformed or twice",
    )
    add(
        "--precision",
        metavar="P",
        help=f"what layers may be computed in: {', '.join(PRECISIONS)}; auto is what --ranges says",
    )
    add(
        "--ranges",
        metavar="FILE.json",
        help="what quantize has written: the ranges by which inputs of layers become bytes",
    )
    add(
        "--weight-format",
        metavar="F",
        help=f"store weights in fewer bits: {', '.join(WEIGHT_FORMATS)}; --weights takes it, too",
    )
    add(
        "--fast-math",
        action="store_true",
        help="use algebra of real numbers on floats, as pass fast-math lists it",
    )
    add("--profile", action="store_true", help="take the time of each kernel")
    add("--embed-weights", action="store_true", help="write the weights as C, not as a file")
    add(
        "--static-workspace",
        action="store_true",
        help="give the C a static workspace, for one run at a time",
    )
    add(
        "--max-stack",
        type=int,
        default=CompileOptions.max_stack,
        metavar="BYTES",
        help="most bytes of buffers that a kernel has on the stack, others are workspace "
        f"(default: {CompileOptions.max_stack})",
    )
    add(
        "--byte-order",
        choices=("little", "big"),
        default="little",
        help="that of the machine that reads the weights file (default: little)",
    )


def compile_options(
    args: argparse.Namespace,
    progress: Callable[[str], None] = lambda text: None,
) -> CompileOptions:
    """The options of a command line."""
    imports, weight_format = split_weights(_import_options(args), args.weight_format)
    return CompileOptions(
        outputs=args.output,
        input_shapes=parse_shapes(args.input_shape),
        dims=parse_sizes(args.dims) or None,
        fixed=parse_values(args.fixed),
        states=parse_states(args.state),
        import_options=imports,
        target=args.compile_for,
        name=args.name,
        threads=args.threads,
        disable=listed(args.disable),
        disable_strategy=listed(args.disable_strategy),
        strategy=listed(args.strategy),
        skip_nodes=[regex for text in args.skip_nodes for regex in split_regexes(text)],
        rewrite_limit=args.rewrite_limit,
        extra_passes=args.extra_passes,
        strict_accuracy=args.strict_accuracy,
        fast_math=args.fast_math,
        small_weights=args.small_weights,
        weight_format=weight_format,
        precision=args.precision,
        ranges=None if args.ranges is None else Ranges.read(args.ranges),
        embed_weights=args.embed_weights,
        static_workspace=args.static_workspace,
        max_stack=args.max_stack,
        byte_order=args.byte_order,
        profile=args.profile,
        progress=progress,
        warn=lambda text: print(f"warning: {text}", file=sys.stderr),
    )


def _import_options(args: argparse.Namespace) -> dict[str, OptionValue]:
    """What is said of the model: by flags, or of frontends that came after the flags by name."""
    declared = declared_options()
    texts: dict[str, str | None] = {name: getattr(args, name, None) for name in declared}
    for option in args.import_option:
        name, equals, text = option.partition("=")
        if not equals or name not in declared:
            known = ", ".join(declared)
            raise ToolError(f"--import-option {option}: expected NAME=VALUE, NAME one of {known}")
        texts[name] = text
    values = {name: declared[name].parse(text) for name, text in texts.items()}
    return {name: value for name, value in values.items() if value is not None}


def listed(values: Sequence[str]) -> list[str]:
    """Names of options that may be repeated, and may have commas in them."""
    return [name for value in values for name in value.split(",")]


def split_regexes(text: str) -> list[str]:
    """
    Regular expressions with commas between them, each not empty. A comma in brackets of any kind,
    or behind a backslash, is part of one.
    """
    tokens = re.findall(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", text, re.DOTALL)
    parts, depth = [""], 0
    for token in tokens:
        depth += (token in ("(", "{")) - (token in (")", "}"))
        if token == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return [part for part in parts if part]


def load_plugins(tool: str, specs: Sequence[str]) -> None:
    """Register the installed plugins and those of a command line; ToolError."""
    from lowerdeck.plugins import PluginError, load_installed, load_plugin

    try:
        load_installed()
        for spec in specs:
            load_plugin(spec)
    except PluginError as error:
        raise ToolError("\n".join(f"{tool}: {line}" for line in str(error).splitlines())) from error


@contextmanager
def checking_options(tool: str) -> Generator[None]:
    """An OptionError inside becomes a ToolError that says it of the flags of a tool."""
    try:
        yield
    except OptionError as error:
        flags = ((name.replace("_", "-"), text) for name, text in error.problems)
        raise ToolError("\n".join(f"{tool}: --{flag}: {text}" for flag, text in flags)) from error


def parse_shapes(options: Sequence[str]) -> dict[str, list[int]] | None:
    """`NAME=1,224,224,3` for each input; None without options. Names may hold `=` and `:`."""
    shapes: dict[str, list[int]] = {}
    for option in options:
        name, equals, text = option.rpartition("=")
        sizes = [part.strip() for part in text.split(",")] if text.strip() else []
        if not name or not equals or not all(size.isdecimal() for size in sizes):
            raise ToolError(f"--input-shape {option}: expected NAME=1,2,3")
        shapes[name] = [int(size) for size in sizes]
    return shapes or None


def parse_sizes(options: Sequence[str]) -> dict[str, int]:
    """`NAME=N` for each dimension; ToolError for anything else, or for two sizes of one."""
    sizes: dict[str, int] = {}
    for option in options:
        name, equals, text = option.rpartition("=")
        if not name or not equals or not text.isdecimal():
            raise ToolError(f"--dim {option}: expected NAME=N")
        if sizes.setdefault(name, int(text)) != int(text):
            raise ToolError(f"--dim {option}: '{name}' is {sizes[name]} already")
    return sizes


def parse_states(options: Sequence[str]) -> dict[str, str] | None:
    """`IN=OUT` for each input that holds an output; None without options."""
    states: dict[str, str] = {}
    for option in options:
        before, _, after = option.partition("=")
        if not before or not after:
            raise ToolError(f"--state {option}: expected IN=OUT")
        if before in states:
            raise ToolError(f"--state {option}: '{before}' is given twice")
        states[before] = after
    return states or None


def parse_values(options: Sequence[str]) -> dict[str, Any] | None:
    """`NAME=VALUE` for each input that is a constant; None without options."""
    values: dict[str, Any] = {}
    for option in options:
        name, equals, text = option.rpartition("=")
        if not name or not equals or not text.strip():
            raise ToolError(f"--set {option}: expected NAME=VALUE")
        values[name] = _parse_value(option, text.strip())
    return values or None


def _parse_value(option: str, text: str) -> Any:
    """A Boolean, a number, a list of these, or the array of a file."""
    import json

    import numpy as np

    from lowerdeck.frontends.numpy_files import read_numpy

    if text.startswith("@"):
        try:
            found: Any = read_numpy(text[1:])
        except (OSError, ValueError) as error:
            raise ToolError(f"--set {option}: {text[1:]} cannot be read: {error}") from None
        if not isinstance(found, np.ndarray):
            raise ToolError(f"--set {option}: {text[1:]} holds several arrays, expected one (.npy)")
        return cast("Any", found)
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        if "," not in text and "[" not in text:
            return int(text) if text.lstrip("+-").isdecimal() else float(text)
        value = json.loads(text if text.startswith("[") else f"[{text}]")
        if np.asarray(value).dtype.kind not in "biuf":
            raise ValueError
    except ValueError:
        raise ToolError(
            f"--set {option}: expected a number, true, false, a list such as [[1,2],[3,4]], or "
            "@file.npy"
        ) from None
    return value


def read_arrays(path: str) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` file by name; `inputs_among` are those that a model takes."""
    import numpy as np

    from lowerdeck.frontends.numpy_files import read_numpy

    try:
        loaded = read_numpy(path)
    except ValueError as error:
        raise ToolError(f"{path}: expected a file of numpy.savez: {error}") from error
    if isinstance(loaded, np.ndarray):
        raise ToolError(
            f"{path}: holds one array without a name; numpy.savez('in.npz', **{{name: array}}) "
            "writes arrays with theirs"
        )
    return loaded


_PREFIX = "input:"
"""What names of inputs begin with in a file that holds expected outputs, too."""


def inputs_among(
    arrays: Mapping[str, NDArray[Any]], names: Collection[str]
) -> dict[str, NDArray[Any]]:
    """
    The arrays of a file for a model whose inputs have these names.

    If some names begin with `input:`, and are no name of an input as they are, the file may hold
    other things, too: then only those are taken, without it, and inputs by their exact names.
    """
    if all(name in names or not name.startswith(_PREFIX) for name in arrays):
        return dict(arrays)
    exact = {name: array for name, array in arrays.items() if name in names}
    marked = {
        name.removeprefix(_PREFIX): array
        for name, array in arrays.items()
        if name.startswith(_PREFIX) and name not in names
    }
    return {**marked, **exact}
