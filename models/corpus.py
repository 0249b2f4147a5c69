"""
Models of other frameworks, with the answers that the frameworks gave, through C.

    python -m models.corpus tf1|caffe|tflite|keras|pt2|paddle|mindir|mxnet|darknet
                           [--interpret | --export FORMAT | --every-way]
                           [--filter REGEX] [--disable PASS | --disable-optional]
                           [--target NAME] [--threads N]
                           [--jobs N | --ray [ADDRESS]]

The corpus is a folder with one folder a case under `tf1`, `caffe`, `tflite` and so on: `case.json`,
the model, and samples of inputs and expected outputs. It is the one that
`--corpus` or LOWERDECK_CORPUS names, or else `../shared/corpus` beside the project. A case passes
if all its samples do: shapes and types are equal, floats within the case's tolerance, everything
else exact (but see `models.equal_elements` and `models.open_results`); one that has to be refused,
if it is. Another refused case is counted; a wrong number or a crash makes the exit status 1.

`--every-way` goes through C and ONNX, each with all
passes and without the optional ones, and through a net of Caffe that is read back. C is for
`--target` and `--threads`, and made by the compiler that `CC` names; aarch64 runs in an emulator
where it has to.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import PassFailedException

from lowerdeck.engines import Engine
from lowerdeck.exporters.errors import ExportError
from lowerdeck.frontends.errors import FrontendError
from lowerdeck.lowering.errors import LoweringError
from models.campaign import add_options, engine_of, every_processor, main_of
from models.equal_elements import without_equal_orders
from models.open_results import open_outputs

if TYPE_CHECKING:
    from lowerdeck.compiler import CompileOptions
    from lowerdeck.dialects.interpret.calls import Calls

Arrays: TypeAlias = "Mapping[str, NDArray[Any]]"
Model: TypeAlias = "Callable[[Arrays], Arrays]"

PATH_VARIABLE = "LOWERDECK_CORPUS"

REFUSALS = (ExportError, FrontendError, LoweringError, PassFailedException)
"""What is raised for models that cannot be compiled or exported."""


class PlainCase:
    """What ways of running ask of a case, as it is where nothing is said of it."""

    @property
    def is_refused(self) -> bool:
        """True if the right answer is an error message."""
        return False

    @property
    def options(self) -> dict[str, Any]:
        """What is said of the model besides its file."""
        return {}

    @property
    def input_shapes(self) -> Mapping[str, Sequence[int]] | None:
        """The shapes of inputs that the file does not state."""
        return None

    @property
    def is_stateful(self) -> bool:
        """True if samples are calls in a row, each from the state that the last one left."""
        return False

    @property
    def is_unstable(self) -> bool:
        """True if the framework leaves something open (`models.open_results`)."""
        return False

    def may_refuse(self, message: str) -> bool:
        """True if a refusal that names nothing but certain operators is right as well."""
        del message
        return False

    def named(self, inputs: Arrays, names: Sequence[str]) -> Arrays:
        """Inputs by the names that the model has."""
        del names
        return inputs


@dataclass(frozen=True)
class Case(PlainCase):
    """One case of the corpus."""

    name: str
    folder: Path
    data: Mapping[str, Any]
    """The contents of `case.json`."""

    @property
    def model(self) -> Path:
        """The file to compile; a caffe net's weights are beside it."""
        return self.folder / self.data.get("model", self.data.get("prototxt", ""))

    @property
    def outputs(self) -> list[str]:
        """The names of the tensors that are compared."""
        return list(dict.fromkeys(output["name"] for output in self.data["outputs"]))

    @property
    def dtypes(self) -> dict[str, str]:
        """What numpy calls the element type of each output."""
        return {output["name"]: output["dtype"] for output in self.data["outputs"]}

    def samples(self) -> Iterator[tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]]:
        """Inputs and expected outputs by name."""
        for sample in self.data["samples"]:
            expected = _arrays(self.folder / sample["expected"])
            for key, form in (("state", "state {}"), ("inputs_after", "{}_next")):
                if key in sample:
                    found = _arrays(self.folder / sample[key])
                    expected |= {form.format(name): array for name, array in found.items()}
            yield _arrays(self.folder / sample["inputs"]), expected

    @property
    def is_refused(self) -> bool:
        """True if the right answer is an error message."""
        return self.data.get("expect") == "refused" or bool(self.data.get("must_refuse"))

    def may_refuse(self, message: str) -> bool:
        """True if a refusal that names nothing but certain operators is right as well."""
        allowed: list[str] = self.data.get("may_refuse", [])
        lines = message.splitlines()
        return bool(allowed) and all(any(f"({op})" in line for op in allowed) for line in lines)

    def named(self, inputs: Arrays, names: Sequence[str]) -> Arrays:
        """Inputs by the names that the model has; an only one may have been recorded by another."""
        return {names[0]: value for value in inputs.values()} if len(inputs) == 1 else inputs

    @property
    def options(self) -> dict[str, Any]:
        """What is said of the model besides its file."""
        key = self.data.get("signature")
        return {} if key is None else {"signature": key}

    @property
    def input_shapes(self) -> dict[str, Sequence[int]] | None:
        """The shapes of inputs that the file does not state."""
        return self.data.get("input_shapes")

    @property
    def is_stateful(self) -> bool:
        """True if samples are calls in a row, each from the state that the last one left."""
        return bool(self.data.get("stateful") or self.data.get("state"))

    @property
    def is_unstable(self) -> bool:
        """True if the framework leaves something open (`models.open_results`)."""
        return self.data.get("framework") == "paddle"

    def difference(self, found: Mapping[str, Any], expected: Arrays) -> str:
        """How outputs differ from the expected ones; empty if they do not."""
        mutated = [f"{name}_next" for name in self.data.get("mutated_inputs", ())]
        states = [name for name in expected if name.startswith("state ")]
        for name in [*self.outputs, *mutated, *states]:
            if name not in found:
                return f"{name}: missing"
            if difference := self._difference(np.asarray(found[name]), expected[name]):
                return f"{name}: {difference}"
        return ""

    def _difference(self, found: NDArray[Any], expected: NDArray[Any]) -> str:
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            return f"found {found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}"
        if expected.dtype.kind != "f":
            different = int((found != expected).sum())
            return f"{different} of {expected.size} elements differ" if different else ""
        rtol, atol = (self.data["tolerance"][key] for key in ("rtol", "atol"))
        # In double precision, where the difference of large numbers does not overflow.
        got, want = found.astype(np.float64), expected.astype(np.float64)
        if np.allclose(got, want, rtol, atol, equal_nan=True):
            return ""
        largest = np.nanmax(np.abs(got - want))
        return f"largest difference {largest:.3g} (rtol {rtol}, atol {atol})"


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def corpus_folder(given: str | None = None) -> Path | None:
    """The corpus, or None if it is not here."""
    beside = Path(__file__).parents[2] / "shared" / "corpus"
    path = Path(given or os.environ.get(PATH_VARIABLE) or beside)
    return path if path.is_dir() else None


