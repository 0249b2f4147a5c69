"""
Our compiled models beside onnxruntime and OpenVINO.

    python -m bench.peers FOLDER [NAME ...] [--quick] [--seconds S] [--json F] [--markdown F]
                          [--before CHECKOUT]
    python -m bench.peers --caffe FOLDER ...

FOLDER holds NAME.onnx and NAME.npz (arrays "input:<tensor>") for every model. All contenders take
turns in one process, on arrays that stay where they are, so that all of them see the same noise.
`pip install '.[bench]'` brings the peers.

Errors are largest differences from the model in double precision (`bench/reference.py`);
`--references DIR` keeps the results. An output may differ by four times what onnxruntime does, or
by 1e-5 of the largest value if that is more. With `--strict-accuracy`, for which models are
compiled then, only the former counts; both are shown.

Shares of the peak are of the multiply-adds that this machine makes in registers in the same
process. Models that the fastest contender runs in less than 0.2 ms have a table of their own: there
it is calls that are measured. `--quick` runs some small models for a second each. `--before` adds
the code of another checkout of the sources, to see what has become faster or slower since.

`--target` compiles for a lesser processor than this one. OpenVINO is held to the same instructions
(`ONEDNN_MAX_CPU_ISA`); onnxruntime, which cannot be, is left out.

`--caffe` is `bench/caffe_peer.py`: nets of Caffe beside OpenCV.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from importlib import metadata as packages
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from bench import caffe_peer
from bench.machine import ProgramError, busy_core, description, resident_of_example
from bench.measuring import MEGABYTE, geometric_mean, markdown_table, text_table
from bench.peer_runs import BEFORE, OPENVINO, ORT, OURS, OURS_IN_C
from bench.processes import ROOT, command_of, environment_for
from bench.reference import recorded_inputs
from lowerdeck.compiler import CompileOptions, generate
from lowerdeck.metadata import read_metadata

Result: TypeAlias = "dict[str, Any]"
Table: TypeAlias = "Callable[[Sequence[str], Iterable[Sequence[str]]], str]"

SHORT_SECONDS = 0.2e-3
"""Below this, the time of a call is not small beside the time of the model."""

ORT_ERRORS = 4
"""An error may be so many times onnxruntime's."""

RELATIVE_ERROR = 1e-5
"""Or this part of the largest value, unless accuracy is strict."""

QUICK = ("mlp", "mobilenet_v2", "squeezenet1_1", "minilm_l6", "lstm_tagger")
"""What `--quick` measures, of the models that there are."""
_QUICK_SECONDS, _SECONDS = 1.0, 10.0

