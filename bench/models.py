"""
Whole models through C, compared with onnxruntime: nodes, times, memory, error.

    python -m bench.models FOLDER [NAME ...]

FOLDER holds NAME.onnx and NAME.npz (arrays "input:<tensor>") for every model. Each is compiled in a
process of its own, whose anonymous memory is sampled, and run on the recorded inputs. A second
compilation adds every tenth intermediate value as an output, because a deep network with random
weights hardly reacts to its input. Models with dynamic dimensions run in more shapes from one
compilation. A value a agrees with b if |a - b| <= 1e-4 max|b| + 1e-3 |b|.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from bench.measuring import MEGABYTE, PeakMemory
from bench.processes import command_of, environment_for

Arrays: TypeAlias = dict[str, NDArray[Any]]

DYNAMIC_SHAPES: Mapping[str, Sequence[Mapping[str, tuple[int, ...]]]] = {
    "model_net": [{"input": (4, 3, 256, 256)}, {"input": (8, 3, 512, 512)}]
}
"""Further shapes for models whose dimensions are dynamic."""

SKIPPED = ("vgg16",)
"""Larger than what this benchmark is for."""

STRIDE = 10
"""Every how-manyth intermediate value becomes an output."""


@dataclass
class Row:
    """The measurements of one model."""

    name: str
    nodes: int
    file_size: int
    python_seconds: float
    cc_seconds: float
    peak_bytes: int
    errors: dict[str, float] = field(default_factory=dict[str, float])
    """The largest error of each run, in units of what is allowed."""

    @property
    def agrees(self) -> bool:
        """True if every run is within the tolerance."""
        return all(error <= 1 for error in self.errors.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a model disagrees."""
    options = _parse(arguments)
    if options.measure:
        measure(options.names[0], options.folder, options.outputs)
        return 0
    folder = Path(options.folder)
    names = options.names or sorted(
        path.stem for path in folder.glob("*.onnx") if path.stem not in SKIPPED
    )
    rows: list[Row] = []
    for name in names:
        rows.append(_run_model(folder, name))
        print(_line(rows[-1]), file=sys.stderr, flush=True)
    _print_table(rows)
    return int(not all(row.agrees for row in rows))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--outputs", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


# One compilation, in its own process


def measure(path: str, folder: str, outputs: Sequence[str] | None) -> None:
    """Compile `path` into `folder` and print the times and the peak of anonymous memory."""
    peak = PeakMemory()
    start = time.perf_counter()
    from lowerdeck.compiler import CompileOptions, generate

    generate(path, folder, CompileOptions(outputs=outputs))
    python_seconds = time.perf_counter() - start
    peak_bytes = peak.stop()
    from lowerdeck.build import build_library, library_name
    from lowerdeck.metadata import read_metadata

    metadata = read_metadata(folder)
    start = time.perf_counter()
    build_library(folder, metadata, str(Path(folder) / library_name(metadata["name"])))
    cc_seconds = time.perf_counter() - start
    json.dump([python_seconds, cc_seconds, peak_bytes], sys.stdout)


def _compile(path: Path, folder: str, outputs: Sequence[str] | None) -> list[float]:
    command = command_of("bench.models", "--measure", folder, path)
    if outputs is not None:
        command += ["--outputs", *outputs]
    result = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment_for()
    )
    if result.returncode:
        raise SystemExit(f"{path}: the compilation failed:\n{result.stderr}")
    return json.loads(result.stdout)


# One model


def _run_model(folder: Path, name: str) -> Row:
    import onnx

    path = folder / f"{name}.onnx"
    proto = cast(Any, onnx).load(str(path))
    with np.load(folder / f"{name}.npz") as arrays:
        recorded = {key[6:]: arrays[key] for key in arrays.files if key.startswith("input:")}
    used = {value.name for value in proto.graph.input}
    inputs = [{key: array for key, array in recorded.items() if key in used}]
    rng = np.random.default_rng(0)
    for shapes in DYNAMIC_SHAPES.get(name, ()):
        inputs.append(
            {key: rng.standard_normal(shape).astype(np.float32) for key, shape in shapes.items()}
        )
    with tempfile.TemporaryDirectory() as out:
        python_seconds, cc_seconds, peak = _compile(path, out, None)
        nodes = sum(1 for _ in proto.graph.node)
        size = path.stat().st_size
        row = Row(name, nodes, size, python_seconds, cc_seconds, int(peak))
        row.errors["outputs"] = _worst(proto, out, inputs)
    with tempfile.TemporaryDirectory() as out:
        extended, outputs = _with_intermediates(proto)
        _compile(path, out, outputs)
        row.errors["intermediates"] = _worst(extended, out, inputs[:2])
    return row


def _with_intermediates(proto: Any) -> tuple[Any, list[str]]:
    """The model with every tenth value of its main graph as an output too, and all outputs."""
    import onnx

    extended = onnx.ModelProto()
    extended.CopyFrom(proto)
    existing = [value.name for value in proto.graph.output]
    values = [name for node in proto.graph.node for name in node.output if name]
    added = [name for name in values[::STRIDE] if name not in existing]
    extended.graph.output.extend(onnx.ValueInfoProto(name=name) for name in added)
    return extended, [*existing, *added]


def _worst(proto: Any, folder: str, inputs: Sequence[Arrays]) -> float:
    """The largest error over all inputs and outputs, in units of what is allowed."""
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    from lowerdeck.compiler import load

    model = load(folder)
    ort = cast(Any, onnxruntime)
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        proto.SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_outputs()]
    worst = 0.0
    for feed in inputs:
        found = model(feed)
        for name, expected in zip(names, session.run(names, feed), strict=True):
            worst = max(worst, _error(found[name], expected))
    return worst


def _error(found: NDArray[Any], expected: Any) -> float:
    """The largest |a - b| / (1e-4 max|b| + 1e-3 |b|); infinite if types or shapes differ."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    if not expected.size:
        return 0.0
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else float("inf")
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return float("inf")
    magnitude = np.abs(expected)
    finite = np.isfinite(magnitude)
    largest = float(magnitude[finite].max(initial=0.0))
    difference = np.abs(found - expected)[finite]
    allowed = (1e-4 * largest + 1e-3 * magnitude)[finite]
    ratio = np.divide(difference, allowed, out=np.zeros_like(difference), where=difference > 0)
    return float(ratio.max(initial=0.0))


# The table


def _line(row: Row) -> str:
    errors = " ".join(f"{row.errors[key]:9.2e}" for key in ("outputs", "intermediates"))
    ratio = row.peak_bytes / row.file_size
    return (
        f"{row.name:20} {row.nodes:6} {row.python_seconds:8.2f} {row.cc_seconds:8.2f} "
        f"{row.peak_bytes / MEGABYTE:9.1f} {row.file_size / MEGABYTE:9.1f} {ratio:6.2f} "
        f"{errors} {'ok' if row.agrees else 'WRONG'}"
    )


def _print_table(rows: Sequence[Row]) -> None:
    print(
        f"{'model':20} {'nodes':>6} {'python s':>8} {'cc s':>8} {'peak MB':>9} {'file MB':>9} "
        f"{'ratio':>6} {'outputs':>9} {'inner':>9}"
    )
    for row in rows:
        print(_line(row))
    wrong = [row.name for row in rows if not row.agrees]
    print(f"{len(rows) - len(wrong)} of {len(rows)} models agree with onnxruntime")


if __name__ == "__main__":
    sys.exit(main())