def load_cases(folder: Path, kind: str) -> list[Case]:
    """The cases of a kind, by name."""
    found = sorted((folder / kind).glob("*/case.json"))
    return [Case(path.parent.name, path.parent, json.loads(path.read_text())) for path in found]


def is_turn(number: int) -> bool:
    """Of two tests, whether a case of this number is for the first one, in no rhythm."""
    return number.bit_count() % 2 == 0


# Ways to run a case


def compiled(
    case: Case, disable: Sequence[str] = (), target: str = "native", threads: int = 1
) -> Model:
    """The case's model through C; that for an aarch64 in an emulator, if this machine is none."""
    import lowerdeck

    outputs = None if case.is_refused else case.outputs
    if target == "aarch64" and platform.machine() not in ("aarch64", "arm64"):
        return _emulated(case, disable, target, threads)
    model = lowerdeck.compile(
        case.model,
        outputs=outputs,
        input_shapes=case.input_shapes,
        disable=disable,
        target=target,
        threads=threads,
        cache=False,
        **case.options,
    )

    def run(inputs: Arrays) -> Arrays:
        if not case.is_stateful:
            model.reset()
        found = model(case.named(inputs, [given.name for given in model.inputs]))
        return {**found, **{f"state {name}": array for name, array in model.state.items()}}

    return run


def _emulated(case: Case, disable: Sequence[str], target: str, threads: int) -> Model:
    from lowerdeck.compiler import CompileOptions
    from models.emulated import Emulated

    options = CompileOptions(
        outputs=None if case.is_refused else case.outputs,
        input_shapes=case.input_shapes,
        disable=disable,
        target=target,
        threads=threads,
        import_options=case.options,
    )
    model = Emulated(str(case.model), options)

    def run(inputs: Arrays) -> Arrays:
        if not case.is_stateful:
            model.reset()
        return model(case.named(inputs, model.inputs))

    return run


