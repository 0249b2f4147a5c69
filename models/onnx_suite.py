"""
The official ONNX node suite, by operator: how many cases pass, are refused, or are wrong.

    python -m models.onnx_suite --jobs 2 --filter conv

Every case is compiled to C and run; with `--interpret` it is only imported and legalized, and run
by the interpreter. `--form` changes the model first: `dynamic` makes every input dimension unknown,
`constant` makes inputs initializers. A case is refused if the compiler says that it cannot compile
it; anything else that goes wrong is an error.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from xdsl.context import Context
from xdsl.utils.exceptions import DiagnosticException

import lowerdeck
from lowerdeck.compiler import BuildError, RunError
from lowerdeck.dialects.errors import InternalError
from lowerdeck.dialects.interpret import InterpretError, run_module
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.frontends.onnx.import_ import import_model
from lowerdeck.lowering.errors import LoweringError
from lowerdeck.passes.legalize.onnx import LegalizeOnnxPass
from lowerdeck.passes.legalize.walk import LegalizationError
from lowerdeck.passes.machinery.contracts import ContractError
from models.campaign import add_options, engine_of, every_processor, main_of

RANDOM = ("Bernoulli", "RandomNormalLike", "RandomUniformLike")
"""Operators of which only the shape and type can be compared."""

CRASHES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BuildError,
    DiagnosticException,
    InternalError,
    InterpretError,
    LookupError,
    NotImplementedError,
    RunError,
    TypeError,
    ValueError,
)
"""What counts as an error of a case: none of these is a refusal."""


REFUSALS = (FrontendError, LegalizationError, ContractError, LoweringError)
"""How the compiler says that it does not compile a model."""

Run: TypeAlias = "Callable[[onnx.ModelProto, Mapping[str, Any]], dict[str, Any]]"


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    name: str
    operator: str
    status: str
    """One of pass, refused, wrong, error."""
    message: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print the table; 1 if a case is wrong or an error."""
    options = _parse(arguments)
    # The C compiler takes most of the time, and these programs run once.
    os.environ.setdefault("CFLAGS", "-O1")
    numbers = range(len(_chosen(options.filter)))
    run = _Runner(options.form, options.interpret, options.filter)
    found: dict[int, Outcome] = {}
    for number, future in engine_of(options).deal(run, numbers):
        error = future.exception()
        found[number] = future.result() if error is None else run.failed(number, error)
    outcomes = [found[number] for number in numbers]
    _report(outcomes, verbose=options.verbose)
    return int(any(outcome.status in ("wrong", "error") for outcome in outcomes))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--interpret", action="store_true", help="do not compile")
    parser.add_argument("--form", choices=("as-is", "dynamic", "constant"), default="as-is")
    parser.add_argument("--filter", default="", help="only cases whose name matches")
    add_options(parser, every_processor())
    parser.add_argument("--verbose", action="store_true", help="list refusals too")
    return parser.parse_args(arguments)


@cache
def load_cases() -> list[Any]:
    """The cases of the installed onnx, by name; making them takes some seconds."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(load_model_tests(kind="node"), key=lambda case: case.name)


def first_case(operator: str, module: str) -> Any:
    """The first case of one node with an operator, by the suite's module that makes it alone."""
    nodes: Any = importlib.import_module("onnx.backend.test.case.node")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"{nodes.__name__}.{module}")
    # In the order in which they were made, by whichever modules.
    return next(
        case
        for case in nodes._NodeTestCases
        if [node.op_type for node in case.model.graph.node] == [operator]
    )


@cache
def _chosen(pattern: str) -> list[tuple[Any, str]]:
    """Cases by name, each with its operator; an expanded case has that which it expands."""
    cases = [case for case in load_cases() if re.search(pattern, case.name)]
    first = {case.name: case.model.graph.node[0].op_type for case in cases}
    return [(case, first.get(case.name.split("_expanded")[0], "expanded")) for case in cases]


@dataclass(frozen=True)
class _Runner:
    """Runs one case in one form."""

    form: str
    interpret: bool
    pattern: str

    def __call__(self, number: int) -> Outcome:
        case, operator = _chosen(self.pattern)[number]
        run = _interpret if self.interpret else _compile_and_run
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare = operator not in RANDOM
            status, message = run_case(case, self.form, run, compare=compare)
        return Outcome(case.name, operator, status, message)

    def failed(self, number: int, error: BaseException) -> Outcome:
        """What became of a case that raised what no compiler does, or ended its process."""
        case, operator = _chosen(self.pattern)[number]
        return Outcome(case.name, operator, "error", f"{type(error).__name__}: {error}")


