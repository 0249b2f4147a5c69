"""
`lowerdeck check`: do the interpreter, the C and, for ONNX, onnxruntime agree on a model?

The interpreter runs the module as it was imported, before any pass. Where the C differs, the pass,
the pattern and the first wrong rewrite are searched by bisection (`blame.py`).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lowerdeck.tools.command import add_command, command_options
from lowerdeck.tools.common import ToolError, about

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp

    from lowerdeck.passes.machinery.options import CompileOptions
    from lowerdeck.tools.blame import Blamer, Effect, Finding
    from lowerdeck.tools.compare import Results
    from lowerdeck.tools.reference import Inputs

DIFFERENT = 2
"""The exit status if results differ."""

UNCHECKED = 3
"""The exit status if the C was not compared."""

EXIT_CODES = """
exit status: 0 if all agree; 1 if the model cannot be read or compiled, or an argument makes no
sense; 2 if results differ; 3 if they do not, but the C or everything could not be compared; 70 for
a fault of the compiler
"""


_UNDER_TEST = (
    "the passes that --load brings are under test: those of --extra-passes, or without it all of "
    "them, at the end of the phase optimized"
)


def add_check(commands: Any) -> None:
    """The command and its arguments."""
    text = "compare interpreter, C and onnxruntime; on a difference name the rewrite that makes it"
    one = add_command(commands, "check", _check, text)
    one.epilog = " ".join(EXIT_CODES.split())
    add_finding_arguments(one)


def add_finding_arguments(parser: argparse.ArgumentParser) -> None:
    """What says how results are had and compared."""
    parser.description = f"{parser.description}; {_UNDER_TEST}"
    add = parser.add_argument
    add("--inputs", metavar="IN.npz", help="arrays by input name; else random ones")
    add(
        "--check-steps",
        type=int,
        metavar="N",
        help="ops and iterations that a run of the interpreter may take (default: 10,000,000)",
    )


@dataclass
class Comparison:
    """What was found when the results of a model were compared."""

    agreeing: list[str] = field(default_factory=list[str])
    """What gives the same results as the reference."""
    numbers: int = 0
    """How many were compared."""
    unchecked: list[str] = field(default_factory=list[str])
    """What was not compared, and why."""
    finding: Finding | None = None
    effects: Sequence[Effect] = ()
    """What the passes under test did, if nothing is wrong."""
    is_c_checked: bool = False

    @property
    def status(self) -> int:
        """The exit status."""
        if self.finding is not None:
            return DIFFERENT
        return 0 if self.is_c_checked and self.numbers else UNCHECKED


def _check(args: argparse.Namespace) -> int:
    from lowerdeck.tools.progress import progress

    with about(args.model), progress() as shown:
        options = with_passes_under_test(args, command_options(args, shown))
        found = compare_model(args.model, options, *finding_arguments(args))
    for reason in found.unchecked:
        print(f"{args.model}: not compared: {reason}", file=sys.stderr)
    if found.finding is not None:
        print("\n".join(f"{args.model}: {line}" for line in found.finding.lines))
        if found.finding.change is not None:
            print(found.finding.change.text())
    elif len(found.agreeing) > 1:
        names = " and ".join(found.agreeing)
        print(f"{args.model}: {names} agree in {found.numbers:,} numbers")
    for effect in found.effects:
        print(f"{args.model}: {_described(effect)}")
    return found.status


def _described(effect: Effect) -> str:
    what = f"the pass '{effect.pass_name}'"
    if effect.rewrites:
        return f"{what} made {effect.rewrites:,} rewrite{'s' if effect.rewrites > 1 else ''}"
    if effect.has_changed:
        return f"{what} changed the model, and told of no rewrite"
    return f"{what} made no rewrite: this model is no test of it"


def with_passes_under_test(args: argparse.Namespace, options: CompileOptions) -> CompileOptions:
    """The options with the passes that `--load` brings as extra passes, if none are named."""
    from lowerdeck.lowering.pipeline import check_options
    from lowerdeck.plugins import passes_of
    from lowerdeck.tools.arguments import checking_options

    if options.extra_passes:
        return options
    names = dict.fromkeys(one.name for spec in args.load for one in passes_of(spec))
    options = replace(options, extra_passes=",".join(names))
    with checking_options("lowerdeck"):
        check_options(options)
    return options


def finding_arguments(args: argparse.Namespace) -> tuple[Inputs | None, int]:
    """Inputs if they were given, and steps of the interpreter."""
    from lowerdeck.tools.arguments import read_arrays
    from lowerdeck.tools.reference import MAX_STEPS

    inputs = read_arrays(args.inputs) if args.inputs else None
    if args.check_steps is not None and args.check_steps < 1:
        raise ToolError(f"lowerdeck: --check-steps: {args.check_steps} is not a number of steps")
    return inputs, args.check_steps or MAX_STEPS


def compare_model(
    path: str,
    options: CompileOptions,
    given: Inputs | None = None,
    max_steps: int | None = None,
) -> Comparison:
    """
    Compare the results of a model; on a difference, find what makes it.

    FrontendError, PassFailedException or OptionError if it cannot be compiled.
    """
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.dialects.recursion import working_on_modules

    module, _ = import_and_lower(path, "imported", options)
    with working_on_modules():
        return _compare(path, module, options, given, max_steps)


def _compare(
    path: str,
    module: ModuleOp,
    options: CompileOptions,
    given: Inputs | None,
    max_steps: int | None,
) -> Comparison:
    from lowerdeck.tools.blame import Blamer, Finding, UncheckedError
    from lowerdeck.tools.compare import difference, says_something
    from lowerdeck.tools.reference import MAX_STEPS, NoReferenceError, interpret, reference_run

    steps = max_steps or MAX_STEPS
    comparison = Comparison()
    options.progress("interpret")
    try:
        inputs, expected = reference_run(module, given, lambda m, i: interpret(m, i, steps))
    except NoReferenceError as error:
        comparison.unchecked.append(f"the interpreter: {error}")
        return comparison
    arrays = [value for value in expected.values() if says_something(value)]
    comparison.numbers = sum(getattr(value, "size", 1) for value in arrays)
    comparison.agreeing.append("the interpreter")
    options.progress("onnxruntime")
    other = run_onnxruntime(path, inputs, options)
    if isinstance(other, str):
        comparison.unchecked.append(f"onnxruntime: {other}")
    elif other is not None:
        if (text := difference(other, expected)) is not None:
            where = "in onnxruntime, of whose results those of the imported module are expected"
            comparison.finding = Finding(text, where)
            return comparison
        comparison.agreeing.append("onnxruntime")
    blamer = Blamer(module, options, inputs, expected, steps)
    try:
        blamer = blamer.after_rounding()
    except UncheckedError as error:
        comparison.unchecked.append(f"the C: {error}")
        return comparison
    _compare_c(comparison, blamer)
    if comparison.finding is None:
        comparison.effects = blamer.effects()
    return comparison


def _compare_c(comparison: Comparison, blamer: Blamer) -> None:
    from lowerdeck.build import find_compiler
    from lowerdeck.lowering.targets import obstacle

    options = blamer.options
    reason = obstacle(options.target)
    if reason is None and find_compiler() is None:
        reason = "no C compiler found"
    if reason is not None:
        comparison.unchecked.append(f"the C: {reason}")
        options.progress("bisect")
        comparison.finding = blamer.find_in_core()
        comparison.unchecked += blamer.notes
        if comparison.finding is None and not blamer.notes:
            comparison.agreeing.append("the module that passes make of it before memory is planned")
        return
    options.progress("C")
    comparison.is_c_checked = True
    if (problem := blamer.compare_c()) is None:
        comparison.agreeing.append("the C")
        return
    options.progress("bisect")
    comparison.finding = blamer.find(problem)
    comparison.unchecked += blamer.notes


def run_onnxruntime(path: str, inputs: Inputs, options: CompileOptions) -> Results | str | None:
    """
    The results of an ONNX model in onnxruntime, or why there are none; None for other models.
    """
    from lowerdeck.frontends.detect import detect_format

    if os.path.isdir(path) or detect_format(path) != "onnx":
        return None
    try:
        import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return "is not installed"
    if options.outputs is not None:
        return "it returns the model's own outputs only"
    runtime: Any = onnxruntime
    settings = runtime.SessionOptions()
    settings.log_severity_level = 4
    # Its own optimizer is not what is asked.
    settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_outputs()]
        fixed = options.fixed or {}
        used: Mapping[str, NDArray[np.generic]] = {
            value.name: _fixed(value, fixed) if value.name in fixed else inputs[value.name]
            for value in (*session.get_inputs(), *_overridden(session, {**inputs, **fixed}))
        }
        results = session.run(names, used)
    except Exception as error:  # whatever its C++ raises; a model may be beyond it
        return str(error).splitlines()[0] if str(error) else type(error).__name__
    return dict(zip(names, results, strict=True))


def _overridden(session: Any, given: Container[str]) -> list[Any]:
    """The initializers that are inputs, too, and for which there are values."""
    return [value for value in session.get_overridable_initializers() if value.name in given]


def _fixed(value: Any, fixed: Mapping[str, Any]) -> NDArray[Any]:
    """The value of an input that is a constant, as onnxruntime wants it."""
    from onnx import TensorProto

    from lowerdeck.dialects.onnx.types import element_from_proto
    from lowerdeck.frontends.fixed import fixed_array

    name = str(value.type).removeprefix("tensor(").removesuffix(")").upper()
    element = element_from_proto(TensorProto.DataType.Value(name))
    dims = [dim if isinstance(dim, int) else None for dim in value.shape]
    return fixed_array(fixed[value.name], element, dims)