def interpreted(case: Case, disable: Sequence[str] = ()) -> Model:
    """The interpreter on the legalized module."""
    from lowerdeck.compiler import CompileOptions

    outputs = None if case.is_refused else case.outputs
    options = CompileOptions(
        outputs=outputs,
        input_shapes=case.input_shapes,
        disable=disable,
        import_options=case.options,
    )
    calls, names = _in_interpreter(str(case.model), options)

    def run(inputs: Arrays) -> Arrays:
        if not case.is_stateful:
            calls.reset()
        found = cast("dict[str, NDArray[Any]]", calls(case.named(inputs, names)))
        after = {f"state {name.removesuffix('_next')}": value for name, value in found.items()}
        return {**found, **after}

    return run


def _in_interpreter(path: str, options: CompileOptions) -> tuple[Calls, Sequence[str]]:
    """A model file, legalized, in the interpreter, and the names of its inputs."""
    from lowerdeck.compiler import import_and_lower
    from lowerdeck.dialects.core.names import value_names
    from lowerdeck.dialects.interpret import find_function
    from lowerdeck.dialects.interpret.calls import Calls

    module, _ = import_and_lower(path, "legal", options)
    function = find_function(module, "main")
    return Calls(module), value_names(function.arg_attrs, len(function.body.block.args))


def exported(case: Case, disable: Sequence[str] = ()) -> Model:
    """The model as ONNX, in onnxruntime."""
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    from lowerdeck.compiler import CompileOptions
    from lowerdeck.exporting import export_with

    options = CompileOptions(outputs=case.outputs, input_shapes=case.input_shapes, disable=disable)
    runtime: Any = onnxruntime
    settings = runtime.SessionOptions()
    settings.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        export_with(str(case.model), path, options)
        session = runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    used = [value.name for value in session.get_inputs()]
    optional = [value.name for value in session.get_overridable_initializers()]
    states: dict[str, NDArray[Any]] = {}

    def run(inputs: Arrays) -> Arrays:
        given = {**states, **case.named(inputs, used)}
        values = session.run(names, {k: v for k, v in given.items() if k in (*used, *optional)})
        found: dict[str, NDArray[Any]] = dict(zip(names, values, strict=True))
        after = {name.removesuffix("_next"): value for name, value in found.items()}
        if case.is_stateful:
            states.update({name: value for name, value in after.items() if name in optional})
        return {**found, **{f"state {name}": value for name, value in after.items()}}

    return run


def exported_to_caffe(case: Case, disable: Sequence[str] = ()) -> Model:
    """
    A net of Caffe, with layers of SSD, for the shapes of the inputs; read back, through C. Its
    inputs and outputs are floats, also where those of the model are integers.
    """
    import lowerdeck

    def read_back(path: str) -> Model:
        return lowerdeck.compile(path, outputs=case.outputs, cache=False)

    return _through_caffe(case, disable, read_back)


def interpreted_as_caffe(case: Case, disable: Sequence[str] = ()) -> Model:
    """The same with the interpreter on the net that is read back, instead of its C."""
    from lowerdeck.compiler import CompileOptions

    def read_back(path: str) -> Model:
        calls, _ = _in_interpreter(path, CompileOptions(outputs=case.outputs))
        return cast("Model", calls)

    return _through_caffe(case, disable, read_back)


def _through_caffe(case: Case, disable: Sequence[str], read_back: Callable[[str], Model]) -> Model:
    from lowerdeck.compiler import CompileOptions
    from lowerdeck.exporting import export_with

    def run(inputs: Arrays) -> Arrays:
        shapes = {name: array.shape for name, array in inputs.items()}
        options = CompileOptions(outputs=case.outputs, input_shapes=shapes, disable=disable)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.prototxt")
            export_with(str(case.model), path, options, dialect="ssd")
            net = read_back(path)
            found = net({name: array.astype(np.float32) for name, array in inputs.items()})
        return {name: np.asarray(found[name]).astype(dtype) for name, dtype in case.dtypes.items()}

    return run


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    name: str
    status: str
    """One of pass, refused, wrong, error."""
    message: str = ""