INSTRUCTIONS = {"x86-64-v4": "AVX512_CORE", "x86-64-v3": "AVX2", "x86-64": "SSE41"}
"""By target, what OpenVINO calls the same instructions, or the next ones that it knows."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if a model cannot be compiled or measured, or is not exact enough."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if "--caffe" in given:
        return caffe_peer.main([argument for argument in given if argument != "--caffe"])
    options = _parse(given)
    if missing := [name for name in (ORT, OPENVINO) if find_spec(name) is None]:
        raise SystemExit(f"{' and '.join(missing)} is not installed: pip install '.[bench]'")
    folder = Path(options.folder)
    names: list[str] = options.names or sorted(path.stem for path in folder.glob("*.onnx"))
    if options.quick and not options.names:
        names = [name for name in names if name in QUICK]
    versions = {name: packages.version(name) for name in (OURS, ORT, OPENVINO)}
    report: Result = {"machine": description(), "versions": versions, "models": []}
    report["strict_accuracy"] = options.strict_accuracy
    if options.target in INSTRUCTIONS:
        os.environ["ONEDNN_MAX_CPU_ISA"] = INSTRUCTIONS[options.target]  # of all parts
    failed: list[str] = []
    for name in names:
        print(f"{time.strftime('%H:%M:%S')} {name}", file=sys.stderr, flush=True)
        try:
            report["models"].append(_measure(folder, name, options))
        except PartError as error:
            failed.append(name)
            print(f"{name}: {error}", file=sys.stderr, flush=True)
    report["machine"]["load after"] = os.getloadavg()
    print(render(report, text_table))
    if options.json is not None:
        Path(options.json).write_text(json.dumps(report, indent=2) + "\n")
    if options.markdown is not None:
        Path(options.markdown).write_text(render(report, markdown_table) + "\n")
    inexact = [m for m in report["models"] if not is_exact(m, options.strict_accuracy)]
    return int(bool(failed or inexact))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().split("\n\n")[0])
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, help="for each model and number of threads")
    parser.add_argument("--target", choices=["native", *INSTRUCTIONS], default="native")
    parser.add_argument("--quick", action="store_true", help="some models, a second each")
    parser.add_argument("--strict-accuracy", action="store_true", help="compile for exactness")
    parser.add_argument("--busy-core", action="store_true", help="keep one core busy meanwhile")
    parser.add_argument("--no-reference", action="store_true", help="measure no errors")
    parser.add_argument("--references", metavar="DIR", help="keep results in double precision")
    parser.add_argument(
        "--before", metavar="CHECKOUT", help="compare with the code of these sources"
    )
    parser.add_argument("--json", metavar="F")
    parser.add_argument("--markdown", metavar="F")
    options = parser.parse_args(arguments)
    if options.seconds is None:
        options.seconds = _QUICK_SECONDS if options.quick else _SECONDS
    return options


# One model


class PartError(Exception):
    """A part of a measurement failed."""


def _measure(folder: Path, name: str, options: argparse.Namespace) -> Result:
    model, inputs = str(folder / f"{name}.onnx"), str(folder / f"{name}.npz")
    result: Result = {"name": name, "runs": {}, **_part("inspect", model=model, inputs=inputs)}
    compared = (ORT, OPENVINO) if options.target == "native" else (OPENVINO,)
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(options.references or scratch)
        reference = None if options.no_reference else _reference(model, inputs, kept)
        for threads in options.threads:
            built = Path(scratch, str(threads))
            compiling: dict[str, Any] = {
                "model": model,
                "threads": threads,
                "strict_accuracy": options.strict_accuracy,
                "target": options.target,
            }
            built.mkdir()
            times = _part("compile", folder=str(built), **compiling)
            before = None
            if options.before is not None:
                before = str(Path(scratch, f"{threads}_before"))
                os.mkdir(before)
                _part("compile", Path(options.before), folder=before, **compiling)
            with busy_core() if options.busy_core else nullcontext():
                run = _part(
                    "measure",
                    model=model,
                    inputs=inputs,
                    folder=str(built),
                    before=before,
                    threads=threads,
                    seconds=options.seconds,
                    reference=reference,
                    peers=compared,
                )
            result["runs"][str(threads)] = {**times, **run}
        first = str(options.threads[0])
        failures = result["runs"][first]["failures"]
        peers = [peer for peer in compared if peer not in failures]
        result["memory"] = _memory(model, inputs, Path(scratch, first), peers)
    return result


def _reference(model: str, inputs: str, folder: Path) -> str:
    """The file with the outputs in double precision, made anew if it is older than the model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{Path(model).stem}.f64.npz"
    newest = max(os.stat(file).st_mtime for file in (model, inputs))
    if not path.exists() or path.stat().st_mtime < newest:
        _run(command_of("bench.reference", model, inputs, path))
    return str(path)


def _memory(model: str, inputs: str, built: Path, peers: Sequence[str]) -> Result:
    """The arena of a model whose sizes are open is that of one compiled for those of its inputs."""
    data, arrays = read_metadata(str(built)), recorded_inputs(inputs)
    try:
        example = resident_of_example(str(built), data, _open_sizes(data, arrays))
    except ProgramError as error:  # its inputs are its own, and need not be ones that a model takes
        print(error, file=sys.stderr, flush=True)
        example = None
    if not isinstance(data["workspace"], int):
        built = built / "known_sizes"
        built.mkdir()
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        generate(model, str(built), CompileOptions(input_shapes=shapes))
        data = read_metadata(str(built))
    memory: Result = {
        "workspace": data["workspace"],
        "live": data["memory"]["live"],
        "row_major": data["memory"]["row_major"],
        "weights": data["weights_size"],
        "example": example,
    }
    for peer in peers:
        memory[peer] = _part("resident", model=model, inputs=inputs, peer=peer)
    return memory


def _open_sizes(metadata: Result, arrays: Mapping[str, NDArray[Any]]) -> list[int]:
    """What the example program takes: each size that is not known, as its first input has it."""
    sizes: dict[str, int] = {}
    for port in metadata["inputs"]:
        for dim, size in zip(port["dims"], arrays[port["name"]].shape, strict=True):
            if isinstance(dim, str) and dim.isidentifier():
                sizes.setdefault(dim, size)
    return list(sizes.values())


def _part(part: str, checkout: Path = ROOT, **options: Any) -> Result:
    """A part by the product of a checkout."""
    return json.loads(_run(command_of("bench.peer_runs", part, json.dumps(options)), checkout))