def _interpret(model: onnx.ModelProto, values: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs by the interpreter, after legalization alone."""
    module = import_model(model)
    LegalizeOnnxPass().apply(Context(), module)
    module.verify()
    return run_module(module, values)


def _compile_and_run(model: onnx.ModelProto, values: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of the C."""
    return lowerdeck.compile(model, cache=False)(values)


def run_case(
    case: Any, form: str = "as-is", run: Run = _interpret, *, compare: bool = True
) -> tuple[str, str]:
    """The status of a case and, unless it passes, why."""
    for inputs, expected in case.data_sets:
        values = [_value(value) for value in inputs]
        model, values = reshape_model(case.model, values, form)
        try:
            found = run(model, values)
        except REFUSALS as error:
            return "refused", str(error)
        except CRASHES as error:
            return "error", f"{type(error).__name__}: {error}"
        for name, want in zip(_output_names(model), expected, strict=True):
            difference = difference_of(found[name], _value(want), case, values=compare)
            if difference:
                return "wrong", f"output '{name}': {difference}"
    return "pass", ""


def reshape_model(
    model: onnx.ModelProto, values: Sequence[Any], form: str
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The model in another form, and the values of the inputs that it still has, by name."""
    inputs = {value.name: array for value, array in zip(model.graph.input, values, strict=False)}
    if form == "as-is":
        return model, inputs
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    if form == "dynamic":
        for value in changed.graph.input:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                dim.dim_param = f"{value.name}_{axis}"
        return changed, inputs
    arrays: dict[str, NDArray[Any]] = {
        name: array for name, array in inputs.items() if isinstance(array, np.ndarray)
    }
    for name, array in arrays.items():
        changed.graph.initializer.append(numpy_helper.from_array(array, name))
    return changed, {name: value for name, value in inputs.items() if name not in arrays}


def _output_names(model: onnx.ModelProto) -> list[str]:
    return [value.name for value in model.graph.output]


def _value(value: Any) -> Any:
    """Arrays for TensorProtos, also inside of sequences."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    if isinstance(value, list | tuple):
        return [_value(item) for item in cast(Sequence[Any], value)]
    return value if value is None else np.asarray(value)


def difference_of(found: Any, expected: Any, case: Any, *, values: bool = True) -> str:
    """How a result differs from the expected one; empty if it does not."""
    if expected is None or found is None:
        return "" if found is expected else f"found {found}, expected {expected}"
    if isinstance(expected, list):
        return _list_difference(found, cast(list[Any], expected), case, values=values)
    if found.dtype != expected.dtype and expected.dtype.kind not in "OSU":
        return f"found {found.dtype}, expected {expected.dtype}"
    if found.shape != expected.shape:
        return f"found shape {found.shape}, expected {expected.shape}"
    return _value_difference(found, expected, case) if values else ""


def _list_difference(found: Any, expected: list[Any], case: Any, *, values: bool) -> str:
    if not isinstance(found, list) or len(cast(list[Any], found)) != len(expected):
        return f"found {found}, expected a sequence of {len(expected)}"
    for item, want in zip(cast(list[Any], found), expected, strict=True):
        if difference := difference_of(item, want, case, values=values):
            return difference
    return ""


def _value_difference(found: NDArray[Any], expected: NDArray[Any], case: Any) -> str:
    if expected.dtype.kind in "OSU":
        return "" if found.tolist() == expected.astype(object).tolist() else "strings differ"
    if expected.dtype.kind in "biu":
        return "" if np.array_equal(found, expected) else _sample(found, expected)
    rtol = case.rtol
    if expected.dtype.kind == "V":
        rtol = max(rtol, 2**-6)  # as the suite's own runner: bfloat16 has 8 bits
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    if np.allclose(found, expected, rtol, max(case.atol, _noise(expected)), equal_nan=True):
        return ""
    return _sample(found, expected)


def _noise(expected: NDArray[Any]) -> float:
    """
    One unit in the last place of the largest element. Where sums cancel, expected values that
    should be zero hold rounding errors of the reference of that size; nobody else makes the same.
    """
    magnitude = np.abs(expected[np.isfinite(expected)])
    limits = cast(Any, ml_dtypes).finfo(expected.dtype)
    return float(limits.eps) * float(magnitude.max(initial=0.0))


def _sample(found: NDArray[Any], expected: NDArray[Any]) -> str:
    differs = (found != expected).reshape(-1)
    return (
        f"found {found.reshape(-1)[differs][:4].tolist()}, "
        f"expected {expected.reshape(-1)[differs][:4].tolist()}"
    )


def _report(outcomes: Sequence[Outcome], *, verbose: bool) -> None:
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in outcomes:
        table[outcome.operator][outcome.status] += 1
    columns = ("pass", "refused", "wrong", "error")
    print(f"{'operator':28}" + "".join(f"{column:>9}" for column in columns))
    for operator, counts in sorted(table.items()):
        if verbose or set(counts) != {"pass"}:
            print(f"{operator:28}" + "".join(f"{counts[column]:9}" for column in columns))
    total = sum(table.values(), Counter[str]())
    print(f"{'all':28}" + "".join(f"{total[column]:9}" for column in columns))
    for outcome in outcomes:
        if outcome.status in ("wrong", "error") or (verbose and outcome.status == "refused"):
            print(f"{outcome.status}: {outcome.name}: {outcome.message[:300]}")


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