def run_case(case: Case, prepare: Callable[[Case], Model]) -> Outcome:
    """Run all samples of a case; what is no refusal is raised."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = prepare(case)
            for number, (inputs, expected) in enumerate(case.samples()):
                found = model(inputs)
                if not (difference := case.difference(found, expected)):
                    continue
                note = _excuse(case, inputs, found, expected) if case.is_unstable else ""
                if not note:
                    return Outcome(case.name, "wrong", f"sample {number}: {difference}")
                notes.append(f"sample {number}: {note}")
        except REFUSALS as error:
            is_right = case.is_refused or case.may_refuse(str(error))
            status = "pass" if is_right else "refused"
            return Outcome(case.name, status, str(error))
    if case.is_refused:
        return Outcome(
            case.name, "wrong", f"compiled; expected a refusal: {case.data.get('reason', '')}"
        )
    return Outcome(case.name, "pass", "\n".join(notes))


def _excuse(case: Case, inputs: Arrays, found: Arrays, expected: Arrays) -> str:
    """What the framework leaves open, if that is all that differs; else nothing."""
    same = without_equal_orders(case, inputs, found, expected)
    if not case.difference(found, same):
        return "equal elements in another order"
    reasons = open_outputs(case, inputs)
    same = {**same, **{name: np.asarray(found[name]) for name in reasons}}
    return "" if case.difference(found, same) else ", ".join(dict.fromkeys(reasons.values()))


def optional_passes() -> list[str]:
    """The names of all passes that can be left out."""
    from lowerdeck.lowering.pipeline import ALL_PASSES

    return [name for name, make in ALL_PASSES.items() if getattr(make(), "optional", False)]


_WAYS = {
    "compile": compiled,
    "interpret": interpreted,
    "onnx": exported,
    "caffe": exported_to_caffe,
}

_NAMES = {"compile": "C", "onnx": "ONNX", "caffe": "Caffe"}


def _run(case: Case, way: str, disable: Sequence[str], machine: Mapping[str, Any]) -> Outcome:
    prepare = partial(_WAYS[way], disable=disable)
    return run_case(case, partial(prepare, **machine) if way == "compile" else prepare)


def _crash(case: Case, error: BaseException) -> Outcome:
    return Outcome(case.name, "error", "".join(traceback.format_exception(error, limit=-4)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print a line for each; 1 if one is wrong or crashes."""
    options = _parse(arguments)
    folder = corpus_folder(options.corpus)
    if folder is None:
        print(f"no corpus: give --corpus or set {PATH_VARIABLE}", file=sys.stderr)
        return 1
    cases = [c for c in load_cases(folder, options.kind) if re.search(options.filter, c.name)]
    if options.every_way:
        none, optional = list[str](), optional_passes()
        ways = [("compile", none), ("compile", optional), ("onnx", none), ("onnx", optional)]
        ways.append(("caffe", none))
    else:
        way = "interpret" if options.interpret else options.export or "compile"
        ways = [(way, optional_passes() if options.disable_optional else options.disable)]
    machine = {"target": options.target, "threads": options.threads}
    totals: list[str] = []
    status, engine = 0, engine_of(options)
    for way, disable in ways:
        run = partial(_run, way=way, disable=disable, machine=machine)
        counts = _run_all(cases, run, engine)
        how = f" ({_NAMES[way]}{', fewer passes' * bool(disable)})" if options.every_way else ""
        total = ", ".join(f"{counts[kind]} {kind}" for kind in ("refused", "wrong", "error"))
        totals.append(f"{options.kind}{how}: {counts['pass']} of {len(cases)} cases pass, {total}")
        status |= int(bool(counts["wrong"] or counts["error"]))
    print("\n".join(totals))
    return status


def _run_all(cases: Sequence[Case], run: Callable[[Case], Outcome], engine: Engine) -> Counter[str]:
    """Run cases, print a line for each, and count what became of them."""
    counts: Counter[str] = Counter()
    for case, future in engine.deal(run, cases):
        outcome = _crash(case, error) if (error := future.exception()) else future.result()
        counts[outcome.status] += 1
        message = outcome.message.rstrip().replace("\n", "\n    ")
        print(f"{outcome.status:8} {outcome.name:28} {message}".rstrip(), flush=True)
    return counts


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    kinds = "tf1 caffe tflite keras pt2 paddle mindir mxnet darknet"
    parser.add_argument("kind", choices=kinds.split())
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--interpret", action="store_true", help="do not compile")
    ways.add_argument(
        "--export",
        choices=("onnx", "caffe"),
        help="run the exported model: ONNX by onnxruntime, a net of Caffe through C",
    )
    ways.add_argument(
        "--every-way", action="store_true", help="C and ONNX, with and without passes; Caffe"
    )
    parser.add_argument("--corpus", help="the folder with the cases")
    parser.add_argument("--filter", default="", help="only cases whose name matches")
    passes = parser.add_mutually_exclusive_group()
    passes.add_argument("--disable", action="append", default=[], metavar="PASS")
    passes.add_argument(
        "--disable-optional", action="store_true", help="leave out every pass that can be"
    )
    parser.add_argument("--target", default="native", metavar="NAME")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    add_options(parser, every_processor())
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