def _run(command: Sequence[str], checkout: Path = ROOT) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment_for(checkout)
    )
    if done.returncode:
        raise PartError(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


# Tables


def render(report: Result, table: Table) -> str:
    """The report as text, with tables in one style."""
    models: Sequence[Result] = report["models"]
    machine = report["machine"]
    parts = [
        f"{machine['cpu']}, {machine['cpus']} CPUs; {machine['compiler']}; load "
        f"{machine['load'][0]:.1f} before, {machine['load after'][0]:.1f} after; "
        + ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    ]
    for threads in sorted({threads for model in models for threads in model["runs"]}, key=int):
        measured = [model for model in models if threads in model["runs"]]
        parts += _time_tables(measured, threads, table)
        parts += _before_table(
            [m for m in measured if BEFORE in m["runs"][threads]["times"]], threads, table
        )
    parts.append(table(_ERROR_HEAD, [_error_line(model) for model in models]))
    parts.append(table(_MEMORY_HEAD, [_memory_line(model) for model in models]))
    parts.append(table(_COMPILE_HEAD, [line for m in models for line in _compile_lines(m)]))
    return "\n\n".join(parts)


_TIME_HEAD = (
    "model",
    "lowerdeck ms",
    "p10",
    "in C ms",
    "onnxruntime ms",
    "p10",
    "openvino ms",
    "p10",
    "ratio",
    "ratio p10",
    "peak",
    "best peer's",
)


def _time_tables(models: Sequence[Result], threads: str, table: Table) -> list[str]:
    """The models of some length, with the mean of their ratios, and the short ones."""
    parts: list[str] = []
    title = f"{threads} thread{'s' if threads != '1' else ''}"
    short = [model for model in models if is_short(model["runs"][threads])]
    long = [model for model in models if model not in short]
    if long:
        medians, tenths = (ratios([m["runs"][threads] for m in long], s) for s in ("median", "p10"))
        rows = [_time_line(model, threads) for model in long]
        parts += [
            f"{title}: the better peer takes {geometric_mean(medians):.3f} times as long "
            f"(geometric mean over {len(medians)} models; {geometric_mean(tenths):.3f} by p10)",
            table(_TIME_HEAD, rows),
        ]
    if short:
        rows = [_time_line(model, threads) for model in short]
        parts += [f"{title}, less than {SHORT_SECONDS * 1e3} ms", table(_TIME_HEAD, rows)]
    return parts


_BEFORE_HEAD = ("model", "ms before", "ms now", "speed now", "by p10", "ratio before", "ratio now")


def _before_table(models: Sequence[Result], threads: str, table: Table) -> list[str]:
    """How fast the code of another checkout is: beside ours, and beside the better peer."""
    if not models:
        return []
    runs = [model["runs"][threads] for model in models]
    speeds = {s: [speed_by_before(run, s) for run in runs] for s in ("median", "p10")}
    rows = [
        [
            model["name"],
            *(f"{run['times'][name]['median'] * 1e3:.3f}" for name in (BEFORE, OURS)),
            *(f"{speed_by_before(run, s):.3f}" for s in ("median", "p10")),
            *(f"{ratio(run, 'median', name):.3f}" for name in (BEFORE, OURS)),
        ]
        for model, run in zip(models, runs, strict=True)
    ]
    means = [geometric_mean(speeds[s]) for s in ("median", "p10")]
    return [
        f"{threads} thread{'s' if threads != '1' else ''}: {means[0]:.3f} times as fast as before "
        f"(geometric mean over {len(models)} models; {means[1]:.3f} by p10)",
        table(_BEFORE_HEAD, rows),
    ]


def speed_by_before(run: Result, statistic: str) -> float:
    """The time of the other checkout's code by ours: above 1 ours has become faster."""
    return run["times"][BEFORE][statistic] / run["times"][OURS][statistic]


def is_short(run: Result) -> bool:
    """True if the fastest contender takes less than 0.2 ms."""
    return min(times["median"] for times in run["times"].values()) < SHORT_SECONDS


def best_peer(run: Result, statistic: str) -> float:
    """The seconds of the faster peer; NaN if none runs the model."""
    found = [run["times"][peer][statistic] for peer in (ORT, OPENVINO) if peer in run["times"]]
    return min(found, default=math.nan)


def ratio(run: Result, statistic: str, name: str = OURS) -> float:
    """The faster peer's time by ours: above 1 we are faster."""
    return best_peer(run, statistic) / run["times"][name][statistic]


def ratios(runs: Iterable[Result], statistic: str) -> list[float]:
    """The ratios of the runs that a peer made, too."""
    found = [ratio(run, statistic) for run in runs]
    return [value for value in found if not math.isnan(value)]


def share_of_peak(multiply_adds: int, seconds: float, peak_flops: float) -> float:
    """The part of the machine's floating-point operations that the model's are."""
    return 2 * multiply_adds / seconds / peak_flops


def _time_line(model: Result, threads: str) -> list[str]:
    run = model["runs"][threads]
    times: Mapping[str, Mapping[str, float]] = run["times"]

    def cells(name: str, *statistics: str) -> list[str]:
        return [f"{times[name][s] * 1e3:.3f}" if name in times else "-" for s in statistics]

    mark = "" if model["is_exact"] else ">="
    shares = [
        f"{mark}{share_of_peak(model['multiply_adds'], seconds, run['peak_flops']):.1%}"
        for seconds in (times[OURS]["median"], best_peer(run, "median"))
    ]
    return [
        model["name"],
        *cells(OURS, "median", "p10"),
        *cells(OURS_IN_C, "median"),
        *cells(ORT, "median", "p10"),
        *cells(OPENVINO, "median", "p10"),
        f"{ratio(run, 'median'):.3f}",
        f"{ratio(run, 'p10'):.3f}",
        *shares,
    ]


_ERROR_HEAD = (
    "max|y - y64|",
    "lowerdeck",
    "onnxruntime",
    "openvino",
    "max|y64|",
    "by onnxruntime's",
    "strict",
    "allowed",
    "default",
)


def _errors_of(model: Result) -> Mapping[str, float]:
    """The largest errors of all runs."""
    runs: Iterable[Result] = model["runs"].values()
    errors: dict[str, float] = {}
    for run in runs:
        for name, error in run["errors"].items():
            errors[name] = max(error, errors.get(name, 0.0))
    return errors


def allowed_error(errors: Mapping[str, float], strict: bool) -> float:
    """The largest difference from double precision that we may make."""
    peer = ORT_ERRORS * errors.get(ORT, 0.0)
    return peer if strict else max(peer, RELATIVE_ERROR * errors["largest value"])


def is_exact(model: Result, strict: bool) -> bool:
    """True if our error is not above what is allowed, or was not measured."""
    errors = _errors_of(model)
    return not errors or errors[OURS] <= allowed_error(errors, strict)


def _error_line(model: Result) -> list[str]:
    errors = _errors_of(model)
    columns = (OURS, ORT, OPENVINO, "largest value")
    cells = [model["name"], *(f"{errors[c]:.2e}" if c in errors else "-" for c in columns)]
    if not errors:
        return [*cells, "-", "-", "-", "-"]
    by_peer = errors[OURS] / errors[ORT] if errors.get(ORT) else math.nan
    verdicts = ["pass" if is_exact(model, strict) else "FAIL" for strict in (True, False)]
    allowed = f"{allowed_error(errors, strict=False):.2e}"
    return [*cells, f"{by_peer:.2f}", verdicts[0], allowed, verdicts[1]]


_MEMORY_HEAD = (
    "memory MB",
    "example program",
    "onnxruntime",
    "its peak",
    "openvino",
    "its peak",
    "weights",
    "arena",
    "live at once",
    "arena by live",
    "by live row-major",
)


def _memory_line(model: Result) -> list[str]:
    memory = model["memory"]
    live, row_major = memory["live"], memory["row_major"]
    workspace = memory["workspace"]
    is_known = isinstance(workspace, int) and live
    peers = [
        memory.get(peer, {}).get(key) for peer in (ORT, OPENVINO) for key in ("resident", "peak")
    ]
    sizes = [memory["example"], *peers, memory["weights"], workspace, live]
    cells = [_megabytes(size) for size in sizes]
    parts = [f"{workspace / size:.3f}" if is_known and size else "-" for size in (live, row_major)]
    return [model["name"], *cells, *parts]


def _megabytes(size: object) -> str:
    return f"{size / MEGABYTE:.2f}" if isinstance(size, int) else "-"


_COMPILE_HEAD = ("compile", "threads", "python s", "gcc s")


def _compile_lines(model: Result) -> list[list[str]]:
    return [
        [model["name"], threads, f"{run['python_seconds']:.2f}", f"{run['cc_seconds']:.2f}"]
        for threads, run in model["runs"].items()
    ]


if __name__ == "__main__":
    sys.exit(main())
